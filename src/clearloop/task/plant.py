"""The true system as expressions: what `where` names is put in its place.

Besides the task's states it may have others, that no sensor shows, and signals that come from outside.
"""

from collections.abc import Mapping
from typing import NamedTuple

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import Expression, Number, Variable, variables
from clearloop.task.definitions import put_in
from clearloop.task.derived import one_step_back
from clearloop.task.faults import Fault
from clearloop.task.scope import Scope, name_faults, state_faults
from clearloop.task.tables import Plant, Signal


class Inlined(NamedTuple):
    derivatives: dict[str, Expression]
    """of the states that are integrated, hidden ones included"""
    next: dict[str, Expression]
    """of those with difference equations: their values from what was before"""
    observed: dict[str, Expression]
    """what sensors show"""
    faults: list[Fault]


NOTHING = Inlined({}, {}, {}, [])


def hidden_names(plant: Plant, states: tuple[str, ...]) -> tuple[str, ...]:
    """What moves and is no state of the task."""
    return tuple(name for name in (*plant.derivative, *plant.next) if name not in states)


def signal_names(plant: Plant, signals: Mapping[str, Signal], scope: Scope) -> tuple[str, ...]:
    """Signals that only the plant knows: no external state, no setpoint."""
    known = {*scope.names, *(aim for aim in scope.setpoints.values() if isinstance(aim, str))}
    return tuple(name for name in signals if name not in known) if plant else ()


def inline(plant: Plant, signals: Mapping[str, Signal], scope: Scope) -> Inlined:
    hidden, outside = hidden_names(plant, scope.states), signal_names(plant, signals, scope)
    names = (*scope.names, *hidden, *outside)
    faults = _name_faults(plant, scope, hidden, outside)
    if faults or plant.gymnasium is not None:
        return NOTHING._replace(faults=faults)
    named: dict[Variable, Expression] = {}

    def check(variable: Variable) -> None:
        if variable.part != "value" or (variable.lag is not None and variable.name not in scope.actions):
            raise ClearloopError(f"'{variable}': a plant knows only the present; write {variable.name}")

    def expression(definition: float | str, *where: str) -> Expression:
        try:
            return put_in(definition, names, named, check)
        except ClearloopError as error:
            faults.append(Fault(("plant", *where), str(error)))
            return Number(0.0)  # what refers to it is not at fault

    for name, definition in plant.where.items():
        named[Variable(name)] = expression(definition, "where", name)
    derivatives = {name: expression(text, "derivative", name) for name, text in plant.derivative.items()}
    ahead = {name: one_step_back(expression(text, "next", name)) for name, text in plant.next.items()}
    observed = {name: expression(text, "observed", name) for name, text in plant.observed.items()}
    faults += [
        Fault(("plant", "observed", name), f"'{v}' is not chosen yet; it can be read from [t-1] on")
        for name in plant.observed
        for v in variables(observed[name])
        if v.name in scope.actions and not v.lag
    ]
    return Inlined(derivatives, ahead, observed, faults)


def _name_faults(
    plant: Plant, scope: Scope, hidden: tuple[str, ...], outside: tuple[str, ...]
) -> list[Fault]:
    tables = {"derivative": plant.derivative, "next": plant.next, "observed": plant.observed}
    given = [(table, name) for table, names in tables.items() for name in names]
    told = [name for _, name in given]
    own = (*scope.derived, *scope.external)
    missing = [name for name in scope.states if plant.gymnasium is None and name not in (*told, *own)]
    return [
        *name_faults(("plant", "derivative"), hidden, taken=scope.actions),
        *name_faults(("signals",), outside, taken=(*scope.names, *hidden)),
        *name_faults(("plant", "where"), plant.where, taken=(*scope.names, *hidden, *outside)),
        *state_faults(("plant", "observed"), plant.observed, scope.states),
        *state_faults(("plant", "on_failure"), plant.on_failure, (*scope.states, *hidden)),
        *(
            Fault(("plant", table), f"{quoted(name)} is given twice: in {', '.join(_where(name, tables))}")
            for table, name in given
            if told.count(name) > 1
        ),
        *(
            Fault(("plant", table), f"{quoted(name)} has a formula, or is external, in [states]")
            for table, name in given
            if name in own
        ),
        *(
            Fault(("plant", "derivative"), f"missing state '{name}'{did_you_mean(name, hidden)}")
            for name in missing
        ),
    ]


def _where(name: str, tables: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [table for table, names in tables.items() if name in names]
