"""`simplify` gives a shorter formula with exactly the same meaning, double for double.

A formula is built again from the leaves up. For each call, the first rule that applies to its operation gives
something simpler instead, which is built in the same way. Rules are the laws below and, if a law would need
arithmetic or recursion, the functions after them. To add a rule, add it to a table.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import repeat
from math import inf

from clearloop.expression.nodes import (
    OPERATIONS,
    Call,
    Expression,
    FormulaError,
    Kind,
    Number,
    Operation,
    Variable,
    clip,
    fold,
)
from clearloop.expression.parsing import parse

# The laws are written in the formula language itself. In a law x, y, z stand for any number, c for a constant
# and p, q for any condition. A law holds to the last bit: for all finite arguments both sides are the same
# double, rounding, saturation and division by zero included (only the sign of a zero may differ, and no
# operation tells zeros apart). So there is no x/x = 1 here, which fails at 0, and no regrouping of sums and
# products, which round differently. The right side is never more complex. "Always" is written `0 < 1`,
# "never" is written `1 < 0`.

Identity = tuple[str, str]
"""A law: left side and right side."""

ARITHMETIC: tuple[Identity, ...] = (
    ("x + 0", "x"),
    ("0 + x", "x"),
    ("x + x", "2*x"),
    ("-x + y", "y - x"),
    ("x - 0", "x"),
    ("0 - x", "-x"),
    ("x - x", "0"),
    ("x*c", "c*x"),
    ("0*x", "0"),
    ("1*x", "x"),
    ("-1*x", "-x"),
    ("-x*y", "-(x*y)"),
    ("x*-y", "-(x*y)"),
    ("0/x", "0"),
    ("x/0", "0"),
    ("x/1", "x"),
    ("x/-1", "-x"),
    ("-x/y", "-(x/y)"),
    ("x/-y", "-(x/y)"),
    ("x**0", "1"),
    ("x**1", "x"),
    ("1**x", "1"),
)

FUNCTION_LAWS: tuple[Identity, ...] = (
    ("abs(abs(x))", "abs(x)"),
    ("abs(sqrt(x))", "sqrt(x)"),
    ("abs(exp(x))", "exp(x)"),
    ("abs(x*x)", "x*x"),
    ("abs(x**2)", "x**2"),
    ("sign(sign(x))", "sign(x)"),
    ("sign(-x)", "-sign(x)"),
    ("min(x, x)", "x"),
    ("max(x, x)", "x"),
    ("min(c, x)", "min(x, c)"),
    ("max(c, x)", "max(x, c)"),
    ("min(max(x, y), z)", "clip(x, y, z)"),
    ("min(x, max(y, z))", "clip(y, z, x)"),
    ("clip(x, y, y)", "y"),
    ("clip(x, x, y)", "min(x, y)"),
    ("clip(x, y, x)", "x"),
    ("clip(clip(x, y, z), y, z)", "clip(x, y, z)"),
)

CHOICES: tuple[Identity, ...] = (
    ("if(p, x, x)", "x"),
    ("if(0 < 1, x, y)", "x"),
    ("if(1 < 0, x, y)", "y"),
    ("if(p, if(p, x, y), z)", "if(p, x, z)"),
    ("if(p, x, if(p, y, z))", "if(p, x, z)"),
    ("if(x < 0, -x, x)", "abs(x)"),
    ("if(x <= 0, -x, x)", "abs(x)"),
    ("if(x > 0, x, -x)", "abs(x)"),
    ("if(x >= 0, x, -x)", "abs(x)"),
    ("if(x < y, x, y)", "min(x, y)"),
    ("if(x <= y, x, y)", "min(x, y)"),
    ("if(x < y, y, x)", "max(x, y)"),
    ("if(x <= y, y, x)", "max(x, y)"),
    ("if(x > y, x, y)", "max(x, y)"),
    ("if(x >= y, x, y)", "max(x, y)"),
    ("if(x > y, y, x)", "min(x, y)"),
    ("if(x >= y, y, x)", "min(x, y)"),
)

_LOGIC: tuple[Identity, ...] = (
    ("not not p", "p"),
    ("not (p and q)", "not p or not q"),
    ("not (p or q)", "not p and not q"),
    ("p and p", "p"),
    ("p or p", "p"),
    ("p and 0 < 1", "p"),
    ("0 < 1 and p", "p"),
    ("p and 1 < 0", "1 < 0"),
    ("1 < 0 and p", "1 < 0"),
    ("p or 1 < 0", "p"),
    ("1 < 0 or p", "p"),
    ("p or 0 < 1", "0 < 1"),
    ("0 < 1 or p", "0 < 1"),
    ("x < x", "1 < 0"),
    ("x > x", "1 < 0"),
    ("x != x", "1 < 0"),
    ("x <= x", "0 < 1"),
    ("x >= x", "0 < 1"),
    ("x == x", "0 < 1"),
)

# The laws below hold for every comparison. Each row has a comparison, its opposite, and its mirror image.
_COMPARISONS = (
    ("<", ">=", ">"),
    ("<=", ">", ">="),
    (">", "<=", "<"),
    (">=", "<", "<="),
    ("==", "!=", "=="),
    ("!=", "==", "!="),
)

COMPARISON_LAWS: tuple[Identity, ...] = tuple(
    law
    for sign, opposite, mirrored in _COMPARISONS
    for law in (
        (f"not x {sign} y", f"x {opposite} y"),
        (f"x {sign} y and x {opposite} y", "1 < 0"),
        (f"x {sign} y or x {opposite} y", "0 < 1"),
        (f"c {sign} x", f"x {mirrored} c"),
        (f"-x {sign} -y", f"x {mirrored} y"),
        (f"-x {sign} c", f"x {mirrored} -c"),
        (f"x - y {sign} 0", f"x {sign} y"),
    )
)

NUMBER_LAWS = ARITHMETIC + FUNCTION_LAWS + CHOICES
CONDITION_LAWS = _LOGIC + COMPARISON_LAWS


# Laws become patterns: the left side is searched in a tree and replaced by the right side.

Make = Callable[[Operation, tuple[Expression, ...]], Expression]
_Found = dict[str, Expression]
Head = Operation | type[Number] | type[Variable]


def head(expression: Expression) -> Head:
    """Return the operation of a call, or the type of a leaf."""
    return expression.operation if isinstance(expression, Call) else type(expression)


@dataclass(frozen=True, slots=True)
class Hole:
    """A place for any expression; places with the same name hold the same expression."""

    name: str
    constant: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """A call whose arguments must match patterns."""

    operation: Operation
    arguments: "tuple[Pattern, ...]"


Pattern = Hole | Number | Shape


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A law, ready to be applied from left to right."""

    left: Shape
    right: Pattern

    def fits(self, heads: Sequence[Head]) -> bool:
        """Tell whether arguments with these roots may match: a quick test that rules most laws out."""
        return all(map(_fits, self.left.arguments, heads))

    def apply(self, arguments: tuple[Expression, ...], make: Make) -> Expression | None:
        """Return the right side for arguments of the left side's operation, or None if they do not match."""
        found: _Found = {}
        if _match_all(self.left.arguments, arguments, found):
            return _build(self.right, found, make)
        return None


