"""The linear part of a model, and stretches of the log in which a model runs on its own predictions."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from clearloop.arrays import Floats, Ints
from clearloop.surrogate.steps import Steps

AHEAD = 20  # steps of a stretch
FEWEST = 10  # stretches without which models cannot be compared
_FAR = 20.0  # standard deviations at which a simulation that runs off is stopped
_SINGULAR = 1e-10  # the smallest singular value of the standardised inputs, as a share of the largest


def linear_parts(inputs: Floats, changes: Floats, constant: bool) -> Floats:
    """Fit changes [T, n] by linear functions of inputs [n, C].

    Returns:
        [T, C + 1] the gains and, last, the constants, which are 0 unless `constant` is true. If inputs depend
        on each other, the gains are the smallest ones for standardised inputs.
    """
    middle, aim = inputs.mean(axis=0) * constant, changes.mean(axis=1) * constant
    x, y = inputs - middle, changes.T - aim
    sizes = np.sqrt(np.mean(x**2, axis=0))
    scale = np.where(sizes > 1e-12 * np.abs(inputs).max(axis=0, initial=0.0), sizes, np.inf)
    gains = (np.linalg.lstsq(x / scale, y, rcond=_SINGULAR)[0] / scale[:, None]).T
    return np.column_stack([gains, aim - gains @ middle])


Change = Callable[[Floats], Floats]
"""A function from windows [N, H (S + A)] to the changes [N, K] of the predicted states."""


class Stretches(NamedTuple):
    """N stretches of the log, each of L steps, for a model of K predicted states."""

    windows: Floats
    """[L, N, H (S + A)] logged windows"""
    after: Floats
    """[L, N, K] predicted states as logged after each step"""
    places: Ints
    """[H, K] columns of the window with the predicted states of each lag"""
    spread: Floats
    """[K] standard deviation of the states in the log"""

    @classmethod
    def of(cls, steps: Steps, first: Ints, length: int, predicted: Ints, width: int) -> "Stretches":
        """Return the stretches that begin at the steps `first`."""
        at = first + np.arange(length)[:, None]
        lags = steps.window.shape[1] // width
        places = np.arange(lags)[:, None] * width + predicted
        spread = steps.window[:, predicted].std(axis=0)
        return cls(
            steps.window[at], steps.next[at][:, :, predicted], places, np.where(spread > 0, spread, 1.0)
        )

    def errors(self, change: Change) -> Floats:
        """Return the errors [L, N, K] of a model that runs on its own predictions, in standard deviations."""
        states = [self.windows[0][:, lag] for lag in self.places]
        low, high = (bound - side * _FAR * self.spread for bound, side in self._range())
        errors = np.empty_like(self.after)
        for step, logged in enumerate(self.windows):
            window = logged.copy()
            for lag, values in zip(self.places, states, strict=True):
                window[:, lag] = values
            ahead = np.clip(states[0] + change(window), low, high)
            errors[step] = (ahead - self.after[step]) / self.spread
            states = [ahead, *states[:-1]]
        return errors

    def _range(self) -> list[tuple[Floats, float]]:
        return [(self.after.min(axis=(0, 1)), 1.0), (self.after.max(axis=(0, 1)), -1.0)]


def first_steps(steps: Steps, length: int, every: int) -> Ints:
    """Return evenly spaced steps from which the log goes on for `length` steps without failing."""
    n = len(steps)
    first = np.arange(0, max(n - length + 1, 0), every)
    last = first + length - 1
    failures = np.append(0, np.cumsum(steps.failing))
    calm = failures[last + 1] == failures[first]
    return np.asarray(first[(steps.episode[first] == steps.episode[last]) & calm])
