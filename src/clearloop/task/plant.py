"""The plant's derivatives as expressions: what `where` names is put in its place."""

from typing import NamedTuple

from clearloop.errors import ClearloopError
from clearloop.expression import Expression, Number, Variable, fold, parse, substitute, variables
from clearloop.task.faults import Fault
from clearloop.task.scope import Scope, name_faults, state_faults
from clearloop.task.tables import Plant

LARGEST = 10_000  # nodes of a derivative; every line of `where` could double it


class Inlined(NamedTuple):
    derivatives: tuple[Expression, ...]
    """In state order."""
    faults: list[Fault]


def inline(plant: Plant, scope: Scope) -> Inlined:
    faults = _name_faults(plant, scope)
    if faults or plant.gymnasium is not None:
        return Inlined((), faults)
    named: dict[Variable, Expression] = {}

    def expression(definition: float | str, *where: str) -> Expression:
        try:
            return _inline(definition, scope, named)
        except ClearloopError as error:
            faults.append(Fault(("plant", *where), str(error)))
            return Number(0.0)  # what refers to it is not at fault

    for name, definition in plant.where.items():
        named[Variable(name)] = expression(definition, "where", name)
    derivatives = [expression(plant.derivative[state], "derivative", state) for state in scope.states]
    return Inlined(tuple(derivatives), faults)


def _name_faults(plant: Plant, scope: Scope) -> list[Fault]:
    missing = [state for state in scope.states if plant.derivative and state not in plant.derivative]
    return [
        *name_faults(("plant", "where"), plant.where, taken=scope.names),
        *state_faults(("plant", "derivative"), plant.derivative, scope.states),
        *(Fault(("plant", "derivative"), f"missing state '{state}'") for state in missing),
        *state_faults(("plant", "on_failure"), plant.on_failure, scope.states),
    ]


def _inline(definition: float | str, scope: Scope, named: dict[Variable, Expression]) -> Expression:
    if isinstance(definition, float):
        return Number(definition)
    formula = parse(definition, (*scope.names, *(variable.name for variable in named)))
    used = variables(formula)
    for variable in used:
        if variable != Variable(variable.name):
            raise ClearloopError(f"'{variable}': a plant knows only the present; write {variable.name}")
    sizes = {variable: _size(named[variable], {}) for variable in used if variable in named}
    if _size(formula, sizes) > LARGEST:
        raise ClearloopError(f"longer than {LARGEST:,} numbers, names and operations once `where` is put in")
    return substitute(formula, named)


def _size(formula: Expression, sizes: dict[Variable, int]) -> int:
    """In nodes, with variables as large as given. It is known before the memory is filled."""

    def leaf(node: Number | Variable) -> int:
        return sizes.get(node, 1) if isinstance(node, Variable) else 1

    return fold(formula, leaf, lambda _, parts: 1 + sum(parts))
