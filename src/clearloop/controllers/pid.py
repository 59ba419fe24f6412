"""PID controllers: loops of proportional, integral and derivative terms (sec. 3.2 of the paper) that add up.

A loop of the paper sums its errors over a window. A loop may also be what PLC blocks have, and two loops may
be a cascade (`loops.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from clearloop.controllers.controller import Controller, Known, changed, read_variable
from clearloop.controllers.equation import past_worth
from clearloop.controllers.loops import (
    LONGEST_WINDOW,
    Loop,
    Loops,
    OuterLoop,
    Regulator,
    Schedule,
    drive,
    fed_worth,
    recursion,
)
from clearloop.controllers.memory import Memory
from clearloop.controllers.pid_routine import lower_outputs
from clearloop.controllers.routine import Scope
from clearloop.controllers.views import FeedbackLoop, Note, Part, Recursion, Summand
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Expression, Number, Variable, to_latex
from clearloop.expression.nodes import READ_LIMIT
from clearloop.expression.pieces import Piece, Pieces, aligned, latex_number
from clearloop.kernels import layout
from clearloop.numbers import quantity, signed
from clearloop.programs import Features

__all__ = ["LONGEST_WINDOW", "PID", "Loop", "Loops", "OuterLoop", "Schedule", "loop_parts"]


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
            fed = variable.part == "setpoint" and ".feedforward." in place
            if variable.lag is not None or (variable.part != "value" and not fed):
                raise ClearloopError(f"{place}: expected the name of a state, found {quoted(str(variable))}")
        return self

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for action, output in self.outputs.items():
            for where, loop in _places(output):
                place = f"outputs.{action}.{where}.input"
                yield place, read_variable(loop.input, place, known)
                if loop.schedule:
                    place = f"outputs.{action}.{where}.schedule.by"
                    yield place, read_variable(loop.schedule.by, place, known)
            for name in output.feedforward or {}:
                place = f"outputs.{action}.feedforward.{name}"
                yield place, read_variable(name, place, known)

    @property
    def history(self) -> int:
        """Two observations where a rate is limited: the action before is part of the window."""
        return 2 if any(output.rate for output in self.outputs.values()) else 1

    @property
    def complexity(self) -> int:
        """The complexity: 2 for each gain with its term, 1 for a bias, 1 for each addition."""
        return sum(
            max(3 * _count_gains(output) - 1, 1) + 2 * bool(output.bias) for output in self.outputs.values()
        )

    @property
    def _is_of_paper(self) -> bool:
        """True if it has only what a PID of the paper has."""
        return all(output.plain and not output.feedforward for output in self.outputs.values())

    @property
    def summary(self) -> str:
        if self._is_of_paper:
            inputs = dict.fromkeys(variable.name for _, variable in self.variables())
            return f"PID on {', '.join(inputs)}"
        return "; ".join(_summary(output) for output in self.outputs.values())

    def words(self) -> Iterator[str]:
        for action, output in self.outputs.items():
            for number, loop in enumerate(output.chain):
                yield from self._loop_words(action, output, number, loop)
            for variable, gain in output.fed():
                yield f"{action}, fed forward: {gain:g}{self.unit(action)} for each unit of {variable}"
            if output.bias:
                yield f"{action}, added to its loops: {output.bias:g}{self.unit(action)}"
            if output.rate is not None:
                fast = f" ({output.rate / self.dt:.4g}{self.unit(action)}/s)" if self.dt else ""
                yield f"{action} changes by at most {output.rate:g}{self.unit(action)} in a step{fast}"
        yield from self.limit_words()
        for name, aim in self.setpoint.items():
            if any(variable.name == name for _, variable in self.variables()):
                yield f"The setpoint of {name} is {aim:g}{self.unit(name)}."

    def _loop_words(self, action: str, output: Loops, number: int, loop: Loop) -> Iterator[str]:
        name, gain = loop.state, output.gain_of(number)
        target, aim = action, "setpoint"
        if output.outer is not None and output.inner is not None:
            target = f"the setpoint of {output.inner.state}" if number == 0 else action
            aim = "what the outer loop gives" if number else aim
        yield f"{target}, loop on {name}: e = {aim} - {name}"
        both = (loop.weight,) if loop is output.outer else (output.scale, loop.weight)
        factors = "".join(f"{factor:g} * " for factor in both if factor != 1)
        over = "" if loop.integral else f" over {loop.window} steps"
        if loop.schedule is not None:
            yield f"  per step  {factors}(kp, ki, kd{over}), which depend on {loop.schedule.by}:"
            for at, *gains in zip(loop.schedule.at, *loop.schedule.columns, strict=True):
                said = ", ".join(
                    f"{letter} {one:g}" for letter, one in zip(("kp", "ki", "kd"), gains, strict=True)
                )
                yield f"    at {at:g}{self.unit(loop.schedule.by)}: {said}{self._times(loop, *gains)}"
        else:
            yield f"  per step  {factors}(kp {loop.kp:g}, ki {loop.ki:g}{over}, kd {loop.kd:g})"
            unit = (
                f"{self.unit(action)}/{self.units[name]}" if self.units.get(name) and target == action else ""
            )
            times = self._times(loop, loop.kp, loop.ki, loop.kd)
            yield f"  standard  Kp = {gain * loop.kp:.4g}{unit}{times}"
            if not loop.plain and self.dt and len(loop.letters) > 1:
                ki, kd = gain * loop.ki / self.dt, gain * loop.kd * self.dt
                yield f"  parallel  Kp = {gain * loop.kp:.4g}, Ki = {ki:.4g} /s, Kd = {kd:.4g} s"
        yield from (f"  {text}" for text in self._option_words(loop))

    def _option_words(self, loop: Loop) -> Iterator[str]:
        """Yield what a loop of the paper does not have."""
        b, _ = loop.shares
        if loop.integral:
            yield "the integral stops while the output is held back and the error would push it further"
        if b != 1:
            yield f"the proportional part sees {b:g} of the setpoint"
        if loop.derivative_of == "measurement":
            yield "the derivative is of the measurement, not of the error"
        if isinstance(loop, OuterLoop) and (loop.bias or loop.limits):
            limits = f", limited to {loop.limits[0]:g} … {loop.limits[1]:g}" if loop.limits else ""
            yield f"added to it: {loop.bias:g}{limits}"

    def _times(self, loop: Loop, kp: float, ki: float, kd: float) -> str:
        """Return Ti, with the integral's window, Td and Tf in seconds."""
        if self.dt is None or not kp:
            return ""
        text = ""
        if ki:
            over = "" if loop.integral else f" (over {loop.window * self.dt:.4g} s)"
            text += f", Ti = {kp / ki * self.dt:.4g} s{over}"
        if kd:
            text += f", Td = {kd / kp * self.dt:.4g} s"
            if loop.filter:
                text += f", Tf = {loop.filter * self.dt:.4g} s"
        return text

    @property
    def depth(self) -> int:
        return max(2, *(_order(output) for output in self.outputs.values()))

    @property
    def endless(self) -> bool:
        return not all(output.plain for output in self.outputs.values())

    @property
    def _driven(self) -> dict[str, Loops]:
        """The loops of each action, with the least of their own rate and that of the action."""
        driven = dict(self.outputs)
        for action in self.rates:
            output, most = self.outputs[action], self.change_of(action)
            if most is not None and not output.plain:
                driven[action] = output.model_copy(update={"rate": min(most, output.rate or most)})
        return driven

    def keeps_rate(self, name: str) -> bool:
        return not self.outputs[name].plain

    def respond(self, memory: Memory) -> dict[str, float]:
        fresh = not memory.kept
        answer: dict[str, Any] = {}
        for action, output in (self._driven if self.rates else self.outputs).items():
            if output.plain:
                loops = sum(loop.weight * sum(loop_parts(loop, memory)) for loop in output.loops)
                fed = sum(fed_worth(variable, gain, memory) for variable, gain in output.fed())
                answer[action] = output.bias + fed + output.scale * loops
                continue
            if fresh:
                memory.kept[action] = Regulator(output, self.limits.get(action))
            for lag in range(memory.rows - 1 if fresh else 0, -1, -1):
                answer[action] = memory.kept[action].step(memory, lag, memory.value(action, lag + 1))
        return answer

    def recursions(
        self, values: Mapping[str, float], aims: Mapping[str, float]
    ) -> dict[str, tuple[Recursion, float | None]]:
        return {
            action: (recursion(output, values, aims), drive(output, values, aims))
            for action, output in self.outputs.items()
        }

    def sizes(self, features: Features) -> list[int]:
        """Return the counts of `kernels/policies.py`: of each loop, then of each action."""
        driven = self._driven
        outputs = [driven[action] for action in features.actions]
        found = [sum(len(output.chain) for output in outputs)]
        for number, output in enumerate(outputs):
            for loop in output.chain:
                outer, inner = loop is output.outer, loop is output.inner
                by = read_variable(loop.schedule.by) if loop.schedule else None
                found += [number, -1 if outer else 1 if inner else 0, *_slots(features, loop.state)]
                found += _slots(features, by.name) if by else [-1, -1]
                found += [len(loop.segments), bool(loop.integral)]
        for action, output in zip(features.actions, outputs, strict=True):
            found.append(features.slot(Variable(action, lag=1)) if output.rate else -1)
            found.append(len(output.feedforward or {}))
            for variable, _ in output.fed():
                own, aim = _slots(features, variable.name)
                found += [
                    aim if variable.part == "setpoint" else own,
                    -1 if variable.part == "setpoint" else aim,
                ]
        return found

    def numbers(self, features: Features) -> list[float]:
        driven = self._driven
        outputs = [driven[action] for action in features.actions]
        found: list[float] = []
        for output in outputs:
            for number, loop in enumerate(output.chain):
                outer = loop if isinstance(loop, OuterLoop) else None
                low, high = (outer and outer.limits) or (-READ_LIMIT, READ_LIMIT)
                found += [output.gain_of(number), *loop.first_gains, loop.window, loop.pole, *loop.shares]
                found += [output.push_of(number), outer.bias if outer else 0.0, low, high]
        for output in outputs:
            for loop in output.chain:
                found += [number for segment in loop.segments for number in segment]
        for output in outputs:
            found += [output.bias, output.rate or 0.0, *(gain for _, gain in output.fed())]
        return found

    def lower(self, scope: Scope) -> dict[str, Expression]:
        return lower_outputs(self._driven, self.limits, scope)

    def loops(self) -> Iterator[FeedbackLoop]:
        for action, output in self.outputs.items():
            for number, loop in enumerate(output.chain):
                gain = output.gain_of(number)
                kp, ki, kd = (gain * one for one in loop.first_gains)
                yield FeedbackLoop(action, loop.state, kp, ki, kd, loop.span)

    def _in_seconds(self, action: str) -> Iterator[tuple[Loop, tuple[float, float, float]]]:
        """Yield the loops of an action with their gains for e, ∫e dt and ė; per step if dt is not known."""
        dt, output = self.dt or 1.0, self.outputs[action]
        for number, loop in enumerate(output.chain):
            kp, ki, kd = (output.gain_of(number) * gain for gain in loop.first_gains)
            yield loop, (kp, ki / dt, kd * dt)

    def equations(self) -> tuple[Pieces, ...]:
        return tuple(one for action in self.outputs for one in self._equations_of(action))

    def _equations_of(self, action: str) -> Iterator[Pieces]:
        """Yield the equation of an action, after that of the setpoint which an outer loop gives."""
        output = self.outputs[action]
        pieces = [Piece.name(action)]
        for variable, gain in output.fed():
            pieces.append(Piece.of(variable).times(gain, first=len(pieces) == 1))
        for loop, gains in self._in_seconds(action):
            if isinstance(loop, OuterLoop):
                aim = Piece.of(Variable(output.chain[1].state, "setpoint"))
                outer = [Piece(f"{aim.latex} =", f"{aim.typst} =", f"{aim.text} =")]
                yield tuple(_with_bias([*outer, *self._terms(loop, gains, 1)], loop.bias))
            else:
                pieces += self._terms(loop, gains, len(pieces))
        yield tuple(_with_bias(pieces, output.bias))

    def _terms(self, loop: Loop, gains: tuple[float, float, float], before: int) -> Iterator[Piece]:
        """Yield the terms of a loop that have a gain; `before` pieces stand before them."""
        pieces = _pieces(loop, self.dt or 1.0)
        for gain, column, letter, what in zip(gains, loop.columns, "pid", pieces, strict=True):
            if loop.schedule is not None and any(column):
                by = Piece.of(read_variable(loop.schedule.by))
                name = f"k_{letter}"
                latex, typst = f"{name}({by.latex}) \\, {what.latex}", f"{name}({by.typst}) thin {what.typst}"
                scheduled = Piece(latex, typst, f"k{letter}({by.text}) {what.text}")
                yield scheduled.times(1.0, first=before == 1)
                before += 1
            elif gain:
                yield what.times(gain, first=before == 1)
                before += 1

    def latex_rows(self) -> Iterator[str]:
        """Yield the equations of actions and of errors; loops on the same state share an error."""
        if not self._is_of_paper:
            yield from super().latex_rows()
            return
        rows, errors = [], {}
        for action, output in self.outputs.items():
            sums = []
            for loop in output.loops:
                index = to_latex(read_variable(loop.input))
                errors[f"e_{{{index}}}"] = f"{to_latex(Variable(loop.state, 'setpoint'))} - {index}"
                weight = "" if loop.weight == 1 else latex_number(loop.weight)
                sums.append(f"{weight} \\left({_latex(loop, index)}\\right)".strip())
            driven = f"{latex_number(output.scale)} \\left({' + '.join(sums)}\\right)"
            bias = f"{latex_number(output.bias)} + " if output.bias else ""
            rows.append((to_latex(Variable(action)), f"{bias}{driven}".replace("+ -", "- ")))
        yield aligned(rows)
        yield aligned(errors.items())

    def parts(self, action: str) -> Iterator[Part]:
        output = self.outputs[action]
        for variable, gain in output.fed():
            yield Note(
                f"{variable}", f"{signed(gain)} {self.unit(action).strip()} for each unit of {variable}"
            )
        for loop, gains in self._in_seconds(action):
            inner = output.inner.state if output.inner is not None and loop is output.outer else ""
            target = f"setpoint of {inner}" if inner else self.unit(action).strip()
            for letter, gain, what in zip("PID", gains, self._causes(loop), strict=True):
                if gain:
                    yield Note(f"{loop.state}: {letter}", f"{signed(gain)} {target} for each {what}")
        if bias := output.bias:
            yield Note("bias", f"always adds {quantity(bias, self.unit(action).strip())}")

    def _causes(self, loop: Loop) -> tuple[str, str, str]:
        """Describe what the three parts of a loop respond to, in seconds if dt is known."""
        name, time = loop.state, "s" if self.dt else "step"
        per = self.unit(name).strip() or "unit"
        aim = "its setpoint" if name in self.setpoint or name in self.follows else "0"
        summed = f"{per} below and each {time} below, summed"
        if not loop.integral:
            summed += f" over the last {quantity(loop.window * (self.dt or 1.0), time)}"
        return (f"{per} that {name} is below {aim}", summed, f"{per}/{time} that {name} falls")

    def summands(self) -> Iterator[Summand]:
        """Yield the terms of loops of the paper; what others add depends on more than a few samples."""
        for action, output in self.outputs.items():
            if not output.plain:
                continue
            for loop in output.loops:
                for number, gain in enumerate((loop.kp, loop.ki, loop.kd)):
                    if gain:
                        worth = partial(_part_worth, loop, output.scale * loop.weight, number)
                        yield Summand(action, f"{'PID'[number]} of {loop.input}", worth)
            for variable, gain in output.fed():
                yield Summand(action, f"{variable}", partial(fed_worth, variable, gain))
            if bias := output.bias:
                yield Summand(action, f"{bias:.3g}", partial(past_worth, Number(bias), self.actions))

    def with_constants(self, change: Callable[[float], float]) -> Self:
        """Return the same controller with each gain and bias changed; what is no gain stays."""

        def with_rest(loop: dict[str, Any], before: Loop) -> dict[str, Any]:
            kept = {name: getattr(before, name) for name in _NO_GAINS if name in loop}
            if before.schedule is not None:
                kept["schedule"] = {**loop["schedule"], "at": before.schedule.at}
            return {**loop, **kept}

        table = self.model_dump(mode="python", by_alias=True)
        for action, output in self.outputs.items():
            entry = changed(table["outputs"][action], change)
            for name in ("inner", "outer"):
                if (loop := getattr(output, name)) is not None:
                    entry[name] = with_rest(entry[name], loop)
            if "loops" in entry:
                pairs = zip(entry["loops"], output.loops, strict=True)
                entry["loops"] = [with_rest(*pair) for pair in pairs]
            entry["rate"] = output.rate
            table["outputs"][action] = entry
        return self.model_validate(table)

    def simpler(self) -> Iterator[tuple[Self, str]]:
        for action, loops in self.outputs.items():
            for output, what in _fewer(loops):
                yield self._with_output(action, output), what


