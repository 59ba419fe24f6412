"""Controllers of one kind as a population for the engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clearloop.controllers.controller import Controller
from clearloop.controllers.equation import Equation
from clearloop.errors import ClearloopError
from clearloop.expression import Program
from clearloop.expression import encode as encode_formula
from clearloop.kernels.layout import FUZZY, GREEDY, LINEAR, NETWORK, PID, PROGRAM, Policies
from clearloop.programs.features import Features
from clearloop.task import Task

_KINDS = {
    "linear": LINEAR,
    "equation": PROGRAM,
    "fuzzy": FUZZY,
    "pid": PID,
    "network": NETWORK,
    "greedy-q": GREEDY,
}


def encode(
    controllers: Sequence[Controller], task: Task, *, history: int, dtype: Any = np.float64
) -> Policies:
    """`history`: observations in the engine's window; at least what every controller needs."""
    controllers = [controller.for_task(task) for controller in controllers]
    if any(controller.kind not in _KINDS for controller in controllers):
        raise ClearloopError("a planner decides step by step: it cannot be one of a population")
    features = Features(task.state_names, task.action_names, history)
    first = controllers[0]
    sizes = first.sizes(features)
    if any(
        c.kind != first.kind or c.sizes(features) != sizes or c.limits != first.limits for c in controllers
    ):
        raise ClearloopError("controllers of one population must have the same kind, shape and limits")
    if any(c.history > history for c in controllers):
        raise ClearloopError(f"a controller looks further back than the {history} observations that are kept")
    largest = np.finfo(dtype).max
    code, operand, spans = _joined([_programs(c, features) for c in controllers])
    return Policies(
        kind=_KINDS[first.kind],
        numbers=np.array([c.numbers(features) for c in controllers], dtype).reshape(len(controllers), -1),
        sizes=np.array(sizes, np.int64),
        code=code,
        operand=np.clip(operand, -largest, largest).astype(dtype),
        spans=spans,
        limits=np.array([first.limits[name] for name in task.action_names], dtype),
    )


def _programs(controller: Controller, features: Features) -> list[Program]:
    """One for each action, of the kind that has any."""
    if not isinstance(controller, Equation):
        return []
    return [encode_formula(controller.formula(action), features.slot) for action in features.actions]


def _joined(population: list[list[Program]]) -> tuple[Any, Any, Any]:
    """All code, all operands, and where each program starts and the last one ends, [P, A + 1]."""
    flat = [program for programs in population for program in programs]
    lengths = np.array([[len(program.code) for program in programs] for programs in population], np.int64)
    ends = np.cumsum(lengths).reshape(lengths.shape)
    first = np.cumsum([0, *lengths.sum(axis=1)])[:-1, None]
    return (
        np.concatenate([np.zeros(0, np.int32), *(program.code for program in flat)]),
        np.concatenate([np.zeros(0), *(program.operand for program in flat)]),
        np.concatenate([first, ends], axis=1),
    )
