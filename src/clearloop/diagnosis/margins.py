"""Gain, phase and delay margins of a closed loop: how far it is from instability.

The loop of one action is cut at a time, and the others stay closed. The loop of an unstable plant has a gain
margin downwards, too. The limits of actions play no part, because margins are for small deviations.

The plant is that of the linearisation, or the linear model of the log. That model has standard errors, so its
margins have them, too: they are those of models whose numbers differ as much as these errors say. A margin is
called unknown if it is not known to a fifth. A controller that made the log is not called unstable if the log
shows that it was not: then the model is wrong, and the margins are unknown.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats, Ints
from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.data.log import first_rows, setpoint_rows, usual_setpoints
from clearloop.evaluation.linearisation import (
    Linearisation,
    Mode,
    delayed,
    essential,
    lengthened,
    loop_gains,
    loop_modes,
    slopes_of,
)
from clearloop.methods.linear_model import LinearModel
from clearloop.numbers import json_values, percent
from clearloop.task import Task

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
    """the modes of the closed loop, the slowest first; none if it remembers too many values"""
    actions: tuple[Margin, ...]
    """the margins of each action; empty if the loop is not stable"""
    steady: bool | None = None
    """True if every mode dies out, where the modes are not known"""

    @property
    def stable(self) -> bool:
        """True if every mode dies out."""
        return all(mode.inside for mode in self.modes) if self.steady is None else self.steady

    def to_dict(self) -> dict[str, Any]:
        """Return the margins as JSON values."""
        return {
            "stable": self.stable,
            "modes": [mode.to_dict() for mode in self.modes],
            "actions": [margin.to_dict() for margin in self.actions],
        }

    def __repr__(self) -> str:
        said = "stable" if self.stable else "unstable"
        if self.modes:
            said += f": largest eigenvalue {abs(self.modes[0].value):.4f}"
        return "; ".join([said, *map(_said, self.actions)])


def find_margins(
    linear: Linearisation, model: LinearModel | None = None, *, quick: bool = False
) -> Margins | None:
    """Find the margins of a linearised controller.

    Args:
        linear: The linearisation of the controller and its system.
        model: A linear model of the log, which takes the place of the linearised system. Such a model is the
            same everywhere, so that the loop need not be at a steady state.
        quick: True for fewer frequencies and delays that need not be whole steps.

    Returns:
        The margins, or None where the gains of the controller mean nothing: at a kink or a jump, away from
        the steady state without `model`, and where a law of steps is flat.
    """
    if not linear.smooth or not (linear.at_rest or (model is not None and linear.law.any())):
        return None
    task, law = linear.task, linear.law
    moves = linear.moves if model is None else model.slopes
    rows = max(moves.shape[1], law.shape[1])
    moves, law = essential(task, lengthened(moves, rows), lengthened(law, rows))
    modes, steady = loop_modes(moves, law, task.dt)
    if not Margins(modes, (), steady).stable:
        return Margins(modes, (), steady)
    frequencies = np.geomspace(_SLOWEST, 1.0, POINTS // 8 if quick else POINTS) * np.pi / task.dt
    responses = loop_gains(moves, law, np.exp(1j * frequencies * task.dt))
    margin = _quick_margin if quick else _margin
    found = [margin(name, one, frequencies) for name, one in zip(task.action_names, responses, strict=True)]
    if not quick:
        found = [_bearing(margin, moves, law, a, task.dt) for a, margin in enumerate(found)]
    return Margins(modes, tuple(found), steady)


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


def _quick_margin(action: str, response: Any, frequencies: Floats) -> Margin:
    """Find the same margins as `_margin` by straight lines between neighbouring frequencies."""
    turn, size = response.imag, np.log(np.maximum(np.abs(response), np.finfo(np.float64).tiny))
    at = np.flatnonzero((turn[1:] * turn[:-1] < 0) & (response.real[1:] < 0))
    part = turn[at] / (turn[at] - turn[at + 1])
    crossed = response.real[at] + part * (response.real[at + 1] - response.real[at])
    ends = [end.real for end in response[[0, -1]] if abs(end.imag) < REAL * abs(end.real)]
    factors = np.array([-1 / end for end in (*crossed, *ends) if end < 0])
    at = np.flatnonzero(size[1:] * size[:-1] < 0)
    part = size[at] / (size[at] - size[at + 1])
    angles = np.degrees(np.unwrap(np.angle(response)))
    phases = np.remainder(angles[at] + part * (angles[at + 1] - angles[at]) + 180.0, 360.0)
    crossings = frequencies[at] + part * (frequencies[at + 1] - frequencies[at])
    return Margin(
        action,
        gain_up=_nearest(factors[factors > 1]),
        gain_down=_nearest(-factors[factors < 1], -1.0),
        phase=_nearest(np.minimum(phases, 360.0 - phases)),
        delay=_nearest(np.radians(phases) / crossings),
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
        modes, steady = loop_modes(late, lengthened(law, late.shape[1]), dt)
        if not Margins(modes, (), steady).stable:
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


# Margins by the linear model of a log, and what the log leaves unknown about them.

DRAWN = 40  # models whose numbers differ by their errors
DOUBT = 0.2  # share of a margin: if its standard error is larger, the margin is unknown
RARE = 0.05  # share of the drawn models that may disagree about stability
REPLAYED = 2_000  # rows of the log that a controller is compared with
SAME = 0.9  # share of the logged action that a controller must explain to be the one that made the log
DITHERED = 0.5  # share that it must explain if a signal was added to its actions …
SLOPE = 0.15  # … and how far their slope may be from 1
STUCK = 0.5  # share of rows at a limit: such a log does not show that its controller is stable

_NUMBERS = ("gain_up", "gain_down", "phase", "delay")


@dataclass(frozen=True, eq=False)
class LoggedMargins:
    """The margins of a controller by a model that a log left in doubt."""

    margins: Margins | None
    """the margins; None if nothing can be said"""
    why: str
    """the reason why nothing, or not everything, is known; empty if all is known"""
    unknown: frozenset[tuple[str, str]]
    """the margins that are unknown, by action and by name, such as ("u", "phase")"""

    @property
    def stable(self) -> bool | None:
        """True or False if the model tells; None if it does not."""
        return None if self.margins is None else self.margins.stable

    def margin(self, action: str) -> Margin | None:
        """Return the margins of one action, if it has any."""
        found = self.margins.actions if self.margins else ()
        return next((one for one in found if one.action == action), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the margins as JSON values."""
        return {
            "stable": self.stable,
            "margins": self.margins and self.margins.to_dict(),
            "unknown": [f"{action}.{name}" for action, name in sorted(self.unknown)],
            "why": self.why,
        }


