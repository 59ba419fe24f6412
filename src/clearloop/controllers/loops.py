"""The loops of a PID controller: their tables in a file, one step of them, and their transfer functions.

A loop is kp (b r − y) + Σ ki e + kd Δ(c r − y) with e = r − y, setpoint r and measured value y, per step.
With a `window`, Σe runs over the last samples, as in sec. 3.2 of the paper. With `integral` it is the
integrator that PLC blocks have: it adds up ki e from the start on, and stops while the output is held back by
its limits or its rate and the error would push it further (conditional integration; Åström and Hägglund,
Advanced PID Control, 2006, sec. 3.5). The change Δ may pass a filter of first order (backward Euler).
"""

from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, SerializerFunctionWrapHandler, Strict, model_serializer, model_validator

from clearloop.arrays import Floats
from clearloop.controllers.controller import Coefficient, read_variable
from clearloop.controllers.memory import Memory
from clearloop.controllers.views import Recursion
from clearloop.errors import ClearloopError
from clearloop.expression import Variable
from clearloop.expression.nodes import READ_LIMIT
from clearloop.task.tables import Limits, NotNegative, Positive, Table, Text, expecting

LONGEST_WINDOW = 10_000
MOST_POINTS = 50  # of a schedule

Window = Annotated[
    int,
    Strict(),
    Field(ge=1, le=LONGEST_WINDOW),
    expecting(f"a whole number of steps from 1 to {LONGEST_WINDOW:,}"),
]
Points = Annotated[tuple[Coefficient, ...], Field(min_length=2, max_length=MOST_POINTS)]


class Schedule(Table):
    """Gains that depend on a state: straight lines between the points `at`, and constant beyond them."""

    by: Text
    at: Points
    kp: Points
    ki: Points | None = None
    kd: Points | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if any(right <= left for left, right in pairwise(self.at)):
            raise ClearloopError("schedule.at: expected numbers that increase")
        for name in ("kp", "ki", "kd"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.at):
                raise ClearloopError(f"schedule.{name}: expected {len(self.at)} numbers, as in schedule.at")
        return self

    @property
    def columns(self) -> tuple[tuple[float, ...], ...]:
        """The values of kp, ki and kd at the points; 0 for those that are not given."""
        return tuple(one or (0.0,) * len(self.at) for one in (self.kp, self.ki, self.kd))

    @property
    def segments(self) -> tuple[tuple[float, float, float, float, float], ...]:
        """The pieces between the points: the ends of each, and the slopes of kp, ki and kd in it."""
        found = []
        for k, (low, high) in enumerate(pairwise(self.at)):
            slopes = [(one[k + 1] - one[k]) / (high - low) for one in self.columns]
            found.append((low, high, slopes[0], slopes[1], slopes[2]))
        return tuple(found)


