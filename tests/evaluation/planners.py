"""Planners with models that are exactly their plants."""

from dataclasses import replace
from typing import Any

import numpy as np

from clearloop.controllers import Planner
from clearloop.evaluation.planning import ModelPilot, pilot_of, with_model
from clearloop.networks import Training
from clearloop.surrogate import BEST, Surrogate
from clearloop.surrogate.fitting import KnownReward
from clearloop.surrogate.steps import FailureEffect
from clearloop.task import Task
from tests.plants.mixer import MIXER
from tests.surrogate.models import SLIDER, linear_network

CART = Task.from_dict({
    "name": "cart", "dt": 0.5, "discount": 0.9, "horizon": 12, "history": 2,
    "states": {"place": {"setpoint": 0.0}, "speed": {}},
    "actions": {"push": {"limits": [-1.0, 2.0]}},
    "reward": {"expression": "-abs(place.error)"},
    "starts": {"place": [-2.0, 2.0], "speed": [-1.0, 1.0]},
})  # fmt: skip
"""What is pushed acts one step later."""

# A row for each state: its change by states and actions of each lag. Numbers are exact in binary.
PUSHED_LATE = np.array([[0.0, 0.5, 0.0, 0.0, 0.0, 0.0], [0.0, -0.25, 0.0, 0.0, 0.0, 0.5]])
MIXED = np.hstack([[[0.0, 0.0, 0.5, 0.0], [0.0, 0.0, -0.25, 0.5]], np.zeros((2, 8))])
SLID = np.array([[0.0, 0.25, 0.0], [0.0, 0.0, 0.25]])
CHANGES = {"cart": PUSHED_LATE, "mixer": MIXED, "slider": SLID}
TASKS = {"cart": CART, "mixer": MIXER, "slider": SLIDER}


def make_model(name: str, *, absorbing: bool = True, members: int = 2) -> Surrogate:
    changes, task = CHANGES[name], TASKS[name]
    training = Training(hidden=(2 * changes.shape[1],))
    return Surrogate(
        task=task,
        track=replace(BEST, search=members, judge=1, absorbing=absorbing, training=training),
        dynamics=(tuple(map(linear_network, changes)),) * (members + 1),
        reward=KnownReward(task),
        failure=FailureEffect.of_all_states(2, altered=False),
        region=np.tile([-100.0, 100.0], (changes.shape[1], 1)),
        batch="",
        split_seed=0,
    )


def make_planner(name: str, *, absorbing: bool = True, **settings: Any) -> Planner:
    """With its model."""
    usual: dict[str, Any] = {"horizon": 6, "particles": 12, "rounds": 5}
    task = TASKS[name]
    planner = Planner(run="..", outputs=task.action_names, **(usual | settings))
    ready = with_model(planner, task, make_model(name, absorbing=absorbing))
    assert isinstance(ready, Planner)
    return ready


def make_pilot(name: str, *, absorbing: bool = True, **settings: Any) -> ModelPilot:
    pilot = pilot_of(make_planner(name, absorbing=absorbing, **settings))
    assert pilot is not None
    return pilot
