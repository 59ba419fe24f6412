"""The guard of an exported block: a routine around the law that checks its inputs and conducts its actions.

The law sees only valid inputs. While one is invalid, the law does not run and its memory stays as it is; the
last action is held for some steps, then the safe value is given. The same routine has the modes that people
ask for: manual, tracking, enable, rate limit, deadband. It consists of the statements that all languages
have, so it exists once. `verification/supervision.py` says the same in plain Python.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from clearloop.controllers import Controller
from clearloop.controllers.routine import (
    Act,
    Correct,
    Input,
    Let,
    Output,
    Remark,
    Report,
    Ring,
    Routine,
    Set,
    State,
    Statement,
    Status,
    call,
    difference,
    fresh_variable,
    limited,
)
from clearloop.errors import ClearloopError
from clearloop.exports.lowering import VARIATIONS, lower, varied, with_named_gains
from clearloop.exports.printer import plain_name
from clearloop.exports.safety import before_start, forgets, integrals, safe_actions
from clearloop.expression import Expression, Number, Variable
from clearloop.expression.nodes import READ_LIMIT

MODES = ("action-deadband", "enable", "manual", "rate-limit", "tracking")
"""The options of a guard that people ask for."""
OPTIONS = tuple(sorted((*MODES, *VARIATIONS)))

HOLD_STEPS = 10
"""The number of steps for which the last action is held, at first; the block has an input for it."""
LONGEST_COUNT = 1_000_000
"""Counters of steps stop here; the watchdog begins again at 0. Single precision counts exactly so far."""

STATUS = {
    "outside": (1, "an input is NaN, infinite or outside its range"),
    "gradient": (2, "an input changes too fast"),
    "frozen": (4, "an input has not changed for too long"),
    "marked": (8, "an input is marked as invalid"),
    "held": (16, "the last action is held"),
    "safe": (32, "the safe value is given"),
    "manual": (64, "manual mode"),
    "tracking": (128, "the action tracks its input"),
    "disabled": (256, "the block is disabled"),
    "rate": (512, "the rate limit changes an action"),
    "low": (1024, "an action is at its lower limit"),
    "high": (2048, "an action is at its upper limit"),
}
"""The bits of the status word: the number of each, and what it means."""


def routine_of(controller: Controller, options: frozenset[str] = frozenset(), *, guard: bool) -> Routine:
    """Return what an exported block does at every step.

    Args:
        controller: The controller, with its limits and checks.
        options: Some of `OPTIONS`.
        guard: Whether the block checks its inputs.

    Returns:
        The routine; without a guard and without modes it is the law alone.

    Raises:
        ClearloopError: If an option does not suit the controller.
    """
    law = lower(controller)
    if options & {*VARIATIONS}:
        law = varied(controller, law, options)
    law = with_named_gains(law)
    if not guard and not options & {*MODES}:
        return law
    return _Guard(controller, law, options, checks=guard).routine()


# Short forms for formulas; a flag is asked with `flag != 0`.

_ZERO, _ONE = Number(0.0), Number(1.0)
_TRUE = call("eq", _ZERO, _ZERO)


def _is(flag: Variable) -> Expression:
    return call("ne", flag, _ZERO)


def _not(condition: Expression) -> Expression:
    return call("not", condition)


def _all(conditions: Sequence[Expression]) -> Expression:
    return _joined("and", conditions)


def _any(conditions: Sequence[Expression]) -> Expression:
    return _joined("or", conditions)


_LONGEST = 50  # conditions in a row; the depth of a formula is limited


def _joined(operation: str, conditions: Sequence[Expression]) -> Expression:
    if len(conditions) > _LONGEST:
        parts = [conditions[k : k + _LONGEST] for k in range(0, len(conditions), _LONGEST)]
        return _joined(operation, [_joined(operation, part) for part in parts])
    return reduce(lambda one, other: call(operation, one, other), conditions)


def _choose(condition: Expression, yes: Expression, no: Expression) -> Expression:
    return call("if", condition, yes, no)


def _counted(state: Variable) -> Expression:
    """Return the next value of a counter, which stops at the longest count."""
    return call("min", call("add", state, _ONE), Number(float(LONGEST_COUNT)))


@dataclass
class _Tested:
    """The tests of one input: flags that hold if it is valid."""

    inside: Variable
    steady: Variable | None = None
    moving: Variable | None = None
    marked: Variable | None = None

    @property
    def flags(self) -> list[Variable]:
        return [one for one in (self.marked, self.inside, self.steady, self.moving) if one is not None]


class _Guard:
    """The routine of a guard while it is written."""

    def __init__(self, controller: Controller, law: Routine, options: frozenset[str], *, checks: bool):
        self.controller, self.law, self.options, self.checks = controller, law, options, checks
        self.inputs, self.states, self.body = list(law.inputs), list[State](), list[Statement]()
        self._taken = law.names | {*controller.actions}
        self.tested: list[_Tested] = []
        self.safe = safe_actions(controller)
        timed = sorted(options & {"manual", "tracking", "enable", "rate-limit"})
        if timed and controller.dt is None:
            raise ClearloopError(f"--with {timed[0]}: the time between two steps is not known: give --task")
        self.slowed: list[Expression] = []
        self.acted: Variable | None = None
        self.seamless = bool(options & {"manual", "tracking", "enable"}) or (checks and not forgets(law))

    def fresh(self, name: str) -> Variable:
        return fresh_variable(name, self._taken)

    def let(self, name: str, value: Expression) -> Variable:
        target = self.fresh(name)
        self.body.append(Let(target, value))
        return target

    def state(
        self, name: str, words: str, start: float = 0.0, size: float | None = None, *, restarts: bool = False
    ) -> Variable:
        variable = self.fresh(name)
        state = State(variable=variable, start=start, size=size, words=words, restarts=restarts)
        self.states.append(state)
        return variable

    def flag(self, name: str, words: str) -> Variable:
        variable = self.fresh(name)
        self.states.append(State(variable=variable, flag=True, words=words))
        return variable

    def input(self, role: str, words: str, default: float, unit: str = "", *, flag: bool = False) -> Variable:
        """Add an input; its role is "manual", or "manual force", which makes the name `force_manual`."""
        variable = self.fresh("_".join(reversed(role.split(" "))))
        self.inputs.append(
            Input(variable=variable, unit=unit, default=default, words=words, low=0.0, flag=flag, role=role)
        )
        return variable

    def routine(self) -> Routine:
        """Return the whole routine."""
        if self.checks:
            self.body.append(Remark("Guard: which inputs are valid?"))
            for one in self.law.inputs:
                self._test(one)
        self._modes()
        self._run()
        for output in self.law.outputs:
            self._conduct(output)
        self._finish()
        return Routine(inputs=tuple(self.inputs), rings=(), body=tuple(self.body), states=tuple(self.states))

    # Validity.

    def _test(self, one: Input) -> None:
        """Add the tests of an input; an input that a comparison with its limits does not hold for is NaN."""
        raw, name = one.variable, plain_name(one.variable)
        check = self.controller.check_of(raw)
        low, high = check.range or (-READ_LIMIT, READ_LIMIT)
        within = _all([call("ge", raw, Number(low)), call("le", raw, Number(high))])
        tested = _Tested(self.let(f"{name}_inside", within))
        self.tested.append(tested)
        if one.default is None:
            words = f"if not, {name} is not used"
            tested.marked = self.input(f"valid {name}", words, 1.0, flag=True)
        if check.gradient is not None:
            self._steady(name, raw, tested, check.gradient * self._dt(f"checks.{raw.name}.gradient"))
        if check.frozen is not None:
            place = f"checks.{raw.name}.frozen"
            steps = math.floor(check.frozen / self._dt(place) + 1e-9)
            if steps >= LONGEST_COUNT:
                raise ClearloopError(
                    f"{place}: {check.frozen:g} s are {steps:,} steps, and a block counts fewer than "
                    f"{LONGEST_COUNT:,}: give a shorter time"
                )
            self._moving(name, raw, tested, float(max(steps, 1)))

    def _dt(self, place: str) -> float:
        if self.controller.dt is None:
            raise ClearloopError(f"{place}: the time between two steps is not known: give --task, or dt")
        return self.controller.dt

    def _steady(self, name: str, raw: Variable, tested: _Tested, most: float) -> None:
        """Compare with the last accepted value; the longer ago it was accepted, the more may have changed."""
        last = self.state(f"{name}_accepted", "last accepted value", size=READ_LIMIT, restarts=True)
        age = self.state(
            f"{name}_age", "steps since then; 0: there is none", size=LONGEST_COUNT, restarts=True
        )
        seen = self.let(f"{name}_seen", self._bounded(raw, tested.inside, last))
        change = call("abs", call("sub", seen, last))
        allowed = call("mul", Number(most), age)
        steady = _any([call("eq", age, _ZERO), call("le", change, allowed)])
        tested.steady = self.let(f"{name}_steady", steady)
        self._accept(tested, seen, last, age)

    def _accept(self, tested: _Tested, seen: Variable, last: Variable, age: Variable) -> None:
        accepted = _all([_is(flag) for flag in tested.flags])
        older = _choose(call("gt", age, _ZERO), _counted(age), _ZERO)
        self.body += [
            Set(last, _choose(accepted, seen, last)),
            Set(age, _choose(accepted, _ONE, older)),
        ]

    def _moving(self, name: str, raw: Variable, tested: _Tested, most: float) -> None:
        """Count the steps in which the value has not changed at all."""
        before = self.state(f"{name}_before", "value of the last step", start=2 * READ_LIMIT, restarts=True)
        still = self.state(f"{name}_still", "steps without a change", size=LONGEST_COUNT, restarts=True)
        same = _all([_is(tested.inside), call("eq", raw, before)])
        self.body += [
            Set(still, _choose(same, _counted(still), _ZERO)),
            Set(before, self._bounded(raw, tested.inside, before)),
        ]
        tested.moving = self.let(f"{name}_moving", call("le", still, Number(most)))

    def _bounded(self, raw: Variable, inside: Variable, otherwise: Expression) -> Expression:
        """Return the input where it is inside its range, limited so that its size is known."""
        limit = Number(READ_LIMIT)
        return _choose(_is(inside), call("clip", raw, call("neg", limit), limit), otherwise)

    # Modes, and the step of the law.

    def _modes(self) -> None:
        dt = self.controller.dt or 1.0
        self.enable = self.manual = self.track = None
        if "enable" in self.options:
            self.enable = self.input("enable", "if not, the safe value is given", 1.0, flag=True)
        if "manual" in self.options:
            self.manual = self.input("manual", "manual mode", 0.0, flag=True)
        if "tracking" in self.options:
            words = "the actions follow the tracking inputs"
            self.track = self.input("track", words, 0.0, flag=True)
        if self.checks:
            words = "steps for which the last action is held while an input is invalid"
            self.hold = self.input("hold_steps", words, float(HOLD_STEPS))
        self.share = None
        if self.seamless:
            longest = max((loop.window for loop in self.controller.loops()), default=self.controller.history)
            windows = any(self.controller.loops()) and not any(ring.integral for ring in self.law.rings)
            longest = max(longest, 1 if windows else HOLD_STEPS)
            unit = "s" if self.controller.dt else "steps"
            words = "time constant with which an offset decays, so that the action does not jump"
            time = self.input("transfer_time", words, longest * dt, unit)
            tame = call("clip", time, _ZERO, Number(READ_LIMIT))
            self.share = self.let("transfer_share", call("div", tame, call("add", tame, Number(dt))))

    def _run(self) -> None:
        """Run the law if all inputs are valid."""
        wishes: list[Expression] = []
        self.good = self.held = None
        if self.checks:
            flags = [flag for tested in self.tested for flag in tested.flags]
            self.good = self.let("good", _all([_is(flag) for flag in flags]) if flags else _TRUE)
            self.held = self.state(
                "held_steps", "steps since an input became invalid", size=LONGEST_COUNT, restarts=True
            )
            self.body.append(Set(self.held, _choose(_is(self.good), _ZERO, _counted(self.held))))
            wishes.append(_is(self.good))
        if self.enable:
            wishes.append(_is(self.enable))
        if len(wishes) == 1 and self.good:
            self.acting = self.good
        else:
            self.acting = self.let("acting", _all(wishes) if wishes else _TRUE)
        hands = [_is(flag) for flag in (self.manual, self.track) if flag is not None]
        self.following, waiting = integrals(self.law) if hands else ({}, [])
        kept = [(ring, self.let(f"{ring.name.name}_before", _latest(ring))) for ring in waiting]
        self.asked = tuple(self.fresh(f"{one.action.name}_law") for one in self.law.outputs)
        self.body.append(Act(law=self.law, when=_is(self.acting), actions=self.asked))
        for ring, before in kept:  # no integral grows while a hand acts
            self.body.append(Correct(ring, _choose(_any(hands), before, _latest(ring))))
        if self.seamless:
            self.apart = self.flag("was_apart", "the last action was not the law's")

    # The actions.

    def _conduct(self, output: Output) -> None:
        """Add what becomes of an action: hold, safe value, modes, deadband, rate limit, limits."""
        name, index = output.action.name, self.law.outputs.index(output)
        size = max(map(abs, output.limits)) if output.limits else None
        before = before_start(self.controller, name, self.safe[name])
        last = self.state(f"{name}_last", "last action", start=before, size=size)
        value: Expression = self.asked[index]
        given = self._given(name, output)
        if self.seamless:
            value = self._without_jump(name, value, last, output)
        if self.checks:
            fallback = _choose(call("gt", _variable(self.held), self.hold), Number(self.safe[name]), last)
            value = _choose(_is(self.acting), value, fallback)
        value = self.let(f"{name}_chosen", value)
        for flag, wish in given:
            value = self.let(f"{name}_chosen", _choose(_is(flag), self._by_hand(wish, last, output), value))
        if self.enable:
            value = self.let(f"{name}_chosen", _choose(_is(self.enable), value, Number(self.safe[name])))
        if "action-deadband" in self.options:
            value = self._deadband(name, value, last, output)
        if "rate-limit" in self.options:
            value = self._rate_limit(name, value, last, output)
        self.body.append(replace(output, value=value))
        self.body.append(Set(last, output.action))
        self.body += [
            Correct(ring, difference(_stored(output, size), self.controller.starts.get(name, 0.0)))
            for ring in self.law.rings
            if ring.name == output.action
        ]
        if ring := self.following.get(output.action):
            self._follow(ring, output, self.asked[index])

    def _follow(self, ring: Ring, output: Output, asked: Variable) -> None:
        """Let an integral follow the action that a hand gives: by what the law asks for less than that."""
        assert ring.integral is not None  # noqa: S101 - or it would not be here
        hands = [_is(flag) for flag in (self.manual, self.track) if flag is not None]
        rest = call("div", call("sub", output.action, asked), Number(ring.integral.gain))
        led = limited(call("add", _latest(ring), rest))
        now = _all([_is(self.acting), _any(hands)])
        self.body.append(Correct(ring, _choose(now, led, _latest(ring))))

    def _given(self, name: str, output: Output) -> list[tuple[Variable, Variable]]:
        """Return the flags of the modes in which somebody gives the action, with the inputs for it."""
        given, unit = [], output.unit
        if self.track:
            words = "action while the block tracks"
            given.append((self.track, self.input(f"track {name}", words, 0.0, unit)))
        if self.manual:
            words = "action in manual mode"
            given.append((self.manual, self.input(f"manual {name}", words, 0.0, unit)))
        return given

    def _by_hand(self, wish: Variable, last: Variable, output: Output) -> Expression:
        """Return the wish within limits; the last action if it is NaN, for which no comparison holds."""
        low, high = map(Number, output.limits or (-READ_LIMIT, READ_LIMIT))
        inside = _all([call("ge", wish, low), call("le", wish, high)])
        outside = _choose(call("gt", wish, high), high, _choose(call("lt", wish, low), low, last))
        return _choose(inside, call("clip", wish, low, high), outside)

    def _without_jump(self, name: str, law: Expression, last: Variable, output: Output) -> Expression:
        """Add an offset that makes the law continue from the last action, and decays (bumpless transfer)."""
        size = None
        if output.limits:
            size = 2 * max(map(abs, output.limits))
        bias = self.state(f"{name}_offset", "what is added to the law; it decays", size=size)
        follows = self._follows_the_law()
        decayed = call("mul", bias, _variable(self.share))
        gap = call("sub", last, law)
        self.body.append(Set(bias, _choose(follows, _choose(_is(self.apart), gap, decayed), bias)))
        led = call("add", law, bias)
        if (most := self.controller.change_of(name)) is None:
            return led
        return call("clip", led, call("sub", last, Number(most)), call("add", last, Number(most)))

    def _follows_the_law(self) -> Expression:
        """Return the condition that the law decides about the actions of this step."""
        modes = [_not(_is(flag)) for flag in (self.manual, self.track) if flag is not None]
        return _all([_is(self.acting), *modes])

    def _deadband(self, name: str, value: Variable, last: Variable, output: Output) -> Variable:
        words = "smaller changes of the action are not made"
        band = self.input(f"deadband {name}", words, 0.0, output.unit)
        limited = self._limited(f"{name}_limited", value, output)
        small = call("lt", call("abs", call("sub", limited, last)), band)
        return self.let(f"{name}_chosen", _choose(_all([self._has_acted(), small]), last, limited))

    def _rate_limit(self, name: str, value: Variable, last: Variable, output: Output) -> Variable:
        if name in self.controller.steps:
            raise ClearloopError(
                f"--with rate-limit: {name} takes only some values (steps.{name}): "
                "leave the option out, or the steps"
            )
        rate = self.input(f"rate {name}", "largest rate of change; 0: no limit", 0.0, f"{output.unit}/s")
        limited = self._limited(f"{name}_limited", value, output)
        tame = call("clip", rate, _ZERO, Number(READ_LIMIT))
        step = self.let(f"{name}_step", call("mul", tame, Number(self.controller.dt or 1.0)))
        slow = call("clip", limited, call("sub", last, step), call("add", last, step))
        active = _all([self._has_acted(), call("gt", step, _ZERO)])
        chosen = self.let(f"{name}_chosen", _choose(active, slow, limited))
        self.slowed.append(call("ne", chosen, limited))
        return chosen

    def _limited(self, name: str, value: Variable, output: Output) -> Variable:
        if output.limits is None:
            return value
        return self.let(name, call("clip", value, *map(Number, output.limits)))

    def _has_acted(self) -> Expression:
        """Return the condition that this is not the first step."""
        self.acted = self.acted or self.flag("acted", "there is a last action")
        return _is(self.acted)

    # What the next step and the caller have to know.

    def _finish(self) -> None:
        if self.seamless:
            away = [flag for flag in (self.manual, self.track) if flag is not None]
            conditions = [_is(flag) for flag in away]
            if self.enable:
                conditions.append(_not(_is(self.enable)))
            if self.checks and not forgets(self.law):
                conditions.append(_not(_is(_variable(self.good))))
            self.body.append(Set(self.apart, _any(conditions)))
        if self.acted:
            self.body.append(Set(self.acted, _TRUE))
        if self.checks:
            self._report()

    def _report(self) -> None:
        found = [(*STATUS[name], list(self._signs(name))) for name in STATUS]
        bits = tuple((number, words, _any(signs)) for number, words, signs in found if signs)
        counter = self.state("step_counter", "steps so far", size=LONGEST_COUNT)
        again = call("ge", counter, Number(float(LONGEST_COUNT - 1)))
        self.body += [
            Remark("For the caller: a status word, and a counter that a watchdog can look at."),
            Status(self.fresh("status"), bits, "a sum of bits; 0: nothing to report"),
            Set(counter, _choose(again, _ZERO, call("add", counter, _ONE))),
            Report(self.fresh("steps"), counter, "counts the steps, for a watchdog"),
        ]

    def _signs(self, name: str) -> Iterator[Expression]:
        """Yield the conditions of which one at least holds if a bit of the status is set."""
        match name:
            case "outside":
                yield from (_not(_is(one.inside)) for one in self.tested)
            case "gradient":
                yield from (_not(_is(one.steady)) for one in self.tested if one.steady)
            case "frozen":
                yield from (_not(_is(one.moving)) for one in self.tested if one.moving)
            case "marked":
                yield from (_not(_is(one.marked)) for one in self.tested if one.marked)
            case "held" | "safe":
                yield from self._fallback_signs(name)
            case "manual" if self.manual:
                yield _is(self.manual)
            case "tracking" if self.track:
                yield _is(self.track)
            case "disabled" if self.enable:
                yield _not(_is(self.enable))
            case "rate":
                yield from self.slowed
            case "low" | "high":
                for output in self.law.outputs:
                    if output.limits:
                        edge = Number(output.limits[name == "high"])
                        yield call("le" if name == "low" else "ge", output.action, edge)

    def _fallback_signs(self, name: str) -> Iterator[Expression]:
        late = call("gt", _variable(self.held), self.hold)
        modes = [_not(_is(flag)) for flag in (self.manual, self.track) if flag is not None]
        bad = _not(_is(_variable(self.good)))
        disabled = _not(_is(self.enable)) if self.enable else None
        if name == "held":
            early = [_not(late), *([_is(self.enable)] if self.enable else [])]
            yield _all([bad, *early, *modes])
        else:
            yield _all([bad, late, *modes])
            if disabled:
                yield disabled


def _variable(one: Variable | None) -> Variable:
    assert one is not None  # noqa: S101 - the option that makes it is on
    return one


def _latest(ring: Ring) -> Variable:
    """Return the latest stored value of a ring of the law."""
    return Variable(ring.name.name, ring.name.part, lag=0)


def _stored(output: Output, size: float | None) -> Expression:
    """Return an action as formulas read it later."""
    if size is not None and size <= READ_LIMIT:
        return output.action
    return call("clip", output.action, Number(-READ_LIMIT), Number(READ_LIMIT))
