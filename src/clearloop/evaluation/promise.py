"""A promise is what a controller will cost, with an interval that holds the truth in 95 of 100 cases.

The promise itself is the mean penalty on the judging members. Its interval has three causes:

- the members differ: they have learned from other rows, so their spread is what the log leaves open;
- the members err together: where replays of the log cost more or less than the log itself did
  (`evaluation/replays.py`), the truth is expected on that side;
- what no log tells: the smallest half width that any promise gets.

The factors were chosen on the log-plant pairs of `reproductions.promises`, so that the intervals hold there.
"""

from typing import NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.surrogate import Surrogate

SPREAD = 3.0  # standard deviations of the judging members
BIAS = 0.5  # share of the replays' bias by which the interval grows to that side
LUCK = 1.0  # standard errors of the replays' bias
LEAST = 0.08  # smallest half width, as a share of the promise


class Interval(NamedTuple):
    """An interval that holds the true penalty in 95 of 100 cases."""

    low: float
    high: float


def promise_interval(penalties: Floats, surrogate: Surrogate) -> Interval:
    """Return the interval of a promise.

    Args:
        penalties: [judges, N] the penalties on the judging members of the surrogate, or on the first of them.
        surrogate: The surrogate, with what its replays of the log were off by, if that is known.
    """
    means: Floats = penalties.mean(axis=1)
    promise, spread = float(means.mean()), float(means.std(ddof=1)) if len(means) > 1 else 0.0
    size, bias, doubt = abs(promise), 0.0, 0.0
    if surrogate.repetition is not None:
        judges = list(surrogate.judge_members)
        bias = float(np.mean(np.array(surrogate.repetition.bias)[judges]))
        doubt = float(np.mean(np.array(surrogate.repetition.bias_se)[judges])) * size
    half = float(np.sqrt((SPREAD * spread) ** 2 + (LUCK * doubt) ** 2 + (LEAST * size) ** 2))
    # If replays cost more than the log did, the models promise too high a penalty: the truth is below.
    below, above = max(bias, 0.0) / (1.0 + max(bias, 0.0)), max(-bias, 0.0)
    return Interval(promise - half - BIAS * below * size, promise + half + BIAS * above * size)
