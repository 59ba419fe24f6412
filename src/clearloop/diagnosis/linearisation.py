"""The loop for small deviations from where it rests: s' = U s + V a with a = C s, and its eigenvalues.

What the controller or the system remembers (lags, the window of a PID's sum) are states too. A loop rests at
its setpoint, or near it: there the derivatives are taken, by central differences in double precision. Over a
surrogate's kinks, where derivatives change from place to place, they are taken over a longer way.
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

# A linear loop from what each of its halves does with the past: the system s' = M w, and the law a = L w.
#
# w is a window of H rows, the present first, each of S states and A actions; the actions of the present row
# are those that the law is choosing.


def closed_loop(moves: Floats, law: Floats) -> Floats:
    """What a step does to states and past, from slopes [S, H, W] of the system and [A, H, W] of the law.

    The past is as long as somebody reads it; what nobody reads would only add eigenvalues of 0.
    """
    (s, rows, width), moves, law = moves.shape, moves.reshape(len(moves), -1), law.reshape(len(law), -1)
    chosen = np.arange(s, width)
    matrix = np.eye(rows * width, k=-width)  # what is present now is past then
    matrix[:s] = moves + moves[:, chosen] @ law
    if rows > 1:
        matrix[width + chosen] = law
    read = np.vstack([moves, law]).any(axis=0).reshape(rows, width)
    deepest = np.where(read.any(axis=0), rows - 1 - np.argmax(read[::-1], axis=0), 0)
    kept = np.arange(rows)[:, None] <= deepest
    kept[0, chosen] = False
    return matrix[np.ix_(kept.ravel(), kept.ravel())]


def loop_gains(moves: Floats, law: Floats, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """[A, n] the gain around each action's loop at points z [n], cut there, with all other loops closed.

    Minus what comes back, so that -1 is where the loop sustains itself. A law that reads what it did before
    goes on reading what it chose.
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
    """[S, H + steps, W] of a system that an action reaches so many steps later."""
    late = lengthened(moves, moves.shape[1] + steps)
    column = len(moves) + action
    late[:, :, column] = np.roll(late[:, :, column], steps, axis=1)
    return late


def lengthened(slopes: Floats, rows: int) -> Floats:
    """[…, rows, W] with nothing read of the rows that are added."""
    return np.pad(slopes, ((0, 0), (0, rows - slopes.shape[1]), (0, 0)))


# Derivatives by central differences, and whether there are any.

_DOUBT = 0.01  # share of the steepest slope by which slopes over two step sizes, and to two sides, may differ


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
    tolerance = _DOUBT * np.abs(slopes * sizes).max(axis=0) + 1e-9 * np.abs(here).max(axis=0) + 1e-300
    doubtful = np.maximum(bends, np.abs(near - slopes)) * sizes > tolerance
    values = np.moveaxis(slopes.reshape(*window.shape, -1), -1, 0)
    return Slopes(values, not doubtful.any())


# Eigenvalues of a loop in discrete time, as an engineer reads them: seconds and damping.

_MARGIN = 1e-9  # rounding: an eigenvalue this near to the unit circle is on it
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
        """Of the unit circle: it dies out."""
        return abs(self.value) < 1 - _MARGIN

    def to_dict(self) -> dict[str, Any]:
        return {
            "real": json_values(self.value.real),
            "imaginary": json_values(self.value.imag),
            "magnitude": json_values(abs(self.value)),
            "time_constant": json_values(self.time_constant),
            "damping": json_values(self.damping),
            "period": json_values(self.period),
        }


def find_modes(matrix: NDArray[np.float64], dt: float) -> tuple[Mode, ...]:
    """The slowest first; of complex pairs the one above the real axis."""
    values = np.linalg.eigvals(matrix)
    values = values[np.lexsort([-values.real, -np.abs(values)])]
    return tuple(Mode.of(complex(value), dt) for value in values if value.imag >= 0)


_SMALL = 1e-5  # of differences, in spreads of the states and half ranges of the actions
_LONG = 0.3  # of those on a surrogate, over which the kinks of its networks average out
RESTS = 1e-6  # the most that may change in a step, in the same
_FARTHEST = 3.0  # spreads between a setpoint and the place of rest that is taken for its own
_ROUNDS = 30
MOST_MEMORY = 1_000  # remembered numbers; beyond, there are no eigenvalues to speak of


