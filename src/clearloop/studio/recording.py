"""A batch in the making: what one side's sensors showed and what was done, episode by episode."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from clearloop.data import Batch
from clearloop.task import Task

Values = Mapping[str, float]

MOST_ROWS = 400_000  # nearly three hours at 40 steps per second


class Row(NamedTuple):
    seen: tuple[float, ...]
    action: tuple[float, ...]
    aims: tuple[float, ...]
    terminal: bool


class Recorder:
    """An episode ends where the plant fails, and wherever something happens that no action explains."""

    def __init__(self, task: Task, name: str) -> None:
        self.task, self.name = task, name
        self._followed = [name for name, aim in task.setpoints.items() if isinstance(aim, str)]
        self._episodes: list[list[Row]] = []
        self._open: list[Row] = []
        self.transitions = 0

    @property
    def episodes(self) -> int:
        return len(self._episodes) + bool(self._open)

    @property
    def full(self) -> bool:
        return self.transitions >= MOST_ROWS

    def note(self, seen: Values, action: Values, aims: Values) -> None:
        """What was shown before a step, and what was done then."""
        self._open.append(self._row(seen, tuple(action[name] for name in self.task.actions), aims, False))
        self.transitions += 1

    def cut(self, seen: Values, aims: Values, *, terminal: bool = False) -> None:
        """The episode, if there is one, ends with this observation; `terminal`: it failed."""
        if self._open:
            nothing = (float("nan"),) * len(self.task.actions)
            self._episodes.append([*self._open, self._row(seen, nothing, aims, terminal)])
            self._open = []

    def _row(self, seen: Values, action: tuple[float, ...], aims: Values, terminal: bool) -> Row:
        shown = tuple(seen[name] for name in self.task.states)
        return Row(shown, action, tuple(aims[name] for name in self._followed), terminal)

    def batch(self) -> Batch:
        """After the last cut."""
        rows = [row for episode in self._episodes for row in episode]
        counts = [len(episode) for episode in self._episodes]
        times = [step * self.task.dt for count in counts for step in range(count)]
        width = len(self.task.states)
        return Batch(
            columns=self.task.columns,
            states=np.array([row.seen for row in rows]).reshape(-1, width),
            actions=np.array([row.action for row in rows]).reshape(-1, len(self.task.actions)),
            episodes=np.repeat(np.arange(len(counts)), counts),
            terminal=np.array([row.terminal for row in rows], np.bool_),
            times=np.array(times),
            setpoints=np.array([row.aims for row in rows]) if self._followed else None,
        )
