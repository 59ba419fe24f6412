"""The constants of a controller file, wherever they stand, and files with other constants.

Constants of the same size change together: of rules that mirror each other, both sides keep doing so.
"""

import math
from collections.abc import Callable
from typing import Any

from clearloop.controllers import Controller, Equation
from clearloop.expression import Call, Expression, Number, fold, simplify, to_text

MOST_DIGITS = 6  # that are tried, before a constant is left as it is


def sizes(controller: Controller) -> tuple[float, ...]:
    """Of all constants, in the order of the file."""
    found: dict[float, None] = {}

    def look(value: float) -> float:
        found[abs(value)] = None
        return value

    with_constants(controller, look)
    return tuple(size for size in found if size)


def digits_of(value: float) -> int:
    """Significant ones, of the shortest text that means this value."""
    mantissa = f"{value!r}".lower().partition("e")[0]
    return len(mantissa.replace(".", "").strip("-0")) or 1


def with_size(controller: Controller, old: float, new: float) -> Controller:
    return with_constants(controller, lambda value: math.copysign(new, value) if abs(value) == old else value)


def with_constants(controller: Controller, change: Callable[[float], float]) -> Controller:
    """The same controller with each constant changed; names, windows and limits stay."""
    if isinstance(controller, Equation):
        outputs = {action: _formula(controller.formula(action), change) for action in controller.actions}
        return controller.model_copy(update={"outputs": outputs})
    table = controller.model_dump(mode="python", by_alias=True)
    table[controller.chosen_in] = _changed(table[controller.chosen_in], change)
    return type(controller).model_validate(table)


def _formula(formula: Expression, change: Callable[[float], float]) -> str:
    changed = fold(
        formula,
        lambda leaf: Number(change(leaf.value)) if isinstance(leaf, Number) else leaf,
        lambda operation, parts: Call(operation, tuple(parts)),
    )
    return to_text(simplify(changed))


def _changed(value: Any, change: Callable[[float], float]) -> Any:
    """Of tables and lists: every float; whole numbers count something."""
    if isinstance(value, dict):
        return {key: _changed(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_changed(item, change) for item in value)
    return change(value) if isinstance(value, float) else value


def short(value: float) -> str:
    """For people: at most as many digits as are tried."""
    return f"{value:.{MOST_DIGITS}g}"
