"""The Structured Text export: the units of a controller, and the options that a PID block can have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from clearloop.controllers import Controller
from clearloop.controllers.routine import (
    Input,
    Let,
    Output,
    Ring,
    Routine,
    Statement,
    Store,
    Sum,
    call,
    formulas,
    fresh_variable,
    limited,
    targets,
)
from clearloop.errors import ClearloopError
from clearloop.exports.comments import about
from clearloop.exports.lowering import lower
from clearloop.exports.printer import ascii_name
from clearloop.exports.spans import Precision
from clearloop.exports.structured_text.functions import DIALECT, HELPER_TEMPLATES, finished, real
from clearloop.exports.structured_text.units import Declaration, Pou, pou_text
from clearloop.exports.structured_text.writer import Conduct, Limited, Note, Operated, Writer, split_deep
from clearloop.exports.targets import Files, Order, Target
from clearloop.expression import Call, Expression, Number, Variable, variables
from clearloop.expression.nodes import READ_LIMIT

OPTIONS = ("anti-windup", "deadband", "derivative-filter", "manual", "rate-limit")
_TIMED = ("derivative-filter", "manual", "rate-limit")


class StructuredText(Target):
    """The target `st`: one file of Structured Text."""

    name, title, endings = "st", "Structured Text", (".st",)
    single, options = True, OPTIONS
    verifier = "clearloop.verification.verdict:run_structured_text"

    def write(self, order: Order) -> Files:
        """Return the text of the function block and of the functions that it calls."""
        units = pous(order.controller, order.name, order.precision, order.options)
        return {f"{ascii_name(order.name)}.st": structured_text(units)}


def pous(
    controller: Controller, name: str, precision: Precision, options: frozenset[str] = frozenset()
) -> list[Pou]:
    """Return the program organisation units of a controller.

    Args:
        controller: The controller, with its limits and units.
        name: The name of the function block, as the user gave it.
        precision: Double or single precision.
        options: Some of `OPTIONS`, for a PID.

    Returns:
        The functions that the function block calls, then the function block.

    Raises:
        ClearloopError: If an option does not suit the controller.
    """
    routine, words = lower(controller), about(controller, name)
    if options:
        made = varied(controller, routine, options)
        writer = Writer(split_deep(made.routine), name, precision, made.conduct, made.notes, made.kept)
        words[-1:-1] = [f"Options: {', '.join(sorted(options))}."]
    else:
        writer = Writer(split_deep(routine), name, precision, Limited(), {}, {})
    block = writer.block(words)
    return [*functions(block.body, precision), block]


def structured_text(units: list[Pou]) -> str:
    """Return the text of several units."""
    return "\n".join(pou_text(unit) for unit in units)


def functions(body: str, precision: Precision) -> list[Pou]:
    """Return the helper functions that a text calls, and those that they call."""
    return [_function(name, precision) for name in DIALECT.helpers_in(body)]


def _function(name: str, precision: Precision) -> Pou:
    template = HELPER_TEMPLATES[name]
    declarations = [Declaration("VAR_INPUT", one, real(precision)) for one in template.inputs]
    declarations += [Declaration("VAR", one, real(precision)) for one in template.locals]
    return Pou(
        name=name,
        result=real(precision),
        words=(template.words,),
        declarations=tuple(declarations),
        body=finished(template.body, precision),
    )


# The options of a PID block. At their initial values, all inputs that they add change nothing; only
# anti-windup changes the action.
#
# The integral is a sum over the last `window` errors, so anti-windup means that an error which pushes an
# action further beyond its limit enters the window as 0. Where several actions integrate the same error, it
# must push all of them. In manual mode the windows go on; back in automatic mode, the action starts from its
# last value, and its difference from what the control law wants decays with `transfer_time`.


@dataclass
class Variation:
    """A PID's routine while options are added to it.

    Attributes:
        controller: The PID.
        routine: Its routine, with the options so far.
        notes: The comments and lower limits of the inputs that options add.
        kept: What rings store where an option changes that.
        conduct: How actions follow from their formulas.
        errors: The names of the routine's errors (setpoint − value), with the state of each.
    """

    controller: Controller
    routine: Routine
    notes: dict[Variable, Note] = field(default_factory=dict)
    kept: dict[Variable, Expression] = field(default_factory=dict)
    conduct: Conduct = field(default_factory=Limited)

    def __post_init__(self) -> None:
        body = self.routine.body
        self.errors = _errors(self.controller, self.routine)
        self._taken = {v.name for one in body for tree in formulas(one) for v in variables(tree)}
        self._taken |= {v.name for one in body for v in targets(one)}
        self._taken |= {one.variable.name for one in self.routine.inputs}

    def fresh(self, name: str) -> Variable:
        """Return a variable whose name is not used yet."""
        return fresh_variable(name, self._taken)

    def input(self, name: str, unit: str, words: str, default: float = 0.0, *, low: float = 0.0) -> Variable:
        """Add an input to the block.

        Args:
            name: The wish for its name.
            unit: Its unit.
            words: Its description in a comment.
            default: Its initial value.
            low: Its lower limit.

        Returns:
            The variable that stands for the input.
        """
        variable = self.fresh(name)
        more = Input(variable=variable, unit=unit, default=default)
        self.routine = replace(self.routine, inputs=(*self.routine.inputs, more))
        self.notes[variable] = Note(words, low)
        return variable

    def rewrite(self, body: Sequence[Statement]) -> None:
        """Replace the statements of the routine."""
        rings = tuple(one.ring for one in body if isinstance(one, Store))
        self.routine = replace(self.routine, body=tuple(body), rings=rings)


def _errors(controller: Controller, routine: Routine) -> dict[Variable, str]:
    """Return the names of the errors (setpoint − value) in the routine, with the state of each."""
    states, found = {loop.state for loop in controller.loops()}, {}
    for statement in routine.body:
        match statement:
            case Let(target=target, value=Call(arguments=(*_, Variable(name=name, lag=None)))):
                if name in states:
                    found[target] = name
    return found


def varied(controller: Controller, routine: Routine, options: frozenset[str]) -> Variation:
    """Return the routine of a PID with options.

    Raises:
        ClearloopError: If an option does not suit the controller.
    """
    _check(controller, options)
    variation = Variation(controller, routine)
    if "deadband" in options:
        _deadband(variation)
    if "derivative-filter" in options:
        _filter(variation)
    if "anti-windup" in options:
        _anti_windup(variation)
    if options & {"manual", "rate-limit"}:
        _operated(variation, options)
    return variation


def _check(controller: Controller, options: frozenset[str]) -> None:
    if not any(controller.loops()):
        raise ClearloopError(
            f"--with {min(options)}: this is for a controller of kind 'pid', not of kind '{controller.kind}'"
        )
    for option in sorted(options & {*_TIMED}):
        if controller.dt is None:
            raise ClearloopError(f"--with {option}: the time between two steps is not known: give --task")


def _deadband(variation: Variation) -> None:
    """Let errors count from the edge of the deadband, so that they do not jump there; inside they are 0."""
    errors = variation.errors
    body: list[Statement] = []
    for statement in variation.routine.body:
        if isinstance(statement, Let) and statement.target in errors:
            state = errors[statement.target]
            unit = variation.controller.units.get(state, "")
            band = variation.input(f"{state}_deadband", unit, "errors inside the deadband count as 0")
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
    """Filter the change of an error by a first-order lag: y := y + dt/(T + dt) (x − y)."""
    errors = variation.errors
    dt = Number(variation.controller.dt or 0.0)
    time = variation.input("filter_time", "s", "time constant of the derivative filter; 0: no filter")
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
    """Store errors that push an action further beyond its limit as 0 in the window of the integral."""
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


def _pushed(
    controller: Controller, state: str, error: Variable, wanted: dict[str, Variable]
) -> Iterator[Call]:
    """Yield, for each action that integrates the error, the condition that it is pushed beyond a limit."""
    for action in controller.actions:
        loops = [loop for loop in controller.loops() if loop.action == action and loop.state == state]
        gain = sum(loop.ki for loop in loops)
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
    manual, steps, before = {}, {}, []
    transfer = variation.fresh("transfer_share")
    if "manual" in options:
        longest = max(loop.window for loop in controller.loops())
        words = "time constant of the transfer from manual to automatic"
        time = variation.input("transfer_time", "s", words, longest * dt)
        before.append(Let(transfer, call("div", time, call("add", time, Number(dt)))))
    for action in controller.actions:
        unit = controller.units.get(action, "")
        if "manual" in options:
            manual[Variable(action)] = variation.input(
                f"{action}_manual", unit, "action in manual mode", low=-READ_LIMIT
            )
        if "rate-limit" in options:
            if action in controller.steps:
                raise ClearloopError(
                    f"--with rate-limit: {action} takes only some values (steps.{action}): "
                    "leave the option out, or the steps"
                )
            rate = variation.input(f"{action}_rate", f"{unit}/s", "largest rate of change; 0: no limit")
            steps[Variable(action)] = variation.fresh(f"{action}_step")
            before.append(Let(steps[Variable(action)], call("mul", rate, Number(dt))))
    variation.conduct = Operated(manual=manual, steps=steps, transfer=transfer)
    variation.rewrite([*before, *variation.routine.body])