def find_logged_margins(
    controller: Controller, linear: Linearisation, model: LinearModel, batch: Batch
) -> LoggedMargins:
    """Find the margins of a linearised controller by the linear model of a log.

    Args:
        controller: The controller, for the comparison with the logged actions.
        linear: The linearisation of the controller; its system is not used.
        model: The linear model of the log.
        batch: The log.
    """
    nominal = find_margins(linear, model)
    if nominal is None:
        return LoggedMargins(None, "it switches at its steady state, or does not react there", frozenset())
    if not model.equations.follows:
        return LoggedMargins(None, "free runs of the linear model do not follow the log", frozenset())
    drawn = [
        find_margins(linear, other, quick=True) for other in model.drawn(DRAWN, np.random.default_rng(0))
    ]
    known = [margins for margins in drawn if margins is not None]
    return _doubted(nominal, known, lambda: made_log(controller, model.task, batch), _LINEAR_MODEL)


def find_resting_margins(
    controller: Controller, linear: Linearisation, members: Sequence[Linearisation], batch: Batch
) -> LoggedMargins:
    """Find the margins of a controller where the models of a log rest, which may disagree about them.

    Args:
        controller: The controller, for the comparison with the logged actions.
        linear: The linearisation of the controller and the mean of the models.
        members: The linearisation of each model; none if `linear` is about the plant itself.
        batch: The log.
    """
    nominal = find_margins(linear)
    if nominal is None or not members:
        return LoggedMargins(nominal, "", frozenset())
    known = [margins for one in members if (margins := find_margins(one, quick=True)) is not None]
    if 2 * len(known) < len(members):
        return LoggedMargins(None, "with most of the models the loop does not rest", frozenset())
    return _doubted(nominal, known, lambda: made_log(controller, linear.task, batch), _MODELS)


class _Words(NamedTuple):
    """What is said of a kind of model."""

    by: str
    wrong: str
    doubt: str
    unknown: str


