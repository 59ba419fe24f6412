"""Mountain car and swing-up: what the searches are measured against."""

import numpy as np
import pytest
from reproductions.authors_line import ValueIteration, drive_with, stays_up

from clearloop.controllers import Equation
from clearloop.evaluation import evaluate
from clearloop.task import Task


def test_the_car_of_value_iteration_is_that_of_the_task() -> None:
    task = Task.load("mountaincar")
    law = Equation(outputs={"force": "20*rho_dot + 0.3*rho"})
    places = task.scoring_starts(50)[:, 0]
    ours = drive_with(lambda rho, rho_dot: 20 * rho_dot + 0.3 * rho, places, task.discount, task.horizon)
    assert evaluate(law, task, starts=50).penalty == pytest.approx(ours, rel=1e-9)


def test_value_iteration_beats_all_simple_laws() -> None:
    optimum, places = ValueIteration(0.9851, 200), np.linspace(-1.2, 0.44, 60)
    best = optimum.penalty(places)
    states = np.column_stack([places, np.zeros(60)])
    for gain, lean in [(1000, 0), (60, 0.3), (1000, 0.5), (-1000, 0)]:
        law = Equation(outputs={"force": f"{gain}*rho_dot + {lean}"})
        assert evaluate(law, Task.load("mountaincar"), starts=states).penalty > best
    assert best == pytest.approx(35.2, abs=0.5)


def test_a_pole_that_is_balanced_stays_up_and_one_that_hangs_does_not() -> None:
    task = Task.load("swingup")
    law = Equation(outputs={"force": "50*aside + 12*theta_dot + 1.5*rho + 3*rho_dot"})
    names = task.unveiled.state_names
    lean, hang = (np.array([{"theta": theta}.get(name, 0.0) for name in names]) for theta in (0.1, np.pi))
    assert stays_up(law, task, lean)
    assert not stays_up(law, task, hang)
