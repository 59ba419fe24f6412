"""The loop for small deviations from where it rests: s' = U s + V a with a = C s, and its eigenvalues.

What the controller or the system remembers (lags, the window of a PID's sum) are states too. A loop rests at
its setpoint, or near it: there the derivatives are taken, by central differences in double precision. Over a
surrogate's kinks, where derivatives change from place to place, they are taken over a longer way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clearloop.controllers import Controller
from clearloop.data.cells import Floats
from clearloop.diagnosis.law import Law
from clearloop.diagnosis.loop import closed_loop
from clearloop.diagnosis.modes import Mode, find_modes
from clearloop.diagnosis.rounding import rounded
from clearloop.diagnosis.slopes import find_slopes
from clearloop.diagnosis.stepper import Stepper
from clearloop.surrogate import Surrogate
from clearloop.task import Task

SMALL = 1e-5  # of differences, in spreads of the states and half ranges of the actions
LONG = 0.3  # of those on a surrogate, over which the kinks of its networks average out
RESTS = 1e-6  # the most that may change in a step, in the same
FARTHEST = 3.0  # spreads between a setpoint and the place of rest that is taken for its own
ROUNDS = 30
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
            "setpoint": dict(zip(names, rounded(self.aims), strict=True)),
            "point": dict(zip(names, rounded(self.point), strict=True)),
            "action": dict(zip(actions, rounded(self.action), strict=True)),
            "drift": dict(zip(names, rounded(self.drift), strict=True)),
            "states": rounded(self.states),
            "actions": rounded(self.actions),
            "gains": rounded(self.gains),
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
            find_slopes(self._act, self._window(point), SMALL * self.sizes),
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
        for _ in range(ROUNDS):
            window = self._window(point)
            left = np.append(self._move(window[None])[0], self._act(window[None])[0]) - point
            if (np.abs(left) <= RESTS * self.sizes).all():
                return point, True
            slopes = [self._system_slopes(point), find_slopes(self._act, window, SMALL * self.sizes).values]
            jacobian = np.concatenate(slopes).sum(axis=1) - np.eye(len(point))
            scaled = jacobian * self.sizes / self.sizes[:, None]
            point = point - self.sizes * np.linalg.lstsq(scaled, left / self.sizes)[0]
            if (np.abs(point - aims)[:s] > FARTHEST * self.sizes[:s]).any():
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
        step = LONG if self.coarse else SMALL
        return find_slopes(self._move, self._window(point), step * self.sizes).values