_LINEAR_MODEL = _Words(
    "the linear model of the log",
    "the linear model is wrong",
    "the linear model of the log is too uncertain to tell: with numbers within its standard errors the loop",
    f"the log does not tell these to {percent(DOUBT, 0)}",
)
_MODELS = _Words(
    "the models at rest",
    "the models are wrong there",
    "the models at rest disagree: the loop",
    f"the models at rest differ by more than {percent(DOUBT, 0)} about these",
)


def _doubted(
    nominal: Margins, others: Sequence[Margins], did_make_log: Callable[[], bool], words: _Words
) -> LoggedMargins:
    """Return margins with what is unknown of them, by other models that are as likely."""
    stable = float(np.mean([margins.stable for margins in others]))
    doubtful = (nominal.stable or stable > RARE) and stable < 1 - RARE
    made = (doubtful or not nominal.stable) and did_make_log()
    if not nominal.stable and made:
        why = (
            f"by {words.by} this controller is unstable, but it made the log, which shows that it is stable: "
            f"{words.wrong}"
        )
        return LoggedMargins(None, why, frozenset())
    if doubtful and not made:
        return LoggedMargins(
            None, f"{words.doubt} is unstable in {percent(1 - stable, 0)} of the cases", frozenset()
        )
    if not nominal.stable:
        return LoggedMargins(nominal, "", frozenset())
    unknown = frozenset(
        (margin.action, name)
        for a, margin in enumerate(nominal.actions)
        for name in _NUMBERS
        if not _certain(getattr(margin, name), [getattr(m.actions[a], name) for m in others if m.stable])
    )
    names = dict.fromkeys(name.replace("_", " ") for _, name in sorted(unknown))
    return LoggedMargins(nominal, f"{words.unknown}: {', '.join(names)}" if unknown else "", unknown)


def _certain(value: float | None, others: list[float | None]) -> bool:
    """Tell whether a margin is known; None stands for any."""
    there = np.array([other for other in others if other is not None])
    if value is None:
        return len(there) <= RARE * len(others)
    if len(there) < (1 - RARE) * len(others):
        return False
    low, high = np.quantile(there, [0.16, 0.84])
    return bool((high - low) / 2 <= DOUBT * abs(value))


AGREE = 0.25  # share by which a margin by the linear model and one by the models at rest may differ
_PLENTY = {"gain_up": 10.0, "gain_down": 0.1, "phase": 90.0}  # beyond these, margins are more than enough


def compare_margins(logged: LoggedMargins, resting: LoggedMargins) -> tuple[LoggedMargins, LoggedMargins]:
    """Compare the margins by the linear model of a log with those where its models rest.

    Both have learned from the same log. Where they differ clearly about a margin, the log does not tell it.

    Args:
        logged: What `find_logged_margins` found.
        resting: What `find_resting_margins` found for the same controller.

    Returns:
        Both, with the margins about which they disagree as unknown.
    """
    if logged.margins is None or not logged.stable or not resting.stable:
        return logged, resting
    apart = frozenset(
        (one.action, name)
        for one in logged.margins.actions
        for name in _NUMBERS
        if (other := resting.margin(one.action)) and _differ(name, getattr(one, name), getattr(other, name))
    )
    return _without(logged, apart), _without(resting, apart)


def _differ(name: str, one: float | None, other: float | None) -> bool:
    most = _PLENTY.get(name, math.inf)
    if name == "gain_down":
        low, high = sorted((max(one or 0.0, most), max(other or 0.0, most)))
    else:
        low, high = sorted(min(math.inf if value is None else value, most) for value in (one, other))
    return low != high and high - low > AGREE * low


def _without(found: LoggedMargins, apart: frozenset[tuple[str, str]]) -> LoggedMargins:
    """Return margins of which those named are unknown, too."""
    new = sorted({name.replace("_", " ") for _, name in apart - found.unknown})
    if not new:
        return found
    why = f"the linear model and the models at rest differ by more than {percent(AGREE, 0)} about these: "
    said = "; ".join(part for part in (found.why, why + ", ".join(new)) if part)
    return replace(found, unknown=found.unknown | apart, why=said)


def made_log(controller: Controller, task: Task, batch: Batch) -> bool:
    """Tell whether a controller chooses the actions of a log, and the log shows that its loop is stable.

    The controller sees the logged observations and, as its own past, the logged actions. What it chooses may
    differ by a constant in each episode, because the log does not tell with which sum it began.
    """
    rows = min(len(batch.states), REPLAYED)
    chosen, logged = _replayed(controller.for_task(task), task, batch, rows), batch.actions[:rows]
    fine = np.isfinite(logged).all(axis=1) & np.isfinite(chosen).all(axis=1)
    low, high = task.action_limits.T
    within = (logged > low) & (logged < high)
    if not fine.any() or (within[fine].mean(axis=0) < 1 - STUCK).any():
        return False
    episodes = batch.episodes[:rows]
    for a in range(logged.shape[1]):
        some = fine & within[:, a]
        if not _is_same(chosen[some, a], logged[some, a], episodes[some]):
            return False
    return True


