"""What comes from outside in one episode, without end: drawn in pieces, as far as it is looked at."""

from typing import NamedTuple

import numpy as np

from clearloop.plants.scenarios import Scenarios
from clearloop.plants.stepper import Floats
from clearloop.task import Task

PIECE = 4_096  # steps


class Outside(NamedTuple):
    aims: Floats
    """[2, S] setpoints now, and after the step"""
    script: Floats
    """[1, 2, D] what comes from outside, now and after the step; empty if nothing does"""


class Course:
    """The same for the same generator: two plants that follow it start alike and are disturbed alike."""

    def __init__(self, task: Task, point: Floats, rng: np.random.Generator) -> None:
        """`point`: [S], where the episode starts, of the task unveiled."""
        self._task, self._point, self._rng = task, point, rng
        self._piece, self._number = self._draw(), 0
        self.start: Floats = self._piece.starts[0]
        """[S] with what sensors show of it"""

    def _draw(self) -> Scenarios:
        return Scenarios.explored(self._task, self._point[None], self._rng, PIECE, made_up_aims(self._task))

    def at(self, step: int) -> Outside:
        """Steps are asked for in their order."""
        number, now = divmod(step, PIECE)
        if number > self._number:
            self._piece, self._number = self._draw(), number
        aims = self._piece.setpoints[0, now : now + 2]
        return Outside(np.vstack([aims, aims[-1:]])[:2], self._piece.script[:, now : now + 2])


def made_up_aims(task: Task) -> dict[str, float]:
    """0 for setpoints that are a log column, if no signal of the task stands in for it."""
    aims = task.setpoints.items()
    return {name: 0.0 for name, aim in aims if isinstance(aim, str) and aim not in task.signals}
