"""What fitted Q evaluation fits: networks, or extremely randomised trees (Ernst, Geurts, Wehenkel 2005).

An approximator is told once at which points it will be fitted and at which ones it will be asked: these stay
the same, while the targets change from iteration to iteration. Targets and answers are shares, from 0 to 1,
of what a return can be.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clearloop.data.cells import Floats, Ints
from clearloop.networks import Training

if TYPE_CHECKING:
    from clearloop.networks.refitting import Refitting

Fit = Callable[[Floats], Floats]
"""From targets [n] at the points of the data to the answers [M, m] of M members at the points asked for."""


class Approximator(ABC):
    """A frozen dataclass: it is its own configuration."""

    @abstractmethod
    def begin(self, points: Floats, asked: Floats, *, rng: np.random.Generator) -> Fit:
        """For data at `points` [n, columns], to be asked at `asked` [m, columns]."""


@dataclass(frozen=True, kw_only=True)
class Networks(Approximator):
    """Networks from different first weights; each fit goes on from the last.

    Half of them also see the products of what the others see. Where there are no data, the two sorts go on
    differently: on the cart-pole, whose batch is slow and whose controllers drive fast, the one finds too few
    failures, the other too many.
    """

    members: int = 4
    training: Training = field(
        default_factory=lambda: Training(
            hidden=(64, 64), activation="tanh", epochs=3, batch_size=256, learning_rate=1e-3
        )
    )
    """of each fit; the step size does not fall"""

    def begin(self, points: Floats, asked: Floats, *, rng: np.random.Generator) -> "Refitting":
        from clearloop.networks.refitting import Refitting

        seen, asked = _with_products(points), _with_products(asked)
        reads = np.ones((self.members, seen.shape[1]))
        reads[::2, points.shape[1] :] = 0.0
        return Refitting(seen, asked, reads=reads, settings=self.training, rng=rng)

    def features(self, fit: "Refitting", points: Floats) -> Floats:
        """[n, features] of points [n, columns]: what the last hidden layers make of them."""
        return fit.features(_with_products(points))


def _with_products(rows: Floats) -> Floats:
    """[n, columns + pairs of columns]"""
    one, other = np.triu_indices(rows.shape[1])
    return np.hstack([rows, rows[:, one] * rows[:, other]])


@dataclass(frozen=True, kw_only=True)
class Trees(Approximator):
    """Members are forests that differ in their random splits.

    With the trees as they are, a fit is an average over leaves, which takes no time: they are only grown anew
    every few iterations.
    """

    members: int = 3
    trees: int = 30
    """of each member, whose answers are averaged"""
    leaf: int = 3
    """fewest rows in a leaf"""
    regrown: int = 10
    """fits from one growth to the next"""

    def begin(self, points: Floats, asked: Floats, *, rng: np.random.Generator) -> Fit:
        forests = [_Forest(self, points, asked, child) for child in rng.spawn(self.members)]
        return lambda targets: np.stack([forest(targets) for forest in forests])


class _Forest:
    def __init__(self, settings: Trees, points: Floats, asked: Floats, rng: np.random.Generator) -> None:
        self.settings, self.points, self.asked, self.rng = settings, points, asked, rng
        self.fits = 0

    def __call__(self, targets: Floats) -> Floats:
        """[m]"""
        if self.fits % self.settings.regrown == 0:
            self._grow(targets)
        self.fits += 1
        sums = np.bincount(self.leaves.ravel(), np.repeat(targets, self.settings.trees), self.counts.size)
        means = sums / self.counts
        return np.asarray(means[self.asked_leaves].mean(axis=1))

    def _grow(self, targets: Floats) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        forest = ExtraTreesRegressor(
            self.settings.trees,
            min_samples_leaf=self.settings.leaf,
            random_state=int(self.rng.integers(2**31)),
        ).fit(self.points, targets)
        first = np.cumsum([0, *(tree.tree_.node_count for tree in forest.estimators_)])
        self.leaves: Ints = forest.apply(self.points) + first[:-1]
        """[n, trees] the number of the leaf that each point is in, counted over all trees"""
        self.asked_leaves: Ints = forest.apply(self.asked) + first[:-1]
        self.counts = np.maximum(np.bincount(self.leaves.ravel(), minlength=first[-1]), 1)
