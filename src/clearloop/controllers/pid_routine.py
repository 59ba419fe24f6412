"""A PID controller as a routine: the statements of its loops, for exports."""

import math
from collections.abc import Iterator, Mapping, Sequence

from clearloop.controllers.controller import read_variable
from clearloop.controllers.loops import Loop, Loops, OuterLoop
from clearloop.controllers.routine import (
    Fixed,
    Integral,
    Ring,
    Scope,
    Store,
    Sum,
    Tunable,
    call,
    difference,
    limited,
    times,
    weighted,
)
from clearloop.expression import Expression, Number, Variable


def lower_outputs(
    outputs: Mapping[str, Loops], limits: Mapping[str, tuple[float, float]], scope: Scope
) -> dict[str, Expression]:
    """Return the actions before they are limited, as formulas of a routine.

    Args:
        outputs: The loops of each action.
        limits: The limits of the actions that have some.
        scope: Collects the statements, inputs and past values that the formulas need.
    """
    plain = [loop for output in outputs.values() if output.plain for loop in output.loops if loop.weight]
    signals = {name: _Signal(name, plain, scope) for name in dict.fromkeys(loop.state for loop in plain)}
    answer = {}
    for action, output in outputs.items():
        if not output.plain:
            answer[action] = _Lowering(action, output, limits.get(action), scope).value()
            continue
        terms = [(loop.weight, signals[loop.state].term(loop)) for loop in output.loops if loop.weight]
        tree = scope.total(action, weighted(terms))
        driven = times(output.scale, tree) if output.scale else Number(0.0)
        driven = difference(driven, -output.bias)
        if output.feedforward:
            driven = scope.total(action, [(False, driven), *weighted(_fed_trees(output, scope))])
        answer[action] = driven
    return answer


# Loops of the paper: all loops on a state share its error, sums and change.


class _Signal:
    """The error of a state, its sums over windows, and its change."""

    def __init__(self, name: str, loops: list[Loop], scope: Scope) -> None:
        self.name, self.scope = name, scope
        self.loops = [loop for loop in loops if loop.state == name]
        value, aim = scope.value(name, None), scope.aim(name)
        error = call("neg", value) if isinstance(aim, Number) else call("sub", aim, value)
        self.error = scope.let(f"{name}_e", error)
        self.change = self._change() if any(loop.kd for loop in self.loops) else self.error
        self.sums = self._sums()

    def _change(self) -> Variable:
        """Return the change of the error in one step; it is 0 at first, because that error is repeated."""
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
        return self.scope.total(self.name, weighted(gains))


