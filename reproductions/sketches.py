"""Sketches of small plants of 13 families: equations, loops, limits, noise and disturbances."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Rng = np.random.Generator

LOGGERS = ("pi", "pid", "hand", "random")
"""ways in which the actions of a log were chosen: two controllers, an operator, held random moves"""


@dataclass(frozen=True)
class Loop:
    """What an engineer knows of one loop before tuning it."""

    state: str
    action: str
    gain: float
    """change of the state for each unit of the action at rest; of an integrator: in each second"""
    lag: float
    """dominant time constant in seconds; of an unstable plant: that of its growth"""
    dead: float = 0.0
    """dead time and small lags, in seconds"""
    second: float = 0.0
    """second time constant in seconds"""
    kind: str = "settling"
    """settling, integrating or unstable"""

    def gains(self, dt: float, tightness: float, derivative: bool) -> tuple[float, float, float]:
        """Return kp, ki (per second) and kd (seconds) of Skogestad's rules, slower by `tightness`.

        Args:
            dt: Seconds between two actions.
            tightness: Factor on the closed loop's time constant; 1 is fast.
            derivative: Whether the controller has a derivative part.
        """
        late = self.dead + dt + (0.2 if derivative else 0.6) * self.second
        if self.kind == "unstable":
            times = float(np.clip(np.sqrt(self.lag / late), 1.6, 4.0)) / tightness**0.3
            kp = max(times, 1.5) / self.gain
            return kp, kp / (6 * self.lag), kp * 0.3 * late if derivative else 0.0
        closed = tightness * max(late, 0.25 * self.lag)
        if self.kind == "integrating":
            kp, reset = 1 / (self.gain * (closed + late)), 4 * (closed + late)
        else:
            kp = self.lag / (self.gain * (closed + late))
            reset = min(self.lag, 4 * (closed + late))
        return kp, kp / reset, kp * 0.5 * (self.second + 0.5 * self.dead) if derivative else 0.0


@dataclass(frozen=True)
class Sketch:
    """A plant, in the words of [plant] of a task, and what its loops are like."""

    dt: float
    settle: float
    """seconds in which it settles, in closed loop if it does not by itself"""
    loops: tuple[Loop, ...]
    rest: Mapping[str, float]
    """the usual value of each measured state, and of each action that holds it there"""
    reach: Mapping[str, float]
    """how far the setpoint of each state, and each action, may move from there"""
    derivative: Mapping[str, str]
    observed: Mapping[str, str]
    starts: Mapping[str, tuple[float, float]]
    """intervals of the hidden states"""
    where: Mapping[str, float | str] = field(default_factory=dict)
    following: Mapping[str, str] = field(default_factory=dict)
    """difference equations"""
    loads: Mapping[str, float] = field(default_factory=dict)
    """disturbances that the formulas read, with their largest values"""
    noise: Mapping[str, float] = field(default_factory=dict)
    """standard deviation of each sensor"""
    memory: int = 2
    """rows of history that the plant needs"""
    substeps: int = 4
    loggers: tuple[str, ...] = LOGGERS
    """the ways in which it can be logged"""
    wander: float = 1.0
    """share of an action's reach that random moves use"""
    episodes: tuple[int, ...] = (1, 1, 3, 6)
    """numbers of episodes to choose from"""


# The families. Each draws a sketch.

_NOISES = (0.0, 0.002, 0.01)  # of sensors, as shares of the setpoint's reach


def _frame(rng: Rng, lag: float) -> dict[str, float]:
    """Draw what most plants share: a gain, a usual value, an action that holds it, and how far both go."""
    gain, rest = float(rng.uniform(0.3, 3.0)), float(rng.uniform(20, 80))
    return {"K": gain, "y0": rest, "u0": float(rng.uniform(40, 60)), "T": lag, "r": 40.0}


