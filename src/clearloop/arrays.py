"""These are the types of NumPy arrays. What the axes of an array mean is said where it is used."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
