"""Actions that take only some values: level k of n is low + k (high − low)/n, k = 0 … n.

What is asked for is limited to [low, high], then rounded to the nearest level; of two that are equally near,
to the higher one. `to_level` says it for a number, `to_levels` for arrays; the engine
(`kernels/policies.py`) does the same operations in the same order, so that all three agree to the bit.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_LEVELS = 1_000_000
WHOLE = 1e-9  # what a quotient may differ from a whole number by: 0.3/0.1 is 2.9999999999999996


def whole(distance: float, step: float) -> int | None:
    """How many steps make up a distance; None if it is not a whole number of them."""
    quotient = distance / step
    if not (quotient <= MOST_LEVELS and distance * quotient < math.inf):
        return None
    return round(quotient) if abs(quotient - round(quotient)) <= WHOLE * max(1.0, quotient) else None


def to_level(value: float, low: float, high: float, count: int) -> float:
    """A number from low to high as the nearest level; `count`: n."""
    k = math.floor((value - low) * count / (high - low) + 0.5)
    return min(low + k * (high - low) / count, high)


def to_levels(values: NDArray[Any], limits: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """[…, A] limited and, where `counts` [A] says so (0: any value will do), as levels. `limits`: [A, 2]."""
    low, high = limits.T
    limited = np.clip(values, low, high)
    n = np.maximum(counts, 1)
    k = np.floor((limited - low) * n / (high - low) + 0.5)
    rounded: NDArray[Any] = np.where(counts > 0, np.minimum(low + k * (high - low) / n, high), limited)
    return rounded


def draw_levels(
    limits: NDArray[np.float64], counts: NDArray[np.float64], shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.float64]:
    """[*shape, A] uniform: in the limits, or over the levels."""
    low, high = limits.T
    drawn = rng.uniform(low, high, size=(*shape, len(low)))
    n = np.maximum(counts, 1)
    k = np.minimum(np.floor((drawn - low) * (n + 1) / (high - low)), n)
    chosen: NDArray[np.float64] = np.where(counts > 0, np.minimum(low + k * (high - low) / n, high), drawn)
    return chosen
