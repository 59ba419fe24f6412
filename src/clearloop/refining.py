"""Refinement: a simpler controller, with fewer digits and parts, at an allowed cost. See `docs/refine.md`."""

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

# The constants of a controller. Those of the same magnitude change together, so that rules which mirror each
# other keep doing so.

MOST_DIGITS = 6  # the largest number of digits that is tried before a constant is left as it is


def sizes(controller: Controller) -> tuple[float, ...]:
    """Return the magnitudes of all constants that are not 0, in the order of the file."""
    found: dict[float, None] = {}

    def look(value: float) -> float:
        found[abs(value)] = None
        return value

    controller.with_constants(look)
    return tuple(size for size in found if size)


def digits_of(value: float) -> int:
    """Return the number of significant digits of the shortest text that means this value."""
    mantissa = f"{value!r}".lower().partition("e")[0]
    return len(mantissa.replace(".", "").strip("-0")) or 1


def with_size(controller: Controller, old: float, new: float) -> Controller:
    """Return the controller with the constants of magnitude `old` changed to `new`; signs stay."""
    return controller.with_constants(lambda value: math.copysign(new, value) if abs(value) == old else value)


def short(value: float) -> str:
    """Return a number for people, with at most as many digits as are tried."""
    return f"{value:.{MOST_DIGITS}g}"


class Removal(NamedTuple):
    """A simpler controller of the same kind, and in words what was changed."""

    controller: Controller
    what: str


def removals(controller: Controller) -> list[Removal]:
    """Return the controllers with one part less, in the order of the file, without duplicates."""
    found: dict[str, Removal] = {}
    for removal in starmap(Removal, controller.simpler()):
        if removal.controller.complexity < controller.complexity:
            found.setdefault(removal.controller.model_dump_json(), removal)
    return list(found.values())


# The search takes away digits and parts one by one, always the change that costs least, as long as the
# penalty stays allowed. All candidates of a step are scored at once. The allowed penalty is counted from the
# best one so far, beginning with the given controller: many small steps cannot add up to more, and what one
# step gains is not lost by the next.

Score = Callable[[Sequence[Controller]], Floats]
"""A function that gives the penalties [P, N] of P controllers, from the same N starts."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a refinement.

    Attributes:
        digits: The least number of significant digits that a constant is rounded to.
        drop: Whether parts may be left out.
        tolerance: The share of the penalty that all steps together may add.
    """

    digits: int = 2
    drop: bool = False
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= MOST_DIGITS:
            raise ClearloopError(f"--round {self.digits}: expected from 1 to {MOST_DIGITS} digits")
        if not 0 <= self.tolerance < 1:
            raise ClearloopError(f"--tolerance {self.tolerance:g}: expected a share such as 0.01, below 1")


@dataclass(frozen=True)
class Step:
    """A step of a refinement: in words what was changed, then the penalty and the complexity after it."""

    what: str
    penalty: float
    complexity: int


@dataclass(frozen=True, eq=False)
class Refinement:
    """A simpler controller, and what each step towards it cost.

    Attributes:
        controller: The simpler controller.
        before: The penalty of the given controller.
        steps: The steps in their order.
        extra: The additional penalty of the simpler controller, mean over the starts.
        extra_error: The standard error of `extra`; both controllers run from the same starts.
    """

    controller: Controller
    before: float
    steps: tuple[Step, ...]
    extra: float
    extra_error: float

    @property
    def after(self) -> float:
        """The penalty of the simpler controller."""
        return self.before + self.extra

    def to_dict(self) -> dict[str, Any]:
        """Return the penalties and the steps as plain data."""
        return {
            "before": self.before,
            "after": self.after,
            "extra": {"mean": self.extra, "se": self.extra_error},
            "steps": [vars(step) for step in self.steps],
        }


def refine(controller: Controller, score: Score, settings: Settings) -> Refinement:
    """Simplify a controller: leave out parts, then round constants.

    Args:
        controller: The controller.
        score: The function that gives penalties.
        settings: What is allowed.

    Returns:
        The simpler controller and the steps towards it.

    Raises:
        ClearloopError: If the controller is of a kind that a person does not read.
    """
    if not controller.readable:
        others = ", ".join(name for name, kind in KINDS.items() if kind.readable)
        raise ClearloopError(
            f"a controller of kind '{controller.kind}' cannot be refined, because a person cannot read it;"
            f" these kinds can be refined: {others}"
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
    """Return controllers in which one constant that has more digits is rounded."""
    changes = [(size, significant(size, digits)) for size in sizes(controller) if digits_of(size) > digits]
    return [
        Removal(with_size(controller, size, new), f"{short(size)} becomes {short(new)}")
        for size, new in changes
        if new  # no constant is rounded to 0
    ]


class _Search:
    def __init__(self, controller: Controller, score: Score, tolerance: float) -> None:
        self.controller, self._score = controller, score
        self._first = self._last = score([controller])[0]
        self._best, self._tolerance = float(self._first.mean()), tolerance
        self._steps: list[Step] = []

    def take(self, candidates: Sequence[Removal]) -> bool:
        """Take the candidate with the least penalty if that is allowed, and return whether one was taken.

        Of equal ones the simplest is taken, then the first.
        """
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


class Judge:
    """A function that gives the penalties of controllers on the judging members of a surrogate.

    Args:
        controller: A controller; those that are scored must not look further back.
        task: The task.
        surrogate: The model.
        starts: The N scenarios that all controllers run from.
    """

    def __init__(self, controller: Controller, task: Task, surrogate: Surrogate, starts: Scenarios) -> None:
        self.task, self._rows = task, window(task, [controller])
        self._features = Features(task.state_names, task.action_names, self._rows)
        self._system = make_system(task, surrogate, self._rows, surrogate.judge_members)
        self._job = make_job(task, controller, starts, surrogate, self._rows)

    def __call__(self, controllers: Sequence[Controller]) -> Floats:
        """Return the penalties [P, N] of P controllers, mean over members, in double precision."""
        shapes = [tuple(controller.sizes(self._features)) for controller in controllers]
        # The engine runs controllers of one shape as a population.
        penalties = np.zeros((len(controllers), len(self._job.starts)))
        for shape in dict.fromkeys(shapes):
            places = [place for place, other in enumerate(shapes) if other == shape]
            policies = encode([controllers[place] for place in places], self.task, history=self._rows)
            penalties[places] = -roll_out(policies, self._system, self._job).returns.mean(axis=0)
        return penalties
