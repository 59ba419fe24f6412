"""What a PID block can have beside its law, all off by default; at their first values all but anti-windup
change nothing.

The integral is a sum over the last `window` errors. So anti-windup means: an error that pushes an action
further beyond its limit enters the window as 0. Where several actions integrate the same error, all must be
beyond. The windows go on while the block is operated by hand; back in automatic, the action begins where it
is, and the difference to what the law wants fades with `transfer_time`.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from clearloop.controllers import PID, Controller
from clearloop.controllers.reading import read_variable
from clearloop.errors import ClearloopError
from clearloop.export.routine import (
    Let,
    Output,
    Ring,
    Routine,
    Statement,
    Store,
    Sum,
)
from clearloop.export.structured_text.outputs import Operated
from clearloop.export.structured_text.variation import Variation
from clearloop.export.terms import call, limited
from clearloop.expression import Call, Number, Variable
from clearloop.expression.meanings import READ_LIMIT

OPTIONS = ("anti-windup", "deadband", "derivative-filter", "manual", "rate-limit")
_TIMED = ("derivative-filter", "manual", "rate-limit")


def varied(controller: Controller, routine: Routine, options: frozenset[str]) -> Variation:
    """The routine of a PID with options."""
    pid = _checked(controller, options)
    variation = Variation(pid, routine)
    if "deadband" in options:
        _deadband(variation)
    if "derivative-filter" in options:
        _filter(variation)
    if "anti-windup" in options:
        _anti_windup(variation)
    if options & {"manual", "rate-limit"}:
        _operated(variation, options)
    return variation


def _checked(controller: Controller, options: frozenset[str]) -> PID:
    for option in sorted(options - {*OPTIONS}):
        raise ClearloopError(f"--with {option}: unknown; there is {', '.join(OPTIONS)}")
    if not isinstance(controller, PID):
        raise ClearloopError(
            f"--with {min(options)}: this is for a controller of kind 'pid', not '{controller.kind}'"
        )
    for option in sorted(options & {*_TIMED}):
        if controller.dt is None:
            raise ClearloopError(f"--with {option}: the time between two steps is not known: give --task")
    return controller


def _deadband(variation: Variation) -> None:
    """An error counts from the edge of the band on: it is 0 inside, and does not jump."""
    errors = variation.errors
    body: list[Statement] = []
    for statement in variation.routine.body:
        if isinstance(statement, Let) and statement.target in errors:
            state = errors[statement.target]
            unit = variation.controller.units.get(state, "")
            band = variation.input(f"{state}_deadband", unit, "a smaller error counts as 0")
            distance = variation.fresh(f"{state}_distance")
            inside = call("clip", distance, call("neg", band), band)
            body += [
                replace(statement, target=distance),
                Let(statement.target, call("sub", distance, inside)),
            ]
        else:
            body.append(statement)
    variation.rewrite(body)


def _filter(variation: Variation) -> None:
    """The change of an error goes through a first-order lag: y := y + dt/(T + dt) (x − y)."""
    errors = variation.errors
    dt = Number(variation.controller.dt or 0.0)
    time = variation.input("filter_time", "s", "of the derivative; 0: no filter")
    share = variation.fresh("filter_share")
    body: list[Statement] = [Let(share, call("div", dt, call("add", time, dt)))]
    for statement in variation.routine.body:
        match statement:
            case Let(target=target, value=Call(arguments=(Variable() as error, Variable(lag=1)))) if (
                error in errors
            ):
                raw, before = variation.fresh(f"{target.name}_raw"), Variable(target.name, lag=1)
                step = call("mul", share, call("sub", raw, before))
                ring = Ring(name=target, holds=limited(target), depth=1, repeat=False)
                body += [replace(statement, target=raw), Let(target, call("add", before, step)), Store(ring)]
            case _:
                body.append(statement)
    if len(body) == len(variation.routine.body) + 1:
        raise ClearloopError("--with derivative-filter: the controller has no derivative part")
    variation.rewrite(body)


def _anti_windup(variation: Variation) -> None:
    """An error that pushes an action further beyond its limit enters the window as 0."""
    errors = variation.errors
    body: list[Statement] = []
    wanted: dict[str, Variable] = {}
    for statement in variation.routine.body:
        if isinstance(statement, Output):
            value = variation.fresh(f"{statement.action.name}_wanted")
            wanted[statement.action.name] = value
            body += [Let(value, statement.value), replace(statement, value=value)]
        else:
            body.append(statement)
    for statement in variation.routine.body:
        if isinstance(statement, Sum) and isinstance(error := statement.ring.holds, Variable):
            pushed = list(_pushed(variation.controller, errors[error], error, wanted))
            if pushed:
                every = reduce(lambda one, other: call("and", one, other), pushed)
                variation.kept[statement.ring.name] = call("if", every, Number(0.0), error)
    if not variation.kept:
        raise ClearloopError(
            "--with anti-windup: the controller has no integral part over more than one step"
        )
    variation.rewrite(body)


def _pushed(controller: PID, state: str, error: Variable, wanted: dict[str, Variable]) -> Iterator[Call]:
    """Of each action that integrates the error: whether the error pushes it further beyond a limit."""
    for action, output in controller.outputs.items():
        gains = [loop.weight * loop.ki for loop in output.loops if read_variable(loop.input).name == state]
        gain = output.scale * sum(gains)
        if not gain:
            continue
        if action not in controller.limits:
            raise ClearloopError(f"--with anti-windup: {action} has no limits: give --task")
        low, high = map(Number, controller.limits[action])
        up, down = ("gt", "lt") if gain > 0 else ("lt", "gt")
        over = call("and", call("gt", wanted[action], high), call(up, error, Number(0.0)))
        under = call("and", call("lt", wanted[action], low), call(down, error, Number(0.0)))
        yield call("or", over, under)


def _operated(variation: Variation, options: frozenset[str]) -> None:
    controller, dt = variation.controller, variation.controller.dt or 0.0
    by_hand, steps, before = {}, {}, []
    transfer = variation.fresh("transfer_share")
    if "manual" in options:
        longest = max(loop.window for output in controller.outputs.values() for loop in output.loops)
        time = variation.input("transfer_time", "s", "after the hand, the difference fades", longest * dt)
        before.append(Let(transfer, call("div", time, call("add", time, Number(dt)))))
    for action in controller.actions:
        unit = controller.units.get(action, "")
        if "manual" in options:
            by_hand[Variable(action)] = variation.input(
                f"{action}_manual", unit, "when by hand", low=-READ_LIMIT
            )
        if "rate-limit" in options:
            if action in controller.steps:
                raise ClearloopError(f"--with rate-limit: {action} takes only some values (steps.{action})")
            rate = variation.input(f"{action}_rate", f"{unit}/s", "the fastest change; 0: any")
            steps[Variable(action)] = variation.fresh(f"{action}_step")
            before.append(Let(steps[Variable(action)], call("mul", rate, Number(dt))))
    variation.conduct = Operated(by_hand=by_hand, steps=steps, transfer=transfer)
    variation.rewrite([*before, *variation.routine.body])
