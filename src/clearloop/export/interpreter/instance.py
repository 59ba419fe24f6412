"""Instances of function blocks: their variables, which stay from one call to the next."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from clearloop.errors import ClearloopError
from clearloop.export.interpreter.compilation import Compiler, Frame
from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.inference import Function, Variable
from clearloop.export.interpreter.statements import Execute, Statements
from clearloop.export.interpreter.syntax import Declaration, Unit, Value
from clearloop.export.interpreter.types import INTEGERS, common, fitting


class Kind(NamedTuple):
    """A function block or program that instances are made of."""

    unit: Unit
    body: list[Execute]
    kinds: "Kinds"
    """Those that it may have instances of."""


Kinds = dict[str, Kind]


class Instance:
    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.frame: Frame = {one.name: initial(one, kind.kinds) for one in kind.unit.declarations}
        self._inputs = {one.name: one for one in kind.unit.section("VAR_INPUT")}

    def step(self, inputs: Mapping[str, Value]) -> None:
        """One call. An input that is not given keeps its value."""
        for one in self.kind.unit.section("VAR_TEMP"):
            self.frame[one.name] = initial(one, {})
        for name, value in inputs.items():
            one = self._input(name)
            self.frame[one.name] = fitting(one.type, one.line)(value)
        for statement in self.kind.body:
            if statement(self.frame):
                break

    def _input(self, name: str) -> Declaration:
        if name.upper() not in self._inputs:
            there = ", ".join(one.spelling for one in self._inputs.values())
            raise ClearloopError(f"{self.kind.unit.spelling} has no input {name}; it has: {there}")
        return self._inputs[name.upper()]


def initial(one: Declaration, kinds: Kinds) -> Any:
    """What a variable holds at first."""
    if one.type in kinds:
        return Instance(kinds[one.type])
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


def compiled(unit: Unit, functions: Mapping[str, Function], kinds: Kinds) -> list[Execute]:
    """The body of a unit."""
    variables = _variables(unit)
    if unit.result:
        variables[unit.name] = Variable(unit.result, None, True, False)
    for name in variables:
        if (name in functions and name != unit.name) or name in kinds:
            raise StructuredTextError(f"{name} is a function or a function block, too", unit.line)
    blocks = {name: _seen_from_outside(kind.unit) for name, kind in kinds.items()}
    return Statements(Compiler(variables, functions, blocks)).all(unit.body)


def _seen_from_outside(unit: Unit) -> dict[str, str]:
    return {one.name: one.type for one in (*unit.section("VAR_INPUT"), *unit.section("VAR_OUTPUT"))}


def _variables(unit: Unit) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    for one in unit.declarations:
        if one.name in found or one.name == unit.name:
            raise StructuredTextError(f"{one.spelling} is declared twice", one.line)
        writable = one.section not in ("VAR_INPUT", "VAR CONSTANT")
        found[one.name] = Variable(one.type, one.bounds, writable, _kept(one))
    return found
