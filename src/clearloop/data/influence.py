"""Whether one signal of a log acts on another: more than the same signal at another time would seem to.

What the past of some signals explains of others, beyond what is given, is a share of their variance. Drivers
that are moved in time by a random distance keep their own character and lose their meaning; what they seem to
explain is chance. That holds for held, drifting and feedback signals, where tables of the F test do not.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Floats, Ints
from clearloop.data.course import Course, lagged

SHIFTS = 19
CLEAR = 6.0  # standard deviations above chance
SMALLEST = 1e-6  # share of a signal's variance: rounding does as much
FEWEST = 10  # rows for each column
ALIKE = 1e-10  # drivers that differ by less, squared, are one


class Lags(NamedTuple):
    """Signals [n, columns], so many rows before the row that is to be explained."""

    values: Floats
    lags: range


class Influence(NamedTuple):
    share: Floats
    """[T] of the targets' variance that the drivers explain beyond what is given"""
    left: Floats
    """[T] share that nothing explains"""
    clear: bool
    """whether that is more than chance, for one target or more"""


NONE = Influence(np.zeros(0), np.zeros(0), clear=False)


def influence(
    course: Course, targets: Floats, drivers: Sequence[Lags], given: Sequence[Lags], back: int
) -> Influence:
    """On `targets` [n, T]. `back`: rows that every row needs before it. NONE for a log too short to tell."""
    rows = course.rows(back)
    known = np.hstack([np.ones((len(rows), 1)), _columns(given, rows)])
    if len(rows) < FEWEST * (known.shape[1] + sum(one.values.shape[1] * len(one.lags) for one in drivers)):
        return NONE
    basis = _basis(known)
    left = _beyond(targets[rows], basis)
    whole = np.square(targets[rows] - targets[rows].mean(axis=0)).sum(axis=0)
    share = _share(left, drivers, rows, basis, whole)
    rng = np.random.default_rng(0)
    offsets = rng.integers(len(course) // 10, len(course) - len(course) // 10, SHIFTS)
    moved = ([Lags(np.roll(one.values, offset, axis=0), one.lags) for one in drivers] for offset in offsets)
    chance = np.array([_share(left, some, rows, basis, whole) for some in moved])
    limit = chance.mean(axis=0) + CLEAR * chance.std(axis=0)
    rest = np.square(left).sum(axis=0) / np.where(whole > 0, whole, np.inf) - share
    return Influence(share, rest, bool(np.any((share > limit) & (share > SMALLEST))))


def unexplained(course: Course, targets: Floats, given: Sequence[Lags], back: int) -> Floats:
    """[T] share of the targets' variance that is left when all that is given is known; none if too short."""
    rows = course.rows(back)
    known = np.hstack([np.ones((len(rows), 1)), _columns(given, rows)])
    if len(rows) < FEWEST * known.shape[1]:
        return np.zeros(0)
    whole = np.square(targets[rows] - targets[rows].mean(axis=0)).sum(axis=0)
    left = np.square(_beyond(targets[rows], _basis(known))).sum(axis=0)
    return np.asarray(left / np.where(whole > 0, whole, np.inf))


def _columns(parts: Sequence[Lags], rows: Ints) -> Floats:
    """[rows, columns]"""
    return np.hstack([np.zeros((len(rows), 0)), *(lagged(one.values, rows, one.lags) for one in parts)])


def _basis(columns: Floats) -> Floats:
    """Orthonormal, of all that the columns span."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-9 * sizes.max(initial=1e-300)])


def _beyond(columns: Floats, basis: Floats) -> Floats:
    rest = columns - basis @ (basis.T @ columns)
    return np.asarray(rest - basis @ (basis.T @ rest))


def _share(left: Floats, drivers: Sequence[Lags], rows: Ints, basis: Floats, whole: Floats) -> Floats:
    """[T] of `whole` that drivers explain of what is left."""
    columns = _columns(drivers, rows)
    own = _beyond(columns, basis)
    size = np.sqrt(np.square(columns).sum(axis=0))
    own = own[:, np.square(own).sum(axis=0) > np.square(1e-6 * size)]  # the others are known already
    if not own.shape[1]:
        return np.zeros(left.shape[1])
    own /= np.linalg.norm(own, axis=0)
    values, axes = np.linalg.eigh(own.T @ own)
    axes = axes[:, values > ALIKE] / np.sqrt(values[values > ALIKE])
    explained = np.square(axes.T @ (own.T @ left)).sum(axis=0)
    return np.asarray(explained / np.where(whole > 0, whole, np.inf))
