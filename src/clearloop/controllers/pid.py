"""Loops of proportional, windowed integral and derivative terms (sec. 3.2 of the paper), in steps."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field, Strict

from clearloop.controllers.controller import Controller, Features, Memory
from clearloop.expression import Variable
from clearloop.task.tables import Number, Table, Text, expecting

Window = Annotated[int, Strict(), Field(ge=1, le=100_000), expecting("a whole number of steps from 1 to 100,000")]


class Loop(Table):
    input: Text
    weight: Number = 1.0
    kp: Number
    ki: Number = 0.0
    kd: Number = 0.0
    window: Window = 1


class Loops(Table):
    scale: Number = 1.0
    loops: Annotated[tuple[Loop, ...], Field(min_length=1, max_length=1000)]


class PID(Controller):
    kind: Literal["pid"] = "pid"
    outputs: Annotated[dict[str, Loops], Field(min_length=1)]

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.outputs)

    def variables(self) -> Iterator[tuple[str, Variable]]:
        for action, output in self.outputs.items():
            for number, loop in enumerate(output.loops):
                yield f"outputs.{action}.loops[{number}].input", Variable(loop.input)

    @property
    def complexity(self) -> int:
        """2 for each gain with its term, 1 for each addition."""
        counts = [sum(bool(k) for loop in output.loops for k in (loop.kp, loop.ki, loop.kd)) for output in self.outputs.values()]
        return sum(max(3 * count - 1, 1) for count in counts)

    @property
    def summary(self) -> str:
        loops = ", ".join(loop.input for output in self.outputs.values() for loop in output.loops)
        return f"PID on {loops}"

    def words(self) -> Iterator[str]:
        for action, output in self.outputs.items():
            for loop in output.loops:
                gain = output.scale * loop.weight * loop.kp
                yield f"{action}, loop on {loop.input}: e = setpoint - {loop.input}"
                per_step = f"kp {loop.kp:g}, ki {loop.ki:g} over {loop.window} steps, kd {loop.kd:g}"
                yield f"  per step  {output.scale:g} * {loop.weight:g} * ({per_step})"
                unit = f"{self.unit(action)}/{self.units[loop.input]}" if self.units.get(loop.input) else ""
                yield f"  standard  Kp = {gain:.4g}{unit}{self._times(loop)}"
        yield from self.limit_words()

    def _times(self, loop: Loop) -> str:
        """Kp, Ti, Td of the form Kp (e + ∫e/Ti + Td ė), in seconds."""
        if self.dt is None or not loop.kp:
            return ""
        integral = f", Ti = {loop.kp / loop.ki * self.dt:.4g} s" if loop.ki else ""
        return f"{integral}, Td = {loop.kd / loop.kp * self.dt:.4g} s" + (
            f" (integral over the last {loop.window * self.dt:.4g} s)" if loop.ki else ""
        )

    def reset(self) -> Memory:
        windows = (loop.window for output in self.outputs.values() for loop in output.loops)
        return Memory(depth=max(2, *windows))

    def respond(self, memory: Memory, setpoint: Mapping[str, float]) -> dict[str, float]:
        def term(loop: Loop) -> float:
            aim = setpoint.get(loop.input, 0.0)
            errors = [aim - seen[loop.input] for seen in islice(memory.observations, max(2, loop.window))]
            change = errors[0] - errors[1] if len(errors) > 1 else 0.0
            return loop.weight * (loop.kp * errors[0] + loop.ki * sum(errors[: loop.window]) + loop.kd * change)

        return {action: output.scale * sum(map(term, output.loops)) for action, output in self.outputs.items()}

    def sizes(self, features: Features) -> list[int]:
        return [
            size
            for number, action in enumerate(features.actions)
            for loop in self.outputs[action].loops
            for size in (number, features.slot(Variable(loop.input)))
        ]

    def numbers(self, features: Features) -> list[float]:
        return [
            number
            for action in features.actions
            for loop in self.outputs[action].loops
            for number in (self.outputs[action].scale * loop.weight, loop.kp, loop.ki, loop.kd, loop.window)
        ]
