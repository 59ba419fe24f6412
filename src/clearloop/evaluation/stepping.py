"""A system and a controller, each one step at a time, for many plants at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from clearloop.arrays import Flags, Floats
from clearloop.controllers import Controller, encode
from clearloop.controllers.memory import Memory
from clearloop.evaluation.rollouts import make_system, window
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job, Policies
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.plants.plant import fixed_actions, task_window
from clearloop.plants.scenarios import setpoint_table
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from clearloop.task.tables import to_levels


class Moved(NamedTuple):
    """The situation of N plants after one step."""

    states: Floats
    """[N, S]"""
    rewards: Floats
    """[N] of this step"""
    failing: Flags
    """[N] True if this step ended in failure"""


class Stepper:
    """The plant of a task, or members of a surrogate, one step at a time in double precision."""

    def __init__(
        self,
        task: Task,
        aims: Floats,
        surrogate: Surrogate | None = None,
        members: Sequence[int] | None = None,
        *,
        bare: bool = False,
    ) -> None:
        """Prepare the systems.

        Args:
            task: The task whose plant is stepped.
            aims: [1, S] the setpoints, which stay as they are.
            surrogate: The model that stands for the plant.
            members: The members of the surrogate that are used; without them, all.
            bare: True if actions are not limited or rounded, and a failure does not stop the system.
        """
        self.task, self.aims = task, aims
        self.history = task_window(task)
        chosen = [0] if surrogate is None else range(surrogate.members) if members is None else members
        self._systems = [make_system(task, surrogate, self.history, [member]) for member in chosen]
        if bare:
            self._systems = [s._replace(dynamics=s.dynamics._replace(absorbing=False)) for s in self._systems]
        reach = np.tile([-STATE_LIMIT, STATE_LIMIT], (len(task.actions), 1))
        self._limits = reach if bare else task.action_limits
        self._counts = np.zeros(len(task.actions)) if bare else task.action_counts

    @property
    def members(self) -> int:
        """The number of systems: members of the surrogate, or 1 for the plant."""
        return len(self._systems)

    @property
    def absorbing(self) -> bool:
        """True if a failed system stays where it is, and goes on paying the reward of the failure."""
        return bool(self._systems[0].dynamics.absorbing)

    def __call__(self, windows: Floats, member: int) -> Moved:
        """Make one step of one member from windows [N, H, S + A].

        The present row comes first; its actions are those that are applied now.
        """
        actions = windows[:, :1, len(self.task.states) :]
        policies = fixed_actions(np.ascontiguousarray(actions), self.task)
        policies = policies._replace(limits=self._limits, counts=self._counts, rates=np.zeros(0))
        flat = np.ascontiguousarray(windows.reshape(len(windows), -1))
        job = Job(flat, self.aims, self.task.discount, self.history)
        step = roll_out(policies, self._systems[member], job, trajectories=True)
        states, rewards = np.asarray(step.states)[0, 0, :, 1], np.asarray(step.rewards)[0, 0, :, 0]
        return Moved(states, rewards, step.failed[0, 0])


# A controller as a function of its observations, for many plants at once. `Controller.act` serves one plant.


def unlimited(policies: Policies) -> Policies:
    """Return the same controllers with actions that are neither limited nor rounded, and may jump."""
    count = len(policies.limits)
    reach = np.tile([-STATE_LIMIT, STATE_LIMIT], (count, 1))
    return policies._replace(limits=reach, counts=np.zeros(count), rates=np.zeros(0))


class Law:
    """A controller as a function from windows [N, H, S + A] to actions [N, A].

    A window has a row for each lag, the present row first. The actions of the present row are those that are
    being chosen, so that they are not read. Setpoints stay as they are.
    """

    def __init__(
        self, controller: Controller, task: Task, surrogate: Surrogate | None = None, *, smooth: bool = False
    ) -> None:
        """Prepare the controller for the engine.

        Args:
            controller: The controller.
            task: The task that it controls.
            surrogate: Any surrogate of the task, needed only where the task has no plant: the engine does not
                run without a system.
            smooth: True if actions are neither limited nor rounded to the values that they may take.
        """
        self.task, self.controller = task, controller.for_task(task)
        self.aims = setpoint_table(task, 1, self.controller.setpoint)
        """[1, S] setpoints"""
        rows = window(task, [self.controller])
        self.history = rows if self.controller.windowed else self.controller.depth
        """H, the number of rows that the controller reads"""
        self._policies = encode([self.controller], task, history=rows)
        self._memory: Memory | None = None
        if smooth:
            self._policies = unlimited(self._policies)
        system = make_system(task, surrogate, rows, None if surrogate is None else [0])
        # The next state is not used.
        self._system = system._replace(dynamics=system.dynamics._replace(substeps=1))

    def rows(self, steps: int) -> int:
        """Return the number of rows that an episode of so many steps needs."""
        if self.controller.windowed or self.controller.endless:
            return max(self.history, 2 * self.controller.endless)
        return min(self.history, steps)

    def __call__(self, windows: Floats, age: int | None = None) -> Floats:
        """Return the actions [N, A] for windows [N, H, S + A].

        `age` is the number of observations since the start, which a PID sums up; None stands for more than
        the window has. A law with an integrator goes on from the call before where `age` is more than 1.
        """
        if not self.controller.windowed:
            return self._in_plain_python(windows, age)
        flat = np.ascontiguousarray(windows.reshape(len(windows), -1))
        job = Job(flat, self.aims, self.task.discount, self.history)
        # The kernels of a PID keep its sums themselves. All other kinds read the window: one step is enough.
        step = roll_out(self._policies, self._system, job, trajectories=True)
        chosen: Floats = np.asarray(step.actions)[0, 0, :, 0]
        return chosen

    def _in_plain_python(self, windows: Floats, age: int | None) -> Floats:
        names, aims = self.task.scope.names, self.aims[0]
        if self.controller.endless and self._memory is not None and age is not None and age > 1:
            self._memory.follow(windows, names, aims)
        else:
            starts = self.controller.starts
            self._memory = Memory.of_windows(windows[:, :age], names, aims, self.history, starts)
        answer = self.controller.respond(self._memory)
        columns = [np.broadcast_to(answer[name], len(windows)) for name in self.task.action_names]
        chosen = np.stack(columns, axis=1)
        if (most := self._policies.rates).size:
            last = [self._memory.value(name, 1) for name in self.task.action_names]
            before = np.stack([np.broadcast_to(value, len(windows)) for value in last], axis=1)
            chosen = np.clip(chosen, before - most, before + most)
        return to_levels(chosen, self._policies.limits, self._policies.counts)
