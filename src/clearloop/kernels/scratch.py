"""The rows that a thread works in: as many as a job needs, and where each stands."""

import numpy as np

from clearloop.kernels.layout import (
    FUZZY,
    GREEDY,
    NETWORK,
    PID,
    Dynamics,
    Job,
    Networks,
    Policies,
    Reward,
    Rows,
)


def plan_rows(policies: Policies, dynamics: Dynamics, reward: Reward, job: Job) -> tuple[int, Rows]:
    """How many rows, and the places in them."""
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
        loops = policies.sizes.size // 2
        ring = int(policies.numbers[:, 4 : 5 * loops : 5].max())
    counts = {
        "features": window + n_states, "frame": window + 2 * n_states,
        "reward": 1, "fails": 1, "total": 1, "failed": 1, "held": 1, "loops": loops * (2 + ring),
        "slopes": 3 * n_states, "scores": widest, "hidden": 2 * widest, "stack": stack,
    }  # fmt: skip
    places = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    if not job.setpoints.any():
        places["features"] = places["frame"] + n_states  # the frame's window serves the controllers too
    at = Rows(**places, action=places["frame"] + 2 * n_states, widest=widest, ring=ring)
    return at.stack + stack, at


def _longest(spans: np.ndarray) -> int:
    return int(np.diff(spans).max(initial=0))


def _widest(networks: Networks) -> int:
    return int(networks.sizes[1:].max(initial=0))