class _Lowering:
    """The loops of an action as PLC blocks have them; `Regulator` does the same in plain Python."""

    def __init__(self, action: str, output: Loops, limits: tuple[float, float] | None, scope: Scope) -> None:
        self.action, self.output, self.limits, self.scope = action, output, limits, scope

    def value(self) -> Expression:
        """Return the action before it is limited, after the statements of its loops."""
        output, scope = self.output, self.scope
        bias = Tunable(output.bias, f"{self.action}_bias", "what is always added")
        terms: list[tuple[float, Expression]] = [(1.0, bias), *_fed_trees(output, scope)]
        sums: list[tuple[int, Variable, Variable]] = []
        given: Expression | None = None
        for number, loop in enumerate(output.chain):
            value, integral = self._loop(loop, given)
            if isinstance(loop, OuterLoop):
                bias = Tunable(loop.bias, f"{loop.state}_bias", "setpoint of the inner loop at no error")
                asked = self._total(loop.state, [(1.0, bias), (output.gain_of(0), value)])
                given = asked = scope.let(f"{output.chain[1].state}_asked", asked)
                if loop.limits is not None:
                    given = scope.let(f"{output.chain[1].state}_aim", _clipped(asked, loop.limits))
                    if integral:
                        push = _unless_held(asked, loop.limits, integral[1], loop.weight)
                        integral = integral[0], scope.let(f"{loop.state}_push", push)
            else:
                gain = output.gain_of(number)
                terms.append(_led(gain, value) if integral else (gain, value))
            if integral:
                sums.append((number, *integral))
        wanted = scope.let(f"{self.action}_wanted", self._total(self.action, terms))
        rated: Expression = wanted
        if output.rate is not None:
            before, rate = scope.value(self.action, 1), Number(output.rate)
            reach = call("sub", before, rate), call("add", before, rate)
            rated = scope.let(f"{self.action}_rated", call("clip", wanted, *reach))
        if sums and output.rate is not None:
            limited_to = _clipped(rated, self.limits) if self.limits else rated
            given_action = scope.let(f"{self.action}_given", limited_to)
            self._hold(wanted, (given_action, given_action), sums)
        elif sums and self.limits:
            self._hold(wanted, self.limits, sums)
        else:
            for number, ring, push in sums:
                self._store(number, ring, push)
        return rated

    def _total(self, name: str, terms: list[tuple[float, Expression]]) -> Expression:
        numbers = [factor * tree.value for factor, tree in terms if type(tree) is Number]
        named = [(False, tree) for _, tree in terms if isinstance(tree, Tunable) and tree.value]
        rest = [(factor, tree) for factor, tree in terms if not isinstance(tree, Number)]
        constant = [(one < 0, Number(abs(one))) for one in numbers if one]
        return self.scope.total(name, [*named, *constant, *weighted(rest)])

    def _hold(
        self, wanted: Variable, limits: "_Limits", sums: Sequence[tuple[int, Variable, Variable]]
    ) -> None:
        """Store the integrals; those that the error would push further while the output is held back stay."""
        for number, ring, push in sums:
            kept = _unless_held(wanted, limits, push, self.output.push_of(number))
            self._store(number, ring, kept)

    def _store(self, number: int, ring: Variable, push: Expression) -> None:
        """Store the integral of a loop of the chain."""
        summed = limited(call("add", Variable(ring.name, lag=1), push))
        integral = Integral()
        if self.output.chain[number] is not self.output.outer:
            integral = Integral(action=Variable(self.action), gain=self.output.gain_of(number))
        self.scope.body.append(Store(Ring(name=ring, holds=summed, depth=1, repeat=False, integral=integral)))

    def _loop(
        self, loop: Loop, given: Expression | None
    ) -> tuple[Expression, tuple[Variable, Variable] | None]:
        """Return the value of a loop, and if it integrates, its ring and what it adds."""
        scope, name, (b, c) = self.scope, loop.state, loop.shares
        value = scope.value(name, None)
        aim = scope.aim(name) if given is None else given
        error = scope.let(
            f"{name}_e", call("neg", value) if isinstance(aim, Number) else call("sub", aim, value)
        )
        kp, ki, kd = self._gains(loop)
        terms: list[tuple[float, Expression]] = []
        weighed = Tunable(b, f"{name}_b", f"share of the setpoint of {name} in the proportional part")
        self._add(terms, kp, self._shifted(error, aim, weighed))
        integral = None
        if loop.integral and _acts(ki):
            push = scope.let(f"{name}_push", call("mul", ki, error))
            ring = scope.fresh(f"{name}_integral")
            terms.append(
                (1.0, scope.let(f"{name}_i", limited(call("add", Variable(ring.name, lag=1), push))))
            )
            integral = ring, push
        elif _acts(ki):
            self._add(terms, ki, self._sum(loop, error))
        if _acts(kd):
            self._add(terms, kd, self._change(loop, self._shifted(error, aim, Number(c))))
        return scope.total(name, weighted(terms)), integral

    def _add(
        self, terms: list[tuple[float, Expression]], gain: "Tunable | Variable", tree: Expression
    ) -> None:
        if _acts(gain):
            terms.append((1.0, call("mul", gain, tree)))

    def _shifted(self, error: Variable, aim: Expression, share: Number) -> Expression:
        """Return b r − y, which is e + (b − 1) r."""
        if share.value == 1 or isinstance(aim, Number):
            return error
        if not isinstance(share, Tunable) or not share.value:
            return self.scope.total(error.name, [(False, error), *weighted([(share.value - 1, aim)])])
        return call("add", error, call("mul", call("sub", share, Number(1.0)), aim))

    def _sum(self, loop: Loop, error: Variable) -> Variable:
        if loop.window == 1:
            return error
        past = self.scope.fresh(f"{loop.state}_window")
        ring = Ring(name=past, holds=error, depth=loop.window - 1, repeat=False)
        total = self.scope.fresh(f"{loop.state}_sum")
        self.scope.body += [Store(ring), Sum(total, ring, loop.window)]
        return total

    def _change(self, loop: Loop, signal: Expression) -> Variable:
        scope, name = self.scope, loop.state
        now = scope.let(f"{name}_d", signal)
        scope.body.append(Store(Ring(name=now, holds=now, depth=1, repeat=True)))
        change = call("sub", now, Variable(now.name, lag=1))
        if not loop.pole:
            return scope.let(f"{name}_change", limited(change))
        raw = scope.let(f"{name}_raw", change)
        smooth = scope.fresh(f"{name}_change")
        before = Variable(smooth.name, lag=1)
        share = Tunable(1 - loop.pole, f"{name}_share", "1/(1 + Tf/dt), the filter of the derivative")
        step = call("mul", share, call("sub", raw, before))
        filtered = scope.let(f"{name}_rate", limited(call("add", before, step)))
        scope.body.append(Store(Ring(name=smooth, holds=filtered, depth=1, repeat=False)))
        return filtered

    def _gains(self, loop: Loop) -> "list[Tunable | Variable]":
        """Return kp, ki and kd: numbers with names, or the names of scheduled values."""
        first, scope, name = loop.first_gains, self.scope, loop.state
        if loop.schedule is None:
            words = ("proportional gain", "integral gain Kp dt/Ti", "derivative gain Kp Td/dt")
            return [
                Tunable(gain, f"{name}_k{letter}", f"{what} of the loop on {name}")
                for gain, letter, what in zip(first, "pid", words, strict=True)
            ]
        found: list[Tunable | Variable] = []
        by = scope.value(read_variable(loop.schedule.by).name, None)
        for letter, (gain, column) in enumerate(zip(first, loop.schedule.columns, strict=True)):
            terms: list[tuple[bool, Expression]] = [(gain < 0, Number(abs(gain)))] if gain else []
            for segment in loop.schedule.segments:
                part = call(
                    "sub", call("clip", by, Number(segment[0]), Number(segment[1])), Number(segment[0])
                )
                terms += weighted([(segment[2 + letter], part)])
            scheduled = f"{name}_k{'pid'[letter]}"
            total = scope.total(scheduled, terms)
            found.append(scope.let(scheduled, total) if any(column) else Tunable(0.0))
        return found