class Loop(Table):
    """A loop on a state, kp (b r − y) + ki Σe + kd Δ(c r − y) with e = r − y, per step.

    Attributes:
        input: The state y.
        weight: A factor of the whole loop.
        kp: The proportional gain.
        ki: The integral gain.
        kd: The derivative gain.
        window: The samples that the sum runs over, the present one included, without `integral`.
        integral: True for an integrator with anti-windup in place of a sum over a window.
        filter: The time constant of the filter of the derivative, in steps.
        setpoint_weight: b, the share of the setpoint in the proportional part; 1 if it is missing.
        derivative_of: Of what the derivative is taken: the error (c = 1) or the measurement (c = 0).
        schedule: Gains that depend on a state, in place of kp, ki and kd.
    """

    input: Text
    weight: Coefficient = 1.0
    kp: Coefficient
    ki: Coefficient = 0.0
    kd: Coefficient = 0.0
    window: Window = 1
    integral: bool | None = None
    filter: NotNegative | None = None
    setpoint_weight: Coefficient | None = None
    derivative_of: Literal["error", "measurement"] | None = None
    schedule: Schedule | None = None

    @model_validator(mode="before")
    @classmethod
    def _scheduled_gains(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or data.get("schedule") is None:
            return data
        for name in ("kp", "ki", "kd"):
            if data.get(name):
                raise ClearloopError(f"{name}: give it in the schedule only")
        return {"kp": 0.0, **data}

    @model_validator(mode="after")
    def _sums_once(self) -> Self:
        if self.integral and self.window != 1:
            raise ClearloopError('window: leave it out beside "integral": true, which sums up everything')
        return self

    @model_serializer(mode="wrap")
    def _short(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what means nothing: the window of an integrator, the gains beside a schedule."""
        table: dict[str, Any] = handler(self)
        idle = ["window"] if self.integral else []
        idle += ["kp", "ki", "kd"] if self.schedule else []
        return {key: value for key, value in table.items() if key not in idle}

    @property
    def state(self) -> str:
        """The name of the state that it controls."""
        return read_variable(self.input).name

    @property
    def plain(self) -> bool:
        """True for a loop of the paper, which is a function of the last samples."""
        given = self.integral or self.filter or self.setpoint_weight is not None or self.schedule
        return not given and self.derivative_of != "measurement"

    @property
    def span(self) -> int:
        """The samples that its sum runs over; 0 for an integrator."""
        return 0 if self.integral else self.window

    @property
    def pole(self) -> float:
        """The pole a of the filter, D := D + (1 − a) (Δ − D); 0 without one."""
        return (self.filter or 0.0) / (1 + (self.filter or 0.0))

    @property
    def shares(self) -> tuple[float, float]:
        """The shares b and c of the setpoint in the proportional and in the derivative part."""
        b = 1.0 if self.setpoint_weight is None else self.setpoint_weight
        return b, 0.0 if self.derivative_of == "measurement" else 1.0

    @property
    def columns(self) -> tuple[tuple[float, ...], ...]:
        """The values of kp, ki and kd: one of each, or of a schedule those at its points."""
        return self.schedule.columns if self.schedule else ((self.kp,), (self.ki,), (self.kd,))

    @property
    def segments(self) -> tuple[tuple[float, float, float, float, float], ...]:
        """The segments of its schedule; none without one."""
        return self.schedule.segments if self.schedule else ()

    @property
    def first_gains(self) -> tuple[float, float, float]:
        """The gains kp, ki and kd; of a schedule, those at its first point."""
        kp, ki, kd = (column[0] for column in self.columns)
        return kp, ki, kd

    def gains_at(self, value: Any) -> tuple[Any, Any, Any]:
        """Return kp, ki and kd where the state of the schedule has this value; it may be an array."""
        kp, ki, kd = self.first_gains
        for low, high, *slopes in self.segments:
            part = _clip(value, low, high) - low
            kp, ki, kd = kp + slopes[0] * part, ki + slopes[1] * part, kd + slopes[2] * part
        return kp, ki, kd

    @property
    def letters(self) -> str:
        """The letters of the parts that it has: P, PI, PD, PID, I …"""
        return "".join(letter for letter, one in zip("PID", self.columns, strict=True) if any(one)) or "P"


class OuterLoop(Loop):
    """The outer loop of a cascade: what it gives is the setpoint of the inner loop.

    Attributes:
        bias: The setpoint of the inner loop at no error.
        limits: The lowest and the highest setpoint that it gives.
    """

    bias: Coefficient = 0.0
    limits: Limits | None = None


class Loops(Table):
    """The loops of an action: bias + feedforward + scale · Σ weight · loop, or a cascade of two loops.

    Attributes:
        scale: A factor of all loops.
        bias: What is always added.
        loops: The loops that add up.
        inner: The inner loop of a cascade.
        outer: The outer loop of a cascade.
        feedforward: The gain of a state or of a setpoint, such as `level.setpoint`, that is fed forward.
        rate: The most that the action may change in one step.
    """

    scale: Coefficient = 1.0
    bias: Coefficient = 0.0
    loops: Annotated[tuple[Loop, ...], Field(max_length=100)] = ()
    inner: Loop | None = None
    outer: OuterLoop | None = None
    feedforward: Annotated[dict[str, Coefficient], Field(max_length=100)] | None = None
    rate: Positive | None = None

    @model_validator(mode="before")
    @classmethod
    def _schedule_of_its_loop(cls, data: Any) -> Any:
        """Move a schedule beside a single loop into it."""
        if not isinstance(data, Mapping) or "schedule" not in data:
            return data
        loops = data.get("loops")
        if not isinstance(loops, list | tuple) or len(loops) != 1 or not isinstance(loops[0], Mapping):
            raise ClearloopError("schedule: it belongs into the loop whose gains it gives")
        rest = {key: value for key, value in data.items() if key != "schedule"}
        return {**rest, "loops": [{**loops[0], "schedule": data["schedule"]}]}

    @model_validator(mode="after")
    def _either_loops_or_a_cascade(self) -> Self:
        if (self.inner is None) != (self.outer is None):
            missing = "inner" if self.inner is None else "outer"
            raise ClearloopError(f"{missing}: missing; a cascade has an inner and an outer loop")
        if self.inner is None and not self.loops:
            raise ClearloopError("loops: expected at least one loop, or inner and outer")
        if self.inner is not None and self.loops:
            raise ClearloopError("loops: leave them out where inner and outer are given")
        if self.inner is not None and self.outer is not None and self.inner.input == self.outer.input:
            raise ClearloopError("inner: expected another state than that of the outer loop")
        if self.inner is not None and self.inner.window > 1:
            raise ClearloopError('inner.window: an inner loop has an integrator instead: "integral": true')
        return self

    @model_serializer(mode="wrap")
    def _short(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        table: dict[str, Any] = handler(self)
        return {key: value for key, value in table.items() if key != "loops" or self.loops}

    @property
    def chain(self) -> tuple[Loop, ...]:
        """The loops in the order in which they are computed: an outer loop before its inner one."""
        return (self.outer, self.inner) if self.outer and self.inner else self.loops

    @property
    def plain(self) -> bool:
        """True for loops of the paper, which are a function of the last samples."""
        return self.inner is None and self.rate is None and all(loop.plain for loop in self.loops)

    @property
    def integrates(self) -> bool:
        """True if a loop has an integrator."""
        return any(loop.integral and loop.first_gains != (0.0, 0.0, 0.0) for loop in self.chain)

    def gain_of(self, number: int) -> float:
        """Return the factor of a loop of `chain` in the action, or in the setpoint of the inner loop."""
        loop = self.chain[number]
        return loop.weight if loop is self.outer else self.scale * loop.weight

    def push_of(self, number: int) -> float:
        """Return the factor whose sign tells whether more of a loop means more of the action."""
        if self.chain[number] is not self.outer:
            return self.gain_of(number)
        kp, ki, _ = self.chain[1].first_gains
        return self.gain_of(0) * self.gain_of(1) * (kp or ki)

    def fed(self) -> Iterator[tuple[Variable, float]]:
        """Yield what is fed forward, with its gain."""
        for name, gain in (self.feedforward or {}).items():
            yield read_variable(name), gain


# One step in plain Python. Every value may be a number or an array of the values of several plants.


def _clip(value: Any, low: Any, high: Any) -> Any:
    if isinstance(value, np.ndarray) or isinstance(low, np.ndarray):
        return np.minimum(np.maximum(value, low), high)
    return min(max(value, low), high)


def _either(condition: Any, yes: Any, no: Any) -> Any:
    return np.where(condition, yes, no) if isinstance(condition, np.ndarray) else yes if condition else no


class _Kept:
    """What a loop keeps: its integral, the signal of its derivative, and the filtered change."""

    def __init__(self) -> None:
        self.integral: Any = 0.0
        self.signal: Any = None
        self.change: Any = 0.0


class Regulator:
    """The loops of one action with what they keep, one step after the other.

    Args:
        output: The loops.
        limits: The limits of the action; None if it has none.
    """

    def __init__(self, output: Loops, limits: tuple[float, float] | None) -> None:
        self.output = output
        self.limits = limits or (-np.inf, np.inf)
        self._kept = [_Kept() for _ in output.chain]

    def step(self, memory: Memory, lag: int, before: Any) -> Any:
        """Return the action before it is limited to its limits.

        Args:
            memory: The observations and the setpoints.
            lag: How many steps ago the step is made; 0 but for memories that begin in the past.
            before: The action of the step before.
        """
        output = self.output
        wanted: Any = output.bias
        for variable, gain in output.fed():
            wanted = wanted + fed_worth(variable, gain, memory, lag)
        given: Any = None  # the setpoint of an inner loop
        pushes: list[Any] = []
        for number, (loop, kept) in enumerate(zip(output.chain, self._kept, strict=True)):
            value, push = _advance(loop, kept, memory, lag, given)
            value = output.gain_of(number) * value
            if isinstance(loop, OuterLoop):
                asked = loop.bias + value
                given = asked if loop.limits is None else _clip(asked, *loop.limits)
                push = _either(_held(asked, given, loop.weight * push), 0.0, push)
            else:
                wanted = wanted + value
            pushes.append(push)
        rated = wanted
        if output.rate is not None:
            rated = _clip(wanted, before - output.rate, before + output.rate)
        limited = _clip(rated, *self.limits)
        for number, (kept, push) in enumerate(zip(self._kept, pushes, strict=True)):
            held = _held(wanted, limited, output.push_of(number) * push)
            kept.integral = _clip(kept.integral + _either(held, 0.0, push), -READ_LIMIT, READ_LIMIT)
        return rated


def fed_worth(variable: Variable, gain: float, memory: Memory, lag: int = 0) -> Any:
    """Return what a state or a setpoint that is fed forward adds to an action.

    Args:
        variable: The state or the setpoint.
        gain: Its gain.
        memory: The observations and the setpoints.
        lag: How many steps ago.
    """
    setpoint = variable.part == "setpoint"
    return gain * (memory.setpoint(variable.name, lag) if setpoint else memory.value(variable.name, lag))


def _held(wanted: Any, given: Any, push: Any) -> Any:
    """Tell whether the output is held back and the error would push it further."""
    return (wanted > given) & (push > 0) | (wanted < given) & (push < 0)


def _advance(loop: Loop, kept: _Kept, memory: Memory, lag: int, given: Any) -> tuple[Any, Any]:
    """Make a step of a loop: return its value, and what its integrator is to add."""
    name, (b, c) = loop.state, loop.shares
    value = memory.value(name, lag)
    aim = memory.setpoint(name, lag) if given is None else given
    error = aim - value
    kp, ki, kd = loop.first_gains
    if loop.schedule:
        kp, ki, kd = loop.gains_at(memory.value(read_variable(loop.schedule.by).name, lag))
    signal = error + (c - 1) * aim
    change = 0.0 * signal if kept.signal is None else signal - kept.signal
    kept.signal = signal
    if loop.pole:
        change = kept.change + (1 - loop.pole) * (change - kept.change)
    kept.change = _clip(change, -READ_LIMIT, READ_LIMIT)
    if loop.integral:
        push = ki * error
        summed = _clip(kept.integral + push, -READ_LIMIT, READ_LIMIT)
    elif given is None:
        push = 0.0 * error
        summed = ki * sum(islice(memory.errors(name), lag, lag + loop.window))
    else:
        push, summed = 0.0 * error, ki * error
    return kp * (error + (b - 1) * aim) + summed + kd * kept.change, push


# Transfer functions about a steady state, as polynomials in z⁻¹, for
# kp + ki/(1 − z⁻¹) + kd (1 − a)(1 − z⁻¹)/(1 − a z⁻¹).

_DIFFERENCE = np.array([1.0, -1.0])


def _smoother(pole: float) -> Floats:
    return np.array([1.0, -pole]) if pole else np.ones(1)


def _parts(
    loop: Loop, values: Mapping[str, float], error: float = 0.0, shares: tuple[float, float] = (1.0, 1.0)
) -> tuple[Floats, Floats, dict[str, float]]:
    """Return the denominator and the numerator of e of a loop, and the slopes by the state of its schedule.

    `shares` multiply the proportional and the derivative gain.
    """
    by = read_variable(loop.schedule.by).name if loop.schedule else None
    kp, ki, kd = loop.gains_at(values[by]) if by else loop.first_gains
    kp, kd = shares[0] * kp, shares[1] * kd
    summing = _DIFFERENCE if loop.integral and ki else np.ones(1)
    smooth = _smoother(loop.pole if kd else 0.0)
    bottom = np.convolve(summing, smooth)
    top = kp * bottom
    if ki:
        sums = smooth if loop.integral else np.convolve(np.ones(loop.window), bottom)
        top = add_polynomials(top, ki * sums)
    if kd:
        top = add_polynomials(top, kd * (1 - loop.pole) * np.convolve(_DIFFERENCE, summing))
    bends: dict[str, float] = {}
    if by and error:
        for low, high, slope, more, _ in loop.segments:
            if low <= values[by] < high:
                bends[by] = (slope + (0.0 if loop.integral else more * loop.window)) * error
    return bottom, top, bends


def add_polynomials(one: Floats, other: Floats) -> Floats:
    """Return the sum of two polynomials in z⁻¹, whose constant terms come first."""
    total = np.zeros(max(len(one), len(other)))
    total[: len(one)] += one
    total[: len(other)] += other
    return total


def recursion(output: Loops, values: Mapping[str, float], aims: Mapping[str, float]) -> Recursion:
    """Return the linear law of an action about a steady state.

    Args:
        output: The loops of the action.
        values: The steady state, by the names of the states.
        aims: The setpoints; 0 for states that are not named.
    """
    chain = output.chain
    errors = [aims.get(loop.state, 0.0) - values[loop.state] for loop in chain]
    if output.outer is not None:
        errors[1] = 0.0 if chain[1].integral else _asked(output, values, aims) - values[chain[1].state]
    found = [_parts(loop, values, error) for loop, error in zip(chain, errors, strict=True)]
    bottom = _common([one[0] for one in found], cascade=output.outer is not None)
    gains: dict[str, Floats] = {}

    def add(name: str, taps: Floats) -> None:
        gains[name] = add_polynomials(gains.get(name, np.zeros(1)), taps)

    for number, (loop, (own, top, bends)) in enumerate(zip(chain, found, strict=True)):
        gain = output.gain_of(number)
        if output.outer is not None and number == 0:
            inner, inner_top, _ = _parts(chain[1], values, shares=chain[1].shares)
            through = np.convolve(inner_top, top) * output.gain_of(1) * gain
            add(loop.state, -np.convolve(through, _divided(bottom, np.convolve(inner, own))))
            continue
        add(loop.state, -gain * np.convolve(top, _divided(bottom, own)))
        for name, slope in bends.items():
            add(name, gain * slope * bottom)
    for variable, gain in output.fed():
        if variable.part != "setpoint":
            add(variable.name, gain * bottom)
    return Recursion(bottom, gains)


def _common(bottoms: list[Floats], *, cascade: bool) -> Floats:
    """Return the least common denominator; that of a cascade is the product."""
    if cascade:
        return np.convolve(bottoms[0], bottoms[1])
    roots: list[float] = []
    for bottom in bottoms:
        mine = [float(root.real) for root in np.roots(bottom)]
        for root in dict.fromkeys(mine):
            roots += [root] * (mine.count(root) - roots.count(root))
    return np.atleast_1d(np.poly(roots))


def _divided(one: Floats, other: Floats) -> Floats:
    return np.atleast_1d(np.polydiv(one, other)[0]) if len(other) > 1 else one


def drive(output: Loops, values: Mapping[str, float], aims: Mapping[str, float]) -> float | None:
    """Return by how much an action with an integrator moves in each step while all states stay as they are.

    Args:
        output: The loops of the action.
        values: The states.
        aims: The setpoints; 0 for states that are not named.

    Returns:
        The change of the action, or None if it has no integrator.
    """
    law, chain = recursion(output, values, aims), output.chain
    if law.past.sum():
        return None
    errors = {name: aims.get(name, 0.0) - values[name] for name in law.gains}
    if output.outer is not None and _parts(output.outer, values)[0].sum():  # only the inner loop integrates
        errors = dict.fromkeys(errors, 0.0) | {
            chain[1].state: _asked(output, values, aims) - values[chain[1].state]
        }
    return -sum(float(law.gains[name].sum()) * error for name, error in errors.items())


def _asked(output: Loops, values: Mapping[str, float], aims: Mapping[str, float]) -> float:
    """Return the setpoint that an outer loop without an integrator gives the inner one."""
    outer = output.chain[0]
    bias = outer.bias if isinstance(outer, OuterLoop) else 0.0
    kp, ki, _ = outer.gains_at(values[read_variable(outer.schedule.by).name] if outer.schedule else 0.0)
    aim = aims.get(outer.state, 0.0)
    proportional = kp * (outer.shares[0] * aim - values[outer.state])
    return float(bias + output.gain_of(0) * (proportional + ki * outer.window * (aim - values[outer.state])))