def _single(
    rng: Rng,
    frame: Mapping[str, float],
    derivative: Mapping[str, str],
    *,
    steps: int = 0,
    second: float = 0.0,
    small: float = 0.0,
    sensor: float | None = None,
    memory: int = 2,
    **more: Any,
) -> Sketch:
    """Return a sketch of a plant with one action u (in percent) and one measured state y.

    Args:
        rng: The source of random numbers.
        frame: What `_frame` drew.
        derivative: The derivatives of the hidden states.
        steps: Dead time in steps.
        second: A second time constant in seconds.
        small: Other lags in seconds, which count as dead time.
        sensor: Its noise as a share of the reach; by default one of a few small ones.
        memory: Rows of history besides those of the dead time.
        more: Other fields of the sketch.
    """
    dt = more.pop("dt")
    gain, rest, u0 = frame["K"], frame["y0"], frame["u0"]
    reach = 0.5 * gain * frame["r"]
    size = float(rng.choice(_NOISES)) if sensor is None else sensor
    kind = more.pop("kind", "settling")
    loop = Loop("y", "u", gain, frame["T"], steps * dt + small, second, kind)
    begin = dict.fromkeys(derivative, (0.0, 0.0)) | {"x": (rest - reach, rest + reach)}
    settled = 4 * (frame["T"] + second + small + steps * dt)
    fields: dict[str, Any] = {
        "dt": dt,
        "settle": settled,
        "loops": (loop,),
        "rest": {"y": rest, "u": u0},
        "reach": {"y": reach, "u": frame["r"]},
        "derivative": derivative,
        "observed": {"y": "x"},
        "starts": begin,
        "where": {name: frame[name] for name in ("K", "y0", "u0", "T")},
        "loads": {"load": 0.3 * reach},
        "noise": {"y": size * reach},
        "memory": memory + steps,
    }
    return Sketch(**fields | more)


def _time(rng: Rng, low: float = 8, high: float = 20) -> tuple[float, float]:
    """Draw a time constant in seconds, and the seconds between two actions: a round share of it."""
    lag = float(10 ** rng.uniform(0.3, 2.3))
    return lag, float(f"{lag / rng.uniform(low, high):.2g}")


def first_order(rng: Rng) -> Sketch:
    """First order with dead time."""
    lag, dt = _time(rng)
    steps = int(rng.integers(1, 5))
    late = f"u[t-{steps}]"
    return _single(rng, _frame(rng, lag), {"x": f"(K*({late} - u0) + y0 - x + load)/T"}, steps=steps, dt=dt)


def second_order(rng: Rng) -> Sketch:
    """Second order, overdamped, with dead time; only the last of the two lags is measured."""
    lag, dt = _time(rng)
    second, steps = float(lag * rng.uniform(0.2, 0.8)), int(rng.integers(0, 3))
    late = f"u[t-{steps}]" if steps else "u"
    return _single(
        rng,
        _frame(rng, lag),
        {"lagging": f"(K*({late} - u0) - lagging)/{second!r}", "x": "(lagging + y0 - x + load)/T"},
        steps=steps,
        second=second,
        memory=3,
        dt=dt,
    )


def integrating(rng: Rng) -> Sketch:
    """A level with a pumped outflow: it holds only if both flows are equal."""
    lag, dt = _time(rng)
    steps = int(rng.integers(0, 3))
    late = f"u[t-{steps}]" if steps else "u"
    frame = _frame(rng, lag)
    slope = frame["K"] / lag
    return _single(
        rng,
        frame | {"K": slope},
        {"x": f"K*({late} - u0) + load"},
        steps=steps,
        dt=dt,
        kind="integrating",
        rest={"y": frame["y0"], "u": frame["u0"]},
        reach={"y": 10 * slope * lag, "u": 40.0},
        starts={"x": (frame["y0"] - 5 * slope * lag, frame["y0"] + 5 * slope * lag)},
        settle=4 * lag,
        loads={"load": 5 * slope},
        noise={"y": float(rng.choice(_NOISES)) * 10 * slope * lag},
        wander=0.15,
        episodes=(6, 12),
    )


def unstable(rng: Rng) -> Sketch:
    """A plant of first order that runs away by itself, logged under a controller."""
    lag, dt = _time(rng, 10, 20)
    frame = _frame(rng, lag)
    small = 0.15 * frame["K"] * frame["r"]
    return _single(
        rng,
        frame,
        {"x": "(K*(u - u0) + x - y0 + load)/T"},
        dt=dt,
        kind="unstable",
        reach={"y": small, "u": frame["r"]},
        starts={"x": (frame["y0"] - small, frame["y0"] + small)},
        loads={"load": 0.5 * small},
        noise={"y": float(rng.choice(_NOISES)) * small},
        loggers=("pi", "pid"),
        episodes=(3, 6, 12),
    )


def oscillating(rng: Rng) -> Sketch:
    """Second order, underdamped: a spring that is pushed."""
    lag, dt = _time(rng, 5, 10)
    damping = float(rng.uniform(0.1, 0.4))
    frame = _frame(rng, lag)
    sketch = _single(
        rng,
        frame,
        {"x": "speed", "speed": f"(K*(u - u0) + y0 - x + load - {2 * damping * lag!r}*speed)/T**2"},
        memory=3,
        dt=dt,
    )
    # A controller that does not fight the resonance is an integrator, nearly.
    loop = replace(sketch.loops[0], lag=2 * damping * lag, dead=lag / damping / 2)
    return replace(sketch, loops=(loop,), settle=4 * lag / damping * 0.6 + 4 * lag)


