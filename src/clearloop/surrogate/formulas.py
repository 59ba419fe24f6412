"""The task's own reward and failure, over many logged or predicted steps at once."""

from typing import Any

import numpy as np

from clearloop.data.cells import Flags, Floats
from clearloop.kernels.interpreter import run
from clearloop.plants.lowering import lower_reward
from clearloop.task import Task

STEPS = 4096  # at a time, so that a long formula over a long log does not fill the memory


def judge(task: Task, frame: Floats) -> tuple[Floats, Flags]:
    """Reward [n] and failure [n] of the steps of a frame [n, columns], in double precision."""
    history = (frame.shape[1] - 2 * len(task.states)) // len(task.scope.names)
    formulas = lower_reward(task, np.float64, history)
    parts = [_judge(formulas, frame[at : at + STEPS]) for at in range(0, len(frame), STEPS)]
    reward, fails = np.concatenate([np.zeros((2, 0)), *parts], axis=1)
    return reward, fails != 0


def _judge(formulas: Any, frame: Floats) -> Floats:
    """[2, n]"""
    n, columns = frame.shape
    code, operand, spans = formulas.code, formulas.operand, formulas.spans
    rows = np.empty((columns + int(np.diff(spans).max()), n))
    rows[:columns] = frame.T
    results = np.zeros((2, n))
    for result, start, stop in zip(results, spans[:-1], spans[1:], strict=True):
        if stop > start:
            run(code, operand, start, stop, rows, 0, columns, 0, n)
            result[:] = rows[columns]
    return results
