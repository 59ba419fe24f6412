"""forms"""
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers import Controller
from clearloop.expression import Variable
from clearloop.kernels.layout import Policies
from clearloop.task import Task

Floats = NDArray[np.float64]
DIGITS = 4


class Form(ABC):
    """Controllers of one shape, as vectors of d parameters between bounds."""

    bounds: Floats
    """[d, 2]"""

    @abstractmethod
    def policies(self, vectors: Floats) -> Policies:
        """Of [P, d] vectors, for the engine."""

    @abstractmethod
    def controller(self, vector: Floats) -> Controller:
        """Of one vector [d]: the same numbers, as a file has them."""


def readable(task: Task) -> list[Variable]:
    """What a controller may look at: the window's states, and the actions before this one."""
    names = [Variable(name) for name in task.state_names]
    for lag in range(1, task.history):
        names += [Variable(name, lag=lag) for name in (*task.state_names, *task.action_names)]
    return names


def rounded(values: Floats) -> Floats:
    """To DIGITS significant digits; what stands there is the double nearest to the decimal."""
    sizes = np.abs(values)
    places = DIGITS - 1 - np.floor(np.log10(np.where(sizes > 0, sizes, 1.0))).astype(np.int64)
    power = 10.0 ** np.abs(places)
    return np.where(places > 0, np.rint(values * power) / power, np.rint(values / power) * power)
