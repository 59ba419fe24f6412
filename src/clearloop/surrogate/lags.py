"""Past states as differences, while networks learn.

From one row to the next a state hardly changes, so that neighbouring lags of it say nearly the same, and what
tells its speed is a small difference of large inputs. Descent takes very long to find that. So each past
state is shown as its difference to the row after it; the networks that are kept see the states themselves.
"""

from dataclasses import replace

import numpy as np

from clearloop.data.cells import Floats
from clearloop.networks import Network
from clearloop.task import Task


def difference_lags(task: Task) -> Floats:
    """[H (S + A), H (S + A)] D: a window x is shown as D x. Actions stay as they are."""
    n_states, width = len(task.states), len(task.scope.names)
    matrix = np.eye(task.history * width)
    for lag in range(1, task.history):
        past = lag * width + np.arange(n_states)
        matrix[past, past - width] = -1.0
    return matrix


def of_states(network: Network, matrix: Floats) -> Network:
    """The network that sees x, from the one that sees D x."""
    return replace(network, weights=(network.weights[0] @ matrix, *network.weights[1:]))
