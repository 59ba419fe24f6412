"""A system one step at a time, under actions that are given, for many plants at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Flags, Floats
from clearloop.evaluation.setup import make_system
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.plants.lowering import task_window
from clearloop.plants.sequences import fixed_actions
from clearloop.surrogate import Surrogate
from clearloop.task import Task


class Moved(NamedTuple):
    """Of N plants, after a step."""

    states: Floats
    """[N, S]"""
    rewards: Floats
    """[N]"""
    failing: Flags
    """[N]"""


class Stepper:
    """The task's plant, or members of a surrogate; in double precision."""

    def __init__(
        self,
        task: Task,
        aims: Floats,
        surrogate: Surrogate | None = None,
        members: Sequence[int] | None = None,
        *,
        bare: bool = False,
    ) -> None:
        """`aims` [1, S]: setpoints. `bare`: limits do not limit, and failure does not stop."""
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
        return len(self._systems)

    @property
    def absorbing(self) -> bool:
        """Whether what fails stays where it is, and goes on paying."""
        return bool(self._systems[0].dynamics.absorbing)

    def __call__(self, windows: Floats, member: int) -> Moved:
        """`windows` [N, H, S + A]: the present first, with the actions that are applied now."""
        actions = windows[:, :1, len(self.task.states) :]
        policies = fixed_actions(np.ascontiguousarray(actions), self.task)
        policies = policies._replace(limits=self._limits, counts=self._counts)
        flat = np.ascontiguousarray(windows.reshape(len(windows), -1))
        job = Job(flat, self.aims, self.task.discount, self.history)
        step = roll_out(policies, self._systems[member], job, trajectories=True)
        states, rewards = np.asarray(step.states)[0, 0, :, 1], np.asarray(step.rewards)[0, 0, :, 0]
        return Moved(states, rewards, step.failed[0, 0])
