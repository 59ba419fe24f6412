"""What a planner needs for one decision: the default swarm, on one core, on networks of the usual size.

The networks say that nothing changes: so no plan fails, none is perfect, and every round runs to its end.
"""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from benchmarks.measure import Work
from clearloop.controllers import Planner
from clearloop.evaluation.planning import ModelPilot, pilot_of, with_model
from clearloop.methods.psop import PSOP
from clearloop.networks import Network
from clearloop.surrogate import BEST, Surrogate
from clearloop.surrogate.fitting import KnownReward
from clearloop.surrogate.steps import FailureEffect
from clearloop.task import Task

TASK = Task.load("cartpole")
START = np.array([[0.0, 0.0, 1.0, 0.0, 0.0]])  # far from the goal, and from failure


def default_pilot() -> ModelPilot:
    pilot = pilot_of(with_model(default_planner(), TASK, _still_model()))
    assert pilot is not None  # noqa: S101  for the type checker
    return pilot


def default_planner() -> Planner:
    return PSOP().planner(TASK, seed=0)


def decision(pilot: ModelPilot) -> Work:
    """One step, with the plans of the step before."""
    aims = np.zeros(len(TASK.states))
    last = pilot.decide(START, aims, workers=1)
    return lambda: pilot.decide(START, aims, last, workers=1)


def _still_model() -> Surrogate:
    rng = np.random.default_rng(0)
    sizes = (5, *BEST.training.hidden, 1)
    weights = [rng.normal(0, math.sqrt(2 / n_in), (n_out, n_in)) for n_in, n_out in pairwise(sizes)]
    weights[-1][:] = 0.0
    network = Network(tuple(weights), tuple(np.zeros(n) for n in sizes[1:]))
    return Surrogate(
        task=TASK,
        track=replace(BEST, judge=0),
        dynamics=((network,) * len(TASK.states),) * BEST.search,
        reward=KnownReward(TASK),
        failure=FailureEffect.of_all_states(len(TASK.states), altered=False),
        region=np.tile([-10.0, 10.0], (5, 1)),
        batch="",
        split_seed=0,
    )
