"""The closed loop for small deviations from its steady state: s' = U s + V a with a = C s, modes and margins.

Past values that the controller or the system reads (lags, the window of a PID's sum) count as states too. The
derivatives are taken at the steady state, at the setpoint or near it, by central differences in double
precision. A surrogate has kinks, where its derivatives change from place to place; there the differences are
taken over a longer distance.
"""

import cmath
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.diagnosis.response import Law, Stepper
from clearloop.methods.linear_model import LinearModel
from clearloop.numbers import json_values
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
    (s, rows, width), moves, law = moves.shape, moves.reshape(len(moves), -1), law.reshape(len(law), -1)
    chosen = np.arange(s, width)
    matrix = np.eye(rows * width, k=-width)  # the present row becomes the first past row
    matrix[:s] = moves + moves[:, chosen] @ law
    if rows > 1:
        matrix[width + chosen] = law
    read = np.vstack([moves, law]).any(axis=0).reshape(rows, width)
    deepest = np.where(read.any(axis=0), rows - 1 - np.argmax(read[::-1], axis=0), 0)
    kept = np.arange(rows)[:, None] <= deepest
    kept[0, chosen] = False
    return matrix[np.ix_(kept.ravel(), kept.ravel())]


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
    past = z[:, None] ** -np.arange(moves.shape[1])  # [n, H]
    plant, own = (np.einsum("nh,ohw->now", past, slopes) for slopes in (moves, law))
    states = np.linalg.solve(z[:, None, None] * np.eye(s) - plant[:, :, :s], plant[:, :, s:])
    back = np.linalg.solve(np.eye(n_actions) - own[:, :, s:], own[:, :, :s] @ states)  # [n, A, A]
    gains = []
    for a in range(n_actions):
        others = np.arange(n_actions) != a
        rest = np.eye(n_actions - 1) - back[:, others][:, :, others]
        through = np.linalg.solve(rest, back[:, others, a][:, :, None])
        gains.append(-back[:, a, a] - (back[:, a, others][:, None] @ through)[:, 0, 0])
    return np.array(gains)


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
    pushes = np.eye(window.size).reshape(-1, *window.shape) * steps
    sizes = np.tile(steps, len(window))[:, None]
    here = function(window[None])
    up, down = function(window + pushes), function(window - pushes)
    near = (function(window + pushes / 4) - function(window - pushes / 4)) / (sizes / 2)
    slopes = (up - down) / (2 * sizes)
    bends = np.abs((up - here) - (here - down)) / sizes
    # Slopes of columns with different units are compared by the change that they make over their own steps.
    tolerance = _DOUBT * np.abs(slopes * sizes).max(axis=0) + 1e-9 * np.abs(here).max(axis=0) + 1e-300
    doubtful = np.maximum(bends, np.abs(near - slopes)) * sizes > tolerance
    values = np.moveaxis(slopes.reshape(*window.shape, -1), -1, 0)
    return Slopes(values, not doubtful.any())


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
MOST_MEMORY = 1_000  # numbers in a window; the eigenvalues of larger loops would mean little


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
    """the modes of the closed loop, the slowest first"""

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
        return all(mode.inside for mode in self.modes) if self.at_rest and self.smooth else None

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
        slowest = self.modes[0]
        after = "" if slowest.time_constant is None else f", time constant {slowest.time_constant:.3g} s"
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
    if rows * len(task.scope.names) > MOST_MEMORY:
        return None
    return _Loop(law, stepper, rows, spread, coarse=surrogate is not None).linearisation()


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
        moves, law = (
            self._system_slopes(point),
            find_slopes(self._act, self._window(point), _SMALL * self.sizes),
        )
        matrix = closed_loop(moves, law.values)
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
            memory=len(matrix) - s,
            modes=find_modes(matrix, self.task.dt),
        )

    def _rest(self) -> tuple[Floats, bool]:
        """Find states and actions [S + A] that stay as they are, by Newton's method from the setpoints on."""
        s = len(self.task.states)
        aims = np.append(self.law.aims[0], np.zeros(len(self.task.actions)))
        for _ in range(3):  # a law may read its own past actions
            aims[s:] = self._act(self._window(aims)[None])[0]
        point = aims
        for _ in range(_ROUNDS):
            window = self._window(point)
            left = np.append(self._move(window[None])[0], self._act(window[None])[0]) - point
            if (np.abs(left) <= RESTS * self.sizes).all():
                return point, True
            slopes = [self._system_slopes(point), find_slopes(self._act, window, _SMALL * self.sizes).values]
            jacobian = np.concatenate(slopes).sum(axis=1) - np.eye(len(point))
            scaled = jacobian * self.sizes / self.sizes[:, None]
            point = point - self.sizes * np.linalg.lstsq(scaled, left / self.sizes)[0]
            if (np.abs(point - aims)[:s] > _FARTHEST * self.sizes[:s]).any():
                break
        return aims, False

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
        return find_slopes(self._move, self._window(point), step * self.sizes).values


# Gain, phase and delay margins of a closed loop: how far it is from instability.
#
# The loop of one action is cut at a time, and the others stay closed. The loop of an unstable plant has a
# gain margin downwards, too. The limits of actions play no part, because margins are for small deviations.

