"""The margins of many linear loops at once, from their frequency responses.

The loop of one action is cut at a time, and the others stay closed. With plant responses s = G a and a law
a = C s + O a (O: the past actions that the law reads), the matrix 1 - O - C G decides about stability. The
sensitivity of the loop that is cut at an action is S = 1 / (1 + L), with L its open-loop response:

- the phase margin is the angle of L to -180° where |L| = 1, and the delay margin is that angle as a time;
- the gain margin is 1 / |L| where L crosses the negative real axis;
- Ms is the largest |S|: the distance of L from -1 is 1 / Ms, which bounds both margins from below.

A loop is stable if its characteristic function turns as often round 0 as it has poles (argument principle).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Flags, Floats, Ints

Complex = NDArray[Any]  # of complex numbers

_SLOWEST = 1e-3  # the lowest frequency, as a share of the Nyquist frequency, for a horizon of 100 steps
_REAL = 1e-2  # a response is taken for real if its imaginary part is a smaller share of its real part
MOST_STEPS = 20  # the longest delay that is tried step by step


class LoopMargins(NamedTuple):
    """The margins of P loops, each the least of all its actions; infinite where no change destabilises."""

    stable: Flags
    """[P] whether small deviations die out; the other numbers mean nothing if not"""
    phase: Floats
    """[P] in degrees"""
    gain: Floats
    """[P] the factor, above 1, by which the gain may rise"""
    delay: Floats
    """[P] in steps"""
    ms: Floats
    """[P] the largest sensitivity"""


class Response(NamedTuple):
    """A linear plant at F frequencies."""

    z: Complex
    """[F] points on the upper half of the unit circle"""
    states: Complex
    """[F, S, A] G, the response of each state to each action"""
    characteristic: Complex
    """[F] its characteristic function, which turns round 0 backwards, once for every unstable pole"""


def frequencies(points: int, horizon: int) -> Floats:
    """Return angles [points] in radians per step, evenly spaced on a logarithmic scale up to π.

    Args:
        points: The number of angles.
        horizon: The steps that a controller is judged over: the longer, the lower is the first angle.
    """
    return np.pi * np.geomspace(_SLOWEST * min(1.0, 100 / horizon), 1.0, points)


def sum_lags(slopes: Floats, z: Complex) -> Complex:
    """Return the sums [F, ...] of slopes [outputs, H, W] over their lags at points z [F]: [F, outputs, W]."""
    parts = []
    for some in np.array_split(z, max(1, slopes.shape[1] * len(z) // 2_000_000)):
        past = some[:, None] ** -np.arange(slopes.shape[1])
        parts.append(np.einsum("nh,ohw->now", past, slopes, optimize=True))
    return np.concatenate(parts)


def respond(moves: Floats, angles: Floats) -> Response:
    """Return the response of a plant with slopes `moves` [S, H, S + A] at `angles` [F]."""
    s, z = len(moves), np.exp(1j * angles)
    plant = sum_lags(moves, z)
    left = z[:, None, None] * np.eye(s) - plant[:, :, :s]
    return Response(z, np.linalg.solve(left, plant[:, :, s:]), np.linalg.det(left) / z**s)


def find_loop_margins(response: Response, seen: Complex, own: Complex | float = 0.0) -> LoopMargins:
    """Find the margins of P laws on one plant.

    Args:
        response: The plant with S states and A actions, at F frequencies.
        seen: [P, F or 1, A, S] what each law makes of the states.
        own: [P, F or 1, A, A] what each law makes of its own past actions.
    """
    back = seen @ response.states
    free = np.eye(back.shape[-1]) - own
    inner = free - back
    sensitivities = np.diagonal(_inverse(inner) @ free, axis1=2, axis2=3)  # [P, F, A]
    with np.errstate(divide="ignore", invalid="ignore"):
        loops = np.nan_to_num(1 / sensitivities - 1)
    angles = np.angle(response.z)
    phase, gain, delay = (np.inf * np.ones(len(back)) for _ in range(3))
    for a in range(loops.shape[2]):
        found = _crossings(loops[:, :, a], angles)
        phase, gain, delay = (np.minimum(*pair) for pair in zip((phase, gain, delay), found, strict=True))
    turned = _turns(_determinant(inner) * response.characteristic)
    return LoopMargins(turned, phase, gain, delay, np.abs(sensitivities).max(axis=(1, 2)))


def bears(response: Response, seen: Complex, own: Complex | float, action: int, steps: int) -> bool:
    """Tell whether one loop is stable if one action comes later by whole steps.

    Args:
        response: The plant.
        seen: [1, F, A, S] what the law makes of the states.
        own: [1, F, A, A] what the law makes of its own past actions.
        action: The number of the action.
        steps: The delay.
    """
    late = response.states.copy()
    late[:, :, action] *= response.z[:, None] ** -steps
    back = seen @ late
    return bool(_turns(_determinant(np.eye(back.shape[-1]) - own - back) * response.characteristic)[0])


def _inverse(matrices: Complex) -> Complex:
    if matrices.shape[-1] > 1:
        return np.linalg.inv(matrices)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1 / matrices


def _determinant(matrices: Complex) -> Complex:
    return np.linalg.det(matrices) if matrices.shape[-1] > 1 else matrices[:, :, 0, 0]


def _turns(values: Complex) -> Flags:
    """Tell which functions [P, F], real at both ends of the half circle, do not turn round 0."""
    steps = values[:, 1:] * values[:, :-1].conj()
    return np.asarray(np.abs(np.angle(steps).sum(axis=1)) < np.pi / 2)


def _crossings(loops: Complex, angles: Floats) -> tuple[Floats, Floats, Floats]:
    """Return phase margins, gain margins upwards and delay margins [P], by lines between neighbours.

    Args:
        loops: [P, F] open-loop responses.
        angles: [F] in radians per step.
    """
    phase, gain, delay = (np.full(len(loops), np.inf) for _ in range(3))
    rows, at, part = _signs(loops.imag)
    real = loops.real[rows, at] + part * (loops.real[rows, at + 1] - loops.real[rows, at])
    ends = loops[:, [0, -1]]
    row, end = np.nonzero(np.abs(ends.imag) < _REAL * np.abs(ends.real))
    rows, real = np.append(rows, row), np.append(real, ends.real[row, end])
    grows = (real < 0) & (real > -1)
    np.minimum.at(gain, rows[grows], -1 / real[grows])
    size = np.log(np.maximum(np.abs(loops), 1e-300))
    rows, at, part = _signs(size)
    first, turn = loops[rows, at], np.angle(loops[rows, at + 1] * loops[rows, at].conj())
    ahead = np.remainder(np.angle(first) + part * turn + np.pi, 2 * np.pi)
    np.minimum.at(phase, rows, np.degrees(np.minimum(ahead, 2 * np.pi - ahead)))
    np.minimum.at(delay, rows, ahead / (angles[at] + part * (angles[at + 1] - angles[at])))
    return phase, gain, delay


def _signs(values: Floats) -> tuple[Ints, Ints, Floats]:
    """Return where values [P, F] change their sign: rows, columns before, and the share of the way there."""
    rows, at = np.nonzero(values[:, 1:] * values[:, :-1] < 0)
    before, after = values[rows, at], values[rows, at + 1]
    return rows, at, before / (before - after)