_NO_GAINS = ("filter", "limits", "setpoint_weight")


def _summary(output: Loops) -> str:
    """Return the structure of an action's loops: `PI on level with gains by level + feed`."""
    said = []
    for number, loop in enumerate(output.chain):
        by = f" with gains by {loop.schedule.by}" if loop.schedule else ""
        sets = f" sets {output.chain[1].state}" if output.outer is not None and not number else ""
        said.append(f"{loop.letters} on {loop.state}{by}{sets}")
    return " + ".join([", ".join(said) if output.outer else " + ".join(said), *(output.feedforward or {})])


def _count_gains(output: Loops) -> int:
    own = sum(bool(gain) for loop in output.chain for column in loop.columns for gain in column)
    return own + len(output.feedforward or {})


def _places(output: Loops) -> Iterator[tuple[str, Loop]]:
    """Yield the loops of an action, each with its place in the file."""
    if output.outer is not None and output.inner is not None:
        yield from (("outer", output.outer), ("inner", output.inner))
    for number, loop in enumerate(output.loops):
        yield f"loops[{number}]", loop


def _order(output: Loops) -> int:
    """Return the number of rows that the linear law of an action looks at."""
    longest = max([1, *(loop.window for loop in output.chain if not loop.integral)])
    if output.plain:
        return longest
    return longest + 1 + sum(bool(loop.integral) + bool(loop.filter) + 1 for loop in output.chain)