@dataclass(frozen=True, eq=False, repr=False)
class Linearisation:
    """S states, A actions."""

    task: Task
    aims: Floats
    """[S] setpoints; 0 for states without one"""
    point: Floats
    """[S] where the loop rests; where it does not, the setpoints"""
    action: Floats
    """[A] what the controller chooses there"""
    drift: Floats
    """[S] what the states change by in one step from there: 0 at rest, but for rounding"""
    at_rest: bool
    smooth: bool
    """False: the controller has a kink or a jump there, and the eigenvalues do not hold"""
    moves: Floats
    """[S, H, S + A] the next state by everything that the loop looks back on, the present first"""
    law: Floats
    """[A, H, S + A] the action by the same"""
    memory: int
    """past states and actions that the loop needs besides the present states"""
    modes: tuple[Mode, ...]
    """of the closed loop, the slowest first"""

    @property
    def states(self) -> Floats:
        """[S, S] U: the next state by the present one"""
        return self.moves[:, 0, : len(self.task.states)]

    @property
    def actions(self) -> Floats:
        """[S, A] V: the next state by the present action"""
        return self.moves[:, 0, len(self.task.states) :]

    @property
    def gains(self) -> Floats:
        """[A, S] C: the action by the present state"""
        return self.law[:, 0, : len(self.task.states)]

    @property
    def stable(self) -> bool | None:
        """Whether small deviations die out; None where the eigenvalues do not tell."""
        return all(mode.inside for mode in self.modes) if self.at_rest and self.smooth else None

    def to_dict(self) -> dict[str, Any]:
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
            return "switches where it rests: no linearisation holds"
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
    """On the plant, or on the mean of members of a surrogate; `spread` [S]: of states in the log.

    None where the controller remembers too much.
    """
    law = Law(controller, task, surrogate, smooth=True)
    stepper = Stepper(task, law.aims, surrogate, members, bare=True)
    rows = max(law.history, stepper.history)
    if rows * len(task.scope.names) > MOST_MEMORY:
        return None
    return _Loop(law, stepper, rows, spread, coarse=surrogate is not None).linearisation()


class _Loop:
    """Everything over windows [H, S + A] that are as long as the longer of the two needs them."""

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
        """States and actions [S + A] that stay as they are: by Newton's method, from the setpoints on."""
        s = len(self.task.states)
        aims = np.append(self.law.aims[0], np.zeros(len(self.task.actions)))
        for _ in range(3):  # a law may read what it did before
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


# How far a loop is from swinging by itself: gain, phase and delay margins.
#
# Of each action: its loop is cut there, the others stay closed. A plant that needs its controller has a gain
# margin downwards, too. Limits of actions are not in it: margins are for small deviations.

POINTS = 4_000  # frequencies from SLOWEST to the fastest that a sampled loop can show
_SLOWEST = 1e-4  # of the fastest
REAL = 1e-2  # the most that an imaginary part may be of a real one to be none
_MOST_STEPS = 20  # of delay that are tried


@dataclass(frozen=True)
class Margin:
    """Of one action's loop. None: no such change makes it unstable."""

    action: str
    gain_up: float | None
    """the factor by which the loop's gain may rise"""
    gain_down: float | None
    """and to which it may fall"""
    phase: float | None
    """degrees"""
    delay: float | None
    """seconds that may be added"""

    def to_dict(self) -> dict[str, Any]:
        return {name: json_values(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False, repr=False)
class Margins:
    modes: tuple[Mode, ...]
    """of the closed loop, the slowest first"""
    actions: tuple[Margin, ...]
    """none where the loop is not stable"""

    @property
    def stable(self) -> bool:
        return all(mode.inside for mode in self.modes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "stable": self.stable,
            "modes": [mode.to_dict() for mode in self.modes],
            "actions": [margin.to_dict() for margin in self.actions],
        }

    def __repr__(self) -> str:
        said = f"{'stable' if self.stable else 'unstable'}: largest eigenvalue {abs(self.modes[0].value):.4f}"
        return "; ".join([said, *map(_said, self.actions)])


def find_margins(linear: Linearisation, model: LinearModel | None = None) -> Margins | None:
    """Of a controller where it rests, with the system there, or with a linear model of the log.

    None where its gains there mean nothing. A linear model is the same everywhere, so that with one the loop
    need not rest there; but a law of steps, flat where it does not rest, is not the law of small deviations.
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
    """Of a stable loop: whichever crossing comes first, on either side."""
    from control import stability_margins

    bode = np.abs(response), np.degrees(np.unwrap(np.angle(response))), frequencies
    factors, phases, _, _, crossings, _ = stability_margins(bode, returnall=True)
    # Very slowly, unless something integrates, and where every step changes sign, a response is real.
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
    """With no more delay than the sampled loop bears in whole steps, which may be less than its phase says:
    where a loop still has gain at the fastest frequency, there is none of a fraction of a step.
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
