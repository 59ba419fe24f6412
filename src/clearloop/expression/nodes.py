"""A formula is a tree of numbers, variables and calls of operations, which is well-formed by construction.

A tree is immutable, has the right number and kinds of arguments everywhere, and is at most MAX_DEPTH
levels deep, so that a recursive function over trees never exhausts Python's stack.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeVar

from clearloop.errors import ClearloopError


class FormulaError(ClearloopError):
    """The error of a text or tree that is no formula; `column` counts characters from 1, or is None."""

    def __init__(self, problem: str, column: int | None = None, advice: str = "") -> None:
        """Say what is wrong, at which column of the text, if there is one, and what to write instead."""
        place = "" if column is None else f" at column {column}"
        super().__init__(f"{problem}{place}{advice and '; '}{advice}")
        self.column = column


# The functions below define what each operation means, in plain Python on doubles. All are total: finite
# arguments give a finite result. If mathematics has no result, it is 0 or the largest double of the right
# sign. Conditions are 1.0 and 0.0. The sign of a zero never decides anything, so that 0 - x and -x, or x*0
# and 0, are interchangeable.

LARGEST = sys.float_info.max
SMALLEST_LOGARITHM = 1e-30  # below this, log(x) is log(1e-30)
READ_LIMIT = 1e12  # a variable is read limited to ±1e12, so that exports can rule overflow out


def read(value: float) -> float:
    """Limit the value of a variable."""
    return float(min(max(value, -READ_LIMIT), READ_LIMIT))


def saturated(value: float) -> float:
    """Limit a result to the largest double."""
    return min(max(value, -LARGEST), LARGEST)


def add(a: float, b: float) -> float:
    """Return a + b, saturated."""
    return saturated(a + b)


def sub(a: float, b: float) -> float:
    """Return a - b, saturated."""
    return saturated(a - b)


def mul(a: float, b: float) -> float:
    """Return a * b, saturated."""
    return saturated(a * b)


def div(a: float, b: float) -> float:
    """Return a / b, saturated; division by zero gives 0."""
    return 0.0 if b == 0 else saturated(a / b)


def power(base: float, exponent: float) -> float:
    """Return base ** exponent, saturated; 0 for a negative base with a broken exponent, and for 0 ** -1."""
    if base == 0:
        return 1.0 if exponent == 0 else 0.0
    if base < 0 and not exponent.is_integer():
        return 0.0
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -LARGEST if base < 0 and math.fmod(exponent, 2) != 0 else LARGEST


def neg(x: float) -> float:
    """Return -x."""
    return -x


def sqrt(x: float) -> float:
    """Return the square root; 0 for a negative number."""
    return math.sqrt(max(x, 0.0))


def exp(x: float) -> float:
    """Return the exponential, saturated."""
    try:
        return math.exp(x)
    except OverflowError:
        return LARGEST


def log(x: float) -> float:
    """Return the natural logarithm of x, or of 1e-30 if x is less."""
    return math.log(max(x, SMALLEST_LOGARITHM))


def tan(x: float) -> float:
    """Return the tangent, saturated."""
    return saturated(math.tan(x))


def atan2(y: float, x: float) -> float:
    """Return the angle of the point (x, y)."""
    return math.atan2(y + 0.0, x + 0.0)  # -0.0 + 0.0 is 0.0: negative zeros would turn the result by π


def sign(x: float) -> float:
    """Return 1, 0 or -1."""
    return float(x > 0) - float(x < 0)


def clip(x: float, low: float, high: float) -> float:
    """Limit x to low and then to high, which wins if low is larger."""
    return min(max(x, low), high)


def wrap(x: float) -> float:
    """Return the angle in [−π, π); beyond about 1e15, where doubles resolve no turn, it means nothing."""
    turns = float(math.floor((x + math.pi) / math.tau))
    angle = x - math.tau * turns
    return angle if -math.pi <= angle < math.pi else -math.pi  # rounding, or overflow for huge x


def lt(a: float, b: float) -> float:
    """Return whether a < b."""
    return float(a < b)


def le(a: float, b: float) -> float:
    """Return whether a <= b."""
    return float(a <= b)


def gt(a: float, b: float) -> float:
    """Return whether a > b."""
    return float(a > b)


def ge(a: float, b: float) -> float:
    """Return whether a >= b."""
    return float(a >= b)


def eq(a: float, b: float) -> float:
    """Return whether a == b."""
    return float(a == b)


def ne(a: float, b: float) -> float:
    """Return whether a != b."""
    return float(a != b)


def both(p: float, q: float) -> float:
    """Return whether p and q hold."""
    return float(p != 0 and q != 0)


def either(p: float, q: float) -> float:
    """Return whether p or q holds."""
    return float(p != 0 or q != 0)


def inverse(p: float) -> float:
    """Return whether p does not hold."""
    return float(p == 0)


def choose(p: float, a: float, b: float) -> float:
    """Return a if p holds, otherwise b."""
    return a if p != 0 else b


# One table holds the operations of the language; parser, printer, kernels and exports all read it.

Kind = Literal["number", "condition"]

NUMBER, VARIABLE = 0, 1  # opcodes of the two leaves; operations are numbered from 2 in the table's order

# The precedence of infix and prefix operations, as in Python.
OR, AND, NOT, COMPARISON, SUM, PRODUCT, NEGATION, POWER, ATOM = range(1, 10)


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One row of the table. There is one object for each operation, so `is` compares them."""

    name: str
    opcode: int
    kinds: tuple[Kind, ...]
    """kinds of the arguments"""
    kind: Kind
    """kind of the result"""
    weight: int
    """what it adds to a formula's complexity"""
    meaning: Callable[..., float]
    """definition on doubles; conditions are 1.0 and 0.0"""
    symbol: str = ""
    """sign between or before its arguments; empty if it is written as a function"""
    precedence: int = ATOM

    @property
    def arity(self) -> int:
        """The number of arguments."""
        return len(self.kinds)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], "Operation"], tuple[str]]:
        return _operation, (self.name,)  # a copy is the same object again


