"""The hardware cart-pole in plain Python: what is true, and what its sensors show."""

import math
from collections.abc import Callable

import numpy as np

from clearloop.arrays import Floats
from clearloop.plants.scenarios import Scenarios
from clearloop.task import Task

RIG = Task.load("cartpole-hardware")
COUNT, GRAIN = 2 * math.pi / 400, 0.003
DROPOUTS, LATE = 0.02, 0.01

Chooser = Callable[[int, Floats, list[float]], float]
"""From the time, the true states so far [t + 1, 4], and the forces before: a force."""


def rounded(value: float, grain: float) -> float:
    return math.floor(value / grain + 0.5) * grain


def slopes(state: Floats, motor: float) -> Floats:
    angle, turn, _, speed = state.tolist()
    sine, cosine = math.sin(angle), math.cos(angle)
    push = motor - 5.4 * speed + 0.05 * turn**2 * sine
    swing = (1.1 * 9.81 * sine - push * cosine - 22 * 0.0024 * turn) / (4 / 3 * 0.55 - 0.05 * cosine**2)
    return np.array([turn, swing, speed, (push - 0.05 * swing * cosine) / 1.1])


def motor_force(asked: float) -> float:
    """A sixth of what the motor could do is lost."""
    return math.copysign(max(abs(asked) - 1.7, 0.0), asked)


def move(state: Floats, motor: float) -> Floats:
    """A control interval: Runge-Kutta, five times."""
    h = 0.025 / 5
    for _ in range(5):
        first = slopes(state, motor)
        second = slopes(state + h / 2 * first, motor)
        third = slopes(state + h / 2 * second, motor)
        fourth = slopes(state + h * third, motor)
        state = state + h / 6 * (first + 2 * second + 2 * third + fourth)
    return state


def course(scenarios: Scenarios, n: int, choose: Chooser) -> tuple[Floats, Floats, Floats]:
    """Of one scenario, until it fails: what is shown and what is true [T + 1, 4], and the forces [T]."""
    names = list(RIG.unveiled.state_names)
    signals = dict(zip(RIG.unveiled.scope.external, scenarios.script[n].T, strict=True))
    hidden = [names.index(name) for name in ("angle", "turn", "place", "speed")]
    truth, shown, forces = [scenarios.starts[n, hidden]], list[list[float]](), list[float]()
    reading = 0.0
    for t in range(scenarios.steps + 1):
        angle, _, place, _ = truth[-1].tolist()
        luck, theta = signals["luck"][t], rounded(angle, COUNT)
        if luck >= DROPOUTS:
            late = signals["echo"][t] if luck > 1 - LATE else 0.0
            reading = rounded(place + signals["hiss"][t] + late, GRAIN)
        before = shown[-1] if shown else [theta, 0.0, reading, 0.0]
        shown.append([theta, theta - before[0], reading, reading - before[2]])
        if t == scenarios.steps or (t and (abs(theta) > 0.7 or abs(reading) > 1.2)):
            break
        forces.append(min(max(choose(t, np.array(truth), forces), -10.0), 10.0))
        truth.append(move(truth[-1], motor_force(forces[t - 2] if t >= 2 else 0.0)))
    return np.array(shown), np.array(truth), np.array(forces)
