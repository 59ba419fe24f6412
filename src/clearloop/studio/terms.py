"""What a controller is thinking: the summands of its formula, with what each is worth at this step."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from clearloop.controllers import Controller
from clearloop.controllers.equation import Equation
from clearloop.controllers.linear import Linear
from clearloop.controllers.memory import Memory
from clearloop.controllers.pid import PID, Loop, loop_parts
from clearloop.expression import OPERATIONS, Call, Expression, Number, Variable, evaluate, parse, to_text
from clearloop.expression import variables as variables_of
from clearloop.report.sentences import rounded

NEGATE, PLUS, MINUS, TIMES = (OPERATIONS[name] for name in ("neg", "add", "sub", "mul"))

LONGEST = 120  # characters of a term, as it is shown


class Term(NamedTuple):
    action: str
    text: str
    """as it is shown"""
    worth: Callable[[Memory], float]
    """at the step that a memory has just been through"""


def terms_of(controller: Controller) -> tuple[Term, ...]:
    """Those of equations, gains and loops, which add up to the action before it is limited; else none."""
    if isinstance(controller, Equation):
        formulas = {name: controller.formula(name) for name in controller.actions}
        return tuple(
            Term(name, shortened(rounded(to_text(summand))), partial(value_of, summand, controller.actions))
            for name, formula in formulas.items()
            for summand in summands(formula)
        )
    if isinstance(controller, Linear):
        return tuple(
            Term(name, f"{gain:.3g}*{feature}", partial(value_of, product, controller.actions))
            for name, row in controller.gains.items()
            for feature, gain in row.items()
            for product in [Call(TIMES, (Number(gain), parse(feature)))]
        )
    return tuple(_loop_terms(controller)) if isinstance(controller, PID) else ()


def _loop_terms(controller: PID) -> Iterator[Term]:
    for action, output in controller.outputs.items():
        for loop in output.loops:
            for number, gain in enumerate((loop.kp, loop.ki, loop.kd)):
                if gain:
                    part = partial(_part_of, loop, output.scale * loop.weight, number)
                    yield Term(action, f"{'PID'[number]} of {loop.input}", part)
        if bias := output.bias:
            yield Term(action, f"{bias:.3g}", partial(value_of, Number(bias), controller.actions))


def _part_of(loop: Loop, weight: float, number: int, memory: Memory) -> float:
    return weight * loop_parts(loop, memory)[number]


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def summands(formula: Expression) -> list[Expression]:
    """`a - (b + c)` is a, -b and -c."""
    return [_negated(part) if negative else part for negative, part in _parts(formula)]


def _parts(formula: Expression) -> Iterator[tuple[bool, Expression]]:
    """From left to right; with whether it is subtracted."""
    todo = [(False, formula)]
    while todo:
        negative, node = todo.pop()
        operation = node.operation if isinstance(node, Call) else None
        if isinstance(node, Call) and operation in (PLUS, MINUS):
            first, second = node.arguments
            todo += [(negative != (operation is MINUS), second), (negative, first)]
        elif isinstance(node, Call) and operation is NEGATE:
            todo.append((not negative, node.arguments[0]))
        else:
            yield negative, node


def _negated(part: Expression) -> Expression:
    if isinstance(part, Number):
        return Number(-part.value)
    if isinstance(part, Call) and part.operation is TIMES and isinstance(part.arguments[0], Number):
        return Call(TIMES, (Number(-part.arguments[0].value), part.arguments[1]))
    return Call(NEGATE, (part,))


def value_of(summand: Expression, actions: tuple[str, ...], memory: Memory) -> float:
    """The memory's latest action is the one that was chosen by it."""

    def read(variable: Variable) -> float:
        if variable.name in actions:
            return memory.value(variable.name, (variable.lag or 0) + 1)
        return memory.error(variable)

    return evaluate(summand, {variable: read(variable) for variable in variables_of(summand)})
