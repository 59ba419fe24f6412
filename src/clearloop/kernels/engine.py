"""The rollout engine hands out tiles of lanes to threads; kernels are serial and release the GIL."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from clearloop.kernels.layout import (
    FUZZY,
    GREEDY,
    LANES,
    LINEAR,
    NETWORK,
    PID,
    SEQUENCE,
    Dynamics,
    Job,
    LoweredReward,
    Networks,
    Outcome,
    Policies,
    Rows,
)
from clearloop.kernels.network import fold_biases, fold_networks
from clearloop.kernels.policies import LOOP_ROWS, PER_LOOP
from clearloop.kernels.rollout import roll_tiles
from clearloop.kernels.vectors import aligned

# Before the first step, arguments are prepared. numba compiles again for every new type, read-only arrays and
# other layouts included, so arguments are brought to one type for each precision. And what need not be
# computed in every step is computed here.


def _plain(value: Any, dtype: Any) -> Any:
    """Return a named tuple with arrays of integers in 64 bits, and all other arrays in this precision."""
    if isinstance(value, tuple):
        return type(value)(*(_plain(each, dtype) for each in value))
    if isinstance(value, np.ndarray):
        wanted = np.int64 if value.dtype.kind in "iu" else dtype
        fits = value.dtype == wanted and value.flags.carray
        return value if fits else np.require(value, wanted, ["C", "A", "W"])
    return value.item() if isinstance(value, np.generic) else value


def _of_each_start(job: Job) -> Job:
    """Return the job with setpoints [1, T, S] if they are the same for all starts."""
    return job if job.setpoints.ndim == 3 else job._replace(setpoints=job.setpoints[None])


def _lighter(policies: Policies) -> Policies:
    """Return the same controllers with less work: without gains that are all 0, and with folded networks."""
    if policies.kind == LINEAR:
        numbers = policies.numbers.reshape(len(policies.numbers), len(policies.limits), -1)
        used = np.flatnonzero(numbers[:, :, 1:].any(axis=(0, 1)))
        fewer = numbers[:, :, [0, *(1 + used)]].reshape(len(numbers), -1)
        return policies._replace(numbers=np.ascontiguousarray(fewer), sizes=used)
    if policies.kind in (NETWORK, GREEDY):
        layers = policies.sizes[0]
        sizes, activations = np.split(policies.sizes[1 : 2 * layers + 2], [layers + 1])
        networks, others = np.split(policies.numbers, [int((sizes[:-1] + 1) @ sizes[1:])], axis=1)
        return policies._replace(numbers=np.hstack([fold_biases(networks, sizes, activations), others]))
    return policies


def plan_rows(policies: Policies, dynamics: Dynamics, reward: LoweredReward, job: Job) -> tuple[int, Rows]:
    """Return the number of rows that a thread works in, and the place of everything in them."""
    n_states, n_actions = job.setpoints.shape[2], len(policies.limits)
    window = job.history * (n_states + n_actions)
    stack = max(_longest(spans) for spans in (policies.spans, dynamics.spans, reward.spans))
    widest = max(_widest(dynamics.networks), _widest(reward.networks))
    loops, ring = 0, 0
    if policies.kind == FUZZY:
        stack = max(stack, int(policies.sizes.max()))
    elif policies.kind in (NETWORK, GREEDY):
        sizes = policies.sizes[1 : policies.sizes[0] + 2]
        stack, widest = max(stack, int(sizes[0]) + 1), max(widest, int(sizes[1:].max()))
    elif policies.kind == PID:
        loops = int(policies.sizes[0])
        ring = int(policies.numbers[:, 4 : PER_LOOP * loops : PER_LOOP].max())
    if policies.rates.size and job.history < 2:
        raise ValueError("actions whose rate is limited need a window of two rows")
    disturbed = len(job.disturbances.late) > 0
    latest = int(job.disturbances.late.max(initial=0))
    counts = {
        "features": window + n_states, "frame": window + 2 * n_states,
        "seen": (window + n_states) * disturbed, "waiting": (1 + (3 + latest) * n_actions) * disturbed,
        "reward": 1, "fails": 1, "total": 1, "failed": 1, "held": 1, "loops": loops * (LOOP_ROWS + ring),
        "slopes": 3 * n_states, "scores": widest, "hidden": 2 * widest, "stack": stack,
    }  # fmt: skip
    places = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    if not job.setpoints.any():
        # What the controller knows serves as its features; without disturbances this is the frame's window.
        places["features"] = places["seen"] if disturbed else places["frame"] + n_states
    action = places["frame"] + 2 * n_states
    at = Rows(**places, action=action, latest=latest, widest=widest, ring=ring)
    return at.stack + stack, at


def _longest(spans: np.ndarray) -> int:
    return int(np.diff(spans).max(initial=0))


def _widest(networks: Networks) -> int:
    return int(networks.sizes[1:].max(initial=0))


class System(NamedTuple):
    """The system that controllers are rolled out on: a plant (one member) or a surrogate (one or more)."""

    dynamics: Dynamics
    reward: LoweredReward
    members: int


class Rollout(NamedTuple):
    """The result of P controllers from N starts on M members; trajectories only if they were asked for."""

    returns: np.ndarray
    """[M, P, N] discounted return Σ γᵏ r of each lane"""
    failed: np.ndarray
    """[M, P, N] whether the lane reached failure"""
    states: np.ndarray | None = None
    """[M, P, N, T + 1, S]"""
    actions: np.ndarray | None = None
    """[M, P, N, T, A]"""
    rewards: np.ndarray | None = None
    """[M, P, N, T]"""
    succeeded: np.ndarray | None = None
    """[M, P, N] whether the lane ended by success"""


def threads() -> int:
    """Return the number of threads: CLEARLOOP_THREADS, or one for each core that this process may use."""
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
    """Run every controller from every start on every member, in the precision of the starts.

    Args:
        policies: P controllers.
        system: The plant or the surrogate, with M members.
        job: N starts, setpoints, and what else a rollout needs.
        trajectories: Whether to return states, actions and rewards of every step.
        workers: The number of threads; None takes `threads()`.
    """
    dtype = job.starts.dtype
    policies, job = _lighter(_plain(policies, dtype)), _plain(_of_each_start(job), dtype)
    dynamics, reward = _plain(system.dynamics, dtype), _plain(system.reward, dtype)
    dynamics = dynamics._replace(networks=fold_networks(dynamics.networks))
    reward = reward._replace(networks=fold_networks(reward.networks))
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
    """Work on all tiles, in several pieces for each worker, so that none has to wait long for the last."""
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
        succeeded=np.empty(lanes, np.bool_),
    )