_ONE: tuple[Kind, ...] = ("number",)
_TWO: tuple[Kind, ...] = ("number", "number")
_THREE: tuple[Kind, ...] = ("number", "number", "number")
_CONDITION: tuple[Kind, ...] = ("condition",)
_CONDITIONS: tuple[Kind, ...] = ("condition", "condition")
_CHOICE: tuple[Kind, ...] = ("condition", "number", "number")

_Row = tuple[str, tuple[Kind, ...], Kind, int, Callable[..., float], str, int]
_ROWS: tuple[_Row, ...] = (
    # name, arguments, result, weight, meaning, symbol, precedence
    ("add", _TWO, "number", 1, add, "+", SUM),
    ("sub", _TWO, "number", 1, sub, "-", SUM),
    ("mul", _TWO, "number", 1, mul, "*", PRODUCT),
    ("div", _TWO, "number", 2, div, "/", PRODUCT),
    ("pow", _TWO, "number", 4, power, "**", POWER),
    ("neg", _ONE, "number", 1, neg, "-", NEGATION),
    ("min", _TWO, "number", 4, min, "", ATOM),
    ("max", _TWO, "number", 4, max, "", ATOM),
    ("abs", _ONE, "number", 4, abs, "", ATOM),
    ("sqrt", _ONE, "number", 4, sqrt, "", ATOM),
    ("exp", _ONE, "number", 4, exp, "", ATOM),
    ("log", _ONE, "number", 4, log, "", ATOM),
    ("sin", _ONE, "number", 4, math.sin, "", ATOM),
    ("cos", _ONE, "number", 4, math.cos, "", ATOM),
    ("tan", _ONE, "number", 4, tan, "", ATOM),
    ("atan2", _TWO, "number", 4, atan2, "", ATOM),
    ("tanh", _ONE, "number", 4, math.tanh, "", ATOM),
    ("sign", _ONE, "number", 4, sign, "", ATOM),
    ("clip", _THREE, "number", 4, clip, "", ATOM),
    ("wrap", _ONE, "number", 4, wrap, "", ATOM),
    ("lt", _TWO, "condition", 4, lt, "<", COMPARISON),
    ("le", _TWO, "condition", 4, le, "<=", COMPARISON),
    ("gt", _TWO, "condition", 4, gt, ">", COMPARISON),
    ("ge", _TWO, "condition", 4, ge, ">=", COMPARISON),
    ("eq", _TWO, "condition", 4, eq, "==", COMPARISON),
    ("ne", _TWO, "condition", 4, ne, "!=", COMPARISON),
    ("and", _CONDITIONS, "condition", 4, both, "and", AND),
    ("or", _CONDITIONS, "condition", 4, either, "or", OR),
    ("not", _CONDITION, "condition", 4, inverse, "not", NOT),
    ("if", _CHOICE, "number", 5, choose, "", ATOM),
)

OPERATIONS: dict[str, Operation] = {
    name: Operation(name, opcode, kinds, kind, weight, meaning, symbol, precedence)
    for opcode, (name, kinds, kind, weight, meaning, symbol, precedence) in enumerate(_ROWS, VARIABLE + 1)
}

_ALL = OPERATIONS.values()
BY_OPCODE: dict[int, Operation] = {row.opcode: row for row in _ALL}
NAMED_FUNCTIONS: dict[str, Operation] = {row.name: row for row in _ALL if not row.symbol}
PREFIX: dict[str, Operation] = {row.symbol: row for row in _ALL if row.symbol and row.arity == 1}
INFIX: dict[str, Operation] = {row.symbol: row for row in _ALL if row.symbol and row.arity == 2}

_RESERVED = frozenset(NAMED_FUNCTIONS) | {"and", "or", "not"}


def is_name(text: str) -> bool:
    """Tell whether a formula can read a state, an action or a column of this name."""
    return text.isidentifier() and text not in _RESERVED


def _operation(name: str) -> Operation:
    return OPERATIONS[name]


MAX_DEPTH = 200
MAX_LAG = 1_000_000

