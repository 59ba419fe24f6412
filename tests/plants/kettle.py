"""A plant that hides most of itself, and its twin in plain Python.

A hidden state that is integrated and one with a difference equation, a delayed action, a noisy sensor, a
state from outside, a setpoint that moves, and states that are derived from all that.
"""

from collections.abc import Callable, Mapping

import numpy as np

from clearloop.arrays import Floats
from clearloop.plants.scenarios import Scenarios
from clearloop.task import Task

KETTLE = Task.from_toml("""
name = "kettle"
dt = 0.5
discount = 0.9
horizon = 14
history = 2
[states]
warmth  = { unit = "K", setpoint = "wanted" }
room    = { unit = "K", external = true }
trend   = { formula = "0.5*trend[t-1] + (warmth - warmth[t-1])/dt" }
owed    = { formula = "owed[t-1] + dt*warmth.error + 0.01*burner[t-2]" }
[actions]
burner = { limits = [0, 2] }
[reward]
expression = "-abs(warmth.error) - 0.1*abs(burner - burner[t-1]) + 0.01*trend*room"
[starts]
body = [0, 3]
scale = [1, 1]
[signals]
wanted = { steps = [0, 3], every = [3, 6] }
room = { steps = [-1, 1], every = [2, 5] }
flicker = { noise = 0.1 }
[exploration]
size = 100
steps = 14
law = { burner = "1 - 0.4*warmth - 0.05*owed + 0.1*room + flicker" }
[plant]
substeps = 1
where = { heat = "burner[t-1] + 0.5*burner" }
derivative = { body = "heat - 0.2*room" }
next = { scale = "scale + 0.125*body" }
observed = { warmth = "body + 0.5*scale + flicker" }
""")

Chooser = Callable[[Mapping[str, float], float], float]


def course(scenarios: Scenarios, n: int, choose: Chooser) -> tuple[Floats, Floats, Floats]:
    """States [T + 1, 4] of the task, actions [T] and rewards [T] of one scenario.

    `choose`: from what is seen, with what is aimed at. All slopes are constant during a step, so that
    Runge-Kutta is exact.
    """
    names = KETTLE.unveiled.state_names
    body, scale = (float(scenarios.starts[n, names.index(name)]) for name in ("body", "scale"))
    room, flicker = scenarios.script[n].T
    aims = scenarios.setpoints[n, :, 0]
    states, actions, rewards = [], [0.0, 0.0], []
    trend = owed = 0.0
    warmth: float | None = None
    for t in range(len(aims) + 1):
        aim = aims[min(t, len(aims) - 1)]
        before, warmth = warmth, body + 0.5 * scale + flicker[t]
        trend = 0.5 * trend + (warmth - (warmth if before is None else before)) / 0.5
        owed = owed + 0.5 * (warmth - aim) + 0.01 * actions[-2]
        states.append([warmth, room[t], trend, owed])
        if t:
            effort = 0.1 * abs(actions[-1] - actions[-2])
            rewards.append(-abs(warmth - aims[t - 1]) - effort + 0.01 * trend * room[t])
        if t == len(aims):
            break
        seen = {"warmth": warmth - aim, "room": room[t], "trend": trend, "owed": owed, "flicker": flicker[t]}
        actions.append(min(max(choose(seen, aim), 0.0), 2.0))
        body, scale = body + 0.5 * (actions[-2] + 0.5 * actions[-1] - 0.2 * room[t]), scale + 0.125 * body
    return np.array(states), np.array(actions[2:]), np.array(rewards)
