"""Standardisation: columns of mean 0 and deviation 1, which is what networks learn from best."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """The mean and the standard deviation of each column."""

    mean: Array
    scale: Array
    """0 marks a constant column: as an input it is ignored, as an output it is always its mean"""

    @classmethod
    def of(cls, rows: Array) -> Self:
        """The scaling of rows [n, columns]."""
        mean, scale = rows.mean(axis=0), rows.std(axis=0)
        # The mean of equal numbers is off by rounding, so that their deviation is tiny but not 0.
        rounding = 1e-12 * np.abs(rows).max(axis=0)
        return cls(mean, np.where(scale > rounding, scale, 0.0))

    @classmethod
    def none(cls, columns: int) -> Self:
        return cls(np.zeros(columns), np.ones(columns))

    @property
    def inverse(self) -> Array:
        """1 / scale; 0 for a constant column."""
        return np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)

    def __getitem__(self, columns: slice) -> "Scaling":
        return Scaling(self.mean[columns], self.scale[columns])

    def standardise(self, rows: Array) -> Array:
        return (rows - self.mean) * self.inverse
