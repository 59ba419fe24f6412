"""Loops of proportional, windowed integral and derivative terms (sec. 3.2 of the paper), in steps."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator

from clearloop.controllers.controller import Coefficient, Controller, Known, Memory, read_variable
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Variable
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
    input: Text
    weight: Coefficient = 1.0
    kp: Coefficient
    ki: Coefficient = 0.0
    kd: Coefficient = 0.0
    window: Window = 1


class Loops(Table):
    scale: Coefficient = 1.0
    bias: Coefficient = 0.0
    loops: Annotated[tuple[Loop, ...], Field(min_length=1, max_length=100)]


class PID(Controller):
    kind: Literal["pid"] = "pid"
    outputs: Annotated[dict[str, Loops], Field(min_length=1)]

    @model_validator(mode="after")
    def _inputs_are_names(self) -> Self:
        for place, variable in self.variables():
            if variable != Variable(variable.name):
                raise ClearloopError(f"{place}: expected the name of a state, found {quoted(str(variable))}")
        return self

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.outputs)

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for action, output in self.outputs.items():
            for number, loop in enumerate(output.loops):
                place = f"outputs.{action}.loops[{number}].input"
                yield place, read_variable(loop.input, place, known)

    @property
    def complexity(self) -> int:
        """2 for each gain with its term, 1 for a bias, 1 for each addition."""
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
        """Ti, with the window of its integral, and Td of the form Kp (e + ∫e/Ti + Td ė), in seconds."""
        if self.dt is None or not loop.kp:
            return ""
        text = ""
        if loop.ki:
            text += f", Ti = {loop.kp / loop.ki * self.dt:.4g} s (over {loop.window * self.dt:.4g} s)"
        if loop.kd:
            text += f", Td = {loop.kd / loop.kp * self.dt:.4g} s"
        return text

    def reset(self) -> Memory:
        windows = (loop.window for output in self.outputs.values() for loop in output.loops)
        return Memory(max(2, *windows), self.actions)

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


def _count_gains(output: Loops) -> int:
    return sum(bool(gain) for loop in output.loops for gain in (loop.kp, loop.ki, loop.kd))


def loop_parts(loop: Loop, memory: Memory) -> tuple[float, float, float]:
    """The proportional, integral and derivative part, before they are weighed.

    The sum is over the last `window` samples with the present one; the first change is 0.
    """
    errors = list(islice(memory.errors(read_variable(loop.input).name), max(2, loop.window)))
    change = errors[0] - errors[1] if len(errors) > 1 else 0.0
    return loop.kp * errors[0], loop.ki * sum(errors[: loop.window]), loop.kd * change
