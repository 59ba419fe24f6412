"""How each state comes to its next value."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearloop.expression import Expression
from clearloop.kernels.layout import DERIVED, DRIVEN, MOVED
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.programs.frame import frame_slot, lower_programs
from clearloop.task import Task
from clearloop.task.derived import one_step_on


def unbounded(n_states: int) -> NDArray[np.float64]:
    """[S, 2] states that may become whatever they like."""
    return np.tile([-STATE_LIMIT, STATE_LIMIT], (n_states, 1))


def lower_ways(
    task: Task,
    moved: Mapping[str, Expression | None],
    derived: Mapping[str, Expression],
    dtype: Any,
    history: int | None,
) -> dict[str, Any]:
    """Of each state, how it comes to its next value, and the program; what is in neither table is driven."""
    ways = [DERIVED if name in derived else MOVED if name in moved else DRIVEN for name in task.state_names]
    ahead = {name: one_step_on(formula) for name, formula in derived.items()}
    formulas = [ahead.get(name) or moved.get(name) for name in task.state_names]
    code, operand, spans = lower_programs(formulas, frame_slot(task, history), dtype)
    order = np.array([task.state_names.index(name) for name in derived], np.int64)
    return {"ways": np.array(ways), "order": order, "code": code, "operand": operand, "spans": spans}
