"""Which states loops are for, and on which actions."""

from typing import Any

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.methods.linear_model import find_process_variables, identify, pair_loops
from clearloop.plants.exploration import make_batch
from clearloop.task import Task

from .linear_plants import make_log, make_task

CARTPOLE = Task.load("cartpole")
MOVING = np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.9]])  # x1 is the rate of x0
V = np.array([[0.005, 0.0], [0.1, 0.02], [0.0, 0.5]])


def find(reward: str, **more: Any) -> tuple[str, ...]:
    task = make_task(3, 2, reward={"expression": reward}, **more)
    return find_process_variables(task, make_log(task, MOVING, V))


def test_the_cartpoles() -> None:
    batch = make_batch(CARTPOLE, rng=np.random.default_rng(0), size=500)
    assert find_process_variables(CARTPOLE, batch) == ("theta", "rho")


def test_what_the_reward_reads_without_rates_of_it() -> None:
    assert find("-abs(x0) - abs(x1)") == ("x0",)
    assert find("-abs(x1)") == ("x1",)
    assert find("-abs(x2[t]) - abs(x1) - x0*u0") == ("x0", "x2")


def test_what_has_a_setpoint() -> None:
    assert find("-abs(x0)", states={"x0": {}, "x1": {}, "x2": {"setpoint": 1.0}}) == ("x0", "x2")


def test_all_where_nothing_is_known() -> None:
    task = make_task(3, 2, reward={"column": "reward"})
    log = make_log(task, MOVING, V)
    rewards = np.zeros(len(log.states))
    batch = Batch(task.columns, log.states, log.actions, log.episodes, log.terminal, rewards)
    assert find_process_variables(task, batch) == ("x0", "x2")


def test_states_go_with_the_actions_that_move_them() -> None:
    task = make_task(3, 2)
    model = identify(task, make_log(task, MOVING, V))
    assert pair_loops(model, ("x0", "x2"), {}) == [("x0", "u0"), ("x2", "u1")]
    assert pair_loops(model, ("x2",), {}) == [("x2", "u0"), ("x2", "u1")]


def test_loops_can_be_given() -> None:
    task = make_task(3, 2)
    model = identify(task, make_log(task, MOVING, V))
    given = {"u1": ("x2", "x0", "x2"), "u0": ("x1",)}
    assert pair_loops(model, ("x0",), given) == [("x2", "u1"), ("x0", "u1"), ("x1", "u0")]
    with pytest.raises(ClearloopError, match="missing action 'u1'"):
        pair_loops(model, ("x0",), {"u0": ("x0",)})
    with pytest.raises(ClearloopError, match="'u2' is not an action"):
        pair_loops(model, ("x0",), {"u2": ("x0",)})
    with pytest.raises(ClearloopError, match="'y' is not a state"):
        pair_loops(model, ("x0",), {"u0": ("x0",), "u1": ("y",)})
