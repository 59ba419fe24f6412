"""The parts of a controller in words: terms of formulas, gains, loops, rules, with units."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clearloop.controllers import Controller
from clearloop.controllers.views import Note, Part, variable_words
from clearloop.diagnosis.terms import Experience
from clearloop.expression import Call, Expression, Number, Variable, to_text
from clearloop.expression.summands import Term
from clearloop.numbers import number, quantity, shorten_numbers, signed

_COMPARED = {
    "lt": "is less than", "le": "is at most", "gt": "is more than", "ge": "is at least",
    "eq": "is exactly", "ne": "is not",
}  # fmt: skip


def condition_words(condition: Expression, controller: Controller) -> str:
    """Return a condition in words, such as `the absolute value of theta is more than 0.12 rad`."""
    match condition:
        case Call(operation, (x, y)) if operation.name in _COMPARED:
            left, right = (_side(side, other, controller) for side, other in ((x, y), (y, x)))
            return f"{left} {_COMPARED[operation.name]} {right}"
        case Call(operation, (p, q)):
            return f" {operation.name} ".join(_joined(part, operation.name, controller) for part in (p, q))
        case Call(_, (p,)):
            return f"it is not true that {condition_words(p, controller)}"
    raise TypeError(f"not a condition: {condition!r}")


def _joined(part: Expression, within: str, controller: Controller) -> str:
    words = condition_words(part, controller)
    alone = not isinstance(part, Call) or part.operation.name in (*_COMPARED, within)
    return words if alone else f"({words})"


def _side(side: Expression, other: Expression, controller: Controller) -> str:
    match side:
        case Number(value):
            return quantity(value, controller.unit(_name(other)).strip())
        case Variable():
            return variable_words(side)
        case Call(operation, (Variable() as inner,)) if operation.name == "abs":
            return f"the absolute value of {variable_words(inner)}"
    return shorten_numbers(to_text(side))


def _name(expression: Expression) -> str:
    """Return the name of a variable or of the variable in abs(); the unit of other formulas is not known."""
    match expression:
        case Variable(name):
            return name
        case Call(operation, (Variable(name),)) if operation.name == "abs":
            return name
    return ""


NEGLIGIBLE = 1e-6  # of the steepest slope of a term; smaller slopes are not told


class Said(NamedTuple):
    """A line of the table that says what each part does."""

    what: Expression | str
    """the part itself"""
    does: str
    """the part in words"""
    usual: tuple[float, float] | None = None
    """the range of its value in most rows of the log"""
    level: int = 0
    """the number of conditions around it"""


def explain_parts(controller: Controller, action: str, experience: Experience) -> Iterator[Said]:
    """Explain each part of a controller that contributes to one action.

    Args:
        controller: The controller.
        action: The name of the action.
        experience: The values of the variables in the log and at the steady state.
    """
    yield from _parts(tuple(controller.parts(action)), controller, action, experience, 0)


def _parts(
    parts: Sequence[Part], controller: Controller, action: str, experience: Experience, level: int
) -> Iterator[Said]:
    if not parts:
        yield Said(Number(0.0), "nothing", None, level)
    for part in parts:
        if isinstance(part, Note):
            yield Said(part.label, part.does, None, level)
        elif isinstance(part, Term):
            yield _term(part, controller, action, experience, level)
        else:
            yield Said("", f"if {condition_words(part.condition, controller)}:", None, level)
            yield from _parts(part.then, controller, action, experience, level + 1)
            yield Said("", "otherwise:", None, level)
            yield from _parts(part.otherwise, controller, action, experience, level + 1)


def _term(term: Term, controller: Controller, action: str, experience: Experience, level: int) -> Said:
    formula, unit = term.formula, controller.unit(action).strip()
    if isinstance(term.core, Number):
        return Said(formula, f"always adds {quantity(term.factor, unit)}", None, level)
    usual = experience.range(formula)
    if isinstance(term.core, Variable):
        verb = "rises" if term.factor > 0 else "falls"
        size = quantity(abs(term.factor), unit)
        does = f"{action} {verb} by {size} {_for_each(term.core, controller)}"
        return Said(formula, does, usual, level)
    slopes = experience.slopes(formula)
    steepest = max(map(abs, slopes.values()), default=0.0)
    clear = {v: slope for v, slope in slopes.items() if abs(slope) > NEGLIGIBLE * steepest}
    near = " and ".join(
        f"{signed(slope)} {unit}".rstrip() + f" {_for_each(variable, controller)}"
        for variable, slope in clear.items()
    )
    does = f"at the operating point {near}" if near else "small deviations have no effect, larger ones do"
    return Said(formula, does + _bounds(term, unit), usual, level)


def _for_each(variable: Variable, controller: Controller) -> str:
    per = controller.unit(variable.name).strip() or "unit"
    return f"for each {per} of {variable_words(variable)}"


def _bounds(term: Term, unit: str) -> str:
    """Return a phrase with the bound of a term, if its outermost function has one."""
    match term.core:
        case Call(operation, _) if operation.name in ("tanh", "sin", "cos", "sign"):
            return f"; never beyond ± {quantity(abs(term.factor), unit)}"
        case Call(operation, (_, Number(low), Number(high))) if operation.name == "clip":
            ends = sorted((term.factor * low, term.factor * high))
            return f"; limited to {number(ends[0])} … {quantity(ends[1], unit)}"
        case Call(operation, (_, Number(bound))) if operation.name in ("min", "max"):
            most = (operation.name == "min") == (term.factor > 0)
            return f"; {'at most' if most else 'at least'} {quantity(term.factor * bound, unit)}"
    return ""
