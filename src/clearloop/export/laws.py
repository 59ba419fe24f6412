"""What each kind of controller computes between observation and action, as statements of a routine."""

from clearloop.controllers import PID, Controller, Equation, Fuzzy, GreedyQ, Linear, NetworkController
from clearloop.controllers.fuzzy import Rule, RuleBase
from clearloop.controllers.network import Layered
from clearloop.controllers.pid import Loop
from clearloop.controllers.reading import read_variable
from clearloop.errors import ClearloopError
from clearloop.export.routine import Best, Fill, Layer, Mean, Ring, Store, Sum
from clearloop.export.scope import Scope
from clearloop.export.terms import call, difference, times, total, weighted
from clearloop.expression import Expression, Number, Variable, substitute, variables


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
