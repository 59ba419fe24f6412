"""Function blocks that run: state between calls, statements one after the other, functions without state."""

from collections.abc import Mapping
from typing import Any

from clearloop.errors import ClearloopError
from clearloop.export.interpreter.compilation import Compiler, Frame, Function, Variable
from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.functions import standard
from clearloop.export.interpreter.parsing import parse
from clearloop.export.interpreter.statements import Execute, Statements
from clearloop.export.interpreter.syntax import Declaration, Unit, Value
from clearloop.export.interpreter.types import INTEGERS, common, fitting


class Block:
    """An instance of the last function block of a text, as a PLC would run it.

    Everything that a PLC might stumble over is an error with its line: a division by zero, an overflow, a
    root of a negative number, an index outside an array, a variable that is read before it has a value.
    """

    def __init__(self, text: str) -> None:
        functions: dict[str, Function] = {}
        block = None
        for unit in parse(text):
            if unit.name in functions or _is_standard(unit.name):
                raise StructuredTextError(
                    f"{unit.spelling} is declared twice, or is a standard function", unit.line
                )
            if unit.result:
                functions[unit.name] = _function(unit, functions)
            else:
                block = unit
        if block is None:
            raise ClearloopError("the text has no FUNCTION_BLOCK")
        self._unit = block
        self._body = _compiled(block, functions)
        self._frame: Frame = {}
        self.inputs = tuple(one.spelling for one in block.section("VAR_INPUT"))
        self.outputs = tuple(one.spelling for one in block.section("VAR_OUTPUT"))
        self.reset()

    @property
    def name(self) -> str:
        return self._unit.spelling

    def reset(self) -> None:
        """As after a cold start."""
        self._frame = {one.name: _initial(one) for one in self._unit.declarations}

    def step(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """One call: the outputs. An input that is not given keeps its value."""
        for one in self._unit.section("VAR_TEMP"):
            self._frame[one.name] = _initial(one)
        declared = {one.name: one for one in self._unit.section("VAR_INPUT")}
        for name, value in inputs.items():
            if name.upper() not in declared:
                raise ClearloopError(f"{self.name} has no input {name}; it has: {', '.join(self.inputs)}")
            one = declared[name.upper()]
            self._frame[one.name] = fitting(one.type, one.line)(value)
        for statement in self._body:
            if statement(self._frame):
                break
        return {one.spelling: self._frame[one.name] for one in self._unit.section("VAR_OUTPUT")}

    def value(self, name: str) -> Any:
        """Of any variable, as a debugger would show it."""
        return self._frame[name.upper()]


def _is_standard(name: str) -> bool:
    try:
        return standard(name, (), 0) is not None
    except StructuredTextError:  # it is one that does not like to be called without arguments
        return True


def _initial(one: Declaration) -> Any:
    fit = fitting(one.type, one.line)
    for literal in one.initial:
        common(literal.type, one.type, literal.line)
    values = [fit(literal.value) for literal in one.initial]
    zero: Value = False if one.type == "BOOL" else 0 if one.type in INTEGERS else 0.0
    if one.bounds:
        return values or [zero] * (one.bounds[1] - one.bounds[0] + 1)
    if not values and not _kept(one):
        return None
    return values[0] if values else zero


def _kept(one: Declaration) -> bool:
    return one.section != "VAR_TEMP" or bool(one.initial) or one.bounds is not None


def _variables(unit: Unit) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    for one in unit.declarations:
        if one.name in found or one.name == unit.name:
            raise StructuredTextError(f"{one.spelling} is declared twice", one.line)
        writable = one.section not in ("VAR_INPUT", "VAR CONSTANT")
        found[one.name] = Variable(one.type, one.bounds, writable, _kept(one))
    return found


def _compiled(unit: Unit, functions: Mapping[str, Function]) -> list[Execute]:
    variables = _variables(unit)
    if unit.result:
        variables[unit.name] = Variable(unit.result, None, True, False)
    for name in variables:
        if name in functions and name != unit.name:
            raise StructuredTextError(f"{name} is a function, too", unit.line)
    return Statements(Compiler(variables, functions)).all(unit.body)


def _function(unit: Unit, functions: Mapping[str, Function]) -> Function:
    body = _compiled(unit, functions)
    inputs = unit.section("VAR_INPUT")

    def call(*arguments: Value) -> Value:
        frame: Frame = {one.name: _initial(one) for one in unit.declarations}
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
