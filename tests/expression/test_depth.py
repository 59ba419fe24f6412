"""The deepest trees that there can be pass through every function: Python's stack is no limit."""

import pytest

from clearloop.expression import (
    OPERATIONS,
    Call,
    Expression,
    Variable,
    complexity,
    decode,
    encode,
    evaluate,
    parse,
    simplify,
    substitute,
    to_latex,
    to_sympy,
    to_text,
)
from clearloop.expression.nodes import MAX_DEPTH

X = Variable("x")
LEAVES = {"number": X, "condition": parse("x < 1", kind="condition")}


def deepest(operations: list[str], place: int) -> Expression:
    """A tree that goes down through the first or second argument of the operations in turn."""
    tree: Expression = LEAVES[OPERATIONS[operations[0]].kinds[0]]
    while tree.depth < MAX_DEPTH:
        operation = OPERATIONS[operations[tree.depth % len(operations)]]
        arguments = [LEAVES[kind] for kind in operation.kinds]
        arguments[min(place, operation.arity - 1)] = tree
        tree = Call(operation, tuple(arguments))
    return tree


CHAINS = [["neg"], ["add"], ["sub"], ["mul"], ["div"], ["pow"], ["abs"], ["max"], ["clip"], ["not"], ["and"]]
CHAINS += [
    ["or"],
    ["mul", "add"],
    ["pow", "neg"],
    ["neg", "mul"],
    ["neg", "sub"],
    ["not", "and"],
    ["and", "or"],
]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("operations", CHAINS, ids="-".join)
def test_every_function_takes_the_deepest_trees(operations: list[str], place: int) -> None:
    tree = deepest(operations, place)
    assert parse(to_text(tree), kind=tree.kind) == tree
    assert decode(encode(tree, lambda _: 0), lambda _: X) == tree
    assert substitute(tree, {X: X}) == tree
    simple = simplify(tree)
    assert complexity(simple) <= complexity(tree)
    assert evaluate(simple, {X: 0.7}) == evaluate(tree, {X: 0.7})
    assert len(to_latex(tree)) > MAX_DEPTH
    assert X.name in map(str, to_sympy(tree).free_symbols)