def inverse_response(rng: Rng) -> Sketch:
    """Non-minimum phase: it first goes the wrong way."""
    lag, dt = _time(rng)
    second, wrong = float(lag * rng.uniform(0.3, 0.7)), float(lag * rng.uniform(0.2, 0.6))
    # K (1 - wrong s) / ((T s + 1) (second s + 1)): `lagging` follows the action, x that minus its slope.
    slope = f"(K*(u - u0) - lagging)/{second!r}"
    derivative = {"lagging": slope, "x": f"(lagging - {wrong!r}*{slope} + y0 - x + load)/T"}
    return _single(rng, _frame(rng, lag), derivative, second=second, small=wrong, memory=3, dt=dt)


def two_by_two(rng: Rng) -> Sketch:
    """Two loops that disturb each other."""
    lag, dt = _time(rng)
    other = float(lag * rng.uniform(0.5, 1.0))
    gains = [float(rng.uniform(0.5, 2.0)) for _ in range(2)]
    cross = [float(rng.uniform(-0.5, 0.5)) * gain for gain in gains]
    rest = {"y": float(rng.uniform(20, 80)), "z": float(rng.uniform(20, 80)), "u": 0.0, "v": 0.0}
    reach = {"y": 15 * gains[0], "z": 15 * gains[1], "u": 50.0, "v": 50.0}
    sizes = [float(rng.choice(_NOISES)) for _ in range(2)]
    return Sketch(
        dt=dt,
        settle=5 * lag,
        loops=(Loop("y", "u", gains[0], lag), Loop("z", "v", gains[1], other)),
        rest=rest,
        reach=reach,
        derivative={
            "a": f"({gains[0]!r}*u + {cross[0]!r}*v + {rest['y']!r} - a + load)/{lag!r}",
            "b": f"({gains[1]!r}*v + {cross[1]!r}*u + {rest['z']!r} - b)/{other!r}",
        },
        observed={"y": "a", "z": "b"},
        starts={
            "a": (rest["y"] - reach["y"], rest["y"] + reach["y"]),
            "b": (rest["z"] - reach["z"], rest["z"] + reach["z"]),
        },
        loads={"load": 0.3 * reach["y"]},
        noise={"y": sizes[0] * reach["y"], "z": sizes[1] * reach["z"]},
    )


def tanks(rng: Rng) -> Sketch:
    """Two tanks in a row, of which the lower one is measured: nonlinear, with a hidden state."""
    area, hole = float(rng.uniform(20, 40)), float(rng.uniform(0.05, 0.1))
    level, u0 = float(rng.uniform(12, 20)), float(rng.uniform(45, 55))
    flow = hole * np.sqrt(2 * 981 * level)
    lag = float(2 * area * level / flow)
    dt = float(f"{lag / rng.uniform(8, 14):.2g}")
    gain, steps = 2 * level / u0, int(rng.integers(0, 3))
    late = f"u[t-{steps}]" if steps else "u"
    middle = f"{hole!r}*sqrt(1962*max(upper, 0))"
    return Sketch(
        dt=dt,
        settle=8 * lag,
        loops=(Loop("y", "u", float(gain), lag, steps * dt, lag),),
        rest={"y": level, "u": u0},
        reach={"y": 0.35 * level, "u": 45.0},
        derivative={
            "upper": f"({float(flow / u0)!r}*{late} - {middle})/{area!r}",
            "x": f"({middle} - {hole!r}*sqrt(1962*max(x, 0)) - if(x > 0, load, 0))/{area!r}",
        },
        observed={"y": "x"},
        starts={"upper": (0.5 * level, 1.5 * level), "x": (0.5 * level, 1.5 * level)},
        loads={"load": float(0.1 * flow)},
        noise={"y": float(rng.choice(_NOISES)) * 0.35 * level},
        memory=3 + steps,
        wander=0.5,
    )


