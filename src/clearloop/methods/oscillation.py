"""How a signal oscillates: from its turning points, wherever its middle may be."""

from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Floats

FEWEST = 4  # turning points: three swings, of which the last is compared to the first
FADED = 1e-6  # of the range so far: what swings less is rounding


class Oscillation(NamedTuple):
    period: float
    """in samples"""
    ratio: float
    """of a swing to the one a period before: 1 is sustained, less dies out, more grows"""


def find_oscillation(signal: Floats) -> Oscillation | None:
    """Of the later half of the swings, when all else that the start stirred up is gone. None of too few."""
    times, values = turning_points(signal)
    swings = np.abs(np.diff(values))
    reach = np.maximum.accumulate(signal) - np.minimum.accumulate(signal)
    faded = swings < FADED * reach[times[1:].astype(np.int64)]
    if faded.any():
        swings = swings[: np.argmax(faded)]
    if len(swings) < FEWEST - 1:
        return None
    first = min((len(swings) - 1) // 2, len(swings) - FEWEST + 1)
    steps = len(swings) - 1 - first
    period = max(2.0, 2 * (times[len(swings)] - times[first]) / (len(swings) - first))  # nothing is faster
    return Oscillation(float(period), float((swings[-1] / swings[first]) ** (2 / steps)))


def turning_points(signal: Floats) -> tuple[Floats, Floats]:
    """When and at what value a signal turns back, by the parabola through the three samples next to it."""
    slopes = np.sign(np.diff(signal))
    at = np.flatnonzero(slopes[1:] * slopes[:-1] < 0) + 1
    before, here, after = signal[at - 1], signal[at], signal[at + 1]
    shift = (before - after) / (2 * (before - 2 * here + after))
    return at + shift, here - (before - after) * shift / 4
