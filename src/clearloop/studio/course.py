"""The course of an episode that two sides share: its start, setpoints, external states and noise."""

from typing import NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.data.log import first_rows, last_rows, setpoint_rows
from clearloop.plants.plant import QUIET, task_window
from clearloop.plants.scenarios import Scenarios
from clearloop.surrogate import Surrogate
from clearloop.task import Task

PIECE = 4_096  # steps; signals and noise are drawn in pieces, as they are needed


class Outside(NamedTuple):
    """The setpoints, external states and noise of one step."""

    aims: Floats
    """[2, S] setpoints now, and after the step"""
    script: Floats
    """[1, 2, D] external states now, and after the step; empty if there are none"""
    noise: Floats = QUIET
    """[1, 1, K] what is added to the predictions of models; empty for plants"""


class PastRow(NamedTuple):
    """A row of the log before the start of an episode."""

    seen: dict[str, float]
    aims: dict[str, float]
    done: dict[str, float]


class SharedCourse:
    """The start, setpoints and external states of an episode, which two plants share.

    The same generator gives the same course.
    """

    def __init__(self, task: Task, point: Floats, rng: np.random.Generator) -> None:
        """Begin a course at the state `point` [S], hidden states included."""
        self._task, self._point, self._rng = task, point, rng
        self._piece, self._number = self._draw(), 0
        self.start: Floats = self._piece.starts[0]
        """[S] the start, completed with the states that sensors show"""
        self.past: tuple[PastRow, ...] = ()

    def _draw(self) -> Scenarios:
        return Scenarios.explored(self._task, self._point[None], self._rng, PIECE, made_up_aims(self._task))

    def at(self, step: int) -> Outside:
        """Return the setpoints and external states of a step; steps must be asked for in order."""
        number, now = divmod(step, PIECE)
        if number > self._number:
            self._piece, self._number = self._draw(), number
        aims = self._piece.setpoints[0, now : now + 2]
        return Outside(np.vstack([aims, aims[-1:]])[:2], self._piece.script[:, now : now + 2])


def made_up_aims(task: Task) -> dict[str, float]:
    """Return 0 for each setpoint that is a column of a log, unless the task has a signal for it."""
    return {name: 0.0 for name, column in task.logged_setpoints.items() if column not in task.signals}


class LoggedCourse:
    """An episode of models, which starts in a row of the log.

    Setpoints and external states follow the log; after its end they stay as they are.
    """

    def __init__(self, task: Task, batch: Batch, surrogate: Surrogate, row: int, luck: int) -> None:
        """Begin at a row of the log; `luck` is the seed of the noise."""
        self._noise_of, self._fresh = surrogate.noise, task.starts_with_episodes
        self._luck, self._piece = luck, -1
        self.row = row
        rows = np.arange(len(batch.episodes))
        first = int(first_rows(batch.episodes)[row])
        last = int(rows[last_rows(batch.episodes) & (rows >= row)][0])
        found = Scenarios.logged(task, batch, np.array([row]), last - row + 1)
        self._aims, self._script = found.setpoints[0], found.script
        self.start: Floats = found.starts[0]
        """[H (S + A)] the start with its past"""
        aims = np.broadcast_to(setpoint_rows(task, batch.setpoints, len(rows)), batch.states.shape)
        states, actions = task.state_names, task.action_names
        self.past: tuple[PastRow, ...] = tuple(
            PastRow(
                dict(zip(states, batch.states[k].tolist(), strict=True)),
                dict(zip(states, aims[k].tolist(), strict=True)),
                dict(zip(actions, np.nan_to_num(batch.actions[k]).tolist(), strict=True)),
            )
            for k in range(max(first, row - task_window(task) + 1), row)
        )
        """what the log shows before the start, the oldest row first"""

    def at(self, step: int) -> Outside:
        """Return the setpoints, external states and noise of a step; steps must be asked for in order."""
        piece, place = divmod(step, PIECE)
        if piece != self._piece:
            self._piece = piece
            self._noise = self._noise_of.draw(1, PIECE, self._luck + piece, fresh=self._fresh and not piece)
        aims = self._aims[np.minimum([step, step + 1], len(self._aims) - 1)]
        script = self._script
        if script.size:
            script = script[:, np.minimum([step, step + 1], script.shape[1] - 1)]
        return Outside(aims, script, self._noise[:, place : place + 1])


Course = SharedCourse | LoggedCourse
