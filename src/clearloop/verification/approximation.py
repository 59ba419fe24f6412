"""Numbers with a bound of how far an export may be off, carried through every operation.

A target's library of functions differs from ours in last places, single precision everywhere. Most formulas
hardly magnify that; some do (a difference of large numbers, a condition right at its edge). The bound says
where.
"""

from dataclasses import dataclass
from typing import NamedTuple

from clearloop.export.precision import Precision

LIBRARY = 4  # units in the last place that two mathematical libraries may differ by


class Approximate(NamedTuple):
    value: float
    """What it is in the original."""
    bound: float = 0.0
    """How far it may be off in an export."""
    constant: bool = False

    @property
    def low(self) -> float:
        return self.value - self.bound

    @property
    def high(self) -> float:
        return self.value + self.bound


@dataclass(frozen=True)
class Arithmetic:
    precision: Precision
    exact: bool
    """Sums, products and quotients are those of the original to the bit."""

    def number(self, value: float) -> Approximate:
        return Approximate(value, abs(value - self.precision.rounded(value)), constant=True)

    def rounding(self, value: float) -> float:
        """Of one operation that every processor does in the same way."""
        return 0.0 if self.exact else self.precision.unit * abs(value) + self.precision.tiny

    def library(self, value: float) -> float:
        """Of one function that libraries compute in their own ways."""
        return LIBRARY * 2 * self.precision.unit * abs(value) + self.precision.tiny
