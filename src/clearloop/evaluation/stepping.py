"""Episodes of planners, which decide step by step: from all starts together, so that one call serves all."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clearloop.data.cells import Floats
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
    starts, steps, task = job.starts, len(job.setpoints), pilot.task
    states = np.repeat(starts[:, None], steps + 1, axis=1)
    actions = np.zeros((len(starts), steps, len(task.actions)))
    rewards, failed = np.zeros((len(starts), steps)), np.zeros(len(starts), np.bool_)
    windows = np.tile(np.hstack([starts, np.zeros_like(actions[:, 0])]), (1, pilot.history))
    running, plans = np.arange(len(starts)), None
    for step in range(steps):
        plans = pilot.decide(windows, job.setpoints[step], plans, workers=workers)
        chosen = pilot.first(plans)
        present = Job(windows, job.setpoints[step : step + 1], job.discount, pilot.history)
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
