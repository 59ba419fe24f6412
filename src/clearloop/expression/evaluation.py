"""The meaning of a formula: its evaluation in double precision, in the order in which it is printed."""

from collections.abc import Mapping

from clearloop.expression.error import FormulaError
from clearloop.expression.meanings import read
from clearloop.expression.nodes import Expression, Number, Variable, fold


def evaluate(expression: Expression, values: Mapping[Variable, float]) -> float:
    """The formula's value, finite for all finite `values`; a condition gives 1.0 or 0.0.

    This is the reference that kernels and exports are tested against, not the way to run many states.
    """

    def leaf(node: Number | Variable) -> float:
        if isinstance(node, Number):
            return node.value
        try:
            return read(values[node])
        except KeyError:
            raise FormulaError(f"'{node}' has no value") from None

    return fold(expression, leaf, lambda operation, arguments: operation.meaning(*arguments))
