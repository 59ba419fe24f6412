"""Double and single precision: what fits, and how it is rounded."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from clearloop.expression.meanings import LARGEST, saturated

ROUND = 1e6

PrecisionName = Literal["double", "single"]


@dataclass(frozen=True)
class Precision:
    name: PrecisionName
    largest: float
    unit: float
    """Relative error of one rounding."""
    tiny: float
    """Absolute error of one rounding near 0."""

    def rounded(self, value: float) -> float:
        """The nearest number that there is, the largest ones for what is beyond."""
        if self.name == "double":
            return saturated(value)
        return float(np.float32(min(max(value, -self.largest), self.largest)))

    def below(self, value: float) -> float:
        """The largest number that is not above."""
        near = self.rounded(value)
        return near if near <= max(value, -self.largest) else self.neighbour(near, -math.inf)

    def above(self, value: float) -> float:
        """The smallest number that is not below."""
        return -self.below(-value)

    def neighbour(self, value: float, toward: float) -> float:
        """The next number."""
        if self.name == "double":
            return self.rounded(math.nextafter(value, toward))
        with np.errstate(over="ignore"):  # of the largest one
            return self.rounded(float(np.nextafter(np.float32(self.rounded(value)), np.float32(toward))))

    def text(self, value: float) -> str:
        """The shortest decimal that is read back as this number."""
        value = self.rounded(value)
        short = f"{value:.0e}"
        if ROUND <= abs(float(short)) <= self.largest and self.rounded(float(short)) == value:
            return short  # 1e+12, not 1000000000000.0
        return repr(value) if self.name == "double" else str(np.float32(value))


DOUBLE = Precision("double", LARGEST, 2.0**-53, 2.0**-1075)
SINGLE = Precision("single", float(np.finfo(np.float32).max), 2.0**-24, 2.0**-150)
PRECISIONS: dict[str, Precision] = {one.name: one for one in (DOUBLE, SINGLE)}
