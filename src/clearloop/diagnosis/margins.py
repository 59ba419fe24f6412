"""How far a loop is from swinging by itself: gain, phase and delay margins.

Of each action: its loop is cut there, the others stay closed. A plant that needs its controller has a gain
margin downwards, too. Limits of actions are not in it: margins are for small deviations.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clearloop.data.cells import Floats
from clearloop.diagnosis.linearisation import Linearisation
from clearloop.diagnosis.loop import closed_loop, delayed, lengthened, loop_gains
from clearloop.diagnosis.modes import Mode, find_modes
from clearloop.diagnosis.rounding import rounded
from clearloop.methods.linear_model import LinearModel

POINTS = 4_000  # frequencies from SLOWEST to the fastest that a sampled loop can show
SLOWEST = 1e-4  # of the fastest
REAL = 1e-2  # the most that an imaginary part may be of a real one to be none
MOST_STEPS = 20  # of delay that are tried


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
        return {name: rounded(value) for name, value in vars(self).items()}


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
    frequencies = np.geomspace(SLOWEST, 1.0, POINTS) * np.pi / task.dt
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
    for steps in range(1, MOST_STEPS + 1):
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
