"""Pairs of a small plant and a log of it, with the task that an engineer would write beside the log.

A pair is a plant and a log of it, both drawn from the number of the pair. The plant is known only to the
judge: `Pair.task` has neither equations nor starts, as if it had been written beside a log from a real plant.
`Pair.glass` is the same task with everything in view, so that the plant can be started again from any row of
the log.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clearloop.controllers import Controller, Equation
from clearloop.data import Batch
from clearloop.plants.exploration import make_batch
from clearloop.task import Task
from reproductions.sketches import FAMILIES, Loop, Rng, Sketch

SEED = 19  # of the pairs: pair n is drawn with [SEED, n]
ROWS = (1600, 2400, 3200)  # transitions of a log; few different sizes, because each is compiled for once
STEADY = 0.3  # share of the logs whose setpoint never moves


@dataclass(frozen=True, eq=False)
class Pair:
    """A plant and a log of it."""

    number: int
    family: str
    logger: str
    glass: Task
    """the task with the plant, whose hidden states and disturbances are states"""
    task: Task
    """the task as an engineer writes it, who has nothing but the log"""
    seen: Batch
    """the log with all states of `glass`"""
    log: Batch
    """the log of `task`"""
    law: Controller | None
    """the controller that made the log, without the random signal that was added; None for random moves"""
    linear: Controller | None
    """the same where it is a PI or PID, which an engineer would have drawn margins of"""


def make_pair(number: int, family: str | None = None, rows: int | None = None) -> Pair:
    """Draw a pair.

    Args:
        number: The number of the pair, which decides everything.
        family: Another family than the number's, to draw a certain one.
        rows: Another number of transitions than the pair's own.
    """
    names = tuple(FAMILIES)
    chosen = family or names[number % len(names)]
    rng = np.random.default_rng([SEED, number])
    sketch = FAMILIES[chosen](rng)
    turn = number // len(names) + number % len(names)  # neighbours are logged in different ways
    logger = sketch.loggers[turn % len(sketch.loggers)]
    return _assemble(number, chosen, sketch, logger, rng, rows)


# From a sketch to a task and its log.


def _assemble(number: int, family: str, sketch: Sketch, logger: str, rng: Rng, rows: int | None) -> Pair:
    moving = rng.random() > STEADY
    loaded = bool(sketch.loads) and (not moving or rng.random() < 0.5)
    settle = max(10, round(sketch.settle / sketch.dt))  # steps
    law, plain, more = _law(sketch, logger, settle, rng)
    described = _described(sketch, logger, settle, rng, moving=moving, loaded=loaded)
    described["name"] = f"{family}-{number}"
    size, episodes = rows or int(rng.choice(ROWS)), int(rng.choice(sketch.episodes))
    exploration = {
        "size": size - size % episodes,
        "steps": size // episodes,
        "starts": {name: list(span) for name, span in sketch.starts.items()},
        "law": law,
    }
    outside = {
        "plant": _plant(sketch, loaded),
        "signals": _signals(sketch, settle, moving=moving, loaded=loaded) | more,
        "exploration": exploration,
    }
    glass, task = Task.from_dict({**described, **outside}).unveiled, Task.from_dict(described)
    seen = make_batch(glass, rng=rng)
    states = seen.states[:, : len(task.states)]
    log = replace(seen, columns=task.columns, states=states, rewards=None)
    controller = Equation(name="as logged", outputs=plain) if plain else None
    linear = controller if logger in ("pi", "pid") else None
    return Pair(number, family, logger, glass, task, seen, log, controller, linear)


def _described(
    sketch: Sketch, logger: str, settle: int, rng: Rng, *, moving: bool, loaded: bool
) -> dict[str, Any]:
    """Return what an engineer writes: states, actions and reward, with a horizon to settle in."""
    states: dict[str, Any] = {}
    for loop in sketch.loops:
        states[loop.state] = {"setpoint": f"{loop.state}_sp" if moving else sketch.rest[loop.state]}
    for name in (loop.state for loop in sketch.loops):
        if logger == "pid":
            states[f"{name}_rate"] = {"formula": f"0.5*{name}_rate[t-1] + 0.5*({name} - {name}[t-1])/dt"}
        if logger in ("pi", "pid") or loaded:  # or else nothing needs an integral
            most = 4 * sketch.reach[name] * sketch.settle
            text = f"clip({name}_sum[t-1] + dt*{name}.error, {-most!r}, {most!r})"
            states[f"{name}_sum"] = {"formula": text}
    actions = {}
    for name in (loop.action for loop in sketch.loops):
        middle, reach = sketch.rest[name], sketch.reach[name]
        actions[name] = {"limits": [middle - reach, middle + reach]}
    weight = float(rng.choice([0.5, 1.0, 2.0]))
    horizon = int(np.clip(settle, 40, 120))
    return {
        "dt": sketch.dt,
        "discount": round(1 - 2 / horizon, 3),
        "horizon": horizon,
        "history": sketch.memory,
        "states": states,
        "actions": actions,
        "reward": {
            "terms": [
                *({"track": one.state, "scale": sketch.reach[one.state]} for one in sketch.loops),
                *({"rate": one.action, "weight": weight} for one in sketch.loops),
            ]
        },
    }


def _plant(sketch: Sketch, loaded: bool) -> dict[str, Any]:
    """Return the [plant] table; a disturbance that is not there is the constant 0."""
    return {
        "substeps": sketch.substeps,
        "where": {**sketch.where, **({} if loaded else dict.fromkeys(sketch.loads, 0.0))},
        "derivative": dict(sketch.derivative),
        "next": dict(sketch.following),
        "observed": {
            name: f"{text} + {name}_noise" if sketch.noise.get(name) else text
            for name, text in sketch.observed.items()
        },
    }


def _signals(sketch: Sketch, settle: int, *, moving: bool, loaded: bool) -> dict[str, Any]:
    """Return the [signals] table: setpoints, disturbances and the noise of sensors."""
    signals: dict[str, Any] = {}
    for name in (loop.state for loop in sketch.loops):
        if moving:
            middle, reach = sketch.rest[name], sketch.reach[name]
            every = [max(5, settle // 2), 2 * settle]
            signals[f"{name}_sp"] = {"steps": [middle - reach, middle + reach], "every": every}
    for name, most in sketch.loads.items():
        if loaded:
            signals[name] = {"steps": [-most, most], "every": [settle, 3 * settle]}
    return signals | {f"{name}_noise": {"noise": size} for name, size in sketch.noise.items() if size}


_Law = dict[str, str]


def _law(sketch: Sketch, logger: str, settle: int, rng: Rng) -> tuple[_Law, _Law, dict[str, Any]]:
    """Return the law of the log, the controller in it (empty for random moves), and signals of the law."""
    tightness, dithered = float(rng.uniform(1.0, 3.0)), rng.random() < 0.6
    law: _Law = {}
    plain: _Law = {}
    signals: dict[str, Any] = {}
    for loop in sketch.loops:
        u, y = loop.action, loop.state
        middle, reach = sketch.rest[u], sketch.reach[u]
        low, high = middle - reach, middle + reach
        if logger == "random":
            far = sketch.wander * reach
            signals[f"{u}_moves"] = {"steps": [middle - far, middle + far], "every": [3, max(6, settle // 3)]}
            law[u] = f"{u}_moves"
        elif logger == "hand":
            signals[f"{u}_glance"] = {"steps": [0.0, 1.0], "every": [1, 1]}
            share = round(1 / max(4.0, settle * rng.uniform(0.1, 0.25)), 4)
            plain[u] = law[u] = f"if({u}_glance < {share!r}, {_hand(loop, middle, low, high, rng)}, {u}[t-1])"
        else:
            kp, ki, kd = (float(f"{one:.4g}") for one in loop.gains(sketch.dt, tightness, logger == "pid"))
            plain[u] = f"{middle!r} - {kp!r}*{y} - {ki!r}*{y}_sum"
            if kd:
                plain[u] += f" - {kd!r}*{y}_rate"
            law[u] = plain[u]
            if dithered:
                signals[f"{u}_dither"] = {"steps": [-0.08 * reach, 0.08 * reach], "every": [3, 12]}
                law[u] += f" + {u}_dither"
    return law, plain, signals


def _hand(loop: Loop, middle: float, low: float, high: float, rng: Rng) -> str:
    """Return the formula of an operator's move: towards the setpoint, and never by much."""
    u, y = loop.action, loop.state
    if loop.kind == "integrating":
        kp = loop.gains(0.0, 4.0, False)[0]
        return f"{middle!r} - {float(f'{kp:.3g}')!r}*{y}"
    gain, move = float(f"{rng.uniform(0.3, 0.6) / loop.gain:.3g}"), 0.3 * (high - low)
    return f"clip({u}[t-1] - clip({gain!r}*{y}, {-move!r}, {move!r}), {low!r}, {high!r})"
