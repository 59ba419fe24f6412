"""States that never leave a sheet: the sine and cosine of one angle, two sensors of one thing.

Networks have seen nothing beside the sheet, and nothing there leads back: the small errors of single steps
add up, until a rollout is where no plant can be. So each step is shown a second time, from beside the sheet,
with the same states after it. That is what denoising autoencoders learn: the way back to where the data are.

A direction is thin if, among its nearest neighbours, a state hardly varies in it.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from clearloop.data.cells import Floats, Ints
from clearloop.surrogate.steps import Steps
from clearloop.task import Task

THIN = 0.1  # of the spread among neighbours in the widest direction
NEIGHBOURS = 8  # for each state
LOOKED_AT = 2_000  # states that tell whether there is a sheet
SHOWN = 20_000  # steps that are shown again


class Surroundings(NamedTuple):
    """Of n points in K dimensions, by their nearest neighbours."""

    spreads: Floats
    """[n, K] in each direction, the widest first"""
    directions: Floats
    """[n, K, K] a row for each"""

    @property
    def thin(self) -> Floats:
        """[n, K] 1 or 0"""
        return np.where(self.spreads < THIN * self.spreads[:, :1], 1.0, 0.0)


def steps_beside(task: Task, steps: Steps, rng: np.random.Generator) -> Steps | None:
    """The steps once more, from beside the sheet; None if states fill their space."""
    columns = _columns(task, steps)
    if columns.shape[1] < 2 or len(steps) < 10 * NEIGHBOURS * columns.shape[1]:
        return None
    present = steps.window[:, columns[0]]
    scale = present.std(axis=0)
    tree = KDTree(_dithered(present / scale, rng))
    if np.median(look_around(tree, tree.data[:: len(steps) // LOOKED_AT + 1]).thin[:, -1]) == 0:
        return None
    shown = steps[np.sort(rng.permutation(len(steps))[:SHOWN])]
    for lag in columns:
        around = look_around(tree, shown.window[:, lag] / scale)
        sizes = around.thin * around.spreads[:, :1] * rng.standard_normal(around.spreads.shape)
        shown.window[:, lag] += np.einsum("nd,ndk->nk", sizes, around.directions) * scale
    return shown


def look_around(tree: KDTree, points: Floats) -> Surroundings:
    """`points`: [n, K]"""
    _, rows = tree.query(points, k=NEIGHBOURS * points.shape[1])
    near = tree.data[rows] - tree.data[rows].mean(axis=1, keepdims=True)
    _, spreads, directions = np.linalg.svd(near, full_matrices=False)
    return Surroundings(spreads / np.sqrt(near.shape[1]), directions)


def _columns(task: Task, steps: Steps) -> Ints:
    """[H, K] where the window has the states that are predicted, and that vary at all."""
    places = [place for place, name in enumerate(task.state_names) if name in task.predicted]
    varying = [place for place in places if np.ptp(steps.window[:, place]) > 0]
    return np.array(varying, dtype=int) + len(task.scope.names) * np.arange(task.history)[:, None]


def _dithered(states: Floats, rng: np.random.Generator) -> Floats:
    """By the resolution of each: what a coarse sensor shows lies on sheets that mean nothing."""
    resolutions = [np.median(np.diff(np.unique(column.round(9)))) for column in states.T]
    return states + np.array(resolutions) * rng.uniform(-0.5, 0.5, states.shape)
