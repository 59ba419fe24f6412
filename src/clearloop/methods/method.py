"""Every method begins a search on a problem, and every search goes on in rounds until the budget is spent."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation.q_evaluation import LinearQ
from clearloop.expression import Variable
from clearloop.kernels.engine import System, roll_out
from clearloop.kernels.layout import Job, Policies
from clearloop.methods.focus import Focus
from clearloop.methods.robust import WEIGHT, Demands, half_disturbed
from clearloop.methods.staying import LoggedActions, Staying
from clearloop.plants.plant import task_window
from clearloop.plants.scenarios import Scenarios, chosen_disturbances
from clearloop.programs import Features
from clearloop.registry import METHODS
from clearloop.surrogate import Surrogate
from clearloop.task import Task


class Problem:
    """The problem that a method searches on: it gives the penalties of populations and counts the steps.

    It holds a task, a batch, a surrogate of it, starts that only the search uses, and a budget. If there is a
    `value`, penalties come from the batch alone, without the surrogate, and logged steps are counted.
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
        robust: bool = True,
        stay: float = 0.0,
    ) -> None:
        """Draw the starts that candidates are tried from.

        Args:
            task: The task.
            batch: The logged episodes.
            surrogate: The model that was learned from the batch.
            budget: Steps of the model that may be spent; with a value, logged steps that may be read.
            rng: The generator that draws the starts.
            starts: The number of starts.
            value: The fitted Q evaluation to take penalties from, if any.
            robust: Whether candidates must bear what the task asks for in `[robust]`. With a value they are
                not disturbed; the judgement tells their margins.
            stay: How near to the log candidates must stay, from 0, which does not ask, to 1, the log itself.
        """
        self.task, self.batch, self.budget = task, batch, budget
        self._surrogate, self.value = surrogate, value
        self.spent = 0
        self.history = task_window(task) if value is None else task.history
        self.features = Features(task.state_names, task.action_names, self.history)
        self.scenarios = Scenarios.drawn(task, batch, starts, rng)
        """starts, setpoints, noise and disturbances that candidates are tried with"""
        self.demands: Demands | None = None
        """the margins that candidates must keep, if any"""
        if robust and value is None:
            spread, luck = batch.states.std(axis=0), self.scenarios.luck
            self.scenarios = half_disturbed(self.scenarios, task, spread, luck)
            self.demands = Demands.of(task, batch, surrogate)
        self.readable = _readable(task)
        """variables that a controller may read: states, now and before, and past actions"""
        self._systems: dict[tuple[tuple[int, ...], int], System] = {}
        self._jobs: dict[tuple[int, int], Job] = {}
        self.staying: Staying | None = None
        """the part that the distance from the log has in penalties, if any"""
        if stay:
            logged = LoggedActions(task, batch)
            scale = float(self.costs(logged.usual_policies(self.history), starts=_SCALED).std())
            self.staying = Staying(logged, stay, scale if scale > 0 else 1.0)

    @property
    def share(self) -> float:
        """The share of the budget that is spent."""
        return min(1.0, self.spent / self.budget)

    @property
    def surrogate(self) -> Surrogate:
        """The model; asking for it is an error if penalties come from the batch alone."""
        if self.value is not None:
            raise ClearloopError("this method needs a model of the plant: it cannot use --value batch")
        return self._surrogate

    @property
    def members(self) -> int:
        """The number of members of the surrogate that the search may use."""
        return len(self.surrogate.search_members)

    @property
    def scales(self) -> Floats:
        """[features] the typical size in the batch of each of the engine's features, as a deviation.

        Searches draw gains and widths in these, so that units do not matter.
        """
        task = self.task
        window = np.concatenate([self.batch.states.std(axis=0), np.ptp(task.action_limits, axis=1) / 2])
        sizes = np.concatenate([np.tile(window, self.history), window[: len(task.states)]])
        return np.where(sizes > 0, sizes, 1.0)

    @property
    def moving_setpoints(self) -> tuple[Variable, ...]:
        """The setpoints that a controller may read because they move: columns of the log, not numbers."""
        return tuple(Variable(name, "setpoint") for name in self.task.logged_setpoints)

    @property
    def starts(self) -> Floats:
        """[n, S] the states from which candidates start."""
        return self.scenarios.starts[:, : len(self.task.states)]

    @property
    def limits(self) -> NDArray[np.float32]:
        """[A, 2] the limits of the actions, in single precision."""
        return self.task.action_limits.astype(np.float32)

    def penalties(
        self,
        policies: Policies,
        *,
        starts: int | Focus,
        members: int | None = None,
        history: int | None = None,
    ) -> Floats:
        """Return the mean penalty [P] of each controller, and count the steps that this takes.

        What a controller lacks of the margins that are asked for adds to its penalty, and so does its
        distance from the log, if it must stay near it.

        Args:
            policies: P controllers.
            starts: The number of starts to take the mean over, the first of the problem's; or a focus.
            members: The number of members to take the mean over; None takes all that the search may use.
            history: The number of observations that the controllers were encoded for; None: the problem's.
        """
        history = history or self.history
        if isinstance(starts, Focus):
            penalties = starts.penalties(self.costs(policies, starts=starts, members=members))
        elif self.value is not None:
            penalties = np.asarray(self.costs(policies, starts=starts).mean(axis=1))
        else:
            penalties = -self._returns(policies, starts, members, history).mean(axis=(0, 2), dtype=np.float64)
        if self.demands is not None:
            penalties = penalties + WEIGHT * np.abs(penalties) * self.demands.shortfalls(policies, history)
        if self.staying is not None:
            penalties = self.staying.blend(penalties, policies, history)
        return penalties

    def costs(self, policies: Policies, *, starts: int | Focus, members: int | None = None) -> Floats:
        """Return the costs [P, N] of each controller from each start; see `penalties`."""
        if self.value is not None:
            self.spent += len(policies.numbers) * self.value.cost
            some = starts.starts if isinstance(starts, Focus) else slice(starts)
            return np.asarray(self.value.penalties(policies, self.starts[some]))
        returns = self._returns(policies, starts, members, self.history)
        costs: Floats = -returns.mean(axis=0, dtype=np.float64)
        return costs

    def _returns(self, policies: Policies, starts: int | Focus, members: int | None, history: int) -> Any:
        some = range(self.members if members is None else min(members, self.members))
        chosen = tuple(self.surrogate.search_members[member] for member in some)
        job = (
            self._focused(starts, history)
            if isinstance(starts, Focus)
            else self._job(min(starts, len(self.scenarios)), history)
        )
        returns = roll_out(policies, self._system(chosen, history), job).returns
        self.spent += returns.size * self.task.horizon
        return returns

    def _focused(self, focus: Focus, history: int) -> Job:
        whole = self._job(len(self.scenarios), history)
        chosen = {
            name: array[focus.starts] if len(array) == len(self.scenarios) else array
            for name, array in zip(_OF_STARTS, (getattr(whole, name) for name in _OF_STARTS), strict=True)
        }
        return whole._replace(**chosen, disturbances=chosen_disturbances(whole.disturbances, focus.starts))

    def _job(self, starts: int, history: int) -> Job:
        if (starts, history) not in self._jobs:
            scenarios = self.scenarios[:starts]
            chance = self.surrogate.draw_noise(scenarios)
            self._jobs[starts, history] = scenarios.job(self.task, history, np.float32, chance)
        return self._jobs[starts, history]

    def _system(self, members: tuple[int, ...], history: int) -> System:
        if (members, history) not in self._systems:
            self._systems[members, history] = self.surrogate.system(np.float32, members, history)
        return self._systems[members, history]