POINTS = 4_000  # frequencies, from _SLOWEST to the Nyquist frequency
_SLOWEST = 1e-4  # of the Nyquist frequency
REAL = 1e-2  # a response is taken for real if its imaginary part is a smaller share of its real part
_MOST_STEPS = 20  # the longest delay that is tried


@dataclass(frozen=True)
class Margin:
    """The margins of one action's loop. None means that no such change makes the loop unstable."""

    action: str
    gain_up: float | None
    """the factor by which the gain of the loop may rise, above 1"""
    gain_down: float | None
    """the factor to which the gain of the loop may fall, below 1"""
    phase: float | None
    """in degrees"""
    delay: float | None
    """the delay that may be added, in seconds"""

    def to_dict(self) -> dict[str, Any]:
        """Return the margins as JSON values."""
        return {name: json_values(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False, repr=False)
class Margins:
    """The modes of a closed loop and the margins of each of its actions."""

    modes: tuple[Mode, ...]
    """the modes of the closed loop, the slowest first"""
    actions: tuple[Margin, ...]
    """the margins of each action; empty if the loop is not stable"""

    @property
    def stable(self) -> bool:
        """True if every mode dies out."""
        return all(mode.inside for mode in self.modes)

    def to_dict(self) -> dict[str, Any]:
        """Return the margins as JSON values."""
        return {
            "stable": self.stable,
            "modes": [mode.to_dict() for mode in self.modes],
            "actions": [margin.to_dict() for margin in self.actions],
        }

    def __repr__(self) -> str:
        said = f"{'stable' if self.stable else 'unstable'}: largest eigenvalue {abs(self.modes[0].value):.4f}"
        return "; ".join([said, *map(_said, self.actions)])


def find_margins(linear: Linearisation, model: LinearModel | None = None) -> Margins | None:
    """Find the margins of a linearised controller.

    Args:
        linear: The linearisation of the controller and its system.
        model: A linear model of the log, which takes the place of the linearised system. Such a model is the
            same everywhere, so that the loop need not be at a steady state.

    Returns:
        The margins, or None where the gains of the controller mean nothing: at a kink or a jump, away from
        the steady state without `model`, and where a law of steps is flat.
    """
    if not linear.smooth or not (linear.at_rest or (model is not None and linear.law.any())):
        return None
    task, law = linear.task, linear.law
    moves = linear.moves if model is None else model.slopes
    rows = max(moves.shape[1], law.shape[1])
    moves, law = lengthened(moves, rows), lengthened(law, rows)
    modes = find_modes(closed_loop(moves, law), task.dt)
    if not all(mode.inside for mode in modes):
        return Margins(modes, ())
    frequencies = np.geomspace(_SLOWEST, 1.0, POINTS) * np.pi / task.dt
    responses = loop_gains(moves, law, np.exp(1j * frequencies * task.dt))
    return Margins(
        modes,
        tuple(
            _bearing(_margin(name, response, frequencies), moves, law, a, task.dt)
            for a, (name, response) in enumerate(zip(task.action_names, responses, strict=True))
        ),
    )


def _margin(action: str, response: Any, frequencies: Floats) -> Margin:
    """Find the margins of a stable loop from its frequency response; the nearest crossing counts.

    Args:
        action: The name of the action at which the loop is cut.
        response: [n] the complex open-loop response.
        frequencies: [n] in radians per second.
    """
    from control import stability_margins

    bode = np.abs(response), np.degrees(np.unwrap(np.angle(response))), frequencies
    factors, phases, _, _, crossings, _ = stability_margins(bode, returnall=True)
    # A response is real at frequency 0, unless something integrates, and at the Nyquist frequency.
    ends = [end.real for end in response[[0, -1]] if abs(end.imag) < REAL * abs(end.real)]
    factors = np.append(factors, [-1 / end for end in ends if end < 0])
    delays = np.radians(np.remainder(phases, 360.0)) / crossings
    return Margin(
        action,
        gain_up=_nearest(factors[factors > 1]),
        gain_down=_nearest(-factors[factors < 1], -1.0),
        phase=_nearest(np.abs(phases)),
        delay=_nearest(delays),
    )


def _bearing(margin: Margin, moves: Floats, law: Floats, action: int, dt: float) -> Margin:
    """Return the margin with no more delay than the sampled loop bears in whole steps.

    That may be less than its phase margin says: a loop that still has gain at the Nyquist frequency is not
    described by a delay of a fraction of a step.
    """
    most = math.inf if margin.delay is None else margin.delay
    for steps in range(1, _MOST_STEPS + 1):
        if steps * dt > most:
            break
        late = delayed(moves, action, steps)
        if not all(mode.inside for mode in find_modes(closed_loop(late, lengthened(law, late.shape[1])), dt)):
            return replace(margin, delay=(steps - 1) * dt)
    return margin


def _nearest(values: Floats, sign: float = 1.0) -> float | None:
    finite = values[np.isfinite(values)]
    return sign * float(finite.min()) if finite.size else None


def _said(margin: Margin) -> str:
    up, down = margin.gain_up, margin.gain_down
    parts = [
        None if up is None else f"gain x {up:.3g}",
        None if down is None else f"gain x {down:.3g} downwards",
        None if margin.phase is None else f"{margin.phase:.3g} degrees",
        None if margin.delay is None else f"delay {margin.delay:.3g} s",
    ]
    return f"{margin.action} bears " + (", ".join(part for part in parts if part) or "any change")
