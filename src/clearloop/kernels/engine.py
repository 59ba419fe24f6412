"""The rollout engine: hands out tiles to threads. Kernels are serial and release the GIL."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from clearloop.kernels.layout import FUZZY, LANES, NETWORK, PID, SEQUENCE, Dynamics, Job, Networks, Outcome, Policies, Reward, Rows, aligned
from clearloop.kernels.rollout import roll_tiles


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
    """Run every controller from every start on every member."""
    workers = workers or threads()
    members, starts = system.members, job.starts.shape[0]
    population = policies.numbers.shape[0] // (starts if policies.kind == SEQUENCE else 1)
    shape = (members, population, starts)
    outcome = _outcome(int(np.prod(shape)), policies, job, trajectories)
    tiles = members * -(-population * starts // LANES)
    bounds = np.linspace(0, tiles, min(tiles, 4 * workers) + 1).astype(int)

    def work_on(piece: int) -> None:
        first, last = int(bounds[piece]), int(bounds[piece + 1])
        rows, at = _scratch(policies, system, job)
        roll_tiles(first, last, policies, system.dynamics, system.reward, job, rows, at, outcome)

    if workers == 1:
        for piece in range(len(bounds) - 1):
            work_on(piece)
    else:
        list(_pool(workers).map(work_on, range(len(bounds) - 1)))
    rows = [array.reshape(shape + array.shape[1:]) if array.shape[0] else None for array in outcome]
    return Rollout(*rows)  # type: ignore[arg-type]


def _outcome(lanes: int, policies: Policies, job: Job, trajectories: bool) -> Outcome:
    dtype = job.starts.dtype
    steps, n_states = job.setpoints.shape
    rows = lanes if trajectories else 0
    return Outcome(
        returns=np.empty(lanes, dtype),
        failed=np.empty(lanes, np.bool_),
        states=np.empty((rows, steps + 1, n_states), dtype),
        actions=np.empty((rows, steps, len(policies.limits)), dtype),
        rewards=np.empty((rows, steps), dtype),
    )


def _longest(spans: np.ndarray) -> int:
    return int(np.diff(spans).max(initial=0))


def _widest(networks: Networks) -> int:
    return int(networks.sizes[1:].max(initial=0))


def _scratch(policies: Policies, system: System, job: Job) -> tuple[np.ndarray, Rows]:
    """Rows for one thread, as many as this job needs."""
    n_states, n_actions = job.starts.shape[1], len(policies.limits)
    window = job.history * (n_states + n_actions)
    stack = max(_longest(spans) for spans in (policies.spans, system.dynamics.spans, system.reward.spans))
    widest = max(_widest(system.dynamics.networks), _widest(system.reward.networks))
    loops, ring = 0, 0
    if policies.kind == FUZZY:
        stack = max(stack, 3 + int(policies.sizes.max()))
    elif policies.kind == NETWORK:
        sizes = policies.sizes[1 : policies.sizes[0] + 2]
        stack, widest = max(stack, int(sizes[0])), max(widest, int(sizes[1:].max()))
    elif policies.kind == PID:
        loops, ring = policies.sizes.size // 2, int(policies.numbers[:, 4::5].max())
    counts = {
        "features": window + n_states, "frame": window + 2 * n_states, "chosen": n_actions,
        "reward": 1, "fails": 1, "total": 1, "failed": 1, "held": 1,
        "slopes": 3 * n_states, "scores": widest, "hidden": 2 * widest, "loops": loops * (2 + ring),
    }  # fmt: skip
    places = dict(zip([*counts, "stack"], np.cumsum([0, *counts.values()]).tolist(), strict=True))
    rows = aligned(places["stack"] + stack, LANES, dtype=job.starts.dtype)
    return rows, Rows(**places, widest=widest, ring=ring)
