"""Batches drawn from a plant: episodes from uniform starts under uniformly random actions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import SEQUENCE, Job, Policies
from clearloop.plants.lowering import lower_plant
from clearloop.task import Task
from clearloop.task.starts import make_box, uniform_starts
from clearloop.task.tables import Exploration


class _Episodes(NamedTuple):
    """n episodes of up to T steps."""

    states: NDArray[np.float64]
    """[n, T + 1, S]"""
    actions: NDArray[np.float64]
    """[n, T, A]"""
    rewards: NDArray[np.float64]
    """[n, T]"""
    failed: NDArray[np.bool_]
    steps: NDArray[np.int64]
    """[n] that were taken"""


def make_batch(task: Task, *, rng: np.random.Generator, size: int | None = None) -> Batch:
    """A batch of exactly `size` transitions by the task's [exploration]; failing ones are kept, and end an episode."""
    if not task.derivatives:
        raise ClearloopError(f"task '{task.name}' has no [plant] to draw a batch from: give a log with --data")
    plan = task.exploration or Exploration(steps=task.horizon)
    wanted = size or plan.size
    parts: list[_Episodes] = []
    while (missing := wanted - sum(int(part.steps.sum()) for part in parts)) > 0:
        parts.append(_draw(task, plan, 1 + missing // plan.steps, rng))
    return _batch(task, _Episodes(*map(np.concatenate, zip(*parts, strict=True))), wanted)


def _draw(task: Task, plan: Exploration, count: int, rng: np.random.Generator) -> _Episodes:
    box = make_box(plan.starts or task.starts, task.state_names)
    if box is None:
        raise ClearloopError(f"task '{task.name}': give [exploration] starts, to draw a batch from")
    low, high = task.action_limits.T
    actions = rng.uniform(low, high, size=(count, plan.steps, len(low)))
    policies = Policies(
        kind=SEQUENCE,
        numbers=actions.reshape(count, -1),
        sizes=np.zeros(0, np.int64),
        code=np.zeros(0, np.int32),
        operand=np.zeros(0),
        spans=np.zeros((1, 1), np.int64),
        limits=task.action_limits,
    )
    aims = [aim if isinstance(aim := task.setpoints.get(name, 0.0), float) else 0.0 for name in task.state_names]
    job = Job(uniform_starts(box, count, rng), np.tile(aims, (plan.steps, 1)), task.discount, 1)
    rollout = roll_out(policies, lower_plant(task, history=1), job, trajectories=True)
    states, rewards, failed = rollout.states[0, 0], rollout.rewards[0, 0], rollout.failed[0, 0]  # type: ignore[index]
    # A failed plant stands still: the last step that moved it was the one that failed.
    moves = np.any(states[:, 1:] != states[:, :-1], axis=2)
    steps = np.where(failed, plan.steps - np.argmax(moves[:, ::-1], axis=1), plan.steps)
    return _Episodes(states, actions, rewards, failed, steps)


def _batch(task: Task, drawn: _Episodes, wanted: int) -> Batch:
    """One row for each observation, the last of an episode without an action; the last episode may be cut short."""
    before = np.cumsum(drawn.steps) - drawn.steps
    steps = np.minimum(drawn.steps, wanted - before)[before < wanted]
    failed = (drawn.failed & (drawn.steps <= wanted - before))[: len(steps)]
    episode = np.repeat(np.arange(len(steps)), steps + 1)
    row = np.arange(len(episode)) - np.repeat(np.cumsum(steps + 1) - steps - 1, steps + 1)
    last = row == steps[episode]
    acting = np.where(last, 0, row)
    return Batch(
        columns=task.columns,
        states=drawn.states[episode, row],
        actions=np.where(last[:, None], np.nan, drawn.actions[episode, acting]),
        episodes=episode,
        terminal=last & failed[episode],
        rewards=np.where(last, np.nan, drawn.rewards[episode, acting]),
        times=row * task.dt,
    )
