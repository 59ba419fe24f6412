"""Whether the members know what they do not know: how far they are apart, with data and without."""

from dataclasses import dataclass

import numpy as np

from clearloop.data.cells import Floats
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Surrogate

STRETCH = 1.5


@dataclass(frozen=True, eq=False)
class Disagreement:
    """Deviation between members after one step, in the states' units: root mean square over steps."""

    inside: Floats
    """[S] for steps of the log"""
    outside: Floats
    """[S] for the same with states 1.5 times as far from the middle of the data, if that leaves its range"""


def disagreement(surrogate: Surrogate, steps: Steps, predicted: Floats) -> Disagreement | None:
    """`predicted`: next states [M, n, S] of the steps. None for a single member."""
    if surrogate.members == 1:
        return None
    stretched = _stretched(surrogate, steps.window)
    outside = np.stack([surrogate.predict(stretched, member) for member in range(surrogate.members)])
    return Disagreement(_deviation(predicted), _deviation(outside))


def _stretched(surrogate: Surrogate, window: Floats) -> Floats:
    """Windows outside the region of the training data: lags keep their pattern, actions stay as they are."""
    low, high = surrogate.region.T
    n_states, width = len(surrogate.task.states), len(surrogate.task.scope.names)
    factor = np.where(np.arange(low.size) % width < n_states, STRETCH, 1.0)
    middle = (low + high) / 2
    stretched = middle + factor * (window - middle)
    return np.asarray(stretched[((stretched < low) | (stretched > high)).any(axis=1)])


def _deviation(predicted: Floats) -> Floats:
    """[S] of predictions [M, n, S]; NaN if there are none."""
    if not predicted.shape[1]:
        return np.full(predicted.shape[2], np.nan)
    return np.asarray(np.sqrt(predicted.var(axis=0, ddof=1).mean(axis=0)))
