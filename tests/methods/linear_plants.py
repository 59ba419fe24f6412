"""Plants that are linear, logs of them, and surrogates that are exactly the same."""

from dataclasses import replace
from typing import Any

import numpy as np

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.methods import Problem
from clearloop.networks import Training
from clearloop.surrogate import BEST, Surrogate
from clearloop.surrogate.fitting import KnownReward
from clearloop.surrogate.steps import FailureEffect
from clearloop.task import Task
from clearloop.task.tables import draw_levels
from tests.surrogate.models import linear_network


def make_task(n_states: int, n_actions: int = 1, reach: float = 1.0, **more: Any) -> Task:
    """States x0, x1, …, of which the reward reads the first; actions u0, u1, … in ± reach."""
    tables = {
        "name": "linear",
        "dt": 0.1,
        "discount": 0.9,
        "horizon": 50,
        "states": {f"x{i}": {} for i in range(n_states)},
        "actions": {f"u{a}": {"limits": [-reach, reach]} for a in range(n_actions)},
        "reward": {"expression": "-abs(x0)"},
        "starts": {f"x{i}": [-1.0, 1.0] for i in range(n_states)},
    }
    return Task.from_dict(tables | more)


def make_log(
    task: Task, u: Floats, v: Floats, *, constant: float = 0.0, noise: float = 0.0, size: int = 400
) -> Batch:
    """Episodes of ten steps from anywhere in ± 1, under random actions."""
    rng = np.random.default_rng(3)
    episodes, (s, a) = size // 10, v.shape
    states = np.empty((episodes, 11, s))
    states[:, 0] = rng.uniform(-1, 1, (episodes, s))
    actions = draw_levels(task.action_limits, task.action_counts, (episodes, 11), rng)
    for row in range(10):
        states[:, row + 1] = states[:, row] @ u.T + actions[:, row] @ v.T + constant
        states[:, row + 1] += rng.normal(0, noise, (episodes, s))
    return Batch(
        task.columns,
        states.reshape(-1, s),
        actions.reshape(-1, a),
        np.repeat(np.arange(episodes), 11),
        np.zeros(episodes * 11, np.bool_),
    )


def make_model(task: Task, u: Floats, v: Floats, reach: float = 100.0) -> Surrogate:
    """Every member is the plant; known within ± reach."""
    changes = np.hstack([u - np.eye(len(u)), v])
    member = tuple(linear_network(gains) for gains in changes)
    return Surrogate(
        task=task,
        track=replace(BEST, search=2, judge=1, training=Training(hidden=(2 * changes.shape[1],))),
        dynamics=(member,) * 3,
        reward=KnownReward(task),
        failure=FailureEffect.of_all_states(len(u), altered=False),
        region=np.tile([-reach, reach], (changes.shape[1], 1)),
        batch="",
        split_seed=0,
    )


def make_problem(
    task: Task, batch: Batch, model: Surrogate, starts: int = 64, robust: bool = True
) -> Problem:
    rng = np.random.default_rng(0)
    return Problem(task, batch, model, budget=10**9, rng=rng, starts=starts, robust=robust)
