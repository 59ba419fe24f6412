"""PID controllers: loops of proportional, windowed integral and derivative terms (sec. 3.2 of the paper)."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, Strict, model_validator

from clearloop.controllers.controller import Coefficient, Controller, Known, read_variable
from clearloop.controllers.equation import past_worth
from clearloop.controllers.memory import Memory
from clearloop.controllers.routine import Ring, Scope, Store, Sum, call, difference, times, weighted
from clearloop.controllers.views import FeedbackLoop, Note, Part, Summand
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Expression, Number, Variable, to_latex
from clearloop.expression.pieces import Piece, Pieces, aligned, latex_number
from clearloop.kernels import layout
from clearloop.numbers import quantity, signed
from clearloop.programs import Features
from clearloop.task.tables import Table, Text, expecting

LONGEST_WINDOW = 10_000

Window = Annotated[
    int,
    Strict(),
    Field(ge=1, le=LONGEST_WINDOW),
    expecting(f"a whole number of steps from 1 to {LONGEST_WINDOW:,}"),
]


class Loop(Table):
    """A loop on a state, kp e + ki Σe + kd Δe with e = setpoint − value, per step.

    The sum has the last `window` errors, the present one included.
    """

    input: Text
    weight: Coefficient = 1.0
    kp: Coefficient
    ki: Coefficient = 0.0
    kd: Coefficient = 0.0
    window: Window = 1


class Loops(Table):
    """The loops of an action: bias + scale · Σ weight · loop."""

    scale: Coefficient = 1.0
    bias: Coefficient = 0.0
    loops: Annotated[tuple[Loop, ...], Field(min_length=1, max_length=100)]


class PID(Controller):
    """A controller whose actions are sums of PID loops; `outputs` maps actions to their loops."""

    policy: ClassVar[int | None] = layout.PID
    windowed: ClassVar[bool] = False
    names_mean_errors: ClassVar[bool] = False
    kind: Literal["pid"] = "pid"
    outputs: Annotated[dict[str, Loops], Field(min_length=1)]

    @model_validator(mode="after")
    def _inputs_are_names(self) -> Self:
        for place, variable in self.variables():
            if variable != Variable(variable.name):
                raise ClearloopError(f"{place}: expected the name of a state, found {quoted(str(variable))}")
        return self

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for action, output in self.outputs.items():
            for number, loop in enumerate(output.loops):
                place = f"outputs.{action}.loops[{number}].input"
                yield place, read_variable(loop.input, place, known)

    @property
    def complexity(self) -> int:
        """The complexity: 2 for each gain with its term, 1 for a bias, 1 for each addition."""
        return sum(
            max(3 * _count_gains(output) - 1, 1) + 2 * bool(output.bias) for output in self.outputs.values()
        )

    @property
    def summary(self) -> str:
        inputs = dict.fromkeys(variable.name for _, variable in self.variables())
        return f"PID on {', '.join(inputs)}"

    def words(self) -> Iterator[str]:
        for action, output in self.outputs.items():
            for loop in output.loops:
                yield from self._loop_words(action, output.scale, loop)
            if output.bias:
                yield f"{action}, added to its loops: {output.bias:g}{self.unit(action)}"
        yield from self.limit_words()
        for name, aim in self.setpoint.items():
            if any(variable.name == name for _, variable in self.variables()):
                yield f"The setpoint of {name} is {aim:g}{self.unit(name)}."

    def _loop_words(self, action: str, scale: float, loop: Loop) -> Iterator[str]:
        name = read_variable(loop.input).name
        yield f"{action}, loop on {name}: e = setpoint - {name}"
        gains = f"kp {loop.kp:g}, ki {loop.ki:g} over {loop.window} steps, kd {loop.kd:g}"
        yield f"  per step  {scale:g} * {loop.weight:g} * ({gains})"
        unit = f"{self.unit(action)}/{self.units[name]}" if self.units.get(name) else ""
        yield f"  standard  Kp = {scale * loop.weight * loop.kp:.4g}{unit}{self._times(loop)}"

    def _times(self, loop: Loop) -> str:
        """Return Ti, with the integral's window, and Td of the form Kp (e + ∫e/Ti + Td ė), in seconds."""
        if self.dt is None or not loop.kp:
            return ""
        text = ""
        if loop.ki:
            text += f", Ti = {loop.kp / loop.ki * self.dt:.4g} s (over {loop.window * self.dt:.4g} s)"
        if loop.kd:
            text += f", Td = {loop.kd / loop.kp * self.dt:.4g} s"
        return text

    @property
    def depth(self) -> int:
        return max(2, *(loop.window for output in self.outputs.values() for loop in output.loops))

    def respond(self, memory: Memory) -> dict[str, float]:
        return {
            action: output.bias
            + output.scale * sum(loop.weight * sum(loop_parts(loop, memory)) for loop in output.loops)
            for action, output in self.outputs.items()
        }

    def sizes(self, features: Features) -> list[int]:
        return [
            size
            for number, action in enumerate(features.actions)
            for loop in self.outputs[action].loops
            for size in (number, features.slot(read_variable(loop.input)))
        ]

    def numbers(self, features: Features) -> list[float]:
        loops = [
            number
            for action in features.actions
            for loop in self.outputs[action].loops
            for number in (self.outputs[action].scale * loop.weight, loop.kp, loop.ki, loop.kd, loop.window)
        ]
        return loops + [self.outputs[action].bias for action in features.actions]

    def lower(self, scope: Scope) -> dict[str, Expression]:
        loops = [loop for output in self.outputs.values() for loop in output.loops if loop.weight]
        signals = {name: _Signal(name, loops, scope) for name in dict.fromkeys(map(_state, loops))}
        answer = {}
        for action, output in self.outputs.items():
            terms = [(loop.weight, signals[_state(loop)].term(loop)) for loop in output.loops if loop.weight]
            tree = scope.total(action, weighted(terms))
            driven = times(output.scale, tree) if output.scale else Number(0.0)
            answer[action] = difference(driven, -output.bias)
        return answer

    def loops(self) -> Iterator[FeedbackLoop]:
        for action, output in self.outputs.items():
            for loop in output.loops:
                gain = output.scale * loop.weight
                gains = gain * loop.kp, gain * loop.ki, gain * loop.kd
                yield FeedbackLoop(action, _state(loop), *gains, loop.window)

    def _in_seconds(self, action: str) -> Iterator[tuple[FeedbackLoop, tuple[float, float, float]]]:
        """Yield the loops of an action with their gains for e, ∫e dt and ė; per step if dt is not known."""
        dt = self.dt or 1.0
        for loop in self.loops():
            if loop.action == action:
                yield loop, (loop.kp, loop.ki / dt, loop.kd * dt)

    def equations(self) -> tuple[Pieces, ...]:
        return tuple(self._equation(action) for action in self.outputs)

    def _equation(self, action: str) -> Pieces:
        pieces = [Piece.name(action)]
        for loop, gains in self._in_seconds(action):
            for gain, what in zip(gains, _pieces(loop, self.dt or 1.0), strict=True):
                if gain:
                    pieces.append(what.times(gain, first=len(pieces) == 1))
        if bias := self.outputs[action].bias:
            pieces.append(Piece("", "", "").times(bias, first=len(pieces) == 1))
        return tuple(pieces)

    def latex_rows(self) -> Iterator[str]:
        """Yield the equations of actions and of errors; loops on the same state share an error."""
        rows, errors = [], {}
        for action, output in self.outputs.items():
            sums = []
            for loop in output.loops:
                index = to_latex(read_variable(loop.input))
                errors[f"e_{{{index}}}"] = f"{to_latex(Variable(_state(loop), 'setpoint'))} - {index}"
                weight = "" if loop.weight == 1 else latex_number(loop.weight)
                sums.append(f"{weight} \\left({_latex(loop, index)}\\right)".strip())
            driven = f"{latex_number(output.scale)} \\left({' + '.join(sums)}\\right)"
            bias = f"{latex_number(output.bias)} + " if output.bias else ""
            rows.append((to_latex(Variable(action)), f"{bias}{driven}".replace("+ -", "- ")))
        yield aligned(rows)
        yield aligned(errors.items())

    def parts(self, action: str) -> Iterator[Part]:
        for loop, gains in self._in_seconds(action):
            for letter, gain, what in zip("PID", gains, self._causes(loop), strict=True):
                if gain:
                    does = f"{signed(gain)} {self.unit(action).strip()} for each {what}"
                    yield Note(f"{loop.state}: {letter}", does)
        if bias := self.outputs[action].bias:
            yield Note("bias", f"always adds {quantity(bias, self.unit(action).strip())}")

    def _causes(self, loop: FeedbackLoop) -> tuple[str, str, str]:
        """Describe what the three parts of a loop respond to, in seconds if dt is known."""
        name, time = loop.state, "s" if self.dt else "step"
        per = self.unit(name).strip() or "unit"
        aim = "its setpoint" if name in self.setpoint or name in self.follows else "0"
        window = quantity(loop.window * (self.dt or 1.0), time)
        return (
            f"{per} that {name} is below {aim}",
            f"{per} below and each {time} below, summed over the last {window}",
            f"{per}/{time} that {name} falls",
        )

    def summands(self) -> Iterator[Summand]:
        for action, output in self.outputs.items():
            for loop in output.loops:
                for number, gain in enumerate((loop.kp, loop.ki, loop.kd)):
                    if gain:
                        worth = partial(_part_worth, loop, output.scale * loop.weight, number)
                        yield Summand(action, f"{'PID'[number]} of {loop.input}", worth)
            if bias := output.bias:
                yield Summand(action, f"{bias:.3g}", partial(past_worth, Number(bias), self.actions))

    def simpler(self) -> Iterator[tuple[Self, str]]:
        for action, loops in self.outputs.items():
            for output, what in _fewer(loops):
                yield self._with_output(action, output), what


