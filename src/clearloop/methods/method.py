"""What every method promises: begin a search; then rounds, candidates, and a state to resume from."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Flags, Floats, Ints
from clearloop.controllers import PID, Controller, encode
from clearloop.controllers.pid import Loop, Loops
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation.q_evaluation import LinearQ
from clearloop.expression import Variable
from clearloop.kernels.engine import Rollout, System, roll_out
from clearloop.kernels.layout import Job, Policies
from clearloop.plants.plant import task_window
from clearloop.plants.scenarios import Scenarios
from clearloop.programs import Features
from clearloop.registry import METHODS
from clearloop.surrogate import Surrogate
from clearloop.task import Task

# What a method searches on: penalties of whole populations on a surrogate, with the model steps counted.
#
# Or, if it is given a value of the batch alone: penalties by that, with the logged steps counted.


class Problem:
    """A task, a batch and a surrogate of it; starts and members for the search alone; and a budget.

    With a `value`, searches do without the surrogate.
    """

    def __init__(
        self,
        task: Task,
        batch: Batch,
        surrogate: Surrogate,
        *,
        budget: int,
        rng: np.random.Generator,
        starts: int = 1024,
        value: LinearQ | None = None,
    ) -> None:
        """`budget`: steps of a model that may be spent; with a value, logged steps that may be looked at.

        `starts`: how many to draw.
        """
        self.task, self.batch, self.budget = task, batch, budget
        self._surrogate, self.value = surrogate, value
        self.spent = 0
        self.history = task_window(task) if value is None else task.history
        self.features = Features(task.state_names, task.action_names, self.history)
        self.scenarios = Scenarios.drawn(task, batch, starts, rng)
        """that candidates are tried in"""
        self.readable = _readable(task)
        """what a controller may read: states, now and before, and what it did before"""
        self._systems: dict[tuple[int, ...], System] = {}
        self._jobs: dict[int, Job] = {}

    @property
    def share(self) -> float:
        """Of the budget that is spent."""
        return min(1.0, self.spent / self.budget)

    @property
    def surrogate(self) -> Surrogate:
        """An error for methods that need it, where there shall be none."""
        if self.value is not None:
            raise ClearloopError("this method needs a model of the plant: it cannot use --value batch")
        return self._surrogate

    @property
    def members(self) -> int:
        """Of the surrogate, for the search."""
        return len(self.surrogate.search_members)

    @property
    def scales(self) -> Floats:
        """[features] The typical size of each of the engine's features in the batch, less its setpoint.

        Searches draw gains and widths in these, so that units do not matter.
        """
        task = self.task
        window = np.concatenate([self.batch.states.std(axis=0), np.ptp(task.action_limits, axis=1) / 2])
        sizes = np.concatenate([np.tile(window, self.history), window[: len(task.states)]])
        return np.where(sizes > 0, sizes, 1.0)

    @property
    def starts(self) -> Floats:
        """[n, S] where candidates start."""
        return self.scenarios.starts[:, : len(self.task.states)]

    @property
    def limits(self) -> NDArray[np.float32]:
        """[A, 2] of the actions, as populations want them."""
        return self.task.action_limits.astype(np.float32)

    def penalties(self, policies: Policies, *, starts: int, members: int | None = None) -> Floats:
        """[P] the mean penalty of each controller over the first starts, and the first members or all."""
        if self.value is not None:
            self.spent += len(policies.numbers) * self.value.cost
            return np.asarray(self.value.penalties(policies, self.starts[:starts]).mean(axis=1))
        some = range(self.members if members is None else min(members, self.members))
        chosen = tuple(self.surrogate.search_members[member] for member in some)
        job = self._job(min(starts, len(self.scenarios)))
        returns = roll_out(policies, self._system(chosen), job).returns
        self.spent += returns.size * self.task.horizon
        penalties: Floats = -returns.mean(axis=(0, 2), dtype=np.float64)
        return penalties

    def _job(self, starts: int) -> Job:
        if starts not in self._jobs:
            scenarios = self.scenarios[:starts]
            chance = self.surrogate.noise.draw(starts, scenarios.steps, scenarios.luck)
            self._jobs[starts] = scenarios.job(self.task, self.history, np.float32, chance)
        return self._jobs[starts]

    def _system(self, members: tuple[int, ...]) -> System:
        if members not in self._systems:
            self._systems[members] = self.surrogate.system(np.float32, members, self.history)
        return self._systems[members]


def _readable(task: Task) -> tuple[Variable, ...]:
    past = [(name, lag) for lag in range(1, task.history) for name in (*task.state_names, *task.action_names)]
    return (*map(Variable, task.state_names), *(Variable(name, lag=lag) for name, lag in past))


State = dict[str, Any]
"""Plain data: dictionaries, lists, strings, numbers and arrays. What a search needs to go on, to the bit."""


@dataclass(frozen=True)
class Candidate:
    controller: Controller
    penalty: float
    """as the search saw it: optimistic, because it was chosen for it"""
    compared: bool = False
    """not for the front: kept beside it by its name, whatever it costs"""


class Search(ABC):
    """A search under way. Everything random comes from the generator that it was begun with."""

    trials: "Sequence[Trial]" = ()
    """what was tried for a tuning, with trajectories, where the method tunes"""
    latest: float | None = None
    """the penalty of what the last round found, where that may be worse than what was there before"""

    @abstractmethod
    def advance(self) -> None:
        """One round: a few calls of the engine."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether more rounds would change nothing, whatever is left of the budget."""

    @property
    @abstractmethod
    def best(self) -> float:
        """The lowest penalty so far; infinite before the first round."""

    @abstractmethod
    def candidates(self) -> list[Candidate]:
        """What was found so far, from the simplest to the best."""

    @abstractmethod
    def state(self) -> State: ...

    @abstractmethod
    def restore(self, state: State) -> None: ...


