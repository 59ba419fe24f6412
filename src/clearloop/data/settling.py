"""How fast a logged plant is: a small linear fit, and how long the log's own controller needed to settle.

The draft of a task looks ahead as far as the plant needs. This fit is for that purpose only: one lag and one
dead time for all actions together. The linear model that controllers are designed on is
`methods/linear_model.py`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from clearloop.arrays import Floats

_MOST_ROWS = 4_000  # that are fitted; longer logs are thinned out
_LAGS, _DEAD_TIMES = 24, 7  # that are tried
_FINER = 1.4  # factor around the best lag, within which a second pass looks
_START = 0.1  # share of the rows that do not count
_SLOWEST = 0.3  # of the log: a slower lag cannot be told from a ramp
FITS = 0.6  # share of the state's variance that a fit must explain
_FEWEST_STEPS = 3  # of the setpoint, to say how long the log's loop needs to settle
_FASTEST = 3  # rows: a loop that seems faster only has small steps
_LARGE = 0.1  # of a setpoint's range: a step
SETTLED = 0.1  # of a step: the error that counts as settled


class Dynamics(NamedTuple):
    """A first-order lag with dead time that repeats a state from the actions."""

    lag: float
    """rows: the time constant"""
    dead: float
    """rows: the dead time"""
    explained: float
    """the share of the state's variance that the fit explains"""
    left: Floats
    """what it leaves of the state, row by row, after the start"""

    @property
    def settling(self) -> float:
        """The rows until 95 % of a step have happened."""
        return 3 * self.lag + self.dead


def fit_dynamics(state: Floats, actions: Sequence[Floats]) -> Dynamics | None:
    """Fit a first-order lag with dead time, from the actions to a state, by simulation over the whole log.

    A simulation, unlike a prediction of one row, is not misled by the noise of the sensor.

    Args:
        state: The state [rows].
        actions: The actions [rows each].

    Returns:
        The fit; None if no lag explains the state, or only one as slow as the log is long.
    """
    thin = max(1, len(state) // _MOST_ROWS)
    values = _thinned(state, thin)
    inputs = np.stack([_thinned(action, thin) for action in actions])
    known = np.isfinite(values) & np.isfinite(inputs).all(axis=0)
    values, inputs = values[known], inputs[:, known]
    if len(values) < 50 or not np.ptp(values) or not np.ptp(inputs, axis=1).all():
        return None
    values = values / np.abs(values).max()
    inputs = inputs / np.abs(inputs).max(axis=1, keepdims=True)
    fit = _best(values, inputs, np.geomspace(0.5, len(values) / 2, _LAGS))
    fit = _best(values, inputs, fit.lag * np.geomspace(1 / _FINER, _FINER, _LAGS // 2))
    if 1 - fit.share < FITS or fit.lag > _SLOWEST * len(values):
        return None
    largest = float(np.nanmax(np.abs(state)))
    return Dynamics(fit.lag * thin, fit.dead * thin, 1 - fit.share, np.repeat(fit.left * largest, thin))


class _Fit(NamedTuple):
    share: float
    """of the variance that is left"""
    lag: float
    dead: int
    left: Floats


def _best(values: Floats, inputs: Floats, lags: Floats) -> _Fit:
    """Try lags and dead times, and return the fit that leaves least."""
    return min(
        (
            _fit(values, _lagged(inputs, float(lag)), float(lag), dead)
            for lag in lags
            for dead in sorted({round(share * lag) for share in np.linspace(0, 1.5, _DEAD_TIMES)})
        ),
        key=lambda fit: fit.share,
    )


def _fit(values: Floats, smooth: Floats, lag: float, dead: int) -> _Fit:
    """Fit the gains and a constant; the first rows show how an unknown start fades and do not count."""
    late = np.concatenate([np.repeat(smooth[:, :1], dead + 1, axis=1), smooth], axis=1)[:, : len(values)]
    columns = np.vstack([late, np.ones(len(values))]).T
    after = slice(round(_START * len(values)), None)
    gains = np.linalg.lstsq(columns[after], values[after], rcond=1e-9)[0]
    left = values[after] - columns[after] @ gains
    variance = float(values[after].var())
    return _Fit(float(np.square(left).mean()) / variance if variance else 1.0, lag, dead, left)


def _thinned(values: Floats, thin: int) -> Floats:
    rows = len(values) // thin * thin
    return np.asarray(values[:rows].reshape(-1, thin).mean(axis=1))


def _lagged(inputs: Floats, lag: float) -> Floats:
    """Return the inputs [A, rows] after a first-order lag that begins at rest."""
    keep = float(np.exp(-1 / lag))
    smooth, _ = lfilter([1 - keep], [1, -keep], inputs, axis=1, zi=keep * inputs[:, :1])
    return np.asarray(smooth)


def settling_rows(state: Floats, setpoint: Floats) -> float | None:
    """Return the rows that the log's own loop usually needs to follow its setpoint.

    Args:
        state: The state [rows].
        setpoint: Its setpoint [rows].

    Returns:
        The median over the steps of the setpoint, or where it moves all the time the settling time of a lag
        that follows it; None if the state does not follow.
    """
    found = _settled_steps(state, setpoint)
    if found is not None:
        return found
    loop = fit_dynamics(state, [setpoint])
    return None if loop is None or loop.settling < _FASTEST else loop.settling


def _settled_steps(state: Floats, setpoint: Floats) -> float | None:
    """Return the median of the rows until steps have settled; None if fewer than three do."""
    span = float(np.nanmax(setpoint) - np.nanmin(setpoint))
    jumps = np.flatnonzero(np.abs(np.diff(setpoint)) > _LARGE * span) + 1
    if not 0 < len(jumps) <= len(setpoint) // 10:
        return None
    needed = []
    for first, last in zip(jumps, [*jumps[1:], len(setpoint)], strict=True):
        off = np.abs(state[first:last] - setpoint[first:last])
        step = abs(float(setpoint[first] - setpoint[first - 1]))
        outside = np.flatnonzero(~(off <= SETTLED * step))
        if len(outside) < len(off) and (not len(outside) or outside[-1] < 0.8 * len(off)):
            needed.append(int(outside[-1]) + 1 if len(outside) else 1)
    usual = float(np.median(needed)) if len(needed) >= _FEWEST_STEPS else 0.0
    return usual if usual >= _FASTEST else None


def wanders(left: Floats, rows: float) -> float:
    """Return how far what a fit leaves wanders, slower than the plant: a disturbance, or a hidden load.

    Args:
        left: What the fit leaves of a state [rows].
        rows: The rows of a block; noise that is faster is averaged away.

    Returns:
        The deviation of the means of blocks.
    """
    size = max(1, round(rows))
    blocks = len(left) // size
    if blocks < 4:
        return 0.0
    return float(left[: blocks * size].reshape(blocks, size).mean(axis=1).std())
