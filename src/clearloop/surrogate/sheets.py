"""States that never leave a sheet: the sine and cosine of one angle, two sensors of one thing.

Networks have seen nothing beside the sheet, and nothing there leads back: the small errors of single steps
add up, until a rollout is where no plant can be. So steps are shown a second time, from beside the sheet,
with the same states after them. That is what denoising autoencoders learn: the way back to the data.

A direction is thin if states hardly differ in it from their nearest neighbours. States that follow each other
are no neighbours, or every slow course would be taken for a sheet.
"""

from collections.abc import Iterator

import numpy as np
from scipy.spatial import KDTree

from clearloop.data.cells import Flags, Floats, Ints
from clearloop.data.episodes import first_rows
from clearloop.surrogate.steps import Steps
from clearloop.task import Task

THIN = 0.15  # of the spread among neighbours in the widest direction
NEIGHBOURS = 4  # for each state
APART = 0.5  # standard deviations, between states that may be neighbours of each other though of one episode
MOST = 5_000  # states among which neighbours are looked for
BESIDE = 0.1  # standard deviations: how far steps are displaced
SHOWN = 20_000  # steps that are shown again, at most
AT_ONCE = 1_000  # neighbourhoods, for the sake of memory


def steps_beside(task: Task, steps: Steps, rng: np.random.Generator) -> Steps | None:
    """Steps once more, from beside the sheet; None if states fill their space, or too few are known to tell.

    Also None if states are derived from others: they would tell the networks what was displaced.
    """
    places = _places(task, steps)
    if task.derived or len(places) < 2:
        return None
    present = steps.window[:, places]
    scale = _scale(present)
    scattered = _scattered(_dithered(present / scale, rng), steps.episode)
    if len(scattered) < 10 * NEIGHBOURS * len(places):
        return None
    tree = KDTree(scattered[rng.permutation(len(scattered))[:MOST]])
    if np.median([is_thin[-1] for is_thin, _ in _surroundings(tree, tree.data)]) == 0:
        return None
    shown = steps[np.sort(rng.permutation(len(steps))[:SHOWN])]
    displacements = [
        (BESIDE * rng.standard_normal(len(places)) * is_thin) @ directions
        for is_thin, directions in _surroundings(tree, shown.window[:, places] / scale)
    ]
    for lag in range(task.history):  # all alike, because an error that a rollout carries along lasts
        shown.window[:, lag * len(task.scope.names) + places] += np.array(displacements) * scale
    return shown


def _surroundings(tree: KDTree, points: Floats) -> Iterator[tuple[Flags, Floats]]:
    """Of each of n points [n, K]: which directions are thin [K], and all of them [K, K], the widest first."""
    for some in np.array_split(points, -(-len(points) // AT_ONCE)):
        _, rows = tree.query(some, k=NEIGHBOURS * points.shape[1])
        near = tree.data[rows]
        near -= near.mean(axis=1, keepdims=True)
        variances, columns = np.linalg.eigh(near.transpose(0, 2, 1) @ near)  # the narrowest first
        thin = variances < THIN**2 * variances[:, -1:]
        yield from zip(thin[:, ::-1], columns.transpose(0, 2, 1)[:, ::-1], strict=True)


def _places(task: Task, steps: Steps) -> Ints:
    """[K] where the window has the states that are predicted, and that vary at all."""
    places = [place for place, name in enumerate(task.state_names) if name in task.predicted]
    return np.array([place for place in places if np.ptp(steps.window[:, place]) > 0], dtype=np.intp)


def _scale(states: Floats) -> Floats:
    """[K] standard deviations, but that a few wild values do not count."""
    low, high = np.quantile(states, [0.05, 0.95], axis=0)
    scale: Floats = np.where(high > low, (high - low) / 3.29, states.std(axis=0))
    return scale


def _dithered(states: Floats, rng: np.random.Generator) -> Floats:
    """By the resolution of each: what a coarse sensor shows lies on sheets that mean nothing."""
    resolutions = [np.median(np.diff(np.unique(column.round(5)))) for column in states.T]
    return states + np.array(resolutions) * rng.uniform(-0.5, 0.5, states.shape)


def _scattered(states: Floats, episodes: Ints) -> Floats:
    """Some of them, so that none is near another only because it comes shortly after it."""
    age = np.arange(len(states)) - first_rows(episodes)
    lag = 1
    while (later := np.flatnonzero(age >= lag)).size:
        moved = np.sqrt(np.mean((states[later] - states[later - lag]) ** 2, axis=1))
        if np.median(moved) >= APART:
            break
        lag *= 2
    scattered: Floats = states[age % lag == 0]
    return scattered