def rewrite(law: Identity, kind: Kind) -> Rewrite:
    """Return a law between numbers or between conditions as a pair of patterns."""
    left, right = (_pattern(parse(_readable(side), kind=kind)) for side in law)
    assert isinstance(left, Shape)  # noqa: S101 - laws are ours, not the user's
    return Rewrite(left, right)


def _readable(side: str) -> str:
    # The language has no names for conditions: the hole p is read as the condition p == p.
    return re.sub(r"\b([pq])\b", r"(\1 == \1)", side)


def _pattern(expression: Expression) -> Pattern:
    match expression:
        case Number():
            return expression
        case Variable(name):
            return Hole(name, constant=name == "c")
        case Call(_, (Variable("p" | "q" as name), Variable())):
            return Hole(name, constant=False)
        case Call(operation, arguments):
            return Shape(operation, tuple(map(_pattern, arguments)))


def _fits(pattern: Pattern, head: Head) -> bool:
    if isinstance(pattern, Shape):
        return pattern.operation is head
    return head is Number or (isinstance(pattern, Hole) and not pattern.constant)


def _match(pattern: Pattern, expression: Expression, found: _Found) -> bool:
    if isinstance(pattern, Shape):
        return (
            isinstance(expression, Call)
            and pattern.operation is expression.operation
            and _match_all(pattern.arguments, expression.arguments, found)
        )
    if isinstance(pattern, Number):
        return pattern == expression
    if pattern.constant and not isinstance(expression, Number):
        return False
    return found.setdefault(pattern.name, expression) == expression


