"""Controllers of one kind as a population for the engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clearloop.controllers.controller import Controller, Features
from clearloop.errors import ClearloopError
from clearloop.expression import encode as encode_formula
from clearloop.kernels.layout import FUZZY, LINEAR, NETWORK, PID, PROGRAM, Policies
from clearloop.task import Task

_KINDS = {"linear": LINEAR, "equation": PROGRAM, "fuzzy": FUZZY, "pid": PID, "network": NETWORK}


def encode(controllers: Sequence[Controller], task: Task, *, history: int, dtype: Any = np.float64) -> Policies:
    """`history`: observations in the engine's window; at least what every controller needs."""
    controllers = [controller.for_task(task) for controller in controllers]
    features = Features(task.state_names, task.action_names, history)
    first = controllers[0]
    sizes = first.sizes(features)
    if any(c.kind != first.kind or c.sizes(features) != sizes or c.limits != first.limits for c in controllers):
        raise ClearloopError("controllers of one population must have the same kind, shape and limits")
    programs = [
        [encode_formula(formula, features.slot) for _, formula in sorted(zip(map(task.action_names.index, c.actions), c.programs()))]
        for c in controllers
    ]
    lengths = [[len(program.code) for program in row] for row in programs]
    flat = [program for row in programs for program in row]
    ends = np.cumsum([0, *(sum(row) for row in lengths)])
    spans = ends[:-1, None] + np.cumsum([[0, *row] for row in lengths], axis=1)
    return Policies(
        kind=_KINDS[first.kind],
        numbers=np.array([c.numbers(features) for c in controllers], dtype).reshape(len(controllers), -1),
        sizes=np.array(sizes, np.int64),
        code=np.concatenate([np.zeros(0, np.int32), *(program.code for program in flat)]),
        operand=np.concatenate([np.zeros(0), *(program.operand for program in flat)]).astype(dtype),
        spans=spans.astype(np.int64),
        limits=_limits(first, task).astype(dtype),
    )


def _limits(controller: Controller, task: Task) -> Any:
    """What the controller may choose, and then what the plant can do."""
    own = np.array([controller.limits[name] for name in task.action_names])
    return np.clip(own, task.action_limits[:, :1], task.action_limits[:, 1:])
