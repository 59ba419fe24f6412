"""The benchmarks of the paper's authors: what the searches are measured against."""

import numpy as np
import pytest
from reproductions.authors_line import (
    ValueIteration,
    best_fixed_point,
    drive_with,
    hold,
    industrial,
    logged_return,
    stays_up,
)

from clearloop.controllers import Equation
from clearloop.evaluation import evaluate
from clearloop.plants.cosimulation import INTERPRETER
from clearloop.task import Task
from tests.plants.industrial import benchmark_python


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


def test_the_industrial_benchmark_is_held_against_its_log_and_a_fixed_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(INTERPRETER, benchmark_python())
    task = Task.from_toml(industrial(50))
    assert (task.name, task.plant and task.plant.settings) == ("industrial-50", {"p": (50.0,)})
    point = best_fixed_point(task, rounds=1, starts=1)
    assert all(value in (25, 50, 75) for value in point.values)
    assert -evaluate(hold(point.values), task, starts=3).penalty == pytest.approx(point.mean, rel=0.1)
    assert point.mean > -evaluate(hold([25, 25, 25]), task, starts=3).penalty
    assert logged_return(task, episodes=3) < point.mean