def _match_all(patterns: Sequence[Pattern], expressions: Sequence[Expression], found: _Found) -> bool:
    return all(map(_match, patterns, expressions, repeat(found)))


def _build(pattern: Pattern, found: _Found, make: Make) -> Expression:
    match pattern:
        case Number():
            return pattern
        case Hole(name):
            return found[name]
        case Shape(operation, arguments):
            return make(operation, tuple([_build(argument, found, make) for argument in arguments]))


Arguments = tuple[Expression, ...]
_Rule = Callable[[Arguments], Expression | None]

_ALWAYS = Call(OPERATIONS["lt"], (Number(0), Number(1)))
NEVER = Call(OPERATIONS["lt"], (Number(1), Number(0)))


def simplify(expression: Expression) -> Expression:
    """Return a formula with the same value for all finite inputs, which is never more complex.

    Simplifying twice gives the same as simplifying once.
    """
    try:
        return fold(expression, lambda leaf: leaf, lambda operation, parts: _make(operation, tuple(parts)))
    except FormulaError:  # -x*y → -(x*y) can add a level, and there was none left
        return expression


def _make(operation: Operation, arguments: Arguments) -> Expression:
    """Return a call with simplified arguments, or something simpler."""
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
    return _ALWAYS if value else NEVER


def _negate(arguments: Arguments) -> Expression | None:
    """Move a sign inwards: -(3*x) → -3*x, -(x - y) → y - x, -(3*x + y) → -3*x - y, -(-x) → x."""
    return _opposite(arguments[0])


def _opposite(x: Expression) -> Expression | None:
    """Return -x if it is not more complex than x."""
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
    """Return -x if x has a minus sign that can be dropped: -y, -3, -3*y, y/-3."""
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
    """Replace two signs by one: x + -y → x - y."""
    x, y = arguments
    return (plus := _without_minus(y)) and _call("sub", x, plus)


def _subtract(arguments: Arguments) -> Expression | None:
    """Replace two signs by one: x - -y → x + y."""
    x, y = arguments
    return (plus := _without_minus(y)) and _call("add", x, plus)


def _absolute(arguments: Arguments) -> Expression | None:
    """Drop a sign: abs(-x) → abs(x)."""
    return (plus := _without_minus(arguments[0])) and _call("abs", plus)


def _square(arguments: Arguments) -> Expression | None:
    """Drop a sign: (-x)**2 → x**2."""
    base, exponent = arguments
    if exponent != Number(2):
        return None
    return (plus := _without_minus(base)) and _call("pow", plus, exponent)


_Range = tuple[Expression, float, float]  # an expression with its lower and upper limit; ±inf for none


def _range(name: str, arguments: Arguments) -> _Range | None:
    match name, arguments:
        case "min", (x, Number(high)):
            return x, -inf, high
        case "max", (x, Number(low)):
            return x, low, inf
        case "clip", (x, Number(low), Number(high)):
            return x, low, high
    return None


def _limit(name: str, arguments: Arguments) -> Expression | None:
    """Merge limits within limits: max(min(x, 2), 1) → clip(x, 1, 2), min(max(x, 2), 1) → 1."""
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


_FUNCTIONS: tuple[tuple[str, _Rule], ...] = (
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
def _rules(operation: Operation, heads: tuple[Head, ...]) -> list[_Rule]:
    """Return the rules that may apply to a call of the operation, given the roots of its arguments."""
    if all(head is Number for head in heads):
        return [partial(_constant, operation)]
    functions = [function for name, function in _FUNCTIONS if name == operation.name]
    laws = [law for law in _laws() if law.left.operation is operation and law.fits(heads)]
    return functions + [partial(law.apply, make=_make) for law in laws]
