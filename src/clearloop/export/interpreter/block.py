"""A text that runs: functions without state, function blocks and programs with state between calls."""

from collections.abc import Mapping
from typing import Any

from clearloop.errors import ClearloopError
from clearloop.export.interpreter.compilation import Frame
from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.functions import standard
from clearloop.export.interpreter.inference import Function
from clearloop.export.interpreter.instance import Instance, Kind, Kinds, compiled, initial
from clearloop.export.interpreter.parsing import parse
from clearloop.export.interpreter.syntax import Unit, Value


class Block:
    """An instance of the last function block or program of a text, as a PLC would run it.

    Everything that a PLC might stumble over is an error with its line: a division by zero, an overflow, a
    root of a negative number, an index outside an array, a variable that is read before it has a value.
    """

    def __init__(self, text: str) -> None:
        functions: dict[str, Function] = {}
        kinds: dict[str, Kind] = {}
        last = None
        for unit in parse(text):
            if unit.name in functions or unit.name in kinds or _is_standard(unit.name):
                raise StructuredTextError(
                    f"{unit.spelling} is declared twice, or is a standard function", unit.line
                )
            if unit.result:
                functions[unit.name] = _function(unit, functions)
            else:
                last = kinds[unit.name] = Kind(unit, compiled(unit, functions, kinds), dict(kinds))
        if last is None:
            raise ClearloopError("the text has no FUNCTION_BLOCK")
        self._kind = last
        self._instance = Instance(last)
        self.inputs = tuple(one.spelling for one in last.unit.section("VAR_INPUT"))
        self.outputs = tuple(one.spelling for one in last.unit.section("VAR_OUTPUT"))

    @property
    def name(self) -> str:
        return self._kind.unit.spelling

    def reset(self) -> None:
        """As after a cold start."""
        self._instance = Instance(self._kind)

    def step(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """One call: the outputs. An input that is not given keeps its value."""
        self._instance.step(inputs)
        return {name: self._instance.frame[name.upper()] for name in self.outputs}

    def value(self, name: str) -> Any:
        """Of any variable, as a debugger would show it."""
        return self._instance.frame[name.upper()]


def _is_standard(name: str) -> bool:
    try:
        return standard(name, (), 0) is not None
    except StructuredTextError:  # it is one that does not like to be called without arguments
        return True


def _function(unit: Unit, functions: Mapping[str, Function]) -> Function:
    body = compiled(unit, functions, {})
    inputs, kinds = unit.section("VAR_INPUT"), Kinds()

    def call(*arguments: Value) -> Value:
        frame: Frame = {one.name: initial(one, kinds) for one in unit.declarations}
        frame[unit.name] = None
        frame.update(zip((one.name for one in inputs), arguments, strict=True))
        for statement in body:
            if statement(frame):
                break
        if frame[unit.name] is None:
            raise StructuredTextError(f"{unit.spelling} returns without a value", unit.line)
        result: Value = frame[unit.name]
        return result

    return Function(tuple(one.type for one in inputs), unit.result or "", call)
