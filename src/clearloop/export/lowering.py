"""From a controller to its routine: what `controller.act(observation, memory)` does, step by step."""

from clearloop.controllers import Controller
from clearloop.controllers.reading import read_formula
from clearloop.export.laws import values
from clearloop.export.pruning import pruned
from clearloop.export.routine import Let, Output, Ring, Routine, Statement, Store
from clearloop.export.scope import Scope, stores
from clearloop.export.terms import limited
from clearloop.expression import Expression, Variable, substitute, variables


def lower(controller: Controller) -> Routine:
    """A routine that means what `controller.act` does."""
    scope = Scope(controller)
    derived = _derived(controller, scope)
    answers = values(controller, scope)
    body = [*derived, *scope.body, *(_output(controller, name, value) for name, value in answers.items())]
    actions, made = set(controller.actions), set(controller.derived)
    at_once = scope.rings(scope.past - actions - made)
    completed, kept = scope.rings(made), scope.rings(actions)
    body[len(derived) : len(derived)] = stores(completed)  # only now: at first their past is 0 in formulas
    body = [*stores(at_once), *body, *stores(kept)]
    return pruned(Routine(inputs=scope.inputs, rings=_rings(body), body=tuple(body)))


def _derived(controller: Controller, scope: Scope) -> list[Statement]:
    """States that the controller computes itself, in the order of their formulas."""
    for name, text in controller.derived.items():
        formula = read_formula(text, f"derived.{name}")
        replaced = substitute(formula, {v: _seen(v, scope) for v in variables(formula)})
        scope.body.append(Let(Variable(name), limited(replaced)))
    statements, scope.body = scope.body, []
    return statements


def _seen(variable: Variable, scope: Scope) -> Expression:
    """Other than in a law, a bare name is the value itself."""
    if variable.part == "setpoint":
        return scope.aim(variable.name)
    if variable.part == "error" and variable.name not in scope.controller.actions:
        return scope.error(variable.name, variable.lag, limit=True)
    return scope.value(variable.name, variable.lag)


def _output(controller: Controller, name: str, value: Expression) -> Output:
    limits = controller.limits.get(name)
    parts = controller.range_of(name).parts if limits and name in controller.steps else 0
    unit = controller.units.get(name, "")
    return Output(action=Variable(name), value=value, unit=unit, limits=limits, parts=parts)


def _rings(body: list[Statement]) -> tuple[Ring, ...]:
    return tuple(statement.ring for statement in body if isinstance(statement, Store))