class Column(NamedTuple):
    """A column of the table that `bench` makes, as in Table 1 of the paper."""

    name: str
    """of the method, or of the controller that it keeps beside its front: `nfq-last`"""
    title: str
    """the heading"""
    place: int | None = None
    """in the paper's table, from the left; None: not there, so it stands after those"""
    model: str = ""
    """the paper's penalty on its model ± standard error, from starts that the paper does not state"""
    system: str = ""
    """the paper's penalty on the plant ± standard error"""


class Method(ABC):
    """One way to get controllers from a batch. A frozen dataclass: it is its own configuration.

    The class variables say what lists, tables and time estimates need to know about it.
    """

    name: ClassVar[str]
    """what users write: `learn --method gprl`; small letters, digits and dashes"""
    title: ClassVar[str]
    """what people call it: "GPRL" """
    gives: ClassVar[str] = ""
    """the controllers that it finds, in a word or two: "equations" """
    section: ClassVar[str] = ""
    """of the paper, where it is described there: "3.7" """
    columns: ClassVar[tuple[Column, ...]] = ()
    """of the table; `bench` uses by default the methods that have a place in the paper's"""
    effort: ClassVar[float] = 4.0
    """minutes of one core, on the cart-pole with the standard budget; for time estimates"""
    grows: ClassVar[bool] = True
    """whether it searches longer with a larger budget"""
    needs_model: ClassVar[bool] = False
    """whether it asks more of the problem than penalties, so that it cannot search on the batch alone"""

    @abstractmethod
    def begin(self, problem: Problem, *, rng: np.random.Generator) -> Search: ...


def find_method(name: str) -> type[Method]:
    """The method of this name; an error with a suggestion if there is none."""
    found: type[Method] = METHODS.find(name)
    return found


# How a signal oscillates: from its turning points, wherever its middle may be.

FEWEST = 4  # turning points: three swings, of which the last is compared to the first
FADED = 1e-6  # of the range so far: what swings less is rounding


class Oscillation(NamedTuple):
    period: float
    """in samples"""
    ratio: float
    """of a swing to the one a period before: 1 is sustained, less dies out, more grows"""


