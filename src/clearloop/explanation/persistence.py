"""Whether a law tells more of an action than the action's own past does.

Actions that are held, or drift, move the plant, so that its states go with them: a law of the states then
seems to explain what was planned or random. But it adds nothing to what the last actions already tell.
"""

from dataclasses import dataclass

import numpy as np

from clearloop.data.cells import Floats, Ints
from clearloop.explanation.clipping import Target
from clearloop.explanation.moments import by_part, measure
from clearloop.explanation.signals import Signals

PAST = 20, 10, 5  # actions: the more, the longer may a signal have been held to be known as one
ENOUGH = 10  # rows for each of them


@dataclass(frozen=True)
class Past:
    explained: float
    """share of the action's variance that the actions before it explain, in held-out time"""
    added: float
    """share of the rest that goes when the law's action, now and before, is known too"""


def look_back(signals: Signals, target: Target, asked: Floats) -> Past:
    """`asked`: [n] the law's action."""
    for steps in PAST:
        rows = _rows_with_past(signals, target, steps)
        if len(rows) >= ENOUGH * steps:
            return _compare(signals, target, asked, rows, steps)
    return Past(0.0, 1.0)  # episodes too short to tell: only the law counts


def _rows_with_past(signals: Signals, target: Target, steps: int) -> Ints:
    known = signals.chosen & ~target.saturated & (signals.age >= steps)
    for back in range(1, steps + 1):
        known[back:] &= signals.chosen[:-back]
    return np.flatnonzero(known)


def _compare(signals: Signals, target: Target, asked: Floats, rows: Ints, steps: int) -> Past:
    rows, ends = by_part(rows, signals)
    past = [target.values[rows - back] for back in range(1, steps + 1)]
    columns = [*past, asked[rows], asked[rows - 1], target.values[rows]]
    moments = measure(np.stack(columns), None, ends, np.zeros_like(rows))
    if not moments.spread:  # an action that never changes there
        return Past(1.0, 0.0)
    own, both = moments.unexplained(range(steps)), moments.unexplained(range(steps + 2))
    return Past(1 - own, 1 - both / own if own > 0 else 0.0)