def _slots(features: Features, name: str) -> list[int]:
    """Return the features of a state (value − setpoint) and of its setpoint."""
    return [features.slot(Variable(name)), features.slot(Variable(name, "setpoint"))]


def loop_parts(loop: Loop, memory: Memory) -> tuple[float, float, float]:
    """Return the proportional, integral and derivative part of a loop, before its weight.

    The sum has the last `window` errors, the present one included; the first change is 0. For a memory of N
    plants, the parts are arrays [N].
    """
    errors = list(islice(memory.errors(loop.state), max(2, loop.window)))
    change = errors[0] - errors[1] if len(errors) > 1 else 0.0
    return loop.kp * errors[0], loop.ki * sum(errors[: loop.window]), loop.kd * change


def _part_worth(loop: Loop, weight: float, number: int, memory: Memory) -> float:
    return weight * loop_parts(loop, memory)[number]


# The controller as equations.


def _with_bias(pieces: list[Piece], bias: float) -> list[Piece]:
    return [*pieces, Piece("", "", "").times(bias, first=len(pieces) == 1)] if bias else pieces


def _pieces(loop: Loop, dt: float) -> tuple[Piece, Piece, Piece]:
    """Return the error, its integral over the last seconds or from the start on, and its rate."""
    name = Piece.of(Variable(loop.state))
    error = Piece(rf"e_{{{name.latex}}}", f"e_({name.typst})", f"e({name.text})")
    back = f"{loop.window * dt:.4g}"
    integral = Piece(
        rf"\int_{{t-{back}\,\mathrm{{s}}}}^{{t}} {error.latex} \, \mathrm{{d}}t",
        f'integral_(t-{back} "s")^t {error.typst} thin dif t',
        f"integral of {error.text}",
    )
    if loop.integral:
        integral = Piece(
            rf"\int_{{0}}^{{t}} {error.latex} \, \mathrm{{d}}t",
            f"integral_0^t {error.typst} thin dif t",
            integral.text,
        )
    b, c = loop.shares
    rate = Piece(rf"\dot{{e}}_{{{name.latex}}}", f"dot(e)_({name.typst})", f"rate of {error.text}")
    if not c:
        rate = Piece(rf"(-\dot{{{name.latex}}})", f"(-dot({name.typst}))", f"(-rate of {name.text})")
    if loop.filter:
        time = f"{loop.filter * dt:.4g}"
        rate = Piece(
            rf"\left[{rate.latex}\right]_{{{time}\,\mathrm{{s}}}}",
            f'[{rate.typst}]_({time} "s")',
            f"({rate.text}, filtered over {time} s)",
        )
    if b != 1:
        aim = Piece.of(Variable(loop.state, "setpoint"))
        error = Piece(
            rf"\left({b:g} \, {aim.latex} - {name.latex}\right)",
            f"({b:g} thin {aim.typst} - {name.typst})",
            f"({b:g} {aim.text} - {name.text})",
        )
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
    for name in output.feedforward or {}:
        fed = {other: gain for other, gain in (output.feedforward or {}).items() if other != name}
        yield output.model_copy(update={"feedforward": fed or None}), f"drop what is fed forward from {name}"
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
