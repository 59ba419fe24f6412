"""How fast a log was sampled, and how fast its signals are."""

import math
from collections.abc import Sequence

import numpy as np

from clearloop.data.cells import Floats
from clearloop.data.survey import Column
from clearloop.task.sampling import SECONDS

NEARLY = 0.75
FORGOTTEN = math.exp(-1)
MOST_ROWS = 50_000  # for the time scale
EPOCHS = {"ns": 1e17, "us": 1e14, "ms": 1e11}
"""Times beyond these count from 1970, in that unit."""


def time_unit(column: Column) -> str:
    """Of a time column with numbers: what its header says, or what its size gives away; else seconds."""
    if column.kind == "date":
        return "s"
    if column.header.unit in SECONDS:
        return column.header.unit
    return next((unit for unit, least in EPOCHS.items() if column.low > least), "s")


def intervals(times: Floats) -> Floats:
    """Seconds between rows, without those that go back."""
    steps = np.diff(times)
    return steps[(steps > 0) & np.isfinite(steps)]


def sensible(value: float, tolerance: float = 0.02) -> float:
    """The number with the fewest digits that is nearly this one: 0.01 for 0.01007."""
    if value == 0 or not math.isfinite(value):
        return value
    for digits in range(1, 15):
        rounded = float(f"{value:.{digits - 1}e}")
        if abs(rounded - value) <= tolerance * abs(value):
            return rounded
    return value


def outward(low: float, high: float) -> tuple[float, float]:
    """Limits of few digits around what was seen; the same in both directions if that is nearly so."""
    if low < 0 < high and NEARLY * max(-low, high) <= min(-low, high):
        low, high = -max(-low, high), max(-low, high)
    unit = 10.0 ** math.floor(math.log10(max(high - low, 1e-300))) / 10
    ends = math.floor(low / unit + 1e-9) * unit, math.ceil(high / unit - 1e-9) * unit
    return min(float(f"{ends[0]:.12g}"), low), max(float(f"{ends[1]:.12g}"), high)


def memory(signals: Sequence[Floats]) -> float:
    """Rows after which signals are no longer like themselves (autocorrelation below 1/e); of the slowest."""
    return max((_memory(values[:MOST_ROWS]) for values in signals), default=0.0)


def _memory(values: Floats) -> float:
    values = values[np.isfinite(values)]
    if len(values) < 10 or values.min() == values.max():
        return 0.0
    values = (values - values.mean()) / max(float(np.abs(values).max()), 1e-300)
    spectrum = np.abs(np.fft.rfft(values, 2 * len(values))) ** 2
    correlation = np.fft.irfft(spectrum)[: len(values)]
    below = np.flatnonzero(correlation < FORGOTTEN * correlation[0])
    return float(below[0]) if len(below) else float(len(values))
