"""Plants of which everything is known without a computer."""

import numpy as np

from clearloop.controllers import Controller, Linear
from clearloop.data import Batch
from clearloop.task import Task

FIRST_ORDER = Task.from_toml("""
name = "first order"
dt = 0.1
discount = 0.9
horizon = 40
[states]
y = { unit = "K", setpoint = 2.0 }
[actions]
u = { limits = [-1e5, 1e5] }
[reward]
cases = [{ when = "abs(y) > 100", value = -1.0, failure = true }]
otherwise = 0.0
[starts]
y = [-10.0, 10.0]
[plant]
substeps = 20
derivative = { y = "u" }
""")
"""An integrator: with u = -k e, the loop is first order, y' = (1 - k dt) y exactly."""

SPRING = Task.from_toml("""
name = "spring"
dt = 0.05
discount = 0.9
horizon = 40
[states]
place = { unit = "m", setpoint = 0.0 }
speed = { unit = "m/s" }
[actions]
push = { limits = [-100.0, 100.0] }
[reward]
expression = "-abs(place.error)"
[starts]
place = [-1.0, 1.0]
speed = [-2.0, 2.0]
[plant]
substeps = 20
derivative = { place = "speed", speed = "push - 4*place - 0.4*speed" }
""")
"""A pendulum for small angles: ω = 2 rad/s, damping 0.1."""


def integrating(gain: float) -> Controller:
    return Linear(gains={"u": {"y": -gain}})


def log(task: Task, reach: float = 3.0, rows: int = 400) -> Batch:
    """States anywhere within reach, in episodes of ten rows; what follows what is of no matter."""
    rng = np.random.default_rng(0)
    shape = rows, len(task.states)
    actions = np.zeros((rows, len(task.actions)))
    flags = np.zeros(rows, np.bool_)
    return Batch(task.columns, rng.uniform(-reach, reach, shape), actions, np.arange(rows) // 10, flags)
