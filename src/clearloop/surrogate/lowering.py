"""From trained networks to the flat arrays that the engine runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clearloop.data.cells import Floats
from clearloop.kernels.layout import ACTIVATIONS, IDENTITY, NETWORKS, Dynamics, Networks
from clearloop.kernels.network import flatten
from clearloop.networks import Network


def lower_networks(networks: Sequence[Network], dtype: Any) -> Networks:
    """Networks of one shape, in this order."""
    first = networks[0]
    hidden = ACTIVATIONS[first.activation]
    return Networks(
        numbers=np.concatenate([flatten(list(n.weights), list(n.biases)) for n in networks]).astype(dtype),
        total=len(networks),
        sizes=np.array(first.sizes),
        activations=np.array([hidden] * (len(first.weights) - 1) + [IDENTITY]),
    )


def lower_dynamics(networks: Networks, *, dt: float, absorbing: bool, on_failure: Floats) -> Dynamics:
    """Networks for each state of each member, member by member."""
    return Dynamics(
        kind=NETWORKS,
        networks=networks,
        code=np.zeros(0, np.int32),
        operand=np.zeros(0, networks.numbers.dtype),
        spans=np.zeros(on_failure.size + 1, np.int64),
        substeps=1,
        dt=dt,
        absorbing=absorbing,
        on_failure=on_failure.astype(networks.numbers.dtype),
    )
