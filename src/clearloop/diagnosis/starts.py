"""The map of start states: which of them a controller saves, which it loses, and what each costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from clearloop.controllers import Controller
from clearloop.data.cells import Flags, Floats
from clearloop.diagnosis.rounding import rounded
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.surrogate import Surrogate
from clearloop.task import Task

CELLS = 33  # along each axis; odd, so that the middle is one of them


@dataclass(frozen=True, eq=False, repr=False)
class StartMap:
    """N starts. On a grid they stand row by row: the second axis runs first."""

    task: Task
    axes: dict[str, Floats]
    """of the grid: the middles of its cells for one or two states; empty where the starts are no grid"""
    starts: Floats
    """[N, S]"""
    failed: Flags
    """[N] on the plant, or by most of the model's members"""
    penalties: Floats
    """[N] means over members"""

    @property
    def lost(self) -> float:
        """The share of the starts."""
        return float(self.failed.mean())

    def to_dict(self) -> dict[str, Any]:
        where = {"axes": {name: rounded(values) for name, values in self.axes.items()}}
        if not self.axes:
            where |= {"starts": rounded(self.starts)}
        return where | {
            "lost": rounded(self.lost),
            "failed": self.failed.astype(int).tolist(),
            "penalties": rounded(self.penalties),
        }

    def __repr__(self) -> str:
        return f"loses {self.failed.sum():,} of {len(self.failed):,} starts"


def map_starts(
    controller: Controller,
    task: Task,
    *,
    surrogate: Surrogate | None = None,
    members: Sequence[int] | None = None,
    starts: Floats | None = None,
    cells: int = CELLS,
) -> StartMap:
    """From `starts` [N, S], or from a grid over the first two states whose starts are free.

    Further free states stand in the middle of their boxes.
    """
    axes: dict[str, Floats] = {}
    if starts is None:
        axes, starts = make_grid(task, cells)
    scores = evaluate(controller, task, surrogate=surrogate, members=members, starts=starts)
    return StartMap(task, axes, starts, scores.failed.mean(axis=0) > 0.5, scores.penalties.mean(axis=0))


def make_grid(task: Task, cells: int = CELLS) -> tuple[dict[str, Floats], Floats]:
    """The axes, and starts [N, S]."""
    box = task.start_box
    if box is None:
        raise ClearloopError(f"task {task.name}: starts come from the batch: say which of them to map")
    free = np.flatnonzero(box[:, 0] < box[:, 1])[:2]
    middles = (np.arange(cells) + 0.5) / cells
    values = [low + (high - low) * middles for low, high in box[free]]
    points = np.array(list(product(*values)))
    starts = np.tile(box.mean(axis=1), (len(points), 1))
    starts[:, free] = points
    return {task.state_names[j]: line for j, line in zip(free, values, strict=True)}, starts
