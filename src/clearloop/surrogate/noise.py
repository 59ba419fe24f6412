"""Noise: what the models cannot predict is replayed in rollouts.

Networks cannot predict noisy sensors and disturbances, and rollouts without them promise too much. A
controller that answers every flicker of a sensor looks good on a model whose sensors do not flicker, and one
that does not answer a leak looks good on a model that has none. So the residuals of the log are kept and
replayed in rollouts. They are replayed in stretches, as long as the log allows, because disturbances last.

Only noise is replayed. An error of the model is the same wherever states and actions are the same; noise is
not. So residuals are compared with those of their nearest neighbours in the log: half of the mean squared
difference is the variance of the noise (the delta test of Pi and Peterson 1994).

A gust that moves a speed moves the position in the same step, hardly, but exactly so. A model with lags knows
this, and what it has never seen otherwise throws it off. So what moves with a noisy state moves on with it.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from clearloop.arrays import Flags, Floats, Ints
from clearloop.surrogate.steps import Steps

MOST_NOISE = 20_000  # steps that are kept
_COMPARED = 4_000  # steps whose neighbours are searched
_NEIGHBOURS = 20  # nearest steps among which the nearest one of another time is taken
_APART = 50  # steps between neighbours at least, because a disturbance lasts
_LASTING = 20  # steps over which residuals add up, to find disturbances that last
_WARMING = 4  # the first quarter of an episode is its beginning
_COUPLED = 0.9  # correlation from which on the residual of a state is a part of another one's noise
_SEVERAL = 5  # fewest episodes from whose beginnings stretches can be drawn


class Noise(NamedTuple):
    """The residuals of R steps of K states, in the order of the log."""

    residuals: Floats
    """[R, K] residuals; 0 for states that are explained and move with no noisy one; R is 0 if all are"""
    last: Flags
    """[R] whether the next row belongs to another episode"""

    @classmethod
    def none(cls) -> "Noise":
        """Return no noise."""
        return cls(np.zeros((0, 0)), np.zeros(0, np.bool_))

    def draw(self, count: int, steps: int, seed: int, *, fresh: bool = False) -> Floats:
        """Return stretches [count, steps, K] of random episodes; nothing if there is no noise.

        A stretch lasts as long as its episode allows; then one of another episode follows.

        Args:
            count: The number of stretches.
            steps: The steps of a stretch.
            seed: The seed of the draw.
            fresh: Whether stretches begin where episodes begin, if the log has several. What is hidden is
                often not at rest there, which looks like a disturbance, so all other stretches leave out the
                beginnings of episodes.
        """
        rows = len(self.residuals)
        if not rows:
            return np.zeros((0, 0, 0))
        rng = np.random.default_rng(seed)
        ends = np.unique(np.append(np.flatnonzero(self.last), rows - 1))
        firsts = np.append(0, ends[:-1] + 1)
        warm = firsts + (ends - firsts + 1) // _WARMING
        chosen = np.searchsorted(ends, rng.integers(rows, size=(steps, count)))  # by their lengths
        room = np.maximum(ends[chosen] - warm[chosen] - steps + 1, 0) + 1
        begins = warm[chosen] + (rng.random((steps, count)) * room).astype(np.intp)
        drawn = np.empty((count, steps, self.residuals.shape[1]))
        at = firsts[chosen[0]] if fresh and len(ends) >= _SEVERAL else begins[0]
        for step in range(steps):
            drawn[:, step] = self.residuals[at]
            over = self.last[at] | (at == rows - 1)
            at = np.where(over, begins[step], np.minimum(at + 1, rows - 1))
        return drawn


def find_noise(steps: Steps, held_out: Flags, predicted: Floats, states: list[int], share: float) -> Noise:
    """Collect the residuals of logged steps.

    Args:
        steps: The n logged steps, in the order of the log within each part.
        held_out: [n] which of them no network was trained on.
        predicted: [n, S] next states, the mean of all members.
        states: The indices of the K states that are predicted.
        share: The share of the variance of a state's change that may remain unexplained without being noise.

    Returns:
        The noise. Its size is that of held-out steps, less the part that is an error of the model.
    """
    ordinary = ~steps.failing
    residuals = (steps.next - predicted)[ordinary][:, states]
    unseen, change = held_out[ordinary], steps.change[ordinary][:, states]
    if not unseen.any():
        return Noise.none()
    size, episode = np.square(residuals[unseen]).mean(axis=0), steps.episode[ordinary]
    matters = np.max([_of_changes(residuals, change, episode, ahead) for ahead in (1, _LASTING)], axis=0)
    if not (matters > share).any():
        return Noise.none()
    random = noise_share(steps[ordinary].window, residuals, episode)
    noisy = matters * random > share
    if not noisy.any():
        return Noise.none()
    spread = residuals.std(axis=0)
    scale = np.where(noisy & (spread > 0), np.sqrt(random * size) / np.where(spread > 0, spread, 1.0), 0.0)
    scale = _with_coupled(scale, residuals)
    others = np.diff(episode, append=-1) != 0
    kept = (residuals - residuals.mean(axis=0)) * scale
    return Noise(kept[:MOST_NOISE], others[:MOST_NOISE])


def _with_coupled(scale: Floats, residuals: Floats) -> Floats:
    """Return the scales [K] of noise, where a state without noise has that of the state that it moves with.

    Args:
        scale: [K] the scale of the residuals of each state, 0 where they are no noise.
        residuals: [n, K] the residuals.
    """
    centred = residuals - residuals.mean(axis=0)
    sizes = np.linalg.norm(centred, axis=0)
    unit = centred / np.where(sizes > 0, sizes, np.inf)
    alike = np.abs(unit.T @ unit) * (scale > 0)
    leads = alike.argmax(axis=1)
    follows = (scale == 0) & (alike.max(axis=1) > _COUPLED)
    return np.where(follows, scale[leads], scale)


def _of_changes(residuals: Floats, change: Floats, episode: Ints, ahead: int) -> Floats:
    """Return the variance [K] of residuals that add up over some steps, as a share of that of the changes.

    A small disturbance that lasts matters more than a large one that does not.
    """
    whole = np.flatnonzero(episode[ahead - 1 :] == episode[: len(episode) - ahead + 1])
    if not len(whole):
        return np.zeros(residuals.shape[1])
    sums = [np.cumsum(np.vstack([np.zeros_like(rows[:1]), rows]), axis=0) for rows in (residuals, change)]
    left, moved = ((rows[whole + ahead] - rows[whole]).var(axis=0) for rows in sums)
    return np.asarray(np.divide(left, moved, out=np.zeros_like(left), where=moved > 0))


def noise_share(windows: Floats, residuals: Floats, episode: Ints) -> Floats:
    """Estimate the share of the variance of residuals [n, K] that is noise, by the delta test.

    Args:
        windows: [n, columns] what the model saw.
        residuals: [n, K] what it left.
        episode: [n] number of the episode.

    Returns:
        [K] shares from 0 to 1; 1 if there is no neighbour to compare with.
    """
    spread = windows.std(axis=0)
    points = windows[:, spread > 0] / spread[spread > 0]
    asked = np.linspace(0, len(points) - 1, min(len(points), _COMPARED)).astype(np.intp)
    if len(points) <= _NEIGHBOURS or not points.shape[1]:
        return np.ones(residuals.shape[1])
    _, near = KDTree(points).query(points[asked], k=_NEIGHBOURS)
    far = (np.abs(near - asked[:, None]) > _APART) | (episode[near] != episode[asked][:, None])
    known = far.any(axis=1)
    if not known.any():
        return np.ones(residuals.shape[1])
    other = near[np.arange(len(near)), far.argmax(axis=1)]
    difference = (residuals[asked] - residuals[other])[known]
    variance = residuals[asked][known].var(axis=0)
    noise = np.square(difference).mean(axis=0) / 2
    share: Floats = np.divide(noise, variance, out=np.ones_like(noise), where=variance > 0)
    return share.clip(0.0, 1.0)
