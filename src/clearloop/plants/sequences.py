"""Actions that stand fixed, as a population for the engine."""

import numpy as np
from numpy.typing import NDArray

from clearloop.kernels.layout import SEQUENCE, Policies
from clearloop.task import Task


def fixed_actions(actions: NDArray[np.floating], task: Task) -> Policies:
    """`actions`: [N, T, A], for each of N starts its own."""
    return Policies(
        kind=SEQUENCE,
        numbers=actions.reshape(len(actions), -1),
        sizes=np.zeros(0, np.int64),
        code=np.zeros(0, np.int32),
        operand=np.zeros(0),
        spans=np.zeros((1, 1), np.int64),
        limits=task.action_limits,
        counts=task.action_counts,
    )