def _is_same(chosen: Floats, logged: Floats, episodes: Ints) -> bool:
    """Tell whether actions [n] are those that a law chose, but for a constant in each episode.

    A signal that was added to them, to learn more about the plant, does not make it another law: then they
    follow the law with a slope of about 1.
    """
    around = [
        values - (np.bincount(episodes, values) / np.maximum(np.bincount(episodes), 1))[episodes]
        for values in (chosen, logged)
    ]
    if np.mean((around[1] - around[0]) ** 2) <= (1 - SAME) * np.var(logged):
        return True
    own, both = (float(around[0] @ values) for values in around)
    slope = both / max(own, 1e-300)
    return abs(slope - 1) <= SLOPE and slope * both >= DITHERED * float(around[1] @ around[1])


def _replayed(controller: Controller, task: Task, batch: Batch, rows: int) -> Floats:
    """Return the actions [rows, A] that a controller chooses along a log, before they are limited."""
    aims = setpoint_rows(task, batch.setpoints, len(batch.states))
    begins = first_rows(batch.episodes)
    chosen = np.full((rows, len(task.actions)), np.nan)
    memory = controller.reset()
    for row in range(rows):
        if begins[row] == row:
            memory = controller.reset()
        memory.observe(
            dict(zip(task.state_names, batch.states[row].tolist(), strict=True)),
            dict(zip(task.state_names, aims[row].tolist(), strict=True)),
        )
        answer = controller.respond(memory)
        chosen[row] = [answer[name] for name in task.action_names]
        done = np.nan_to_num(batch.actions[row]).tolist()
        memory.acted(dict(zip(task.action_names, done, strict=True)))
    return chosen


def find_law_margins(controller: Controller, model: LinearModel, batch: Batch) -> LoggedMargins | None:
    """Find the margins of a PID by the linear model of a log, without any other model of the plant.

    Args:
        controller: The controller.
        model: The linear model of the log.
        batch: The log, whose usual values say where a law with a schedule is linear.

    Returns:
        The margins; None if the controller is no PID.
    """
    task = model.task
    controller = controller.for_task(task)
    usual = task.setpoints | usual_setpoints(task, batch.setpoints) | controller.setpoint
    aims = {name: float(usual.get(name, 0.0)) for name in task.state_names}
    values = dict(zip(task.state_names, np.median(batch.states, axis=0).tolist(), strict=True))
    laws = controller.recursions(values, aims)
    if not laws:
        return None
    rows = max(len(taps) for law, _ in laws.values() for taps in (law.past, *law.gains.values()))
    slopes = slopes_of(task, {action: law for action, (law, _) in laws.items()}, rows)
    rest, s = np.array(list(values.values())), len(task.states)
    linear = Linearisation(
        task=task, aims=np.array(list(aims.values())), point=rest, action=np.zeros(len(task.actions)),
        drift=np.zeros(s), at_rest=False, smooth=True, moves=np.zeros((s, 1, len(task.scope.names))),
        law=slopes, memory=rows - 1, modes=(),
    )  # fmt: skip
    return find_logged_margins(controller, linear, model, batch)


def margin_words(found: LoggedMargins) -> list[str]:
    """Return sentences about margins: one for each action, and why nothing, or not everything, is known."""
    said = []
    for one in found.margins.actions if found.margins else ():
        parts = [
            ("gain_up", "gain margin x {:.3g}"), ("gain_down", "gain margin downwards x {:.3g}"),
            ("phase", "phase margin {:.3g} degrees"), ("delay", "delay margin {:.3g} s"),
        ]  # fmt: skip
        known = [
            text.format(getattr(one, name))
            for name, text in parts
            if getattr(one, name) is not None and (one.action, name) not in found.unknown
        ]
        said.append(f"{one.action}: {', '.join(known) or 'none is known'}.")
    if found.margins is not None and not found.margins.stable:
        said.append("The loop is unstable.")
    return [*said, *([f"{found.why[0].upper()}{found.why[1:]}."] if found.why else [])]
