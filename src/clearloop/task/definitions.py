"""`where` tables: names for numbers and for parts of formulas; each may use those above it."""

from collections.abc import Callable, Mapping

from clearloop.errors import ClearloopError
from clearloop.expression import Expression, Number, Variable, fold, parse, substitute, variables
from clearloop.task.scope import MOST_STEPS_BACK

LARGEST = 10_000  # nodes of a formula; every line of `where` could double it

Definitions = Mapping[Variable, Expression]
"""What is defined so far."""


def put_in(
    definition: float | str,
    names: tuple[str, ...],
    known: Definitions,
    check: Callable[[Variable], None],
) -> Expression:
    """A formula over names and what is known, which is put in its place.

    `check` raises an error for a variable that may not be read here.
    """
    if isinstance(definition, float):
        return Number(definition)
    formula = parse(definition, (*names, *(variable.name for variable in known)))
    used = variables(formula)
    for variable in used:
        if variable not in known:
            check(variable)
            if Variable(variable.name) in known:
                raise ClearloopError(f"'{variable}': only the present is defined; write {variable.name}")
        if (variable.lag or 0) > MOST_STEPS_BACK:
            raise ClearloopError(f"'{variable}' looks back too far: at most {MOST_STEPS_BACK:,} steps")
    sizes = {variable: _size(known[variable], {}) for variable in used if variable in known}
    if _size(formula, sizes) > LARGEST:
        raise ClearloopError(f"longer than {LARGEST:,} numbers, names and operations once `where` is put in")
    return substitute(formula, known)


def _size(formula: Expression, sizes: Mapping[Variable, int]) -> int:
    """In nodes, with variables as large as given. It is known before the memory is filled."""

    def leaf(node: Number | Variable) -> int:
        return sizes.get(node, 1) if isinstance(node, Variable) else 1

    return fold(formula, leaf, lambda _, parts: 1 + sum(parts))
