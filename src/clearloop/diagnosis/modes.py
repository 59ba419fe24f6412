"""Eigenvalues of a loop in discrete time, as an engineer reads them: seconds and damping."""

import cmath
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from clearloop.diagnosis.rounding import rounded

MARGIN = 1e-9  # rounding: an eigenvalue this near to the unit circle is on it
GONE = 1e-6  # a mode that is smaller than this after one step has no time constant that means anything


@dataclass(frozen=True)
class Mode:
    """An eigenvalue λ = exp(s dt) of what a step does to small deviations; of a pair, one stands for both."""

    value: complex
    time_constant: float | None
    """-1 / Re s, in seconds: when it has fallen to 1/e; negative if it grows; None for λ = 0 and |λ| = 1"""
    damping: float | None
    """-Re s / |s|; None where nothing swings"""
    period: float | None
    """2 π / |Im s|, in seconds; None where nothing swings"""

    @classmethod
    def of(cls, value: complex, dt: float) -> Self:
        if abs(value) < GONE:
            return cls(value, None, None, None)
        s = cmath.log(value) / dt
        lasts = abs(abs(value) - 1) > MARGIN
        swings = abs(s.imag) * dt > MARGIN
        return cls(
            value,
            -1 / s.real if lasts else None,
            (-s.real / abs(s) if lasts else 0.0) if swings else None,
            2 * math.pi / abs(s.imag) if swings else None,
        )

    @property
    def inside(self) -> bool:
        """Of the unit circle: it dies out."""
        return abs(self.value) < 1 - MARGIN

    def to_dict(self) -> dict[str, Any]:
        return {
            "real": rounded(self.value.real),
            "imaginary": rounded(self.value.imag),
            "magnitude": rounded(abs(self.value)),
            "time_constant": rounded(self.time_constant),
            "damping": rounded(self.damping),
            "period": rounded(self.period),
        }


def find_modes(matrix: NDArray[np.float64], dt: float) -> tuple[Mode, ...]:
    """The slowest first; of complex pairs the one above the real axis."""
    values = np.linalg.eigvals(matrix)
    values = values[np.lexsort([-values.real, -np.abs(values)])]
    return tuple(Mode.of(complex(value), dt) for value in values if value.imag >= 0)
