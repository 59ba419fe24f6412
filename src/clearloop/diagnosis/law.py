"""A controller as a function of what it has seen, for many plants at once: what `act` does for one."""

import numpy as np

from clearloop.controllers import Controller, encode
from clearloop.controllers.pid import PID
from clearloop.controllers.reading import read_variable
from clearloop.data.cells import Floats
from clearloop.evaluation.setup import make_system, window
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job
from clearloop.plants.setpoints import setpoint_table
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from clearloop.task.levels import to_levels


class Law:
    """Windows [N, H, S + A] in, actions [N, A] out: a row for each lag, the present first.

    The present row's actions are those that are being chosen; they are not read. Setpoints stay as they are.
    """

    def __init__(
        self, controller: Controller, task: Task, surrogate: Surrogate | None = None, *, smooth: bool = False
    ) -> None:
        """`surrogate`: only where the task has no plant, because the engine cannot go without a system.

        `smooth`: actions that take only some values are not rounded to them.
        """
        self.task, self.controller = task, controller.for_task(task)
        self.aims = setpoint_table(task, 1, self.controller.setpoint)
        """[1, S]"""
        rows = window(task, [self.controller])
        self.history = max(2, *_windows(self.controller)) if isinstance(self.controller, PID) else rows
        """H: rows that it looks back on"""
        self._policies = encode([self.controller], task, history=rows)
        if smooth:
            self._policies = self._policies._replace(counts=np.zeros(len(task.actions)))
        system = make_system(task, surrogate, rows, None if surrogate is None else [0])
        self._system = system._replace(
            dynamics=system.dynamics._replace(substeps=1)
        )  # where it goes is unused

    def rows(self, steps: int) -> int:
        """H as far as an episode of so many steps needs it."""
        return min(self.history, steps) if isinstance(self.controller, PID) else self.history

    def __call__(self, windows: Floats, age: int | None = None) -> Floats:
        """`age`: observations since the start, which is what a PID sums up; None: more than it looks at."""
        if isinstance(self.controller, PID):
            return self._loops(self.controller, windows, age or self.history)
        flat = np.ascontiguousarray(windows.reshape(len(windows), -1))
        job = Job(flat, self.aims, self.task.discount, self.history)
        # The kernels of a PID keep its sums themselves; all others see the window, and one step tells.
        step = roll_out(self._policies, self._system, job, trajectories=True)
        chosen: Floats = np.asarray(step.actions)[0, 0, :, 0]
        return chosen

    def _loops(self, pid: PID, windows: Floats, age: int) -> Floats:
        """As in `controllers/pid.py`."""
        chosen = np.zeros((len(windows), len(self.task.actions)))
        for a, action in enumerate(self.task.action_names):
            for loop in pid.outputs[action].loops:
                j = self.task.state_names.index(read_variable(loop.input).name)
                errors = self.aims[0, j] - windows[:, :, j]
                total = errors[:, : min(loop.window, age)].sum(axis=1)
                change = errors[:, 0] - errors[:, 1] if age > 1 else 0.0
                chosen[:, a] += loop.weight * (loop.kp * errors[:, 0] + loop.ki * total + loop.kd * change)
            chosen[:, a] = pid.outputs[action].bias + pid.outputs[action].scale * chosen[:, a]
        return to_levels(chosen, self._policies.limits, self._policies.counts)


def _windows(pid: PID) -> list[int]:
    return [loop.window for output in pid.outputs.values() for loop in output.loops]


def begun(states: Floats, actions: int, history: int) -> Floats:
    """Windows [N, H, S + A] at the start: the first observation repeated, past actions 0."""
    row = np.hstack([states, np.zeros((len(states), actions))])
    return np.repeat(row[:, None], history, axis=1)


def moved_on(windows: Floats, states: Floats) -> Floats:
    """The windows of the next step, with the present actions still to be chosen."""
    return np.concatenate([begun(states, windows.shape[2] - states.shape[1], 1), windows[:, :-1]], axis=1)
