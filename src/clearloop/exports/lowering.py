"""Lowering: a controller becomes a routine, which does step by step what `controller.act` does."""

from dataclasses import replace

from clearloop.controllers import Controller
from clearloop.controllers.controller import read_formula
from clearloop.controllers.routine import (
    Best,
    Layer,
    Let,
    Mean,
    Output,
    Ring,
    Routine,
    Scope,
    Statement,
    Store,
    Sum,
    formulas,
    limited,
    stores,
    targets,
)
from clearloop.expression import Expression, Variable, substitute, variables


def lower(controller: Controller) -> Routine:
    """Return the routine that computes what `controller.act` does."""
    scope = Scope(controller)
    derived = _derived(controller, scope)
    answers = controller.lower(scope)
    body = [*derived, *scope.body, *(_output(controller, name, value) for name, value in answers.items())]
    actions, made = set(controller.actions), set(controller.derived)
    at_once = scope.rings(scope.past - actions - made)
    completed, kept = scope.rings(made), scope.rings(actions)
    body[len(derived) : len(derived)] = stores(completed)  # only now: at first their past is 0 in formulas
    body = [*stores(at_once), *body, *stores(kept)]
    return pruned(Routine(inputs=scope.inputs, rings=_rings(body), body=tuple(body)))


def _derived(controller: Controller, scope: Scope) -> list[Statement]:
    """Return statements for the states that the controller computes itself, in the order of its file."""
    for name, text in controller.derived.items():
        formula = read_formula(text, f"derived.{name}")
        replaced = substitute(formula, {v: _seen(v, scope) for v in variables(formula)})
        scope.body.append(Let(Variable(name), limited(replaced)))
    statements, scope.body = scope.body, []
    return statements


def _seen(variable: Variable, scope: Scope) -> Expression:
    """Return what a variable of a derived state means: here, a bare name is the value, not the error."""
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


def pruned(routine: Routine) -> Routine:
    """Return the routine without what its outputs do not depend on, now or later (where a gain is 0, say)."""
    needed: set[Variable] = set()
    count = -1
    while len(needed) > count:  # a ring that is read makes what it stores needed
        count = len(needed)
        for statement in reversed(routine.body):
            if _is_needed(statement, needed):
                needed |= _reads(statement)
    body = tuple(statement for statement in routine.body if _is_needed(statement, needed))
    rings = tuple(statement.ring for statement in body if isinstance(statement, Store))
    inputs = tuple(one for one in routine.inputs if one.variable in needed)
    return replace(routine, inputs=inputs, rings=rings, body=body)


def _is_needed(statement: Statement, needed: set[Variable]) -> bool:
    match statement:
        case Output():
            return True
        case Store(ring=ring):
            return _array(ring.name) in needed
        case Let(target=target) | Sum(target=target) | Mean(target=target):
            return target in needed
    return any(_array(target) in needed or target in needed for target in targets(statement))


def _reads(statement: Statement) -> set[Variable]:
    read = {_stem(v) for tree in formulas(statement) for v in variables(tree)}
    match statement:
        case Sum(ring=ring):
            read.add(_array(ring.name))
        case Mean(source=source) | Layer(source=source) | Best(source=source):
            read.add(_array(source))
    return read


def _stem(variable: Variable) -> Variable:
    return variable if variable.lag is None else _array(variable)


def _array(variable: Variable) -> Variable:
    """Return a variable that stands for all elements of an array, which may have the name of a value."""
    return Variable(variable.name, variable.part, 0)
