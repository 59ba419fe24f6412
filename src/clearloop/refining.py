"""Simpler controllers that cost no more than allowed: fewer digits, fewer parts. See `docs/refine.md`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller, encode
from clearloop.errors import ClearloopError
from clearloop.evaluation.rollouts import make_job, make_system, window
from clearloop.kernels.engine import roll_out
from clearloop.numbers import significant
from clearloop.plants.scenarios import Scenarios
from clearloop.programs import Features
from clearloop.registry import KINDS
from clearloop.surrogate import Surrogate
from clearloop.task import Task

# The constants of a controller file, wherever they stand, and files with other constants.
#
# Constants of the same size change together: of rules that mirror each other, both sides keep doing so.

MOST_DIGITS = 6  # that are tried, before a constant is left as it is


def sizes(controller: Controller) -> tuple[float, ...]:
    """Of all constants, in the order of the file."""
    found: dict[float, None] = {}

    def look(value: float) -> float:
        found[abs(value)] = None
        return value

    controller.with_constants(look)
    return tuple(size for size in found if size)


def digits_of(value: float) -> int:
    """Significant ones, of the shortest text that means this value."""
    mantissa = f"{value!r}".lower().partition("e")[0]
    return len(mantissa.replace(".", "").strip("-0")) or 1


def with_size(controller: Controller, old: float, new: float) -> Controller:
    return controller.with_constants(lambda value: math.copysign(new, value) if abs(value) == old else value)


def short(value: float) -> str:
    """For people: at most as many digits as are tried."""
    return f"{value:.{MOST_DIGITS}g}"


# What can be left out of a controller, part by part: each gives a simpler controller of the same kind.


class Removal(NamedTuple):
    controller: Controller
    what: str
    """in words"""


def removals(controller: Controller) -> list[Removal]:
    """All that remain a controller for every action, in the order of the file, none twice."""
    found: dict[str, Removal] = {}
    for removal in starmap(Removal, controller.simpler()):
        if removal.controller.complexity < controller.complexity:
            found.setdefault(removal.controller.model_dump_json(), removal)
    return list(found.values())


# Digits and parts of a controller, taken away one by one: always what costs least, as far as is allowed.
#
# All candidates of a step are scored at once. What is allowed is counted from the best that was seen,
# beginning with the controller as it was given: many small steps cannot add up to more, and what a step
# gains is not given away by the next.

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
    if not controller.readable:
        others = ", ".join(name for name, kind in KINDS.items() if kind.readable)
        raise ClearloopError(
            f"a controller of the kind {controller.kind} has no parts that a person reads;"
            f" the kinds that have are: {others}"
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


__all__ = ["Refinement", "Settings", "Step", "refine"]


# What controllers of one kind cost, from the same starts on the same models: a population in one call.


class Judge:
    """Penalties on members of a surrogate, in double precision."""

    def __init__(self, controller: Controller, task: Task, surrogate: Surrogate, starts: Scenarios) -> None:
        """By the members that judge, for controllers that look back no farther than this one."""
        self.task, self._rows = task, window(task, [controller])
        self._features = Features(task.state_names, task.action_names, self._rows)
        self._system = make_system(task, surrogate, self._rows, surrogate.judge_members)
        self._job = make_job(task, controller, starts, surrogate, self._rows)

    def __call__(self, controllers: Sequence[Controller]) -> Floats:
        """[P, N] of each from each start, means over members. The engine takes those of one shape at once."""
        shapes = [tuple(controller.sizes(self._features)) for controller in controllers]
        penalties = np.zeros((len(controllers), len(self._job.starts)))
        for shape in dict.fromkeys(shapes):
            places = [place for place, other in enumerate(shapes) if other == shape]
            policies = encode([controllers[place] for place in places], self.task, history=self._rows)
            penalties[places] = -roll_out(policies, self._system, self._job).returns.mean(axis=0)
        return penalties
