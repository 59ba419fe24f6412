"""What a controller is thinking: the summands of its formula, with what each is worth at this step."""

from collections.abc import Iterator
from typing import NamedTuple

from clearloop.controllers import Controller
from clearloop.controllers.equation import Equation
from clearloop.controllers.linear import Linear
from clearloop.controllers.memory import Memory
from clearloop.expression import OPERATIONS, Call, Expression, Number, Variable, evaluate, parse, to_text
from clearloop.expression import variables as variables_of
from clearloop.report.sentences import rounded

NEGATE, PLUS, MINUS, TIMES = (OPERATIONS[name] for name in ("neg", "add", "sub", "mul"))

LONGEST = 120  # characters of a term, as it is shown


class Term(NamedTuple):
    action: str
    text: str
    """as it is shown"""
    summand: Expression


def terms_of(controller: Controller) -> tuple[Term, ...]:
    """Those of equations and of gains, which add up to the action before it is limited; else none."""
    if isinstance(controller, Equation):
        formulas = {name: controller.formula(name) for name in controller.actions}
        return tuple(
            Term(name, shortened(rounded(to_text(summand))), summand)
            for name, formula in formulas.items()
            for summand in summands(formula)
        )
    if isinstance(controller, Linear):
        return tuple(
            Term(name, f"{gain:.3g}*{feature}", Call(TIMES, (Number(gain), parse(feature))))
            for name, row in controller.gains.items()
            for feature, gain in row.items()
        )
    return ()


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


def worth(term: Term, memory: Memory, actions: tuple[str, ...]) -> float:
    """At the step that the memory has just been through: its latest action is the one that was chosen."""

    def read(variable: Variable) -> float:
        if variable.name in actions:
            return memory.value(variable.name, (variable.lag or 0) + 1)
        return memory.error(variable)

    return evaluate(term.summand, {variable: read(variable) for variable in variables_of(term.summand)})
