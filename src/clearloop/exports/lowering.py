"""Lowering: a controller becomes a routine, which does step by step what `controller.act` does.

A PID's routine can have options, such as anti-windup.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from clearloop.controllers import Controller
from clearloop.controllers.controller import read_formula
from clearloop.controllers.routine import (
    Best,
    Correct,
    Fixed,
    Gain,
    Input,
    Integral,
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
    Tunable,
    call,
    formulas,
    fresh_variable,
    limited,
    stores,
    targets,
)
from clearloop.errors import ClearloopError
from clearloop.expression import Call, Expression, Number, Variable, fold, substitute, variables
from clearloop.expression.nodes import Operation


def lower(controller: Controller) -> Routine:
    """Return the routine that computes what `controller.act` does."""
    scope = Scope(controller)
    derived = _derived(controller, scope)
    answers = {
        name: _slowed(controller, name, value, scope) for name, value in controller.lower(scope).items()
    }
    body = [*derived, *scope.body, *(_output(controller, name, value) for name, value in answers.items())]
    actions, made = set(controller.actions), set(controller.derived)
    at_once = scope.rings(scope.past - actions - made)
    completed, kept = [_marked(ring, controller) for ring in scope.rings(made)], scope.rings(actions)
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


def _marked(ring: Ring, controller: Controller) -> Ring:
    """Return the ring of a derived state, marked if that is an integral: x[t-1] + 0.5*level.error."""
    tree = read_formula(controller.derived[ring.name.name])
    while isinstance(tree, Call) and tree.operation.name == "clip":
        tree = tree.arguments[0]
    read = variables(tree)
    itself = Variable(ring.name.name, lag=1)
    if itself in _summands(tree) and {v.part for v in read if v != itself} == {"error"}:
        return replace(ring, integral=Integral())
    return ring


def _summands(tree: Expression) -> list[Expression]:
    if isinstance(tree, Call) and tree.operation.name in ("add", "sub"):
        left, right = tree.arguments
        return [*_summands(left), *(_summands(right) if tree.operation.name == "add" else [])]
    return [tree]


def _seen(variable: Variable, scope: Scope) -> Expression:
    """Return what a variable of a derived state means: here, a bare name is the value, not the error."""
    if variable.part == "setpoint":
        return scope.aim(variable.name)
    if variable.part == "error" and variable.name not in scope.controller.actions:
        return scope.error(variable.name, variable.lag, limit=True)
    return scope.value(variable.name, variable.lag)


def _slowed(controller: Controller, name: str, value: Expression, scope: Scope) -> Expression:
    """Return an action within its rate, unless the controller keeps that itself."""
    most = controller.change_of(name)
    if most is None or controller.keeps_rate(name):
        return value
    before = scope.value(name, 1)
    reach = call("sub", before, Number(most)), call("add", before, Number(most))
    return scope.let(f"{name}_rated", call("clip", value, *reach))


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


# The options of a PID. At their initial values, all inputs that they add change nothing; only
# anti-windup changes the action.
#
# The integral is a sum over the last `window` errors, so anti-windup means that an error which pushes an
# action further beyond its limit enters the window as 0. Where several actions integrate the same error, it
# must push all of them.

VARIATIONS = ("anti-windup", "deadband", "derivative-filter")


@dataclass
class Variation:
    """A PID's routine while options are added to it.

    Attributes:
        controller: The PID.
        routine: Its routine, with the options so far.
        errors: The names of the routine's errors (setpoint − value), with the state of each.
    """

    controller: Controller
    routine: Routine

    def __post_init__(self) -> None:
        self.errors = _errors(self.controller, self.routine)
        self._taken = self.routine.names

    def fresh(self, name: str) -> Variable:
        """Return a variable whose name is not used yet."""
        return fresh_variable(name, self._taken)

    def input(self, name: str, unit: str, words: str) -> Variable:
        """Add an input to the block, which is 0 at first and never negative.

        Args:
            name: The wish for its name.
            unit: Its unit.
            words: Its description in a comment.

        Returns:
            The variable that stands for the input.
        """
        variable = self.fresh(name)
        more = Input(variable=variable, unit=unit, default=0.0, words=words, low=0.0)
        self.routine = replace(self.routine, inputs=(*self.routine.inputs, more))
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


def varied(controller: Controller, routine: Routine, options: frozenset[str]) -> Routine:
    """Return the routine of a PID with those of the options that are `VARIATIONS`.

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
    return variation.routine


def _check(controller: Controller, options: frozenset[str]) -> None:
    if not any(controller.loops()):
        option = min(options & {*VARIATIONS})
        raise ClearloopError(
            f"--with {option}: this is for a controller of kind 'pid', not of kind '{controller.kind}'"
        )
    if controller.endless:
        option = min(options & {*VARIATIONS})
        what = "it has an integrator or a filter of its own, which stand in its file (docs/controllers.md)"
        raise ClearloopError(f"--with {option}: this is for a PID whose sums have windows: {what}")
    if "derivative-filter" in options and controller.dt is None:
        raise ClearloopError("--with derivative-filter: the time between two steps is not known: give --task")


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
    kept: list[Correct] = []
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
            if pushed and statement.ring not in {one.ring for one in kept}:
                every = reduce(lambda one, other: call("and", one, other), pushed)
                kept.append(Correct(statement.ring, call("if", every, Number(0.0), error)))
    if not kept:
        raise ClearloopError(
            "--with anti-windup: the controller has no integral part over more than one step"
        )
    variation.rewrite([*body, *kept])


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


# Named gains: the constant factors of a law become values that can be tuned on the target.

_SMALLEST_GAIN, _LARGEST_GAIN = 1e-30, 1e12  # others stay numbers in the formula


def with_named_gains(routine: Routine) -> Routine:
    """Return a law in which constant factors have names: 69.8*theta becomes k_theta*theta.

    Constants that have a name of their own get that, wherever they stand.
    """
    taken = routine.names
    gains: list[Gain] = []

    def named(number: Expression, other: Expression) -> Expression:
        if not isinstance(number, Number) or isinstance(number, Fixed) or isinstance(other, Number):
            return number
        if not _SMALLEST_GAIN <= abs(number.value) <= _LARGEST_GAIN:
            return number
        wish = f"k_{other.name}" if isinstance(other, Variable) else "k"
        gains.append(Gain(variable=fresh_variable(wish, taken), value=number.value))
        return gains[-1].variable

    def call_named(operation: Operation, arguments: Sequence[Expression]) -> Expression:
        if operation.name == "mul":
            left, right = arguments
            arguments = (named(left, right), named(right, left))
        return Call(operation, tuple(arguments))

    def tuned(leaf: Expression) -> Expression:
        if not isinstance(leaf, Tunable) or not _SMALLEST_GAIN <= abs(leaf.value) <= _LARGEST_GAIN:
            return leaf
        variable = fresh_variable(leaf.name, taken)
        gains.append(Gain(variable=variable, value=leaf.value, words=leaf.words))
        return variable

    def changed(tree: Expression) -> Expression:
        return fold(tree, tuned, call_named)

    body = [
        replace(one, value=changed(one.value)) if isinstance(one, Let | Output) else one
        for one in routine.body
    ]
    return replace(routine, body=tuple(body), gains=tuple(gains))
