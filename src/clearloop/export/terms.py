"""Trees for what is not written as a formula in a controller file: sums of products, squares, limits."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from clearloop.export.routine import Let, Statement
from clearloop.expression import OPERATIONS, Call, Expression, Number, Variable
from clearloop.expression.meanings import READ_LIMIT

LONGEST_SUM = 60  # terms; a tree may have only so many levels


def call(name: str, *arguments: Expression) -> Call:
    return Call(OPERATIONS[name], arguments)


def limited(tree: Expression) -> Expression:
    """As formulas read a value."""
    return call("clip", tree, Number(-READ_LIMIT), Number(READ_LIMIT))


def times(factor: float, tree: Expression) -> Expression:
    """A product, without a factor of 1."""
    if isinstance(tree, Number):
        return Number(factor * tree.value)
    return tree if factor == 1 else call("neg", tree) if factor == -1 else call("mul", Number(factor), tree)


def difference(tree: Expression, constant: float) -> Expression:
    """A tree minus a constant, written without needless signs."""
    if not constant:
        return tree
    return call("sub" if constant > 0 else "add", tree, Number(abs(constant)))


def weighted(terms: Iterable[tuple[float, Expression]]) -> Iterator[tuple[bool, Expression]]:
    """Products with their signs (whether negative), those with 0 left out."""
    for factor, tree in terms:
        if factor:
            yield factor < 0, times(abs(factor), tree)


def total(
    terms: Iterable[tuple[bool, Expression]], fresh: Callable[[], Variable]
) -> tuple[Sequence[Statement], Expression]:
    """The sum from left to right; a long one is cut into parts, each with a name from `fresh`."""
    before: list[Statement] = []
    tree: Expression | None = None
    for number, (negative, term) in enumerate(terms):
        if tree is None:
            tree = _negated(term) if negative else term
            continue
        if number % LONGEST_SUM == 0:
            part = fresh()
            before.append(Let(part, tree))
            tree = part
        tree = call("sub" if negative else "add", tree, term)
    return before, Number(0.0) if tree is None else tree


def _negated(tree: Expression) -> Expression:
    """A product with a constant keeps its form: -3*x, not -(3*x)."""
    match tree:
        case Call(arguments=(Number(value=value), other)) if tree.operation.name == "mul":
            return call("mul", Number(-value), other)
    return call("neg", tree)
