"""A focus is a small sample of starts that tells laws apart, drawn where good laws disagree.

Most starts say nothing about which of two good laws is better: both save the plant, or neither does. A focus
draws the others more often and weighs them less, so that means stay unbiased. It takes differences to a
reference law, whose mean over all starts is known, so that only disagreement adds to the variance.
"""

from typing import NamedTuple

import numpy as np

from clearloop.arrays import Floats, Ints

_EVEN = 0.1  # weight of an even sample: new laws may fail where all old ones agree
_GOOD = 0.15  # laws that cost at most this share more than the best are asked


class Focus(NamedTuple):
    """A sample of n starts; the penalty of a law is `offset` + Σ `weights` · its costs from these starts."""

    starts: Ints
    """[n] the numbers of the starts, in rising order"""
    weights: Floats
    """[n] 1 / (number of all starts · probability of this one)"""
    offset: float

    @classmethod
    def draw(cls, costs: Floats, n: int, *, rng: np.random.Generator) -> "Focus":
        """Draw n starts.

        Args:
            costs: [L, N] the costs of L laws from all N starts.
            n: The number of starts to draw.
            rng: The generator, of which one number is used.
        """
        total = costs.shape[1]
        means = costs.mean(axis=1)
        best = int(np.argmin(means))
        good = costs[means <= means[best] + _GOOD * abs(means[best])]
        spread = np.sqrt(np.mean((good - costs[best]) ** 2, axis=0))
        even = np.full(total, 1 / total)
        drawn = (1 - _EVEN) * spread / spread.sum() + _EVEN * even if spread.sum() > 0 else even
        chances = _chances(drawn, min(n, total))
        ticks = np.cumsum(chances) - rng.random()  # systematic: the sample is spread as the starts are
        starts = np.flatnonzero(np.floor(ticks) > np.floor(ticks - chances))
        weights = 1 / (total * chances[starts])
        return cls(starts, weights, float(means[best] - weights @ costs[best, starts]))

    def penalties(self, costs: Floats) -> Floats:
        """Return the penalties [P] of laws with these costs [P, n]."""
        penalties: Floats = self.offset + np.einsum("pn,n->p", costs, self.weights)
        return penalties


def _chances(shares: Floats, n: int) -> Floats:
    """Return probabilities [N] in proportion to shares, at most 1, whose sum is n."""
    chances = n * shares
    for _ in range(20):
        certain = chances >= 1
        rest = n - np.count_nonzero(certain)
        if not rest or not shares[~certain].sum():
            break
        chances = np.where(certain, 1.0, rest * shares / shares[~certain].sum())
        if (chances <= 1).all():
            break
    return np.clip(chances, 1e-9, 1.0)
