"""Digits and parts of a controller, taken away one by one: always what costs least, as far as is allowed.

All candidates of a step are scored at once. What is allowed is counted from the best that was seen, beginning
with the controller as it was given: many small steps cannot add up to more, and what a step gains is not
given away by the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clearloop.controllers import PID, Controller, Equation, Fuzzy, Linear
from clearloop.data.cells import Floats
from clearloop.errors import ClearloopError
from clearloop.expression import significant
from clearloop.refining.constants import MOST_DIGITS, digits_of, short, sizes, with_size
from clearloop.refining.removals import Removal, removals

Score = Callable[[Sequence[Controller]], Floats]
"""Penalties [P, N] of controllers, from the same starts."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    digits: int = 2
    """no constant is rounded to fewer significant ones"""
    drop: bool = False
    """whether parts may be left out"""
    tolerance: float = 0.01
    """share of the penalty that all steps together may add"""

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= MOST_DIGITS:
            raise ClearloopError(f"--round {self.digits}: expected from 1 to {MOST_DIGITS} digits")
        if not 0 <= self.tolerance < 1:
            raise ClearloopError(f"--tolerance {self.tolerance:g}: expected a share such as 0.01, below 1")


@dataclass(frozen=True)
class Step:
    what: str
    """in words"""
    penalty: float
    """after it"""
    complexity: int


@dataclass(frozen=True, eq=False)
class Refinement:
    controller: Controller
    before: float
    """the penalty of what was given"""
    steps: tuple[Step, ...]
    extra: float
    """what the refined one costs more, mean over the starts"""
    extra_error: float
    """its standard error: the starts are paired"""

    @property
    def after(self) -> float:
        return self.before + self.extra

    def to_dict(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "extra": {"mean": self.extra, "se": self.extra_error},
            "steps": [vars(step) for step in self.steps],
        }


def refine(controller: Controller, score: Score, settings: Settings) -> Refinement:
    """Parts first, because what is left out need not be rounded."""
    if not isinstance(controller, Equation | Linear | PID | Fuzzy):
        raise ClearloopError(
            f"a controller of the kind {controller.kind} has no parts that a person reads:"
            " refine an equation, a linear, a pid or a fuzzy one"
        )
    search = _Search(controller, score, settings.tolerance)
    if settings.drop:
        while search.take(removals(search.controller)):
            pass
    for digits in range(settings.digits, MOST_DIGITS + 1):
        while search.take(_rounded(search.controller, digits)):
            pass
    return search.result()


def _rounded(controller: Controller, digits: int) -> list[Removal]:
    """Each constant that has more digits, alone."""
    changes = [(size, significant(size, digits)) for size in sizes(controller) if digits_of(size) > digits]
    return [
        Removal(with_size(controller, size, new), f"{short(size)} becomes {short(new)}")
        for size, new in changes
        if new  # nothing is rounded away
    ]


class _Search:
    def __init__(self, controller: Controller, score: Score, tolerance: float) -> None:
        self.controller, self._score = controller, score
        self._first = self._last = score([controller])[0]
        self._best, self._tolerance = float(self._first.mean()), tolerance
        self._steps: list[Step] = []

    def take(self, candidates: Sequence[Removal]) -> bool:
        """The cheapest, if it is allowed; of equally cheap ones the simplest, then the first."""
        if not candidates:
            return False
        scores = self._score([candidate.controller for candidate in candidates])
        costs = scores.mean(axis=1)
        order = sorted(range(len(candidates)), key=lambda n: (costs[n], candidates[n].controller.complexity))
        best = order[0]
        if not costs[best] <= self._best + self._tolerance * abs(self._best):
            return False
        self._best = min(self._best, float(costs[best]))
        self.controller, self._last = candidates[best].controller, scores[best]
        self._steps.append(Step(candidates[best].what, float(costs[best]), self.controller.complexity))
        return True

    def result(self) -> Refinement:
        extra = self._last - self._first
        error = float(extra.std(ddof=1) / np.sqrt(extra.size)) if extra.size > 1 else 0.0
        return Refinement(
            self.controller, float(self._first.mean()), tuple(self._steps), float(extra.mean()), error
        )
