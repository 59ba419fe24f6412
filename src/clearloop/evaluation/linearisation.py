"""The closed loop for small deviations from its steady state: s' = U s + V a with a = C s, and its modes.

Past values that the controller or the system reads (lags, the window of a PID's sum) count as states too. The
derivatives are taken at the steady state, at the setpoint or near it, by central differences in double
precision. A surrogate has kinks, where its derivatives change from place to place; there the differences are
taken over a longer distance.
"""

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Flags, Floats
from clearloop.controllers import Controller
from clearloop.controllers.views import Recursion
from clearloop.evaluation.stability import sum_lags
from clearloop.evaluation.stepping import Law, Stepper
from clearloop.numbers import json_values, plain
from clearloop.surrogate import Surrogate
from clearloop.task import Task

# The linear loop consists of the system s' = M w and the law a = L w. The window w has H rows, the present
# row first, each with S states and A actions (W = S + A columns). The actions of the present row are those
# that the law is choosing.


def closed_loop(moves: Floats, law: Floats) -> Floats:
    """Return the matrix of one step of the closed loop, which acts on the states and the remembered past.

    Past values that neither half reads are left out; they would only add eigenvalues of 0.

    Args:
        moves: [S, H, W] slopes of the system.
        law: [A, H, W] slopes of the law.
    """
    s, entries = len(moves), _kept(moves, law)
    place = {entry: k for k, entry in enumerate(entries)}
    lags, columns = np.array(entries).T
    matrix = np.zeros((len(entries), len(entries)))
    chosen = law[:, lags, columns]
    matrix[:s] = moves[:, lags, columns] + moves[:, 0, s:] @ chosen
    for k, (lag, column) in enumerate(entries):
        if lag == 1 and column >= s:
            matrix[k] = chosen[column - s]
        elif lag:
            matrix[k, place[lag - 1, column]] = 1.0  # what is present becomes past
    return matrix


def _kept(moves: Floats, law: Floats) -> list[tuple[int, int]]:
    """Return the present states and the past values that are read, as (lag, column)."""
    s, rows, width = moves.shape
    read = np.asarray(np.vstack([moves, law]).any(axis=0))
    deepest = np.where(read.any(axis=0), rows - 1 - np.argmax(read[::-1], axis=0), 0)
    return [
        (lag, column)
        for lag in range(int(deepest.max()) + 1)
        for column in range(width)
        if lag <= deepest[column] and (lag or column < s)
    ]


def needed(task: Task, moves: Floats, read: Flags) -> Flags:
    """Tell which states [S] belong to a loop.

    The others would add eigenvalues that say nothing about it: an external state is an input, and a sum that
    no controller reads grows for ever.

    Args:
        task: The task.
        moves: [S, H, W] slopes of the system.
        read: [S] the states that the law reads.
    """
    s, computed = len(task.states), np.isin(task.state_names, task.scope.derived)
    kept = ~np.isin(task.state_names, task.scope.external) & (~computed | read)
    for _ in range(int(computed.sum())):
        kept = kept | computed & moves[kept][:, :, :s].any(axis=(0, 1))
    return np.asarray(kept)


def essential(task: Task, moves: Floats, law: Floats) -> tuple[Floats, Floats]:
    """Return the slopes without the states that do not belong to the loop (`needed`)."""
    kept = needed(task, moves, np.asarray(law[:, :, : len(task.states)].any(axis=(0, 1))))
    columns = np.append(kept, np.ones(moves.shape[2] - len(kept), np.bool_))
    return moves[kept][:, :, columns], law[:, :, columns]


