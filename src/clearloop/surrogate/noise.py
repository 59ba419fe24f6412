"""What networks cannot predict: noisy sensors, disturbances. Rollouts without it promise too much.

A controller that answers every flicker of a sensor looks good on a model whose sensors do not flicker, and
one that does not answer a leak looks good on a model that has none. So what was left unexplained in the part
of the log that was held out is kept, and replayed in rollouts: stretches of it, because what lasts in the
plant lasts there.
"""

from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Flags, Floats, Ints
from clearloop.surrogate.steps import Steps

MOST = 20_000  # steps that are kept


class Noise(NamedTuple):
    """R steps of K states in the order of the log."""

    residuals: Floats
    """[R, K] 0 for states that are explained well enough; R is 0 if all are"""
    last: Flags
    """[R] whether what follows is of another episode"""

    @classmethod
    def none(cls) -> "Noise":
        return cls(np.zeros((0, 0)), np.zeros(0, np.bool_))

    def draw(self, count: int, steps: int, seed: int) -> Floats:
        """[count, steps, K] stretches from random places on; nothing if there is none."""
        rows = len(self.residuals)
        if not rows:
            return np.zeros((0, 0, 0))
        anywhere: Ints = np.random.default_rng(seed).integers(rows, size=(steps, count))
        drawn = np.empty((count, steps, self.residuals.shape[1]))
        at = anywhere[0]
        for step in range(steps):
            drawn[:, step] = self.residuals[at]
            at = np.where(self.last[at] | (at == rows - 1), anywhere[step], np.minimum(at + 1, rows - 1))
        return drawn


def find_noise(steps: Steps, predicted: Floats, states: list[int], share: float) -> Noise:
    """In held-out steps. `predicted`: next states [n, S], by all members together; K `states` of them.

    `share`: of the variance of a state's change that may be left.
    """
    ordinary = ~steps.failing
    residuals = (steps.next - predicted)[ordinary][:, states]
    change = steps.change[ordinary][:, states]
    left = np.mean(residuals**2, axis=0) > share * change.var(axis=0)
    if not len(residuals) or not left.any():
        return Noise.none()
    others = np.diff(steps.episode[ordinary], append=-1) != 0
    kept = np.where(left, residuals - residuals.mean(axis=0), 0.0)
    return Noise(kept[:MOST], others[:MOST])
