"""Where a routine changes its mind: conditions, divisions, limits; and inputs right beside them."""

import math
from collections.abc import Iterator

import numpy as np

from clearloop.export.routine import Output, Routine, formulas
from clearloop.export.terms import call
from clearloop.expression import Call, Expression, Number
from clearloop.expression.nodes import postorder
from clearloop.verification.shadow import Inputs, Watch

HALVINGS = 64  # a distance is then as small as doubles tell apart, except right at 0
MOST_EDGES = 200


def edges(routine: Routine) -> list[Expression]:
    """Formulas that are 0 where the routine turns from one case to another."""
    found: list[Expression] = []
    for statement in routine.body:
        for tree in formulas(statement):
            for node in postorder(tree):
                if isinstance(node, Call):
                    found += _edges_of(node)
        if isinstance(statement, Output) and statement.limits:
            found += [call("sub", statement.value, Number(limit)) for limit in statement.limits]
    return list(dict.fromkeys(found))[:MOST_EDGES]


def _edges_of(node: Call) -> Iterator[Expression]:
    x = node.arguments
    match node.operation.name:
        case "lt" | "le" | "gt" | "ge" | "eq" | "ne" | "min" | "max":
            yield call("sub", x[0], x[1])
        case "div":
            yield x[1]
        case "pow" | "sqrt" | "log" | "abs" | "sign":
            yield x[0]
        case "clip":
            yield from (call("sub", x[0], limit) for limit in x[1:])
        case "wrap":
            yield from (call("sub", x[0], Number(turn * math.pi)) for turn in (-1, 1, 3))


def beside(
    edge: Expression, watch: Watch, starts: list[Inputs], rng: np.random.Generator
) -> tuple[Inputs, Inputs] | None:
    """Two inputs as near to each other as can be, on both sides of the edge; None if none were found.

    They lie on the way between two of the starts.
    """
    values = [(watch(edge, one), one) for one in starts]
    below, above = [one for value, one in values if value < 0], [one for value, one in values if value > 0]
    if not (below and above):
        return None
    left, right = below[rng.integers(len(below))], above[rng.integers(len(above))]
    for _ in range(HALVINGS):
        middle = {name: _middle(left[name], right[name]) for name in left}
        if middle in (left, right):
            break
        value = watch(edge, middle)
        if value == 0:
            return _around(edge, watch, middle, left, right)
        left, right = (middle, right) if value < 0 else (left, middle)
    return left, right


def _around(edge: Expression, watch: Watch, at: Inputs, left: Inputs, right: Inputs) -> tuple[Inputs, Inputs]:
    """The edge itself, and what comes next on the way."""
    for side in (left, right):
        near = {name: math.nextafter(at[name], side[name]) for name in at}
        if watch(edge, near) != 0:
            return at, near
    return at, right


def _middle(a: float, b: float) -> float:
    return a / 2 + b / 2
