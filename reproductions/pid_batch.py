"""The test batch of Åström and Hägglund, sampled exactly, and a log of each process under a PI.

The processes are those of "Revisiting the Ziegler–Nichols step response method for PID control" (Journal of
Process Control 14, 2004), which their book repeats. All are sampled exactly behind a zero-order hold, also
where the dead time is no whole number of steps.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from clearloop.data import Batch
from clearloop.methods.pid_rules import Bench, Gains, Process, find_shape, rules
from clearloop.methods.transfer import sampled
from clearloop.task import Task

SEED = 22  # of the noise and of the times of the setpoint's steps
RISES = 50  # length of a log, in rise times
SAMPLES = 50  # rows of a rise time
RESPONSE = 100  # length of the responses by which gains are judged, in rise times
STEPS = 8  # of the setpoint in a log, all of size 1
NOISE = 0.01  # standard deviation of the measurement's noise
SENSITIVITY = {"sluggish": 1.2, "nervous": 2.5}  # Ms of the PI that makes the log


@dataclass(frozen=True)
class Plant:
    """A process Σ numerator sⁱ / Σ denominator sⁱ · exp(−delay s), highest power first."""

    name: str
    numerator: tuple[float, ...]
    denominator: tuple[float, ...]
    delay: float = 0.0

    @property
    def integrates(self) -> bool:
        """True if it integrates."""
        return self.denominator[-1] == 0

    @property
    def rise(self) -> float:
        """Seconds until 63 % of a step's way; for a process that integrates, of the way of its slope."""
        from scipy.signal import step

        bottom = self.denominator[:-1] if self.integrates else self.denominator
        slowest = 1 / np.abs(np.roots(bottom).real).min() if len(bottom) > 1 else 0.0
        if not slowest:
            return self.delay
        times, course = step((self.numerator, bottom), T=np.linspace(0, 15 * slowest, 30_001))
        end = self.numerator[-1] / bottom[-1]
        return self.delay + float(times[np.argmax(course / end >= 1 - math.exp(-1))])


def _times(*factors: tuple[float, ...]) -> tuple[float, ...]:
    product = np.ones(1)
    for one in factors:
        product = np.convolve(product, one)
    return tuple(product.tolist())


def _lags(*constants: float) -> tuple[float, ...]:
    return _times(*((t, 1.0) for t in constants))


def whole_batch() -> Iterator[Plant]:
    """Yield the 134 processes of the batch, family after family."""
    lags = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.3, 1.5, 2, 4, 6, 8, 10, 20, 50, 100, 200, 500, 1000)
    for t in lags:
        yield Plant(f"lag, T = {t:g}", (1.0,), _lags(t), 1.0)
    for t in (0.01, *lags[:-1]):
        yield Plant(f"two lags, T = {t:g}", (1.0,), _lags(t, t), 1.0)
    for t in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 2, 5, 10):
        yield Plant(f"three lags, T = {t:g}", (1.0,), _lags(1.0, t, t))
    for n in range(3, 9):
        yield Plant(f"equal lags, n = {n}", (1.0,), _lags(*[1.0] * n))
    for a in np.arange(1, 10) / 10:
        yield Plant(f"spread lags, a = {a:g}", (1.0,), _lags(1.0, a, a**2, a**3))
    for late in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0):
        yield Plant(f"integrating, L = {late:g}", (1.0,), _times((1.0, 0.0), _lag_or_none(1 - late)), late)
    for t in (1.0, 2.0, 5.0, 10.0):
        for late in (0.01, 0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0):
            yield Plant(
                f"nearly integrating, T = {t:g}, L = {late:g}",
                (t,),
                _times(_lags(t), _lag_or_none(1 - late)),
                late,
            )
    for a in np.arange(1, 12) / 10:
        yield Plant(f"inverse, a = {a:g}", (-a, 1.0), _lags(1.0, 1.0, 1.0))
    for t in np.arange(1, 11) / 10:
        yield Plant(f"oscillating, T = {t:g}", (1.0,), _times((1.0, 1.0), (t * t, 1.4 * t, 1.0)))


def _lag_or_none(t: float) -> tuple[float, ...]:
    return (t, 1.0) if t > 1e-9 else (1.0,)


@dataclass(frozen=True, eq=False)
class Case:
    """A process of the batch, sampled, with the PI that controls it while it is logged."""

    plant: Plant
    dt: float
    bench: Bench
    """the true process, to try gains on"""
    logger: str
    """sluggish or nervous"""
    law: Gains
    task: Task
    """what an engineer would write beside the log"""
    log: Batch


def make_case(number: int) -> Case:
    """Return a process of the batch with its log; the number decides everything."""
    plant = list(whole_batch())[number]
    dt = plant.rise / SAMPLES
    bench = Bench(sampled(plant.numerator, plant.denominator, plant.delay, dt), dt, RESPONSE * SAMPLES)
    logger = list(SENSITIVITY)[number % 2]
    law = logging_pi(bench, SENSITIVITY[logger])
    task = Task.from_dict({
        "name": "loop", "dt": dt, "discount": 0.99, "horizon": 100,
        "states": {"y": {"setpoint": "goal"}}, "actions": {"u": {"limits": [-1e4, 1e4]}},
        "reward": {"expression": "-abs(y.error)"}, "starts": {"y": [-1.0, 1.0]},
    })  # fmt: skip
    log = Batch.from_frame(record(bench.process, law, dt, np.random.default_rng([SEED, number])), task)
    return Case(plant, dt, bench, logger, law, task, log)


def logging_pi(bench: Bench, ms: float) -> Gains:
    """Return SIMC's PI with the time constant of the closed loop that brings Ms to a value."""
    shape = find_shape(bench.process, bench.dt)
    if shape is None:
        raise ValueError("the process has no shape for rules")

    def law(share: float) -> Gains:
        return dict(rules(shape, bench, share * shape.delay))["SIMC PI"]

    low, high = 1e-3, 1e3
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if bench.sensitivity(law(middle)) < ms else (middle, high)
    return law(high)


def record(process: Process, law: Gains, dt: float, rng: np.random.Generator) -> pl.DataFrame:
    """Log a process under a PI: rows of y, u and the setpoint."""
    rows = RISES * SAMPLES
    held = rng.uniform(0.6, 1.4, STEPS)
    at = np.searchsorted(np.cumsum(held) / held.sum() * rows, np.arange(rows), side="right")
    goal = at % 2.0
    noise = NOISE * rng.standard_normal(rows)
    a, b = process.a[1:], process.b[1:]
    y, u = np.zeros(rows + len(a)), np.zeros(rows + len(b))  # with zeros before the log
    seen, total = np.zeros(rows), 0.0
    for k in range(rows):
        now, past = k + len(a), k + len(b)
        y[now] = b @ u[past - len(b) : past][::-1] - a @ y[k:now][::-1]
        seen[k] = y[now] + noise[k]
        error = goal[k] - seen[k]
        total += law.kp * dt / law.ti * error
        u[past] = law.kp * error + total
    return pl.DataFrame({"y": seen, "u": u[len(b) :], "goal": goal})
