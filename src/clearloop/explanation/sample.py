"""The rows on which forms of law are compared: not more than it takes."""

from dataclasses import replace

import numpy as np

from clearloop.data.cells import Ints
from clearloop.explanation.clipping import Target
from clearloop.explanation.moments import PARTS
from clearloop.explanation.signals import Signals

MOST_ROWS = 20_000  # more would not change the choice


def some_episodes(signals: Signals, target: Target) -> tuple[Signals, Target]:
    """Episodes from all over the log, as many as are needed."""
    count = int(signals.episodes[-1]) + 1
    wanted = min(count, max(PARTS, -(-MOST_ROWS * count // len(signals.episodes))))
    some, rows = signals.of_episodes(np.linspace(0, count - 1, wanted).round().astype(np.int64))
    return some, replace(target, values=target.values[rows], begins=target.begins[rows])


def usable_rows(signals: Signals, target: Target) -> tuple[Ints, bool]:
    """Rows that are not at a limit; if that leaves most, only those whose row before is not either."""
    free = signals.chosen & ~target.saturated
    follows = free & ~target.begins & np.append(False, free[:-1])
    enough = 2 * np.count_nonzero(follows) >= np.count_nonzero(free)
    rows = np.flatnonzero(follows if enough else free)
    return rows[:: max(1, -(-len(rows) // MOST_ROWS))], bool(enough)