def _count_gains(output: Loops) -> int:
    return sum(bool(gain) for loop in output.loops for gain in (loop.kp, loop.ki, loop.kd))


def _state(loop: Loop) -> str:
    return read_variable(loop.input).name


def loop_parts(loop: Loop, memory: Memory) -> tuple[float, float, float]:
    """Return the proportional, integral and derivative part of a loop, before its weight.

    The sum has the last `window` errors, the present one included; the first change is 0. For a memory of N
    plants, the parts are arrays [N].
    """
    errors = list(islice(memory.errors(_state(loop)), max(2, loop.window)))
    change = errors[0] - errors[1] if len(errors) > 1 else 0.0
    return loop.kp * errors[0], loop.ki * sum(errors[: loop.window]), loop.kd * change


def _part_worth(loop: Loop, weight: float, number: int, memory: Memory) -> float:
    return weight * loop_parts(loop, memory)[number]


# The controller as a routine, in which all loops on a state share its error, sums and change.


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


# The controller as equations.


def _pieces(loop: FeedbackLoop, dt: float) -> tuple[Piece, Piece, Piece]:
    """Return the error, its integral over the last seconds, and its rate."""
    name = Piece.of(Variable(loop.state))
    error = Piece(rf"e_{{{name.latex}}}", f"e_({name.typst})", f"e({name.text})")
    back = f"{loop.window * dt:.4g}"
    integral = Piece(
        rf"\int_{{t-{back}\,\mathrm{{s}}}}^{{t}} {error.latex} \, \mathrm{{d}}t",
        f'integral_(t-{back} "s")^t {error.typst} thin dif t',
        f"integral of {error.text}",
    )
    rate = Piece(rf"\dot{{e}}_{{{name.latex}}}", f"dot(e)_({name.typst})", f"rate of {error.text}")
    return error, integral, rate


