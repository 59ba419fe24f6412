"""Only what networks predict is judged."""

import numpy as np

from clearloop.surrogate.quality import OpenLoop, RewardErrors, StateErrors, grade_model
from clearloop.task import Task

TASK = Task.from_toml("""
name = "slide"
dt = 1.0
discount = 0.9
horizon = 5
history = 2
[states]
place = { unit = "m" }
place_dot = { unit = "m/s", formula = "(place - place[t-1])/dt" }
[actions]
push = { limits = [-1, 1] }
[reward]
expression = "-abs(place)"
""")


def test_what_is_computed_is_as_good_as_what_it_is_computed_from() -> None:
    states = StateErrors(np.zeros(2), np.array([0.999, 0.0]), np.full(2, np.nan))
    errors = np.array([[0.01, 9.0]])
    open_loop = OpenLoop(errors, errors, np.array([20]), np.ones(2))
    reward = RewardErrors(np.zeros(0), np.zeros((0, 0), np.int64), 1.0, None, None)
    grade, reasons = grade_model(TASK, states, open_loop, reward)
    assert grade == "good"
    assert not any("place_dot" in reason for reason in reasons)
