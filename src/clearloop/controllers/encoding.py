"""The encoding of controllers of one kind as a population for the engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clearloop.controllers.controller import Controller
from clearloop.errors import ClearloopError
from clearloop.expression import Program
from clearloop.kernels.layout import Policies
from clearloop.programs import Features
from clearloop.task import Task
from clearloop.task.tables import JUMP


def encode(
    controllers: Sequence[Controller], task: Task, *, history: int, dtype: Any = np.float64
) -> Policies:
    """Encode controllers as a population for the engine.

    Args:
        controllers: One or more controllers of the same kind, shape, limits and steps.
        task: The task, which gives what their files leave out.
        history: The number of observations in the engine's window; at least what every controller needs.
        dtype: The type of the numbers: double precision, or single for searches.

    Returns:
        The population as arrays.

    Raises:
        ClearloopError: If they cannot be one population.
    """
    controllers = [controller.for_task(task) for controller in controllers]
    first = controllers[0]
    if first.policy is None:
        raise ClearloopError(f"a controller of kind '{first.kind}' cannot be run by the engine")
    features = Features(task.state_names, task.action_names, history)
    sizes = first.sizes(features)
    shape = (first.kind, sizes, first.limits, first.steps, first.rates)
    if any((c.kind, c.sizes(features), c.limits, c.steps, c.rates) != shape for c in controllers):
        raise ClearloopError(
            "controllers of one population must have the same kind, shape, limits and steps, and rates"
        )
    if any(c.history > history for c in controllers):
        raise ClearloopError(f"a controller looks further back than the {history} observations that are kept")
    largest = np.finfo(dtype).max
    code, operand, spans = _joined([c.programs(features) for c in controllers])
    numbers = np.array([c.numbers(features) for c in controllers], np.float64)
    return Policies(
        kind=first.policy,
        numbers=np.clip(numbers, -largest, largest).astype(dtype).reshape(len(controllers), -1),
        sizes=np.array(sizes, np.int64),
        code=code,
        operand=np.clip(operand, -largest, largest).astype(dtype),
        spans=spans,
        limits=np.array([first.limits[name] for name in task.action_names], dtype),
        counts=np.array([first.range_of(name).parts for name in task.action_names], dtype),
        rates=np.array(
            [first.change_of(name) or JUMP for name in task.action_names] if first.rates else [], dtype
        ),
    )


def _joined(population: list[list[Program]]) -> tuple[Any, Any, Any]:
    """Return all code, all operands, and where each program starts and the last one ends, [P, A + 1]."""
    flat = [program for programs in population for program in programs]
    lengths = np.array([[len(program.code) for program in programs] for programs in population], np.int64)
    ends = np.cumsum(lengths).reshape(lengths.shape)
    first = np.cumsum([0, *lengths.sum(axis=1)])[:-1, None]
    return (
        np.concatenate([np.zeros(0, np.int32), *(program.code for program in flat)]),
        np.concatenate([np.zeros(0), *(program.operand for program in flat)]),
        np.concatenate([first, ends], axis=1),
    )
