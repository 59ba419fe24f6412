"""Episodes of planners, which decide step by step: from all starts together, so that one call serves all."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clearloop.data.cells import Floats, Ints
from clearloop.evaluation.planning import ModelPilot
from clearloop.evaluation.setup import make_system
from clearloop.kernels.engine import Rollout, System, roll_out
from clearloop.kernels.layout import Job
from clearloop.plants.sequences import fixed_actions
from clearloop.surrogate import Surrogate

Progress = Callable[[float], None]
"""is told the share of the work that is done"""


def step_through(
    pilot: ModelPilot,
    job: Job,
    surrogate: Surrogate | None,
    members: Sequence[int] | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Rollout:
    """What the engine would give for one controller, with trajectories: on the plant, or on a surrogate's
    members, one after the other.
    """
    chosen = [0] if surrogate is None else range(surrogate.members) if members is None else members
    rollouts = []
    for number, member in enumerate(chosen):
        system = make_system(pilot.task, surrogate, pilot.history, [member])
        rollouts.append(_run(pilot, system, job, workers, _part(progress, number, len(chosen))))
    return Rollout(*(np.stack(parts)[:, None] for parts in zip(*rollouts, strict=True)))


def _run(
    pilot: ModelPilot, system: System, job: Job, workers: int | None, progress: Progress
) -> tuple[Any, ...]:
    """Returns, failures, states, actions and rewards, a row for each start.

    Where failure absorbs, what has failed is not planned for any more: it stays, goes on paying, and keeps
    its last action.
    """
    task, steps, n_states = pilot.task, job.setpoints.shape[1], job.setpoints.shape[2]
    setpoints = np.broadcast_to(job.setpoints, (len(job.starts), steps, n_states))
    windows, seen = _windows(job, n_states, len(task.actions), pilot.history), _seen(pilot, n_states)
    starts = windows[:, :n_states]
    states = np.repeat(starts[:, None], steps + 1, axis=1)
    actions = np.zeros((len(starts), steps, len(task.actions)))
    rewards, failed = np.zeros((len(starts), steps)), np.zeros(len(starts), np.bool_)
    running, plans = np.arange(len(starts)), None
    for step in range(steps):
        aims, outside = setpoints[running, step : step + 2], job.script[:, step : step + 2]
        plans = pilot.decide(windows[:, seen], aims[:, 0, : len(task.states)], plans, workers=workers)
        chosen = pilot.first(plans)
        present = Job(
            windows,
            aims,
            job.discount,
            pilot.history,
            outside if len(outside) <= 1 else outside[running],
            job.noise[running, step : step + 1] if len(job.noise) else job.noise,
            steps=1,
        )
        moved = roll_out(fixed_actions(chosen[:, None], task), system, present, trajectories=True)
        after, failing = np.asarray(moved.states)[0, 0, :, 1], moved.failed[0, 0]
        states[running, step + 1 :] = after[:, None]
        actions[running, step:] = chosen[:, None]
        rewards[running, step:] = np.asarray(moved.rewards)[0, 0]
        failed[running] |= failing
        progress((step + 1) / steps)
        going = ~(failing & system.dynamics.absorbing)
        if not going.any():
            break
        windows = _moved_on(windows, chosen, after)[going]
        running, plans = running[going], plans.of(going)
    return rewards @ job.discount ** np.arange(steps), failed, states, actions, rewards


def _windows(job: Job, n_states: int, n_actions: int, history: int) -> Floats:
    """[N, H (S + A)] what is given; or the start repeated, past actions 0."""
    starts: Floats = job.starts
    if starts.shape[1] > n_states:
        return starts
    return np.tile(np.hstack([starts, np.zeros((len(starts), n_actions))]), (1, history))


def _seen(pilot: ModelPilot, n_states: int) -> Ints:
    """The columns of the plant's window that the pilot sees: all but what no sensor shows."""
    width = n_states + len(pilot.task.actions)
    each = np.delete(np.arange(width), np.s_[len(pilot.task.states) : n_states])
    return np.concatenate([lag * width + each for lag in range(pilot.history)])


def _moved_on(windows: Floats, actions: Floats, states: Floats) -> Floats:
    """The windows [N, H (S + A)] of the next step."""
    n_states, width = states.shape[1], states.shape[1] + actions.shape[1]
    present = np.hstack([windows[:, :n_states], actions])
    return np.hstack([states, np.zeros_like(actions), present, windows[:, width:]])[:, : windows.shape[1]]


def _part(progress: Progress | None, number: int, parts: int) -> Progress:
    """What one of several parts tells."""

    def tell(share: float) -> None:
        if progress is not None:
            progress((number + share) / parts)

    return tell
