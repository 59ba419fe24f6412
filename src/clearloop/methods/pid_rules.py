"""One loop on a linear plant: what a PID does there, and the gains that rules of engineers give.

The rules are SIMC (Skogestad 2003), lambda tuning, AMIGO (Åström and Hägglund 2006, ch. 7) and Ziegler and
Nichols' second method (1942).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import pid
from clearloop.controllers.loops import Loop, add_polynomials, recursion
from clearloop.methods.identification import Equations
from clearloop.methods.linear_model import LinearModel
from clearloop.numbers import json_values, significant

POINTS = 100  # low frequencies
FINE = 14  # higher frequencies for each step that a plant looks back
LONGEST = 20_000  # steps of a simulated response
DIGITS = 4
DRAWN = 8  # models that differ from the identified one by its errors
FILTER = 10.0  # Td/Tf of the rules


class Gains(NamedTuple):
    """A PID in the ideal form Kp (b r − y + ∫e/Ti − Td dy/dt / (Tf s + 1)), in seconds; 0: none."""

    kp: float
    ti: float
    td: float = 0.0
    tf: float = 0.0
    b: float = 1.0

    @property
    def letters(self) -> str:
        """P, PI, PD or PID."""
        return "P" + "I" * bool(self.ti) + "D" * bool(self.td)

    def loop(self, state: str, dt: float) -> Loop:
        """Return the loop with these gains, per step."""
        table: dict[str, Any] = {"input": state, "kp": significant(self.kp, DIGITS)}
        if self.ti:
            table |= {"ki": significant(self.kp / self.ti * dt, DIGITS), "integral": True}
        if self.td:
            table |= {"kd": significant(self.kp * self.td / dt, DIGITS)}
            table |= {"filter": significant(self.tf / dt, DIGITS)} if self.tf else {}
            table |= {"derivative_of": "measurement"}
        if self.b != 1:
            table["setpoint_weight"] = significant(self.b, DIGITS)
        return Loop(**table)

    @classmethod
    def of(cls, loop: Loop, gain: float, dt: float) -> "Gains":
        """Return the gains of a loop with an integrator, or without an integral."""
        kp, ki, kd = (gain * one for one in loop.first_gains)
        ti = kp / ki * dt if ki else 0.0
        return cls(kp, ti, kd / kp * dt if kp else 0.0, (loop.filter or 0.0) * dt, loop.shares[0])


class Process(NamedTuple):
    """A plant from one action to one state as y = b(z⁻¹)/a(z⁻¹) u."""

    a: Floats
    """denominator, whose first number is 1"""
    b: Floats
    """numerator; its first number is 0"""

    def response(self, z: Any) -> Any:
        """Return the frequency response at points z of the unit circle."""
        return np.polyval(self.b[::-1], 1 / z) / np.polyval(self.a[::-1], 1 / z)


def processes(model: LinearModel, state: str, action: str, rng: np.random.Generator) -> list[Process]:
    """Return the plant by the linear model, then plants that differ from it by its errors."""
    i, a = model.task.predicted.index(state), model.task.action_names.index(action)
    drawn = list(model.equations.drawn(DRAWN, rng))
    return [_process(one, i, a) for one in (model.equations, *drawn)]


def _process(equations: Equations, state: int, action: int) -> Process:
    p = len(equations.constant)
    lags, depth = equations.states.shape[1], equations.actions.shape[1]
    if p == 1:
        a = np.append(1.0, -equations.states[0, :, 0])
        return Process(a, np.append(0.0, equations.actions[0, :, action]))
    # det(I − Σ Aᵢ zⁱ) and the adjugate by interpolation on the unit circle.
    n = p * lags + depth + 1
    z = np.exp(2j * np.pi * np.arange(n) / n)
    powers = z[:, None] ** -np.arange(1, max(lags, depth) + 1)
    own = np.eye(p) - np.einsum("nk,ikj->nij", powers[:, :lags], equations.states[:, :, :p])
    pushes = powers[:, :depth] @ equations.actions[:, :, action].T
    bottom = np.linalg.det(own)
    top = np.linalg.solve(own, pushes[:, :, None])[:, state, 0] * bottom
    a, b = (np.fft.ifft(values).real for values in (bottom, top))
    return Process(a, np.where(np.abs(b) < 1e-12 * np.abs(b).max(), 0.0, b))


# What a loop does, on one plant.


@dataclass(frozen=True)
class Assessment:
    """What a loop does by a linear model.

    Attributes:
        stable: Whether every mode dies out.
        ms: The largest sensitivity, max |1/(1 + L)|.
        gain_margin: The factor by which the gain may rise.
        phase_margin: Degrees.
        load: ∫|e| dt after a unit step of the load, in units of the state times seconds.
        noise: The standard deviation of the action for a unit one of the measurement's noise.
        overshoot: Of a step of the setpoint, as a share of it.
        settling: Seconds until the error stays within 5 % of the step.
        crossover: Radians per second, where the gain of the loop falls below 1.
    """

    stable: bool
    ms: float = math.inf
    gain_margin: float = 0.0
    phase_margin: float = 0.0
    load: float = math.inf
    noise: float = math.inf
    overshoot: float = math.inf
    settling: float = math.inf
    crossover: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {name: json_values(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Bench:
    """A plant with a grid of frequencies and a length of responses.

    Attributes:
        process: The plant.
        dt: Seconds of a step.
        steps: The length of the responses.
    """

    process: Process
    dt: float
    steps: int
    z: Any = field(init=False)
    plant: Any = field(init=False)

    def __post_init__(self) -> None:
        turns = len(self.process.a) + len(self.process.b)  # dead time turns the phase at high frequencies
        even = np.linspace(0, np.pi, 100 + FINE * turns)[1:]
        angles = np.union1d(np.geomspace(min(1e-2, 2 / self.steps), even[0], POINTS, endpoint=False), even)
        object.__setattr__(self, "z", np.exp(1j * angles))
        object.__setattr__(self, "plant", self.process.response(self.z))

    def closed(self, gains: Gains) -> tuple[Floats, Floats, Floats]:
        """Return the controller from −y as num/den, and the denominator of the closed loop."""
        law = recursion(pid.Loops(loops=(gains.loop("y", self.dt),)), {"y": 0.0}, {})
        num, den = -law.gains["y"], law.past
        free, back = np.convolve(self.process.a, den), np.convolve(self.process.b, num)
        return num, den, add_polynomials(free, back)

    def sensitivity(self, gains: Gains) -> float:
        """Return Ms, or infinity if the loop is not stable."""
        num, den, bottom = self.closed(gains)
        if not stable(bottom):
            return math.inf
        loop = self.plant * Process(den, num).response(self.z)
        return float(np.max(1 / np.abs(1 + loop)))

    def load(self, gains: Gains) -> float:
        """Return ∫|e| dt after a unit step of the load, of a loop that is stable."""
        from scipy.signal import lfilter

        _, den, bottom = self.closed(gains)
        error = lfilter(np.convolve(self.process.b, den), bottom, np.ones(self.steps))
        return float(np.abs(error).sum() * self.dt)

    def noise(self, gains: Gains) -> float:
        """Return how much white noise of the measurement moves the action, of a loop that is stable."""
        from scipy.signal import lfilter

        num, _, bottom = self.closed(gains)
        pulse = np.zeros(self.steps)
        pulse[0] = 1.0
        return float(np.sqrt(np.sum(lfilter(np.convolve(num, self.process.a), bottom, pulse) ** 2)))

    def step(self, gains: Gains) -> Floats:
        """Return the answer [steps] of the state to a unit step of its setpoint."""
        from scipy.signal import lfilter

        _, den, bottom = self.closed(gains)
        whole = gains.loop("y", self.dt)
        shares = {"kp": gains.b * whole.kp, "kd": 0.0, "filter": whole.filter, "setpoint_weight": None}
        seen = recursion(pid.Loops(loops=(whole.model_copy(update=shares),)), {"y": 0.0}, {})
        top = np.convolve(
            -seen.gains["y"], np.polydiv(den, seen.past)[0] if len(den) > len(seen.past) else [1.0]
        )
        return np.asarray(lfilter(np.convolve(self.process.b, top), bottom, np.ones(self.steps)))

    def assess(self, gains: Gains) -> Assessment:
        """Return what the loop does."""
        num, den, bottom = self.closed(gains)
        if not stable(bottom):
            return Assessment(False)
        loop = self.plant * Process(den, num).response(self.z)
        size = np.abs(loop)
        over = np.flatnonzero((size[:-1] >= 1) & (size[1:] < 1))
        parts = np.log(size[over]) / np.log(size[over] / size[over + 1])
        ends = loop[over] * (loop[over + 1] / loop[over]) ** parts  # where the loop has a gain of 1
        angles = np.angle(self.z)
        cross = float(np.interp(over[-1] + parts[-1], np.arange(len(angles)), angles)) if over.size else 0.0
        margins = [abs(math.degrees(abs(one) - math.pi)) for one in np.angle(ends)]
        turns = np.flatnonzero((loop.imag[:-1] * loop.imag[1:] < 0) & (loop.real[:-1] < 0))
        shares = loop.imag[turns] / (loop.imag[turns] - loop.imag[turns + 1])
        reals = np.abs(loop.real[turns] + shares * (loop.real[turns + 1] - loop.real[turns]))
        rises = [1 / one for one in reals if one < 1]
        course = self.step(gains)
        outside = np.flatnonzero(np.abs(1 - course) > 0.05)
        settled = outside[-1] + 1 if outside.size else 0
        return Assessment(
            stable=True,
            ms=float(np.max(1 / np.abs(1 + loop))),
            gain_margin=float(min(rises, default=math.inf)),
            phase_margin=float(min(margins, default=math.inf)),
            load=self.load(gains),
            noise=self.noise(gains),
            overshoot=float(max(course.max() - 1, 0.0)),
            settling=settled * self.dt if settled < self.steps else math.inf,
            crossover=cross / self.dt,
        )


def stable(bottom: Floats) -> bool:
    """Tell whether all roots of a polynomial in z⁻¹ are inside the unit circle."""
    if not np.isfinite(bottom).all():
        return False
    used = np.trim_zeros(bottom, "b")
    return bool(np.abs(np.roots(used)).max(initial=0.0) < 1 - 1e-9)


# Rules. They see the plant as K exp(−L s)/(T s + 1), or as k exp(−L s)/s where it integrates.


@dataclass(frozen=True)
class Shape:
    """A plant as rules see it.

    Attributes:
        gain: The static gain K; of a plant that integrates, its slope in a second.
        lag: T, seconds; infinite for a plant that integrates.
        delay: L, seconds, half a step of holding included.
    """

    gain: float
    lag: float
    delay: float

    @property
    def integrates(self) -> bool:
        """True for a plant that integrates."""
        return math.isinf(self.lag)

    @property
    def slope(self) -> float:
        """K/T, or the slope of a plant that integrates."""
        return self.gain if self.integrates else self.gain / self.lag


def find_shape(process: Process, dt: float) -> Shape | None:
    """Return the shape of a plant by its step response, from the times of 28 % and 63 % of its way.

    Returns:
        The shape, or None if the plant runs away, does not answer at all, or has a longer way back than out.
    """
    from scipy.signal import lfilter

    roots = np.roots(np.trim_zeros(process.a, "b"))
    largest = float(np.abs(roots).max(initial=0.0))
    if largest > 1 + 2e-3:
        return None
    steps = int(np.clip(12 / max(1 - largest, 1e-6), 200, LONGEST))
    course = lfilter(process.b, process.a, np.ones(steps))
    end = float(process.b.sum() / process.a.sum()) if abs(process.a.sum()) > 1e-12 else math.inf
    if largest > 1 - 20 / LONGEST or not math.isfinite(end) or abs(course[-1] - end) > 0.05 * abs(end):
        tail = course[-max(50, steps // 4) :]
        slope = float(np.polyfit(np.arange(len(tail)), tail, 1)[0])
        if not slope:
            return None
        late = float((steps - 1) - course[-1] / slope)
        return Shape(slope / dt, math.inf, max(late, 1.0) * dt)
    if not end:
        return None
    times = []
    for share in (0.283, 0.632):
        over = np.flatnonzero(course / end >= share)
        if not over.size:
            return None
        k = int(over[0])
        before = float(course[k - 1] / end) if k else 0.0
        times.append(k - 1 + (share - before) / (float(course[k] / end) - before) if k else 0.0)
    lag = 1.5 * (times[1] - times[0]) * dt
    return Shape(end, max(lag, 1e-3 * dt), max(times[1] * dt - lag, 0.5 * dt))


def rules(shape: Shape, bench: Bench, time_constant: float | None) -> Iterator[tuple[str, Gains]]:
    """Yield the gains of each rule that suits the plant."""
    k, t, late = shape.gain, shape.lag, shape.delay
    closed = late if time_constant is None else time_constant
    if shape.integrates:
        yield "SIMC PI", Gains(1 / (k * (closed + late)), 4 * (closed + late))
        yield "AMIGO PI", Gains(0.35 / (k * late), 13.4 * late)
        yield "AMIGO PID", Gains(0.45 / (k * late), 8 * late, 0.5 * late, 0.5 * late / FILTER, 0.0)
    else:
        yield "SIMC PI", Gains(t / (k * (closed + late)), min(t, 4 * (closed + late)))
        slow = max(t, 3 * late) if time_constant is None else time_constant
        yield "lambda PI", Gains(t / (k * (slow + late)), t)
        relation = late * t / (late + t) ** 2
        ti = 0.35 * late + 13 * late * t**2 / (t**2 + 12 * late * t + 7 * late**2)
        yield "AMIGO PI", Gains((0.15 + (0.35 - relation) * t / late) / k, ti)
        ti = late * (0.4 * late + 0.8 * t) / (late + 0.1 * t)
        td = 0.5 * late * t / (0.3 * late + t)
        b = 0.0 if late < t else 1.0
        yield "AMIGO PID", Gains((0.2 + 0.45 * t / late) / k, ti, td, td / FILTER, b)
    ultimate = find_ultimate(bench)
    if ultimate is not None:
        gain, period = ultimate
        yield "Ziegler-Nichols PI", Gains(0.45 * gain, period / 1.2)
        yield "Ziegler-Nichols PID", Gains(0.6 * gain, period / 2, period / 8, period / 8 / FILTER)


def find_ultimate(bench: Bench) -> tuple[float, float] | None:
    """Return the gain at which the loop would oscillate for ever, and its period in seconds."""
    sign = np.sign(bench.process.b.sum() / (bench.process.a.sum() or 1e-300)) or 1.0
    loop = sign * bench.plant
    turns = np.flatnonzero((loop.imag[:-1] < 0) & (loop.imag[1:] >= 0) & (loop.real[:-1] < 0))
    if not turns.size:
        return None
    k = int(turns[0])
    part = loop.imag[k] / (loop.imag[k] - loop.imag[k + 1])
    size = abs(loop.real[k] + part * (loop.real[k + 1] - loop.real[k]))
    angle = np.angle(bench.z[k]) + part * (np.angle(bench.z[k + 1]) - np.angle(bench.z[k]))
    return float(sign / size), float(2 * math.pi / angle * bench.dt)