def _latex(loop: Loop, index: str) -> str:
    """Return kp e + ki Σe + kd Δe, per step."""
    error = f"e_{{{index}, t}}"
    terms = [
        (loop.kp, error),
        (loop.ki, f"\\sum_{{k=0}}^{{{loop.window - 1}}} e_{{{index}, t-k}}"),
        (loop.kd, f"\\left({error} - e_{{{index}, t-1}}\\right)"),
    ]
    text = " + ".join(f"{latex_number(gain)} \\, {what}" for gain, what in terms if gain)
    return text.replace("+ -", "- ") or "0"


def _fewer(output: Loops) -> Iterator[tuple[Loops, str]]:
    """Yield the loops without the bias, without a whole loop, or without a single gain."""
    if output.bias:
        yield output.model_copy(update={"bias": 0.0}), f"drop the bias {output.bias:g}"
    for number, loop in enumerate(output.loops):
        others = output.loops[:number], output.loops[number + 1 :]
        if len(output.loops) > 1:
            kept = (*others[0], *others[1])
            yield output.model_copy(update={"loops": kept}), f"drop the loop on {loop.input}"
        for gain in ("kp", "ki", "kd"):
            lesser = loop.model_copy(update={gain: 0.0} | ({"window": 1} if gain == "ki" else {}))
            if getattr(loop, gain) and (lesser.kp or lesser.ki or lesser.kd):
                kept = (*others[0], lesser, *others[1])
                yield output.model_copy(update={"loops": kept}), f"drop {gain} of the loop on {loop.input}"
