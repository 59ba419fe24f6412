"""From a controller to its routine: what `controller.act(observation, memory)` does, step by step."""

from dataclasses import replace

from clearloop.controllers import PID, Controller, Equation, Fuzzy, GreedyQ, Linear, NetworkController
from clearloop.controllers.controller import read_formula, read_variable
from clearloop.controllers.fuzzy import Rule, RuleBase
from clearloop.controllers.network import Layered
from clearloop.controllers.pid import Loop
from clearloop.errors import ClearloopError
from clearloop.exports.routine import (
    Best,
    Fill,
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
    call,
    difference,
    formulas,
    limited,
    stores,
    targets,
    times,
    total,
    weighted,
)
from clearloop.expression import Expression, Number, Variable, substitute, variables

# What each kind of controller computes between observation and action, as statements of a routine.


def values(controller: Controller, scope: Scope) -> dict[str, Expression]:
    """The actions before they are limited; what they need is added to the scope."""
    match controller:
        case Equation():
            return {name: _formula(controller.formula(name), scope) for name in controller.actions}
        case Linear():
            return {name: _sum_of_gains(name, row, scope) for name, row in controller.gains.items()}
        case PID():
            return _loops(controller, scope)
        case Fuzzy():
            return {name: _rules(name, base, scope) for name, base in controller.outputs.items()}
        case NetworkController():
            return _network(controller, scope)
        case GreedyQ():
            return _best(controller, scope)
    raise ClearloopError(f"a controller of kind '{controller.kind}' cannot be lowered")


def _read(variable: Variable, scope: Scope) -> Expression:
    """What a name means in all kinds but PID: value − setpoint."""
    if variable.part == "setpoint":
        return scope.aim(variable.name)
    return scope.error(variable.name, variable.lag, limit=scope.controller.kind == "equation")


def _formula(formula: Expression, scope: Scope) -> Expression:
    return substitute(formula, {variable: _read(variable, scope) for variable in variables(formula)})


def _sum_of_gains(action: str, row: dict[str, float], scope: Scope) -> Expression:
    terms = [(gain, _read(read_variable(name), scope)) for name, gain in row.items() if gain]
    before, tree = total(weighted(terms), lambda: scope.fresh(f"{action}_part"))
    scope.body += before
    return tree


def _loops(controller: PID, scope: Scope) -> dict[str, Expression]:
    loops = [loop for output in controller.outputs.values() for loop in output.loops if loop.weight]
    signals = {name: _Signal(name, loops, scope) for name in dict.fromkeys(_state(loop) for loop in loops)}
    answer = {}
    for action, output in controller.outputs.items():
        terms = [(loop.weight, signals[_state(loop)].term(loop)) for loop in output.loops if loop.weight]
        before, tree = total(weighted(terms), lambda action=action: scope.fresh(f"{action}_part"))  # type: ignore[misc]
        scope.body += before
        driven = times(output.scale, tree) if output.scale else Number(0.0)
        answer[action] = difference(driven, -output.bias)
    return answer


def _state(loop: Loop) -> str:
    return read_variable(loop.input).name


class _Signal:
    """The error of a state, its sums over windows, and its change."""

    def __init__(self, name: str, loops: list[Loop], scope: Scope) -> None:
        self.name, self.scope = name, scope
        self.loops = [loop for loop in loops if _state(loop) == name]
        value, aim = scope.value(name, None), scope.aim(name)
        error = call("neg", value) if isinstance(aim, Number) else call("sub", aim, value)
        self.error = scope.let(f"{name}_e", error)
        self.change = self._change() if any(loop.kd for loop in self.loops) else self.error
        self.sums = self._sums()

    def _change(self) -> Variable:
        """Of one step; 0 at the first, because the first error is repeated."""
        self.scope.body.append(Store(Ring(name=self.error, holds=self.error, depth=1, repeat=True)))
        before = Variable(self.error.name, lag=1)
        return self.scope.let(f"{self.name}_change", call("sub", self.error, before))

    def _sums(self) -> dict[int, Variable]:
        windows = sorted({loop.window for loop in self.loops if loop.ki and loop.window > 1})
        sums = {1: self.error}
        if windows:
            past = self.scope.fresh(f"{self.name}_window")
            ring = Ring(name=past, holds=self.error, depth=windows[-1] - 1, repeat=False)
            self.scope.body.append(Store(ring))
            for window in windows:
                sums[window] = self.scope.fresh(f"{self.name}_sum")
                self.scope.body.append(Sum(sums[window], ring, window))
        return sums

    def term(self, loop: Loop) -> Expression:
        summed = self.sums[loop.window] if loop.ki else self.error
        gains = [(loop.kp, self.error), (loop.ki, summed), (loop.kd, self.change)]
        return total(weighted(gains), lambda: self.scope.fresh(self.name))[1]


def _rules(action: str, base: RuleBase, scope: Scope) -> Expression:
    fits = tuple(
        _exponent(f"{action}_rule_{number}", rule, scope) for number, rule in enumerate(base.rules, 1)
    )
    source, mean = scope.fresh(f"{action}_fits"), scope.fresh(f"{action}_mean")
    scope.body.append(Fill(source, fits))
    scope.body.append(Mean(mean, source, tuple(rule.then for rule in base.rules)))
    if not (base.scale and base.alpha):
        return Number(0.0)
    return times(base.scale, call("tanh", times(base.alpha, mean)))


def _exponent(name: str, rule: Rule, scope: Scope) -> Expression:
    """−Σ (x − center)² / (2 width²): the logarithm of the rule's membership."""
    terms = []
    for text, membership in rule.premise.items():
        distance = difference(_read(read_variable(text), scope), membership.center)
        spread = Number(2 * membership.width**2)
        terms.append((False, call("div", call("pow", distance, Number(2.0)), spread)))
    before, tree = total(terms, lambda: scope.fresh(f"{name}_part"))
    scope.body += before
    return scope.let(name, call("neg", tree))


def _layers(controller: Layered, source: Variable, scope: Scope) -> tuple[Layer, ...]:
    layers = []
    for number, layer in enumerate(controller.layers, 1):
        target = scope.fresh(f"layer_{number}")
        layers.append(Layer(target, source, layer.weights, layer.bias, layer.activation))
        source = target
    return tuple(layers)


def _inputs(controller: Layered, more: int, scope: Scope) -> Variable:
    read = [_read(read_variable(name), scope) for name in controller.inputs]
    source = scope.fresh("read")
    scope.body.append(Fill(source, (*read, *[Number(0.0)] * more)))
    return source


def _network(controller: NetworkController, scope: Scope) -> dict[str, Expression]:
    layers = _layers(controller, _inputs(controller, 0, scope), scope)
    scope.body += layers
    last = layers[-1].target.name
    return {
        name: times(output.scale, Variable(last, lag=number)) if output.scale else Number(0.0)
        for number, (name, output) in enumerate(controller.outputs.items())
    }


def _best(controller: GreedyQ, scope: Scope) -> dict[str, Expression]:
    source = _inputs(controller, len(controller.actions), scope)
    chosen = tuple(scope.fresh(f"{name}_choice") for name in controller.actions)
    scope.body.append(Best(chosen, source, tuple(controller.choices), _layers(controller, source, scope)))
    return dict(zip(controller.actions, chosen, strict=True))


# What a routine computes for nothing (a gain is 0, a rule has no weight) is left out of it.


def pruned(routine: Routine) -> Routine:
    """The routine with only what its outputs depend on, now or in later steps."""
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
    """Stands for all elements of an array, which may have the name of a value."""
    return Variable(variable.name, variable.part, 0)


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
