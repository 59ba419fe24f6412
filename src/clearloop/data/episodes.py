"""Episodes are runs of rows, numbered 0, 1, 2, … in file order; a terminal row ends its episode."""

import numpy as np
from numpy.typing import ArrayLike

from clearloop.data.cells import Flags, Ints
from clearloop.errors import ClearloopError


def number_runs(labels: ArrayLike, terminal: Flags) -> Ints:
    """[rows]: a new number wherever the label changes, and after every terminal row."""
    labels = np.asarray(labels)
    begins = np.zeros(len(labels), dtype=np.bool_)
    begins[1:] = (labels[1:] != labels[:-1]) | terminal[:-1]
    numbers = np.cumsum(begins, dtype=np.int64)
    numbers.flags.writeable = False
    return numbers


def first_rows(episodes: Ints) -> Ints:
    """[rows]: for each row, the row in which its episode begins."""
    rows = np.arange(len(episodes))
    rows[1:][episodes[1:] == episodes[:-1]] = 0
    return np.maximum.accumulate(rows)


def last_rows(episodes: Ints) -> Flags:
    """[rows]: whether the episode ends here."""
    last = np.ones(len(episodes), dtype=np.bool_)
    last[:-1] = episodes[1:] != episodes[:-1]
    return last


def split_rows(episodes: Ints, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Rows to train on, and rows to hold out: about `share` of the transitions, in whole episodes.

    A single episode is split in time: its last part is held out, and the row at the cut is in both parts.
    """
    steps = np.bincount(episodes) - 1
    if not 0 < share < 1 or steps.sum() < 2:
        raise ClearloopError("split: expected a share between 0 and 1, and two transitions or more")
    wanted = share * steps.sum()
    drawn = rng.permutation(np.flatnonzero(steps))
    if len(drawn) == 1:
        rows = np.flatnonzero(episodes == drawn[0])
        cut = min(max(1, round(len(rows) - 1 - wanted)), len(rows) - 2)
        return rows[: cut + 1], rows[cut:]
    count = 1 + int(np.argmin(np.abs(np.cumsum(steps[drawn])[:-1] - wanted)))
    held_out = np.isin(episodes, drawn[:count])
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def pieces(rows: int, most: int, length: int) -> tuple[Ints, Ints]:
    """Rows of evenly spaced pieces of a log with so many rows, about `most` in all, and the piece of each."""
    count = max(1, most // length)
    begins = np.linspace(0, max(rows - length, 0), count).astype(np.int64)
    chosen = np.unique(np.minimum(begins[:, None] + np.arange(length), rows - 1))
    return chosen, np.searchsorted(begins, chosen, side="right")


def count_failing(episodes: Ints, terminal: Flags) -> int:
    """The number of transitions that lead to a terminal state."""
    return int(np.count_nonzero(terminal[1:] & ~last_rows(episodes)[:-1]))


def summarize(transitions: int, episodes: int, failing: int) -> str:
    """`10,000 transitions in 794 episodes, 5.9 % of them failing`"""
    share = f"{100 * failing / transitions:.1f} %" if failing else "none"
    plural = "s" * (episodes != 1)
    return f"{transitions:,} transitions in {episodes:,} episode{plural}, {share} of them failing"