VariablePart = Literal["value", "error", "setpoint"]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Number:
    """A constant, which may be any finite double. Negative zero becomes zero."""

    value: float
    kind: ClassVar[Kind] = "number"
    depth: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise FormulaError(f"{self.value} is not a finite number")
        object.__setattr__(self, "value", float(self.value) + 0.0)

    def __str__(self) -> str:
        return repr(self.value).removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Variable:
    """A named quantity, its setpoint or its error (value minus setpoint), now or some steps ago."""

    name: str
    part: VariablePart = "value"
    lag: int | None = None
    """steps into the past; None if the formula writes no time"""
    kind: ClassVar[Kind] = "number"
    depth: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise FormulaError(f"{self.name!r} cannot be a name in a formula")
        if self.lag is not None and not 0 <= self.lag <= MAX_LAG:
            raise FormulaError(f"a lag is a number of steps from 0 to {MAX_LAG}, not {self.lag}")

    def __str__(self) -> str:
        part = "" if self.part == "value" else f".{self.part}"
        time = "" if self.lag is None else f"[t-{self.lag}]" if self.lag else "[t]"
        return f"{self.name}{part}{time}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call:
    """An operation applied to arguments."""

    operation: Operation
    arguments: "tuple[Expression, ...]"
    depth: int = field(init=False)
    """levels of the tree"""
    _hash: int = field(init=False)

    def __post_init__(self) -> None:
        kinds = tuple([argument.kind for argument in self.arguments])
        if kinds != self.operation.kinds:
            raise FormulaError(
                f"{self.operation.name!r} takes {', '.join(self.operation.kinds)}, not {', '.join(kinds)}"
            )
        depth = 1 + max([argument.depth for argument in self.arguments])
        if depth > MAX_DEPTH:
            raise too_deep()
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "_hash", hash((self.operation.opcode, *self.arguments)))

    @property
    def kind(self) -> Kind:
        """The kind of the result."""
        return self.operation.kind

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Call):
            return NotImplemented
        if self is other:
            return True
        return self._hash == other._hash and _words(self) == _words(other)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Call, (self.operation, self.arguments)  # names have other hashes in another process

    def __repr__(self) -> str:
        return fold(self, repr, lambda operation, parts: f"Call({operation}, ({', '.join(parts)},))")


Expression = Number | Variable | Call


def too_deep(column: int | None = None) -> FormulaError:
    """Return the error of a formula that has too many levels."""
    return FormulaError(f"formula nested deeper than {MAX_DEPTH} levels", column, "split it into parts")


def postorder(expression: Expression) -> Iterator[Expression]:
    """Return all nodes in the order of a stack machine: arguments before their call, from left to right."""
    todo, reverse = [expression], []
    while todo:
        node = todo.pop()
        reverse.append(node)
        if isinstance(node, Call):
            todo.extend(node.arguments)
    return reversed(reverse)


def _words(expression: Expression) -> list[Number | Variable | Operation]:
    # Arities are fixed, so equal postfix words mean equal trees; no recursion for deep ones.
    return [node.operation if isinstance(node, Call) else node for node in postorder(expression)]


def fold(
    expression: Expression,
    leaf: Callable[[Number | Variable], _T],
    call: Callable[[Operation, Sequence[_T]], _T],
) -> _T:
    """Replace every node by a value, from the leaves up, and return the value of the root.

    Args:
        expression: The formula.
        leaf: Gives the value of a number or a variable.
        call: Gives the value of a call from its operation and the values of its arguments.
    """
    stack: list[_T] = []
    for node in postorder(expression):
        if isinstance(node, Call):
            first = len(stack) - node.operation.arity
            stack[first:] = [call(node.operation, stack[first:])]
        else:
            stack.append(leaf(node))
    return stack.pop()


def variables(expression: Expression) -> tuple[Variable, ...]:
    """Return the distinct variables in the order in which they first appear."""
    return tuple(dict.fromkeys(node for node in postorder(expression) if isinstance(node, Variable)))


def substitute(expression: Expression, replacements: Mapping[Variable, Expression]) -> Expression:
    """Return the formula with some variables replaced, all at once; the others stay."""

    def leaf(node: Number | Variable) -> Expression:
        return replacements.get(node, node) if isinstance(node, Variable) else node

    return fold(expression, leaf, lambda operation, arguments: Call(operation, tuple(arguments)))


def complexity(expression: Expression) -> int:
    """Measure how hard a formula is to read: 1 for each leaf, plus the weights of its operations."""
    return sum(node.operation.weight if isinstance(node, Call) else 1 for node in postorder(expression))


def evaluate(expression: Expression, values: Mapping[Variable, float]) -> float:
    """Return the value of a formula in double precision, evaluated in the order in which it is printed.

    The value is finite for all finite `values`; a condition gives 1.0 or 0.0. This is the reference that
    kernels and exports are tested against, not the way to run many states.

    Raises:
        FormulaError: A variable has no value.
    """

    def leaf(node: Number | Variable) -> float:
        if isinstance(node, Number):
            return node.value
        try:
            return read(values[node])
        except KeyError:
            raise FormulaError(f"'{node}' has no value") from None

    return fold(expression, leaf, lambda operation, arguments: operation.meaning(*arguments))
