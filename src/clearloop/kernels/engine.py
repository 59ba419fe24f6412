"""The rollout engine: hands out tiles to threads. Kernels are serial and release the GIL."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from clearloop.kernels.layout import LANES, SEQUENCE, Dynamics, Job, Outcome, Policies, Reward
from clearloop.kernels.network import folded
from clearloop.kernels.preparation import lighter, of_each_start, plain
from clearloop.kernels.rollout import roll_tiles
from clearloop.kernels.rows import aligned
from clearloop.kernels.scratch import plan_rows


class System(NamedTuple):
    """What controllers are rolled out on: a plant (one member) or a surrogate (one or more)."""

    dynamics: Dynamics
    reward: Reward
    members: int


class Rollout(NamedTuple):
    """M members, P controllers, N starts."""

    returns: np.ndarray
    """[M, P, N] the discounted return Σ γᵏ r of each lane"""
    failed: np.ndarray
    """[M, P, N] whether it reached failure"""
    states: np.ndarray | None = None
    """[M, P, N, T + 1, S]"""
    actions: np.ndarray | None = None
    """[M, P, N, T, A]"""
    rewards: np.ndarray | None = None
    """[M, P, N, T]"""


def threads() -> int:
    """The number of threads in use: CLEARLOOP_THREADS, or one for each core that this process may use."""
    wanted = os.environ.get("CLEARLOOP_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="clearloop")


def roll_out(
    policies: Policies, system: System, job: Job, *, trajectories: bool = False, workers: int | None = None
) -> Rollout:
    """Run every controller from every start on every member, in the precision of the starts."""
    dtype = job.starts.dtype
    policies, job = lighter(plain(policies, dtype)), plain(of_each_start(job), dtype)
    dynamics, reward = plain(system.dynamics, dtype), plain(system.reward, dtype)
    dynamics = dynamics._replace(networks=folded(dynamics.networks))
    reward = reward._replace(networks=folded(reward.networks))
    starts = len(job.starts)
    population = len(policies.numbers) // (starts if policies.kind == SEQUENCE else 1)
    shape = (system.members, population, starts)
    outcome = _outcome(int(np.prod(shape)), policies, job, trajectories)
    n_rows, at = plan_rows(policies, dynamics, reward, job)

    def work_on(tiles: tuple[int, int]) -> None:
        rows = aligned(n_rows, LANES, dtype=dtype)
        roll_tiles(*tiles, policies, dynamics, reward, job, rows, at, outcome)

    _hand_out(work_on, system.members * -(-population * starts // LANES), workers or threads())
    arrays = [array.reshape(shape + array.shape[1:]) if array.shape[0] else None for array in outcome]
    return Rollout(*arrays)  # type: ignore[arg-type]


def _hand_out(work_on: Callable[[tuple[int, int]], None], tiles: int, workers: int) -> None:
    """All tiles, in several pieces for each worker, so that none has to wait long for the last."""
    bounds = np.linspace(0, tiles, min(tiles, 4 * workers) + 1).astype(int).tolist()
    pieces = list(pairwise(bounds))
    if workers == 1:
        for piece in pieces:
            work_on(piece)
    else:
        list(_pool(workers).map(work_on, pieces))


def _outcome(lanes: int, policies: Policies, job: Job, trajectories: bool) -> Outcome:
    dtype = job.starts.dtype
    _, known, n_states = job.setpoints.shape
    steps = job.steps or known
    rows = lanes if trajectories else 0
    return Outcome(
        returns=np.empty(lanes, dtype),
        failed=np.empty(lanes, np.bool_),
        states=np.empty((rows, steps + 1, n_states), dtype),
        actions=np.empty((rows, steps, len(policies.limits)), dtype),
        rewards=np.empty((rows, steps), dtype),
    )
