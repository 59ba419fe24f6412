"""What a guard knows of a law beforehand: its safe actions, what its memory forgets, and its integrals."""

import math

from clearloop.controllers import Controller
from clearloop.controllers.controller import read_formula
from clearloop.controllers.routine import (
    Best,
    Correct,
    Layer,
    Mean,
    Ring,
    Routine,
    Store,
    Sum,
    formulas,
    targets,
)
from clearloop.expression import Variable, variables


def at_rest(controller: Controller) -> dict[str, float]:
    """Return the actions at rest: what the law gives in its first step if every state is at its setpoint.

    A state without a setpoint counts as 0, or as the nearest value of its range.
    """
    observation = {}
    for _, variable in controller.variables():
        aim, check = controller.setpoint.get(variable.name, 0.0), controller.checks.get(variable.name)
        low, high = (check and check.range) or (-math.inf, math.inf)
        observation[variable.name] = min(max(aim, low), high)
    for text in controller.derived.values():
        for name in _names_in(text):
            observation.setdefault(name, controller.setpoint.get(name, 0.0))
    seen = {name: value for name, value in observation.items() if name not in controller.derived}
    seen = {name: value for name, value in seen.items() if name not in controller.actions}
    aims = {name: seen.get(name, 0.0) for name in controller.follows}
    return controller.act(seen, controller.reset(), aims)


def _names_in(text: str) -> set[str]:
    return {variable.name for variable in variables(read_formula(text))}


def safe_actions(controller: Controller) -> dict[str, float]:
    """Return what a guard gives for each action when inputs have been invalid for too long."""
    rest = at_rest(controller)
    wanted = {name: controller.safe.get(name, rest[name]) for name in controller.actions}
    return {
        name: controller.range_of(name).limited(value) if name in controller.limits else value
        for name, value in wanted.items()
    }


def before_start(controller: Controller, name: str, safe: float) -> float:
    """Return the last action before the first step, as a guard takes it: that of the law, or the safe one."""
    return controller.starts.get(name, 0.0 if name in controller.rates else safe)


def forgets(law: Routine) -> bool:
    """Return whether the memory of a law is finite: no past value decides about its own successors."""
    past: dict[Variable, set[Variable]] = {}  # for each value, the rings that decide about it
    edges: dict[Variable, set[Variable]] = {ring.name: set() for ring in law.rings}
    for statement in law.body:
        found: set[Variable] = set()
        for one in {variable for tree in formulas(statement) for variable in variables(tree)}:
            array = Variable(one.name, one.part)
            found |= {array} if one.lag and array in edges else past.get(array, set())
        match statement:
            case Store(ring=ring) | Correct(ring=ring):
                edges[ring.name] |= found
            case Sum(ring=ring):
                found |= {ring.name} | edges[ring.name]
            case Mean(source=source) | Layer(source=source) | Best(source=source):
                found |= past.get(source, set())
        for target in targets(statement):
            past[target] = past.get(target, set()) | found
    return not any(name in _reached(name, edges) for name in edges)


def _reached(start: Variable, edges: dict[Variable, set[Variable]]) -> set[Variable]:
    found: set[Variable] = set()
    rest = [*edges[start]]
    while rest:
        one = rest.pop()
        if one not in found:
            found.add(one)
            rest += edges.get(one, set())
    return found


def integrals(law: Routine) -> tuple[dict[Variable, Ring], list[Ring]]:
    """Return what becomes of the integrals of control errors while a hand acts, so that they do not wind up.

    Returns:
        For each action that has one, the integral that follows what the hand gives, so that the law goes on
        from there; and those that stay as they are.
    """
    following: dict[Variable, Ring] = {}
    waiting = []
    for ring in law.rings:
        known = ring.integral
        if known and known.action and known.gain and known.action not in following:
            following[known.action] = ring
        elif known:
            waiting.append(ring)
    return following, waiting
