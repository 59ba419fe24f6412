"""Shorter formulas with exactly the same meaning, double for double.

A formula is built again from the leaves up. Whenever a call is to be made, the first rule that applies to
its operation gives something simpler instead, made in the same way. Rules are the laws of `laws.py` and,
where a law would need arithmetic or recursion, the functions below. To add one, add it to a table.
"""

from collections.abc import Callable
from functools import cache, partial
from math import inf

from clearloop.expression.error import FormulaError
from clearloop.expression.laws import CONDITION_LAWS, NUMBER_LAWS
from clearloop.expression.matching import Head, Rewrite, head, rewrite
from clearloop.expression.meanings import clip
from clearloop.expression.nodes import Call, Expression, Number, fold
from clearloop.expression.operations import OPERATIONS, Operation

Arguments = tuple[Expression, ...]
Rule = Callable[[Arguments], Expression | None]

ALWAYS = Call(OPERATIONS["lt"], (Number(0), Number(1)))
NEVER = Call(OPERATIONS["lt"], (Number(1), Number(0)))


def simplify(expression: Expression) -> Expression:
    """A formula with the same value for all finite inputs, never more complex. Twice is as good as once."""
    try:
        return fold(expression, lambda leaf: leaf, lambda operation, parts: _make(operation, tuple(parts)))
    except FormulaError:  # -x*y → -(x*y) can add a level, and there was none left
        return expression


def _make(operation: Operation, arguments: Arguments) -> Expression:
    """A call with simple arguments, or what is simpler."""
    for rule in _rules(operation, tuple(map(head, arguments))):
        if simpler := rule(arguments):
            return simpler
    return Call(operation, arguments)


def _call(name: str, *arguments: Expression) -> Expression:
    return _make(OPERATIONS[name], arguments)


def _constant(operation: Operation, arguments: Arguments) -> Expression:
    value = operation.meaning(*[argument.value for argument in arguments if isinstance(argument, Number)])
    if operation.kind == "number":
        return Number(value)
    return ALWAYS if value else NEVER


def _negate(arguments: Arguments) -> Expression | None:
    """-(3*x) → -3*x, -(x - y) → y - x, -(3*x + y) → -3*x - y, -(-x) → x"""
    return _opposite(arguments[0])


def _opposite(x: Expression) -> Expression | None:
    """-x, if it can be had for the price of x."""
    match x:
        case Number(value):
            return Number(-value)
        case Call(Operation("neg"), (y,)):
            return y
        case Call(Operation("sub"), (y, z)):
            return _call("sub", z, y)
        case Call(Operation("add"), (y, z)):
            return (minus := _opposite(y)) and _call("sub", minus, z)
        case Call(Operation("mul" | "div") as operation, factors):
            return _first_changed(operation, factors, _opposite)
    return None


def _without_minus(x: Expression) -> Expression | None:
    """-x, if x shows a minus sign that can be dropped: -y, -3, -3*y, y/-3."""
    match x:
        case Number(value) if value < 0:
            return Number(-value)
        case Call(Operation("neg"), (y,)):
            return y
        case Call(Operation("mul" | "div") as operation, factors):
            return _first_changed(operation, factors, _without_minus)
    return None


def _first_changed(
    operation: Operation, factors: Arguments, change: Callable[[Expression], Expression | None]
) -> Expression | None:
    left, right = factors
    if changed := change(left):
        return _make(operation, (changed, right))
    if changed := change(right):
        return _make(operation, (left, changed))
    return None


def _add(arguments: Arguments) -> Expression | None:
    """One sign for two: x + -y → x - y."""
    x, y = arguments
    return (plus := _without_minus(y)) and _call("sub", x, plus)


def _subtract(arguments: Arguments) -> Expression | None:
    """One sign for two: x - -y → x + y."""
    x, y = arguments
    return (plus := _without_minus(y)) and _call("add", x, plus)


def _absolute(arguments: Arguments) -> Expression | None:
    """No sign matters here: abs(-x) → abs(x)."""
    return (plus := _without_minus(arguments[0])) and _call("abs", plus)


def _square(arguments: Arguments) -> Expression | None:
    """Nor here: (-x)**2 → x**2."""
    base, exponent = arguments
    if exponent != Number(2):
        return None
    return (plus := _without_minus(base)) and _call("pow", plus, exponent)


Range = tuple[Expression, float, float]  # what is limited, and to what; ±inf where it is not


def _range(name: str, arguments: Arguments) -> Range | None:
    match name, arguments:
        case "min", (x, Number(high)):
            return x, -inf, high
        case "max", (x, Number(low)):
            return x, low, inf
        case "clip", (x, Number(low), Number(high)):
            return x, low, high
    return None


def _limit(name: str, arguments: Arguments) -> Expression | None:
    """Limits within limits are limits: max(min(x, 2), 1) → clip(x, 1, 2), min(max(x, 2), 1) → 1."""
    outer = _range(name, arguments)
    if outer is None:
        return None
    x, low, high = outer
    if low >= high:
        return Number(high)
    inner = _range(x.operation.name, x.arguments) if isinstance(x, Call) else None
    if inner is None:
        return None
    x, inner_low, inner_high = inner
    return _limited(x, clip(inner_low, low, high), clip(inner_high, low, high))


def _limited(x: Expression, low: float, high: float) -> Expression:
    if low == -inf:
        return _call("min", x, Number(high))
    if high == inf:
        return _call("max", x, Number(low))
    return _call("clip", x, Number(low), Number(high))


_FUNCTIONS: tuple[tuple[str, Rule], ...] = (
    ("neg", _negate),
    ("add", _add),
    ("sub", _subtract),
    ("abs", _absolute),
    ("pow", _square),
    ("min", partial(_limit, "min")),
    ("max", partial(_limit, "max")),
    ("clip", partial(_limit, "clip")),
)


@cache
def _laws() -> list[Rewrite]:
    numbers = [rewrite(law, "number") for law in NUMBER_LAWS]
    return numbers + [rewrite(law, "condition") for law in CONDITION_LAWS]


@cache
def _rules(operation: Operation, heads: tuple[Head, ...]) -> list[Rule]:
    """The rules that may apply to a call of the operation, given what its arguments are at their roots."""
    if all(head is Number for head in heads):
        return [partial(_constant, operation)]
    functions = [function for name, function in _FUNCTIONS if name == operation.name]
    laws = [law for law in _laws() if law.left.operation is operation and law.fits(heads)]
    return functions + [partial(law.apply, make=_make) for law in laws]