_SCALED = 256  # starts from which the usual action shows what a distance from the log may cost
_OF_STARTS = ("starts", "setpoints", "script", "noise")  # fields of a job that may have a row for each start


def _readable(task: Task) -> tuple[Variable, ...]:
    past = [(name, lag) for lag in range(1, task.history) for name in (*task.state_names, *task.action_names)]
    return (*map(Variable, task.state_names), *(Variable(name, lag=lag) for name, lag in past))


State = dict[str, Any]
"""The state of a search, from which it goes on exactly: dictionaries, lists, strings, numbers and arrays."""


@dataclass(frozen=True)
class Candidate:
    """A controller that a search found."""

    controller: Controller
    penalty: float
    """penalty in the search, which is optimistic because the controller was chosen for it"""
    compared: bool = False
    """whether it is kept beside the front, under its name, whatever its penalty is"""


@dataclass(frozen=True, eq=False)
class Trial:
    """One gain that was tried in a tuning, and the course of the loop on the first member of the search."""

    input: str
    """state that is controlled"""
    action: str
    """action that controls it"""
    gain: float
    """gain k of action = k · (setpoint - state)"""
    period: float
    """period in steps, the median over the members; NaN if most of them do not oscillate"""
    ratio: float
    """size of a swing relative to the swing a period before, the median over the members"""
    errors: Floats
    """[T + 1] setpoint - state"""
    actions: Floats
    """[T]"""

    @property
    def oscillates(self) -> bool:
        """Tell whether most members oscillate with this gain."""
        return math.isfinite(self.ratio)

    @property
    def distance(self) -> float:
        """The distance from a sustained oscillation, |log ratio|; infinite if there is no oscillation."""
        return abs(math.log(self.ratio)) if self.oscillates else math.inf