def find_oscillation(signal: Floats) -> Oscillation | None:
    """Of the later half of the swings, when all else that the start stirred up is gone. None of too few."""
    times, values = turning_points(signal)
    swings = np.abs(np.diff(values))
    reach = np.maximum.accumulate(signal) - np.minimum.accumulate(signal)
    faded = swings < FADED * reach[times[1:].astype(np.int64)]
    if faded.any():
        swings = swings[: np.argmax(faded)]
    if len(swings) < FEWEST - 1:
        return None
    first = min((len(swings) - 1) // 2, len(swings) - FEWEST + 1)
    steps = len(swings) - 1 - first
    period = max(2.0, 2 * (times[len(swings)] - times[first]) / (len(swings) - first))  # nothing is faster
    return Oscillation(float(period), float((swings[-1] / swings[first]) ** (2 / steps)))


def turning_points(signal: Floats) -> tuple[Floats, Floats]:
    """When and at what value a signal turns back, by the parabola through the three samples next to it."""
    slopes = np.sign(np.diff(signal))
    at = np.flatnonzero(slopes[1:] * slopes[:-1] < 0) + 1
    before, here, after = signal[at - 1], signal[at], signal[at + 1]
    shift = (before - after) / (2 * (before - 2 * here + after))
    return at + shift, here - (before - after) * shift / 4


# One trial of a gain: a state under proportional control, let go from a small deviation, on the models.


@dataclass(frozen=True, eq=False)
class Trial:
    """One gain, tried, and what came of it on the first of the search's models."""

    input: str
    action: str
    gain: float
    """of the deviation: action = gain · (setpoint - state)"""
    period: float
    """in steps, the median of the models; NaN where most do not oscillate"""
    ratio: float
    """of a swing to the one a period before"""
    errors: Floats
    """[T + 1] setpoint - state"""
    actions: Floats
    """[T]"""

    @property
    def oscillates(self) -> bool:
        return math.isfinite(self.ratio)

    @property
    def distance(self) -> float:
        """From a sustained oscillation; infinite where there is none."""
        return abs(math.log(self.ratio)) if self.oscillates else math.inf


@dataclass(frozen=True, eq=False)
class Laboratory:
    """Where trials are made: on the search's models, around a place of rest."""

    problem: Problem
    states: Floats
    """[S] of rest"""
    actions: Floats
    """[A] of rest"""
    steps: int
    """T of a trial"""
    push: float
    """the deviation: a share of the usual one, or of what the action can answer with this gain"""

    def usual_gain(self, state: str, action: str) -> float:
        """Answers the usual deviation of a state with the whole action."""
        task, scales = self.problem.task, self.problem.scales
        reach = scales[len(task.states) + task.action_names.index(action)]
        return float(reach / scales[task.state_names.index(state)])

    def run(self, closed: Sequence[tuple[str, Loop]], state: str, action: str, gain: float) -> Trial:
        """With other loops closed: each an action's name and a loop."""
        task = self.problem.task
        i, a = task.state_names.index(state), task.action_names.index(action)
        part = min(1.0, self.usual_gain(state, action) / abs(gain))
        start, aims = self.states.copy(), np.tile(self.states, (self.steps, 1))
        start[i] += self.push * part * self.problem.scales[i]
        aims[:, i] += self.actions[a] / gain  # what the action does at rest, it now does with no deviation
        loops = [*closed, (action, Loop(input=state, kp=gain))]
        states, actions, failed = self._roll_out(_controller(task.action_names, loops), start, aims)
        held = self._held(states, actions[:, :, a], failed, task.action_limits[a])
        seen = [self._look(member[:, i], int(steps)) for member, steps in zip(states, held, strict=True)]
        found = [oscillation for oscillation in seen if oscillation is not None]
        period, ratio = np.median(found, axis=0) if 2 * len(found) > len(seen) else (math.nan, math.nan)
        errors = np.append(aims[:, i], aims[-1, i]) - states[0, :, i]
        return Trial(state, action, gain, float(period), float(ratio), errors, actions[0, :, a].copy())

    def _roll_out(self, controller: PID, start: Floats, aims: Floats) -> tuple[Floats, Floats, Flags]:
        """States [M, T + 1, S], actions [M, T, A], and whether it failed [M]."""
        problem = self.problem
        members = problem.surrogate.search_members
        policies = encode([controller], problem.task, history=problem.history)
        rollout: Rollout = roll_out(
            policies._replace(counts=np.zeros_like(policies.counts)),  # small swings are not rounded away
            problem.surrogate.system(np.float64, members, problem.history),
            Job(start[None], aims, problem.task.discount, problem.history),
            trajectories=True,
        )
        problem.spent += len(members) * self.steps
        states, actions = np.asarray(rollout.states), np.asarray(rollout.actions)
        return states[:, 0, 0], actions[:, 0, 0], rollout.failed[:, 0, 0]

    def _held(self, states: Floats, actions: Floats, failed: Flags, limits: Floats) -> Ints:
        """[M] steps until the action is at a limit, the model in states that it does not know, or failed."""
        least, most = self.problem.surrogate.region[: states.shape[2]].T
        after = states[:, 1:]
        stuck = (after == states[:, :-1]).all(axis=2) & failed[:, None]
        known = ((after >= least) & (after <= most)).all(axis=2)
        fine = known & ~stuck & (actions > limits[0]) & (actions < limits[1])
        ends = np.pad(fine, ((0, 0), (0, 1)))  # with a step that is not fine
        return np.asarray(np.argmin(ends, axis=1))

    def _look(self, course: Floats, held: int) -> Oscillation | None:
        return find_oscillation(course[: held + 1]) if held >= self.problem.task.horizon else None


def _controller(actions: Sequence[str], loops: Sequence[tuple[str, Loop]]) -> PID:
    """An action that no loop is for does nothing."""
    nothing = (loops[-1][1].model_copy(update={"kp": 0.0}),)
    chosen = {name: tuple(loop for action, loop in loops if action == name) for name in actions}
    return PID(outputs={name: Loops(loops=some or nothing) for name, some in chosen.items()})
