"""Derivatives by central differences, and whether there are any."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Floats

DOUBT = 0.01  # share of the steepest slope by which slopes over two step sizes, and to two sides, may differ


class Slopes(NamedTuple):
    values: Floats
    """[outputs, H, W] of a function of windows [N, H, W]"""
    smooth: bool
    """False where it has a kink or a jump"""


def find_slopes(function: Callable[[Floats], Floats], window: Floats, steps: Floats) -> Slopes:
    """At `window` [H, W]; `steps` [W]: of the differences, in each column."""
    pushes = np.eye(window.size).reshape(-1, *window.shape) * steps
    sizes = np.tile(steps, len(window))[:, None]
    here = function(window[None])
    up, down = function(window + pushes), function(window - pushes)
    near = (function(window + pushes / 4) - function(window - pushes / 4)) / (sizes / 2)
    slopes = (up - down) / (2 * sizes)
    bends = np.abs((up - here) - (here - down)) / sizes
    # Slopes of different columns are compared by what they do over their own steps.
    tolerance = DOUBT * np.abs(slopes * sizes).max(axis=0) + 1e-9 * np.abs(here).max(axis=0) + 1e-300
    doubtful = np.maximum(bends, np.abs(near - slopes)) * sizes > tolerance
    values = np.moveaxis(slopes.reshape(*window.shape, -1), -1, 0)
    return Slopes(values, not doubtful.any())