class Search(ABC):
    """A search under way. All random numbers come from the generator that it was begun with."""

    trials: Sequence[Trial] = ()
    """gains that were tried, with their trajectories, if the method tunes loops"""
    latest: float | None = None
    """penalty of what the last round found, if that may be worse than what was found before"""

    @abstractmethod
    def advance(self) -> None:
        """Run one round: a few calls of the engine."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Tell whether more rounds would change nothing, whatever is left of the budget."""

    @property
    @abstractmethod
    def best(self) -> float:
        """The lowest penalty so far; infinite before the first round."""

    @abstractmethod
    def candidates(self) -> list[Candidate]:
        """Return the controllers found so far, from the simplest to the best."""

    @abstractmethod
    def state(self) -> State:
        """Return the state from which `restore` goes on."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Go on from the state of an earlier search with the same problem and settings."""


class Column(NamedTuple):
    """A column of the table that `bench` prints, as in Table 1 of the paper."""

    name: str
    """name of the method, or of a controller that it keeps beside its front, such as `nfq-last`"""
    title: str
    """heading of the column"""
    place: int | None = None
    """position in the paper's table, from the left; None: the paper lacks it, so it comes last"""
    model: str = ""
    """the paper's penalty on its model ± standard error, from starts that the paper does not state"""
    system: str = ""
    """the paper's penalty on the plant ± standard error"""


class Method(ABC):
    """A way to find controllers from a batch. Methods are frozen dataclasses of their own settings.

    The class variables hold what lists, tables and time estimates need to know about a method.
    """

    name: ClassVar[str]
    """the name that users write, as in `learn --method gprl`: small letters, digits and dashes"""
    title: ClassVar[str]
    """the name in texts: "GPRL" """
    gives: ClassVar[str] = ""
    """the controllers that it finds, in a word or two: "equations" """
    section: ClassVar[str] = ""
    """the section of the paper that describes it, if any: "3.7" """
    columns: ClassVar[tuple[Column, ...]] = ()
    """its columns of the table; `bench` uses by default the methods that have a place in the paper's table"""
    tabled: ClassVar[Mapping[str, Any]] = {}
    """settings with which it stands in that table, whatever its others are"""
    effort: ClassVar[float] = 4.0
    """minutes of one core, on the cart-pole with the standard budget; for time estimates"""
    grows: ClassVar[bool] = True
    """whether it searches longer with a larger budget"""
    needs_model: ClassVar[bool] = False
    """whether it uses more of the problem than penalties, so that it cannot search on the batch alone"""

    @abstractmethod
    def begin(self, problem: Problem, *, rng: np.random.Generator) -> Search:
        """Begin a search.

        Args:
            problem: The task, the batch, the surrogate and the budget.
            rng: The generator of all random numbers of the search.
        """


def find_method(name: str) -> type[Method]:
    """Return the method of this name, or raise an error that suggests the nearest name."""
    found: type[Method] = METHODS.find(name)
    return found
