"""Logs as process plants give them: closed loops, slow plants, dead times. All can be learned from."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from clearloop.arrays import Floats
from clearloop.task import Task

Rng = np.random.Generator


@dataclass(frozen=True)
class ProcessLog:
    """A log of a plant, with its task."""

    name: str
    task: Task
    make: Callable[[Rng], pl.DataFrame]

    def frame(self, seed: int = 0) -> pl.DataFrame:
        return self.make(np.random.default_rng(seed))


def task_of(states: str, actions: str, reward: str, *, history: int = 2, dt: float = 1.0) -> Task:
    return Task.from_toml(f"""
name = "process"
dt = {dt}
discount = 0.99
horizon = 100
history = {history}
[states]
{states}
[actions]
{actions}
[reward]
{reward}
""")


def moves(rng: Rng, rows: int, hold: tuple[int, int], span: tuple[float, float]) -> Floats:
    """Return a signal [rows] that moves to a random value after a random number of rows."""
    values = np.empty(rows)
    row = 0
    while row < rows:
        length = int(rng.integers(hold[0], hold[1] + 1))
        values[row : row + length] = rng.uniform(*span)
        row += length
    return values


@dataclass(kw_only=True)
class Loop:
    """A first-order plant with dead time, and the PID controller that holds it."""

    gain: float
    lag: float
    """The time constant, in rows."""
    dead: int = 0
    """The dead time, in rows."""
    kp: float = 0.0
    ki: float = 0.0
    kd: float = 0.0
    late: int = 0
    """Rows by which the logged action follows the measurement."""
    noise: float = 0.0
    drift: float = 0.0
    """Of the load on the plant, in a row."""
    limits: tuple[float, float] = (0.0, 100.0)
    ambient: float = 20.0

    def run(self, aims: Floats, rng: Rng) -> tuple[Floats, Floats]:
        """Return the measurements and the actions [rows]."""
        rows = len(aims)
        y, u = np.empty(rows), np.empty(rows)
        low, high = self.limits
        state, load, last = float(aims[0]), 0.0, 0.0
        total = (aims[0] - self.ambient) / self.gain
        for t in range(rows):
            y[t] = state + rng.normal(0, self.noise)
            seen = max(t - self.late, 0)
            error = aims[seen] - y[seen]
            wanted = self.kp * error + total + self.kd * (error - last)
            u[t] = min(max(wanted, low), high)
            total += self.ki * error * (low < wanted < high)
            last = error
            load = 0.99 * load + rng.normal(0, self.drift)
            acting = u[t - self.dead] if t >= self.dead else u[0]
            state += (self.gain * acting + self.ambient + load - state) / self.lag
        return y, u


def aimed(
    loop: Loop, *, rows: int, hold: tuple[int, int], span: tuple[float, float], digits: int = 3
) -> Callable[[Rng], pl.DataFrame]:
    def make(rng: Rng) -> pl.DataFrame:
        aims = moves(rng, rows, hold, span).round(1)
        y, u = loop.run(aims, rng)
        return pl.DataFrame({"y": y.round(digits), "u": u.round(digits), "aim": aims})

    return make


def aimed_task(history: int) -> Task:
    states, actions = 'y = { setpoint = "aim" }', "u = { limits = [0, 100] }"
    return task_of(states, actions, 'expression = "-abs(y.error)"', history=history)


AIMED = aimed_task(history=2)


def furnace(rng: Rng) -> pl.DataFrame:
    """A slow furnace with two burners that an operator moves now and then, and a draught that drifts."""
    rows = 1200
    u1 = moves(rng, rows, (60, 160), (20, 80)).round(0)
    u2 = moves(rng, rows, (60, 160), (20, 80)).round(0)
    y, state, draught = np.empty(rows), 820.0, 0.0
    for t in range(rows):
        y[t] = state + rng.normal(0, 0.6)
        draught = 0.995 * draught + rng.normal(0, 0.6)
        state += (600 + 2.5 * u1[max(t - 6, 0)] + 1.5 * u2[max(t - 6, 0)] + draught - state) / 150
    return pl.DataFrame({"y": y.round(1), "u1": u1, "u2": u2})


FURNACE = task_of(
    "y = { setpoint = 820.0 }",
    "u1 = { limits = [0, 100] }\nu2 = { limits = [0, 100] }",
    'expression = "-abs(y.error)"',
    history=8,
    dt=60.0,
)


def two_by_two(rng: Rng) -> pl.DataFrame:
    """Two temperatures that two heaters move, each under a PI controller of its own."""
    rows = 3000
    aims = np.stack([moves(rng, rows, (150, 300), (35, 55)), moves(rng, rows, (150, 300), (30, 45))], axis=1)
    y, u = np.empty((rows, 2)), np.empty((rows, 2))
    state, total = np.array([40.0, 35.0]), np.array([30.0, 20.0])
    for t in range(rows):
        y[t] = state + rng.normal(0, 0.1, 2)
        error = aims[t] - y[t]
        u[t] = np.clip(3.0 * error + total, 0, 100)
        total += 0.04 * error
        heat = u[max(t - 5, 0)] @ np.array([[0.6, 0.15], [0.12, 0.4]])
        state = state + (22 + heat - state) / np.array([110.0, 130.0])
    columns = {
        "y1": y[:, 0],
        "y2": y[:, 1],
        "u1": u[:, 0],
        "u2": u[:, 1],
        "aim1": aims[:, 0],
        "aim2": aims[:, 1],
    }
    return pl.DataFrame(columns).with_columns(pl.all().round(2))


TWO = task_of(
    'y1 = { setpoint = "aim1" }\ny2 = { setpoint = "aim2" }',
    "u1 = { limits = [0, 100] }\nu2 = { limits = [0, 100] }",
    'expression = "-abs(y1.error) - abs(y2.error)"',
    history=6,
)


def reference_as_state(rng: Rng) -> pl.DataFrame:
    return aimed(PI, rows=3000, hold=(60, 200), span=(40, 70))(rng)


PI = Loop(gain=0.8, lag=25, kp=2.0, ki=0.08, noise=0.05)
AS_STATE = task_of(
    "y = { setpoint = 50.0 }\naim = {}", "u = { limits = [0, 100] }", 'expression = "-abs(y - aim)"'
)
FEED = task_of(
    'y = { setpoint = "aim" }\nfeed = {}',
    "u = { limits = [0, 100] }",
    'expression = "-abs(y.error)"',
    history=2,
)


def feed_forward(rng: Rng) -> pl.DataFrame:
    """A measured disturbance that nothing moves, to which the action is fed forward a row later."""
    rows = 3000
    feed = np.empty(rows)
    feed[0] = 0.0
    for t in range(rows - 1):
        feed[t + 1] = 0.97 * feed[t] + rng.normal(0, 1.0)
    aims = moves(rng, rows, (100, 200), (40, 70)).round(1)
    y, u, state, total = np.empty(rows), np.empty(rows), 50.0, 40.0
    for t in range(rows):
        y[t] = state + rng.normal(0, 0.1)
        error = aims[t] - y[t]
        total += 0.04 * error
        u[t] = np.clip(1.5 * error + total - 0.9 * feed[max(t - 1, 0)], 0, 100)
        state += (0.8 * u[t] + 20 + 0.7 * feed[t] - state) / 20
    return pl.DataFrame({"y": y.round(2), "feed": feed.round(2), "u": u.round(2), "aim": aims})


def startup(rng: Rng) -> pl.DataFrame:
    """The first rows are those of a plant that is switched on: the filter of the sensor fills up."""
    frame = aimed(PI, rows=3000, hold=(60, 200), span=(40, 70))(rng)
    y, u = frame["y"].to_numpy().copy(), frame["u"].to_numpy().copy()
    y[:2], u[:2] = [0.0, 31.0], [-480.0, 700.0]
    return frame.with_columns(y=y, u=u)


FAIR = (
    ProcessLog("moving setpoints", AIMED, aimed(PI, rows=3000, hold=(60, 200), span=(40, 70))),
    ProcessLog(
        "a self-regulating plant under PID",
        aimed_task(history=3),
        aimed(
            Loop(gain=0.9, lag=40, dead=2, kp=3.0, ki=0.1, kd=6.0, noise=0.3),
            rows=4000, hold=(80, 240), span=(40, 70),
        ),
    ),
    ProcessLog(
        "an action that is logged a row late",
        AIMED,
        aimed(
            Loop(gain=0.9, lag=60, kp=0.8, ki=0.01, late=1, noise=0.4, drift=0.4),
            rows=3000, hold=(150, 400), span=(45, 55),
        ),
    ),
    ProcessLog("a slow furnace with few moves", FURNACE, furnace),
    ProcessLog("two inputs", TWO, two_by_two),
    ProcessLog(
        "dead time",
        aimed_task(history=12),
        aimed(
            Loop(gain=0.9, lag=40, dead=9, kp=1.2, ki=0.03, noise=0.1),
            rows=4000, hold=(100, 300), span=(40, 70),
        ),
    ),
    ProcessLog("a startup sample", AIMED, startup),
    ProcessLog("a setpoint as a state", AS_STATE, reference_as_state),
    ProcessLog("a measured disturbance", FEED, feed_forward),
)  # fmt: skip
