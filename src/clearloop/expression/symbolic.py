"""`to_sympy` gives a formula to SymPy, which can differentiate, linearise or plot it.

SymPy gets the mathematics as it was written (nothing is evaluated), not the guards that make the language
total: if a formula divides by zero, its SymPy twin does so too.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from clearloop.expression.nodes import Expression, Number, Operation, Variable, fold


def to_sympy(expression: Expression) -> Any:
    """Return a formula in SymPy; variables become real symbols of the same text, such as `theta[t-3]`."""
    return fold(expression, _leaf, _call)


def _leaf(node: Number | Variable) -> Any:
    import sympy

    if isinstance(node, Variable):
        return sympy.Symbol(str(node), real=True)
    return sympy.Integer(int(node.value)) if node.value.is_integer() else sympy.Float(node.value)


def _call(operation: Operation, arguments: Sequence[Any]) -> Any:
    return _constructors()[operation.name](*arguments)


@cache
def _constructors() -> dict[str, Callable[..., Any]]:
    import sympy

    def written(function: Any) -> Callable[..., Any]:
        return lambda *arguments: function(*arguments, evaluate=False)

    def flat(function: Any) -> Callable[..., Any]:
        """Make one long sum instead of a sum of sums, as it was written."""
        return lambda x, y: function(*(x.args if isinstance(x, function) else (x,)), y, evaluate=False)

    add, mul, power = flat(sympy.Add), flat(sympy.Mul), written(sympy.Pow)
    least, most = written(sympy.Min), written(sympy.Max)

    def negated(x: Any) -> Any:
        return -x if x.is_Number else sympy.Mul(-1, x, evaluate=False)

    def wrapped(x: Any) -> Any:
        return sympy.Mod(x + sympy.pi, 2 * sympy.pi, evaluate=False) - sympy.pi

    return {
        "add": add,
        "sub": lambda x, y: add(x, negated(y)),
        "mul": mul,
        "div": lambda x, y: power(y, -1) if x == 1 else mul(x, power(y, -1)),
        "pow": power,
        "neg": negated,
        "min": least,
        "max": most,
        "abs": written(sympy.Abs),
        "sqrt": written(sympy.sqrt),
        "exp": written(sympy.exp),
        "log": written(sympy.log),
        "sin": written(sympy.sin),
        "cos": written(sympy.cos),
        "tan": written(sympy.tan),
        "atan2": written(sympy.atan2),
        "tanh": written(sympy.tanh),
        "sign": written(sympy.sign),
        "clip": lambda x, low, high: least(most(x, low), high),
        "wrap": wrapped,
        "lt": written(sympy.StrictLessThan),
        "le": written(sympy.LessThan),
        "gt": written(sympy.StrictGreaterThan),
        "ge": written(sympy.GreaterThan),
        "eq": written(sympy.Equality),
        "ne": written(sympy.Unequality),
        "and": written(sympy.And),
        "or": written(sympy.Or),
        "not": written(sympy.Not),
        "if": lambda p, x, y: sympy.Piecewise((x, p), (y, True), evaluate=False),
    }
