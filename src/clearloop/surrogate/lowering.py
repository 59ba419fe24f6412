"""From trained networks to the flat arrays that the engine runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clearloop.data.cells import Floats
from clearloop.kernels.layout import ACTIVATIONS, IDENTITY, NETWORKS, Dynamics, Networks
from clearloop.kernels.network import flatten
from clearloop.networks import Network
from clearloop.programs import lower_ways
from clearloop.task import Task


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


def lower_dynamics(
    networks: Networks, task: Task, *, history: int, bounds: Floats, absorbing: bool, on_failure: Floats
) -> Dynamics:
    """Networks for each state of each member that is predicted, member by member."""
    predicted = dict.fromkeys(task.predicted)
    return Dynamics(
        kind=NETWORKS,
        **lower_ways(task, predicted, task.derived, networks.numbers.dtype, history),
        networks=networks,
        substeps=1,
        dt=task.dt,
        bounds=bounds.astype(networks.numbers.dtype),
        absorbing=absorbing,
        on_failure=on_failure.astype(networks.numbers.dtype),
    )
