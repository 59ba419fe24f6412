"""Functions with known minima, over [n, d] points."""

import numpy as np

from clearloop.arrays import Floats


def sphere(x: Floats) -> Floats:
    """0 at 1, 1, …"""
    heights: Floats = np.sum((x - 1) ** 2, axis=1)
    return heights


def rastrigin(x: Floats) -> Floats:
    """0 at 0, among a local minimum at every whole number."""
    heights: Floats = np.sum(x**2 - 10 * np.cos(2 * np.pi * x) + 10, axis=1)
    return heights


def rosenbrock(x: Floats) -> Floats:
    """0 at 1, 1, …, at the end of a bent valley."""
    heights: Floats = np.sum(100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2, axis=1)
    return heights
