"""Where episodes start: uniformly in a box. Scores use one fixed set of starts, searches random ones."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from clearloop.task.faults import Fault
from clearloop.task.scope import state_faults

Box = NDArray[np.float64]
"""[S, 2], the lower and the upper end of each state."""


def start_faults(starts: Mapping[str, object], states: Sequence[str]) -> Iterator[Fault]:
    if "from" not in starts:
        yield from box_faults(("starts",), starts, states)
    elif dict(starts) != {"from": "batch"}:
        yield Fault(("starts",), 'from = "batch" stands alone: remove it, or the other keys')


def box_faults(where: tuple[str, ...], box: Mapping[str, object], states: Sequence[str]) -> Iterator[Fault]:
    yield from state_faults(where, box.keys(), states)
    for name in (name for name, value in box.items() if value == "batch"):
        yield Fault((*where, name), "expected two numbers, the smaller first")


def make_box(starts: Mapping[str, object], states: Sequence[str]) -> Box | None:
    """Zero where a state is not named; None if starts come from the batch."""
    if "from" in starts:
        return None
    box = np.array([starts.get(name, (0.0, 0.0)) for name in states], dtype=np.float64)
    box.flags.writeable = False
    return box


def sobol_starts(box: Box, n: int, rng: np.random.Generator | None = None) -> NDArray[np.float64]:
    """[n, S]: the first points of the Sobol sequence over the free dimensions, in state order.

    Unscrambled without `rng`; with one, a random scrambling, which still covers the box evenly.
    """
    from scipy.stats.qmc import Sobol

    free = box[:, 0] < box[:, 1]
    starts = np.tile(box[:, 0], (n, 1))
    if free.any():
        low, high = box[free].T
        # Whole powers of two keep the sequence balanced, and SciPy quiet; the first n are the same points.
        sequence = Sobol(int(free.sum()), scramble=rng is not None, rng=rng)
        starts[:, free] = low + (high - low) * sequence.random_base2((n - 1).bit_length())[:n]
    return starts


def uniform_starts(box: Box, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """[n, S]."""
    return rng.uniform(box[:, 0], box[:, 1], size=(n, len(box)))