def is_stable(moves: Floats, law: Floats) -> bool:
    """Tell whether every mode of a loop dies out, by how often its characteristic function turns round 0.

    This is the argument principle. It serves loops with a long memory, whose eigenvalues would take too long.
    """
    s, rows = len(moves), max(moves.shape[1], law.shape[1])
    points = 2 ** math.ceil(math.log2(max(16 * rows, 4096)))
    half = np.arange(points // 2 + 1)
    both = np.concatenate([lengthened(moves, rows), lengthened(law, rows)])
    responses = np.moveaxis(np.fft.fft(both, points, axis=1)[:, half], 1, 0)  # [points, S + A, W]
    z = np.exp(2j * np.pi * half / points)
    left = np.zeros(responses.shape, np.complex128)
    left[:, np.arange(s), np.arange(s)] = z[:, None]
    left[:, np.arange(s, len(both)), np.arange(s, len(both))] = 1.0
    values = np.linalg.det(left - responses)
    if (np.abs(values) < 1e-12 * np.abs(values).max()).any():
        return False
    turns = np.diff(np.unwrap(np.angle(values))).sum() / np.pi
    return round(float(turns)) == s


def loop_gains(moves: Floats, law: Floats, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the open-loop response [A, n] of each action, with its loop cut there and all others closed.

    The sign is that of negative feedback: the loop oscillates by itself where the response is -1. A law that
    reads its own past actions goes on reading the actions that it chose.

    Args:
        moves: [S, H, W] slopes of the system.
        law: [A, H, W] slopes of the law.
        z: [n] points of the complex plane; on the unit circle, z = exp(i ω dt).
    """
    s, n_actions = len(moves), len(law)
    plant, own = (sum_lags(slopes, z) for slopes in (moves, law))
    states = np.linalg.solve(z[:, None, None] * np.eye(s) - plant[:, :, :s], plant[:, :, s:])
    back = np.linalg.solve(np.eye(n_actions) - own[:, :, s:], own[:, :, :s] @ states)  # [n, A, A]
    gains = []
    for a in range(n_actions):
        others = np.arange(n_actions) != a
        rest = np.eye(n_actions - 1) - back[:, others][:, :, others]
        through = np.linalg.solve(rest, back[:, others, a][:, :, None])
        gains.append(-back[:, a, a] - (back[:, a, others][:, None] @ through)[:, 0, 0])
    return np.array(gains)


def slopes_of(task: Task, laws: Mapping[str, Recursion], rows: int) -> Floats:
    """Return the slopes [A, rows, S + A] of exact linear laws.

    Args:
        task: The task.
        laws: The law of each action.
        rows: The number of rows, at least as many as the laws read.
    """
    slopes = np.zeros((len(task.actions), rows, len(task.scope.names)))
    for a, name in enumerate(task.action_names):
        law = laws[name]
        for state, taps in law.gains.items():
            slopes[a, : len(taps), task.state_names.index(state)] += taps
        slopes[a, 1 : len(law.past), task.scope.names.index(name)] = -law.past[1:]
    return slopes


def delayed(moves: Floats, action: int, steps: int) -> Floats:
    """Return the slopes [S, H + steps, W] of a system that one action reaches that many steps later."""
    late = lengthened(moves, moves.shape[1] + steps)
    column = len(moves) + action
    late[:, :, column] = np.roll(late[:, :, column], steps, axis=1)
    return late


def lengthened(slopes: Floats, rows: int) -> Floats:
    """Return the slopes with more rows [outputs, rows, W]; those that are added are 0."""
    return np.pad(slopes, ((0, 0), (0, rows - slopes.shape[1]), (0, 0)))


# Derivatives by central differences, with a test that there are any.

_DOUBT = 0.01  # share of the steepest slope by which slopes over two step sizes, and to two sides, may differ


class Slopes(NamedTuple):
    """The derivatives of a function at one point."""

    values: Floats
    """[outputs, H, W] of a function of windows [N, H, W]"""
    smooth: bool
    """False if the function has a kink or a jump there"""


def find_slopes(function: Callable[[Floats], Floats], window: Floats, steps: Floats) -> Slopes:
    """Find the slopes of a function by central differences.

    Args:
        function: Takes windows [N, H, W] and returns outputs [N, outputs].
        window: [H, W] the point at which the slopes are taken.
        steps: [W] the size of the differences in each column.
    """
    here = function(window[None])
    sizes = np.tile(steps, len(window))[:, None]
    ends = [_pushed(function, window, steps, share) for share in (1.0, -1.0, 0.25, -0.25)]
    up, down = ends[:2]
    near = (ends[2] - ends[3]) / (sizes / 2)
    slopes = (up - down) / (2 * sizes)
    bends = np.abs((up - here) - (here - down)) / sizes
    # Slopes of columns with different units are compared by the change that they make over their own steps.
    tolerance = _DOUBT * np.abs(slopes * sizes).max(axis=0) + 1e-9 * np.abs(here).max(axis=0) + 1e-300
    doubtful = np.maximum(bends, np.abs(near - slopes)) * sizes > tolerance
    values = np.moveaxis(slopes.reshape(*window.shape, -1), -1, 0)
    return Slopes(values, not doubtful.any())


def _pushed(function: Callable[[Floats], Floats], window: Floats, steps: Floats, share: float) -> Floats:
    """Return the outputs [H W, outputs] with each entry of the window moved by a share of its step."""
    parts = []
    for some in np.array_split(np.arange(window.size), max(1, window.size**2 // 1_000_000)):
        pushes = np.zeros((len(some), window.size))
        pushes[np.arange(len(some)), some] = share * steps[some % len(steps)]
        parts.append(function(window + pushes.reshape(-1, *window.shape)))
    return np.concatenate(parts)


# Eigenvalues of a loop in discrete time, as an engineer reads them: in seconds, with a damping ratio.

_MARGIN = 1e-9  # an eigenvalue this near to the unit circle lies on it, but for rounding
GONE = 1e-6  # the time constant of a mode that is smaller than this after one step means nothing


@dataclass(frozen=True)
class Mode:
    """An eigenvalue λ = exp(s dt) of the matrix of one step; one of a complex pair stands for both."""

    value: complex
    time_constant: float | None
    """-1 / Re s in seconds, after which the mode has fallen to 1/e; negative if it grows; None for λ = 0 and
    |λ| = 1"""
    damping: float | None
    """the damping ratio -Re s / |s|; None if the mode does not oscillate"""
    period: float | None
    """2 π / |Im s| in seconds; None if the mode does not oscillate"""

    @classmethod
    def of(cls, value: complex, dt: float) -> Self:
        """Make the mode of an eigenvalue of a loop with steps of `dt` seconds."""
        if abs(value) < GONE:
            return cls(value, None, None, None)
        s = cmath.log(value) / dt
        lasts = abs(abs(value) - 1) > _MARGIN
        swings = abs(s.imag) * dt > _MARGIN
        return cls(
            value,
            -1 / s.real if lasts else None,
            (-s.real / abs(s) if lasts else 0.0) if swings else None,
            2 * math.pi / abs(s.imag) if swings else None,
        )

    @property
    def inside(self) -> bool:
        """True if the eigenvalue is inside the unit circle, so that the mode dies out."""
        return abs(self.value) < 1 - _MARGIN

    def to_dict(self) -> dict[str, Any]:
        """Return the mode as JSON values."""
        return {
            "real": json_values(self.value.real),
            "imaginary": json_values(self.value.imag),
            "magnitude": json_values(abs(self.value)),
            "time_constant": json_values(self.time_constant),
            "damping": json_values(self.damping),
            "period": json_values(self.period),
        }


def find_modes(matrix: NDArray[np.float64], dt: float) -> tuple[Mode, ...]:
    """Find the modes of a matrix of one step, the slowest first; of complex pairs the one with Im λ > 0."""
    values = np.linalg.eigvals(matrix)
    values = values[np.lexsort([-values.real, -np.abs(values)])]
    return tuple(Mode.of(complex(value), dt) for value in values if value.imag >= 0)


# The linearisation of a controller and its system at the steady state. All lengths below are in units of
# each column: the spread of a state in the log, half the range of an action.

_SMALL = 1e-5  # the length of differences
_LONG = 0.3  # their length on a surrogate, over which the kinks of its networks average out
RESTS = 1e-6  # the most that may change in one step at a steady state
_FARTHEST = 3.0  # the largest distance of a steady state from the setpoint that it belongs to
_ROUNDS = 30  # of Newton's method
MOST_MEMORY = 4_000  # numbers in a window whose slopes are found by differences
MOST_MODES = 1_200  # values that a loop may remember, for its eigenvalues to be found


@dataclass(frozen=True, eq=False, repr=False)
class Linearisation:
    """A closed loop of S states and A actions, linear about its steady state."""

    task: Task
    aims: Floats
    """[S] setpoints; 0 for states without one"""
    point: Floats
    """[S] the steady state; the setpoints if the loop has none"""
    action: Floats
    """[A] the action of the controller there"""
    drift: Floats
    """[S] the change of the states in one step from there; at a steady state 0, but for rounding"""
    at_rest: bool
    """True if `point` is a steady state"""
    smooth: bool
    """False if the controller has a kink or a jump there, so that the eigenvalues do not hold"""
    moves: Floats
    """[S, H, S + A] derivatives of the next state by the window, the present row first"""
    law: Floats
    """[A, H, S + A] derivatives of the action by the same window"""
    memory: int
    """number of past states and actions that the loop needs besides the present states"""
    modes: tuple[Mode, ...]
    """the modes of the closed loop, the slowest first; none if it remembers too many values"""
    steady: bool | None = None
    """True if small deviations die out, where the modes are not known"""

    @property
    def states(self) -> Floats:
        """The matrix U [S, S]: derivatives of the next state by the present state."""
        return self.moves[:, 0, : len(self.task.states)]

    @property
    def actions(self) -> Floats:
        """The matrix V [S, A]: derivatives of the next state by the present action."""
        return self.moves[:, 0, len(self.task.states) :]

    @property
    def gains(self) -> Floats:
        """The matrix C [A, S]: derivatives of the action by the present state."""
        return self.law[:, 0, : len(self.task.states)]

    @property
    def stable(self) -> bool | None:
        """True if small deviations die out; None if the eigenvalues do not tell."""
        if not (self.at_rest and self.smooth):
            return None
        return all(mode.inside for mode in self.modes) if self.steady is None else self.steady

    def to_dict(self) -> dict[str, Any]:
        """Return the linearisation as JSON values."""
        names, actions = self.task.state_names, self.task.action_names
        return {
            "stable": self.stable,
            "at_rest": self.at_rest,
            "smooth": self.smooth,
            "setpoint": dict(zip(names, json_values(self.aims), strict=True)),
            "point": dict(zip(names, json_values(self.point), strict=True)),
            "action": dict(zip(actions, json_values(self.action), strict=True)),
            "drift": dict(zip(names, json_values(self.drift), strict=True)),
            "states": json_values(self.states),
            "actions": json_values(self.actions),
            "gains": json_values(self.gains),
            "memory": self.memory,
            "modes": [mode.to_dict() for mode in self.modes],
        }

    def __repr__(self) -> str:
        if not self.at_rest:
            return "does not rest at the setpoint"
        if not self.smooth:
            return "switches at its steady state, so it cannot be linearised there"
        if not self.modes:
            return "stable" if self.stable else "unstable"
        slowest = self.modes[0]
        after = "" if slowest.time_constant is None else f", time constant {plain(slowest.time_constant)} s"
        return (
            f"{'stable' if self.stable else 'unstable'}: largest eigenvalue {abs(slowest.value):.4f}{after}"
        )


def linearise(
    controller: Controller,
    task: Task,
    *,
    spread: Floats,
    surrogate: Surrogate | None = None,
    members: Sequence[int] | None = None,
) -> Linearisation | None:
    """Linearise the closed loop at its steady state.

    Args:
        controller: The controller that closes the loop.
        task: The task that it controls.
        spread: [S] the standard deviation of each state in the log.
        surrogate: The model that stands for the plant; without it, the task's plant is used.
        members: The members of the surrogate whose mean is used; without them, all.

    Returns:
        The linearisation, or None if the controller remembers more values than eigenvalues are found for.
    """
    law = Law(controller, task, surrogate, smooth=True)
    stepper = Stepper(task, law.aims, surrogate, members, bare=True)
    rows = max(law.history, stepper.history)
    if rows * len(task.scope.names) > MOST_MEMORY and not any(law.controller.loops()):
        return None
    return _Loop(law, stepper, rows, spread, coarse=surrogate is not None).linearisation()


def linearise_each(
    controller: Controller, task: Task, *, spread: Floats, surrogate: Surrogate | None, members: Sequence[int]
) -> tuple[Linearisation, ...]:
    """Linearise the closed loop with each member of a surrogate, as `linearise` does with their mean.

    Returns:
        A linearisation for each member that has one; none without a surrogate.
    """
    each = [
        linearise(controller, task, spread=spread, surrogate=surrogate, members=[member])
        for member in (members if surrogate is not None else ())
    ]
    return tuple(one for one in each if one is not None)


class _Loop:
    """A law and a system over windows [H, S + A], which are as long as the longer of the two needs."""

    def __init__(self, law: Law, stepper: Stepper, rows: int, spread: Floats, *, coarse: bool) -> None:
        self.law, self.stepper, self.task, self.rows = law, stepper, law.task, rows
        sizes = np.append(spread, np.ptp(self.task.action_limits, axis=1) / 2)
        self.sizes = np.where(sizes > 0, sizes, 1.0)
        self.coarse = coarse

    def linearisation(self) -> Linearisation:
        point, at_rest = self._rest()
        s = len(self.task.states)
        moves, law = self._system_slopes(point), self._law_slopes(point)
        loop = essential(self.task, moves, law.values)
        modes, steady = loop_modes(*loop, self.task.dt)
        return Linearisation(
            task=self.task,
            aims=self.law.aims[0],
            point=point[:s],
            action=point[s:],
            drift=self._move(self._window(point)[None])[0] - point[:s],
            at_rest=at_rest,
            smooth=law.smooth,
            moves=moves,
            law=law.values,
            memory=len(_kept(*loop)) - len(loop[0]),
            modes=modes,
            steady=steady,
        )

    def _rest(self) -> tuple[Floats, bool]:
        """Find states and actions [S + A] that stay as they are, by Newton's method from the setpoints on."""
        s = len(self.task.states)
        aims = np.append(self.law.aims[0], np.zeros(len(self.task.actions)))
        for _ in range(3):  # a law may read its own past actions
            aims[s:] = self._act(self._window(aims)[None])[0]
        point, near = aims, self._near()
        for _ in range(_ROUNDS):
            left = self._left(point)
            if (np.abs(left) <= RESTS * self.sizes).all():
                low, high = self.task.action_limits.T
                within = (point[s:] >= low - RESTS) & (point[s:] <= high + RESTS)
                return (point, True) if within.all() else (aims, False)
            slopes = [self._system_slopes(point), self._law_slopes(point).values]
            jacobian = np.concatenate(slopes).sum(axis=1) - np.eye(len(point))
            scaled = jacobian * self.sizes / self.sizes[:, None]
            point = point - self.sizes * np.linalg.lstsq(scaled, left / self.sizes)[0]
            if (np.abs(point - aims)[:s] > _FARTHEST * self.sizes[:s])[near].any():
                break
        return aims, False

    def _near(self) -> NDArray[np.bool_]:
        """Return which states [S] must rest near their setpoint; a computed sum may rest anywhere."""
        return ~np.isin(self.task.state_names, self.task.scope.derived)

    def _window(self, point: Floats) -> Floats:
        return np.tile(point, (self.rows, 1))

    def _act(self, windows: Floats) -> Floats:
        return self.law(windows[:, : self.law.history])

    def _move(self, windows: Floats) -> Floats:
        seen = windows[:, : self.stepper.history]
        each = [self.stepper(seen, member).states for member in range(self.stepper.members)]
        return np.asarray(np.mean(each, axis=0))

    def _system_slopes(self, point: Floats) -> Floats:
        step = _LONG if self.coarse else _SMALL
        window = np.tile(point, (self.stepper.history, 1))
        return lengthened(find_slopes(self._move, window, step * self.sizes).values, self.rows)

    def _law_slopes(self, point: Floats) -> Slopes:
        """Return the slopes of the law; those of a PID follow from its gains, however long it remembers."""
        laws = self._recursions(point)
        if not laws:
            return find_slopes(self._act, self._window(point), _SMALL * self.sizes)
        return Slopes(slopes_of(self.task, {name: law for name, (law, _) in laws.items()}, self.rows), True)

    def _recursions(self, point: Floats) -> dict[str, tuple[Recursion, float | None]]:
        names = self.task.state_names
        values = dict(zip(names, map(float, point), strict=False))
        return self.law.controller.recursions(
            values, dict(zip(names, map(float, self.law.aims[0]), strict=True))
        )

    def _left(self, point: Floats) -> Floats:
        """Return what states and actions [S + A] change by in a step; an integrator moves its action."""
        window, s = self._window(point), len(self.task.states)
        left = np.append(self._move(window[None])[0], self._act(window[None])[0]) - point
        laws = self._recursions(point)
        for a, name in enumerate(self.task.action_names if laws else ()):
            law, drift = laws[name]
            left[s + a] = left[s + a] * law.past.sum() if drift is None else drift
        return left


def loop_modes(moves: Floats, law: Floats, dt: float) -> tuple[tuple[Mode, ...], bool | None]:
    """Return the modes of a loop, or if it remembers too many values, whether they all die out."""
    if len(_kept(moves, law)) > MOST_MODES:
        return (), is_stable(moves, law)
    return find_modes(closed_loop(moves, law), dt), None
