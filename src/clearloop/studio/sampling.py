"""How far the states of a plant go: a sample of episodes under random actions."""

import numpy as np

from clearloop.kernels.engine import roll_out
from clearloop.plants.lowering import lower_plant, task_window
from clearloop.plants.scenarios import Scenarios
from clearloop.plants.sequences import fixed_actions
from clearloop.studio.course import made_up_aims
from clearloop.task import Task
from clearloop.task.levels import draw_levels
from clearloop.task.starts import make_box, uniform_starts
from clearloop.task.tables import Exploration

EPISODES = 64
CORE = 0.98  # of the sample, between the bounds


def sample_states(task: Task) -> dict[str, tuple[float, float]]:
    """Of each state of the task unveiled, where it mostly is. The same at every call."""
    plan, names = task.exploration or Exploration(steps=task.horizon), task.unveiled.state_names
    box, rng = make_box(plan.starts or task.starts, names), np.random.default_rng(0)
    assert box is not None  # noqa: S101  else it is not played
    points = uniform_starts(box, EPISODES, rng)
    actions = draw_levels(task.action_limits, task.action_counts, (EPISODES, plan.steps), rng)
    history = task_window(task)
    job = Scenarios.explored(task, points, rng, plan.steps, made_up_aims(task)).job(task, history)
    plant = lower_plant(task, history=history)
    rollout = roll_out(fixed_actions(actions, task), plant, job, trajectories=True)
    states = np.asarray(rollout.states)[0, 0].reshape(-1, len(names))
    bounds = np.quantile(states, [(1 - CORE) / 2, (1 + CORE) / 2], axis=0)
    return {name: (float(bounds[0, j]), float(bounds[1, j])) for j, name in enumerate(names)}
