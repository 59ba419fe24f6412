"""What becomes of a rollout's arguments before the first step.

numba compiles anew for every new type, read-only arrays and other layouts included: the arguments are brought
to one type for each precision. And what need not be computed in every step is taken out.
"""

from typing import Any

import numpy as np

from clearloop.kernels.layout import GREEDY, LINEAR, NETWORK, Job, Policies
from clearloop.kernels.network import fold


def plain(value: Any, dtype: Any) -> Any:
    """A named tuple with whole numbers in 64 bits, and arrays of all others in this precision."""
    if isinstance(value, tuple):
        return type(value)(*(plain(each, dtype) for each in value))
    if isinstance(value, np.ndarray):
        wanted = np.int64 if value.dtype.kind in "iu" else dtype
        fits = value.dtype == wanted and value.flags.carray
        return value if fits else np.require(value, wanted, ["C", "A", "W"])
    return value.item() if isinstance(value, np.generic) else value


def of_each_start(job: Job) -> Job:
    """With setpoints [1, T, S] where they are given once for all."""
    return job if job.setpoints.ndim == 3 else job._replace(setpoints=job.setpoints[None])


def lighter(policies: Policies) -> Policies:
    """The same controllers with less to do: gains of what some controller looks at, folded networks."""
    if policies.kind == LINEAR:
        numbers = policies.numbers.reshape(len(policies.numbers), len(policies.limits), -1)
        used = np.flatnonzero(numbers[:, :, 1:].any(axis=(0, 1)))
        fewer = numbers[:, :, [0, *(1 + used)]].reshape(len(numbers), -1)
        return policies._replace(numbers=np.ascontiguousarray(fewer), sizes=used)
    if policies.kind in (NETWORK, GREEDY):
        layers = policies.sizes[0]
        sizes, activations = np.split(policies.sizes[1 : 2 * layers + 2], [layers + 1])
        networks, others = np.split(policies.numbers, [int((sizes[:-1] + 1) @ sizes[1:])], axis=1)
        return policies._replace(numbers=np.hstack([fold(networks, sizes, activations), others]))
    return policies