def reactor(rng: Rng) -> Sketch:
    """A stirred tank with an exothermic reaction, cooled by its jacket; the concentration is hidden."""
    heat, cooling = float(rng.uniform(80, 130)), float(rng.uniform(1.8, 2.6))

    def jacket(temperature: float) -> float:
        """Return the jacket's temperature at rest."""
        rate = 7.2e10 * np.exp(-8750 / temperature)
        made = heat * rate / (1 + rate)
        return float(temperature - (350 - temperature + made) / cooling)

    middle = float(rng.uniform(335, 345))
    slope = (jacket(middle + 1) - jacket(middle - 1)) / 2
    held, gain = jacket(middle), 1 / slope
    rate = 7.2e10 * float(np.exp(-8750 / middle))
    lag = gain / cooling
    dt = float(f"{lag / rng.uniform(8, 14):.2g}")
    speed = "7.2e10*exp(-8750/max(x, 200))"
    return Sketch(
        dt=dt,
        settle=6 * lag,
        loops=(Loop("y", "u", gain, lag, 0.0, 0.3 * lag),),
        rest={"y": middle, "u": held},
        reach={"y": 4.0, "u": 15.0},
        derivative={
            "c": f"1 - c - {speed}*c",
            "x": f"350 + load - x + {heat!r}*{speed}*c + {cooling!r}*(u - x)",
        },
        observed={"y": "x"},
        starts={"c": (0.8 / (1 + rate), 1.2 / (1 + rate)), "x": (middle - 4, middle + 4)},
        loads={"load": 4.0},
        noise={"y": float(rng.choice(_NOISES)) * 4.0},
        memory=3,
        wander=min(1.0, 6.0 / (15.0 * gain)),
    )


def friction(rng: Rng) -> Sketch:
    """A servo: a mass that is pushed against dry friction."""
    lag, dt = _time(rng, 5, 10)
    speed = float(rng.uniform(0.5, 2.0))  # for each volt
    stuck = float(rng.uniform(0.2, 0.8))  # volts
    reach = 6 * speed * lag
    return Sketch(
        dt=dt,
        settle=12 * lag,
        loops=(Loop("y", "u", speed, lag, 0.0, lag, "integrating"),),
        rest={"y": 0.0, "u": 0.0},
        reach={"y": reach, "u": 12.0},
        derivative={
            "x": "v",
            "v": f"({speed!r}*(u - load - {stuck!r}*tanh(v/{0.05 * speed!r})) - v)/{lag!r}",
        },
        observed={"y": "x"},
        starts={"x": (-reach, reach), "v": (0.0, 0.0)},
        loads={"load": 0.5},
        noise={"y": float(rng.choice(_NOISES)) * reach},
        memory=3,
        substeps=20,
        wander=0.3,
        episodes=(6, 12),
    )


def backlash(rng: Rng) -> Sketch:
    """First order behind a valve with play."""
    lag, dt = _time(rng)
    gap = float(rng.uniform(0.5, 2.5))  # percent, to either side
    valve = f"if(u - {gap!r} > valve, u - {gap!r}, if(u + {gap!r} < valve, u + {gap!r}, valve))"
    sketch = _single(
        rng, _frame(rng, lag), {"x": "(K*(valve - u0) + y0 - x + load)/T"}, steps=1, memory=2, dt=dt
    )
    u0 = sketch.rest["u"]
    return replace(
        sketch, following={"valve": valve}, starts={**sketch.starts, "valve": (u0 - 5, u0 + 5)}, memory=4
    )


def hidden(rng: Rng) -> Sketch:
    """Three lags in a row, of which only the last is measured, and a disturbance in the middle."""
    lag, dt = _time(rng)
    second, third = (float(lag * rng.uniform(0.2, 0.5)) for _ in range(2))
    return _single(
        rng,
        _frame(rng, lag),
        {
            "one": f"(K*(u - u0) - one)/{third!r}",
            "two": f"(one + load - two)/{second!r}",
            "x": "(two + y0 - x)/T",
        },
        second=second,
        small=third,
        memory=4,
        dt=dt,
    )


def noisy(rng: Rng) -> Sketch:
    """First order with a bad sensor."""
    lag, dt = _time(rng)
    return _single(
        rng,
        _frame(rng, lag),
        {"x": "(K*(u - u0) + y0 - x + load)/T"},
        sensor=float(rng.uniform(0.03, 0.1)),
        memory=4,
        dt=dt,
    )


FAMILIES: dict[str, Callable[[Rng], Sketch]] = {
    "first-order": first_order,
    "second-order": second_order,
    "integrating": integrating,
    "unstable": unstable,
    "oscillating": oscillating,
    "inverse": inverse_response,
    "two-by-two": two_by_two,
    "tanks": tanks,
    "reactor": reactor,
    "friction": friction,
    "backlash": backlash,
    "hidden": hidden,
    "noisy": noisy,
}
"""The families by name; pair n is of family n mod 13."""
