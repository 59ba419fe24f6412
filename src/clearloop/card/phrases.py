"""Conditions, variables and numbers of a controller in words, with its units."""

from clearloop.controllers import Controller
from clearloop.expression import Call, Expression, Number, Variable, to_text
from clearloop.report.sentences import rounded

MINUS, TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"

_COMPARED = {
    "lt": "is less than", "le": "is at most", "gt": "is more than", "ge": "is at least",
    "eq": "is exactly", "ne": "is not",
}  # fmt: skip


def number(value: float, digits: int = 4) -> str:
    """`49.8`, with a true minus sign."""
    return f"{value + 0.0:.{digits}g}".replace("-", MINUS)


def signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)


def quantity(value: float, unit: str) -> str:
    return f"{number(value)} {unit}".rstrip()


def variable_words(variable: Variable) -> str:
    """`theta`, `the setpoint of rho`, `theta 3 steps ago`."""
    name = f"the setpoint of {variable.name}" if variable.part == "setpoint" else variable.name
    if not variable.lag:
        return name
    return f"{name} {'1 step' if variable.lag == 1 else f'{variable.lag} steps'} ago"


def condition_words(condition: Expression, controller: Controller) -> str:
    """`the size of theta is more than 0.12 rad and rho is at most 0 m`."""
    match condition:
        case Call(operation, (x, y)) if operation.name in _COMPARED:
            left, right = (_side(side, other, controller) for side, other in ((x, y), (y, x)))
            return f"{left} {_COMPARED[operation.name]} {right}"
        case Call(operation, (p, q)):
            return f" {operation.name} ".join(_joined(part, operation.name, controller) for part in (p, q))
        case Call(_, (p,)):
            return f"it is not so that {condition_words(p, controller)}"
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
            return f"the size of {variable_words(inner)}"
    return rounded(to_text(side))


def _name(expression: Expression) -> str:
    """Of the variable that stands there, or whose size does; nothing else has a unit that we know."""
    match expression:
        case Variable(name):
            return name
        case Call(operation, (Variable(name),)) if operation.name == "abs":
            return name
    return ""