def _led(gain: float, loop: Expression) -> tuple[float, Expression]:
    """Return a loop with its factor, which its integral follows an action with, as a term of a sum."""
    if abs(gain) in (0.0, 1.0):
        return gain, loop
    return math.copysign(1.0, gain), call("mul", Fixed(abs(gain)), loop)


def _acts(gain: "Tunable | Variable") -> bool:
    return isinstance(gain, Variable) or gain.value != 0


def _clipped(tree: Expression, limits: tuple[float, float]) -> Expression:
    return call("clip", tree, Number(limits[0]), Number(limits[1]))


_Limits = tuple[float, float] | tuple[Variable, Variable]


def _unless_held(wanted: Expression, limits: _Limits, push: Expression, sign: float) -> Expression:
    """Return what an integral adds: nothing where the output is held back and this would push it further.

    The limits themselves are compared and not what is left after them: between the limits the two are equal,
    and a bound on rounding could not tell that.

    Args:
        wanted: The output before it is held back.
        limits: The least and the most that it may be.
        push: What the integral would add.
        sign: Whether more of the integral means more (1) or less (-1) of the output, or neither (0).
    """
    if not sign:
        return push
    low, high = (limit if isinstance(limit, Variable) else Number(limit) for limit in limits)
    up, down = ("gt", "lt") if sign > 0 else ("lt", "gt")
    over = call("and", call("gt", wanted, high), call(up, push, Number(0.0)))
    under = call("and", call("lt", wanted, low), call(down, push, Number(0.0)))
    return call("if", call("or", over, under), Number(0.0), push)


def _fed_trees(output: Loops, scope: Scope) -> Iterator[tuple[float, Expression]]:
    """Yield what is fed forward, each with its gain."""
    for variable, gain in output.fed():
        setpoint = variable.part == "setpoint"
        yield gain, scope.aim(variable.name) if setpoint else scope.value(variable.name, None)
