"""What a method searches on: penalties of whole populations on a surrogate, with the model steps counted.

Or, if it is given a value of the batch alone: penalties by that, with the logged steps counted.
"""

import numpy as np
from numpy.typing import NDArray

from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation.linear_q import LinearQ
from clearloop.expression import Variable
from clearloop.kernels.engine import System, roll_out
from clearloop.kernels.layout import Job, Policies
from clearloop.plants.lowering import task_window
from clearloop.plants.scenarios import Scenarios
from clearloop.programs.features import Features
from clearloop.surrogate import Surrogate
from clearloop.task import Task

Floats = NDArray[np.float64]


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
