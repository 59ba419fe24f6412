"""How a batch is drawn from the plant, where a law chooses the actions."""

from collections.abc import Mapping
from typing import NamedTuple

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import Expression, Number, Variable
from clearloop.task.definitions import put_in
from clearloop.task.faults import Fault
from clearloop.task.scope import name_faults
from clearloop.task.tables import Exploration


class Law(NamedTuple):
    actions: tuple[Expression, ...]
    """of each action; nothing if they are random"""
    faults: list[Fault]


def read_law(plan: Exploration | None, states: tuple[str, ...], actions: tuple[str, ...]) -> Law:
    """`states`: of the plant."""
    if plan is None:
        return Law((), [])
    faults = [
        *name_faults(("exploration", "where"), plan.where, taken=(*states, *actions)),
        *_action_faults(plan.law, actions),
    ]
    known: dict[Variable, Expression] = {}

    def check(variable: Variable) -> None:
        if variable.name in actions and not variable.lag:
            raise ClearloopError(f"'{variable}' is being chosen; it can be read from [t-1] on")

    def expression(definition: float | str, *where: str) -> Expression:
        try:
            return put_in(definition, (*states, *actions), known, check)
        except ClearloopError as error:
            faults.append(Fault(("exploration", *where), str(error)))
            return Number(0.0)  # what refers to it is not at fault

    for name, definition in plan.where.items():
        known[Variable(name)] = expression(definition, "where", name)
    chosen = [expression(plan.law[name], "law", name) for name in actions if name in plan.law]
    return Law(tuple(chosen), faults)


def _action_faults(law: Mapping[str, str], actions: tuple[str, ...]) -> list[Fault]:
    where = ("exploration", "law")
    return [
        *(
            Fault(where, f"unknown action {quoted(name)}{did_you_mean(name, actions)}")
            for name in law
            if name not in actions
        ),
        *(Fault(where, f"missing action '{name}'") for name in actions if law and name not in law),
    ]
