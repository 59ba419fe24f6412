"""Expressions as functions of a frame: every result is made to fit its type."""

import operator
from collections.abc import Callable
from typing import Any

from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.inference import COMPARISONS, LOGIC, Inference
from clearloop.export.interpreter.syntax import (
    Binary,
    Call,
    Element,
    Expression,
    Literal,
    Member,
    Name,
    Unary,
)
from clearloop.export.interpreter.types import INTEGERS, check, common, fitting, settled

Frame = dict[str, Any]
"""The values of a unit's variables; of arrays, lists; of function blocks, instances."""
Evaluate = Callable[[Frame], Any]

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


class Compiler(Inference):
    def compile(self, expression: Expression, wanted: str) -> Evaluate:
        """As a value of type `wanted`."""
        found = self.type_of(expression)
        if common(found, wanted, expression.line) != wanted:
            raise StructuredTextError(f"expected {wanted}, found {found}", expression.line)
        return self._build(expression, wanted)

    def condition(self, expression: Expression) -> Evaluate:
        return self.compile(expression, "BOOL")

    def _build(self, node: Expression, wanted: str) -> Evaluate:
        match node:
            case Literal():
                value = fitting(wanted, node.line)(node.value)
                return lambda _: value
            case Name():
                return self._read(node)
            case Element():
                return self._read_element(node)
            case Member(instance=instance, name=name):
                return lambda frame: frame[instance].frame[name]
            case Unary():
                operand = self._build(node.operand, wanted)
                if node.operator == "NOT":
                    return lambda frame: not operand(frame)
                return lambda frame: -operand(frame)
            case Binary():
                return self._binary(node, wanted)
            case Call():
                return self._call(node, wanted)

    def _read(self, node: Name) -> Evaluate:
        name = node.name
        if self.variables[name].kept:
            return lambda frame: frame[name]
        refusal = StructuredTextError(f"{name} is read before it has a value", node.line)

        def read(frame: Frame) -> Any:
            if frame[name] is None:
                raise refusal
            return frame[name]

        return read

    def position(self, node: Element) -> Evaluate:
        """Where an element stands in the list."""
        bounds = self.variables[node.name].bounds
        if bounds is None:
            raise StructuredTextError(f"{node.name} is no array", node.line)
        first, last = bounds
        index = self.compile(node.index, settled(self.type_of(node.index)))
        check(settled(self.type_of(node.index)), INTEGERS, node.line)
        name, line = node.name, node.line

        def position(frame: Frame) -> int:
            at: int = index(frame)
            if not first <= at <= last:
                raise StructuredTextError(f"{name}[{at}] is outside {first}..{last}", line)
            return at - first

        return position

    def _read_element(self, node: Element) -> Evaluate:
        position, name = self.position(node), node.name
        return lambda frame: frame[name][position(frame)]

    def _binary(self, node: Binary, wanted: str) -> Evaluate:
        # Both operands are computed always: that AND and OR stop early is promised nowhere.
        type_ = settled(self.operands(node)) if node.operator in COMPARISONS else wanted
        left, right = self._build(node.left, type_), self._build(node.right, type_)
        direct = COMPARISONS.get(node.operator) or LOGIC.get(node.operator)
        if direct:
            return lambda frame: direct(left(frame), right(frame))
        meaning = _ARITHMETIC.get(node.operator) or _division(node, type_ in INTEGERS)
        fit = fitting(type_, node.line)
        return lambda frame: fit(meaning(left(frame), right(frame)))

    def _call(self, node: Call, wanted: str) -> Evaluate:
        function = self.function(node)
        # Literals among literals take the type that is wanted.
        generic = function.result in ("ANY_REAL", "ANY_INT")
        types = [wanted if generic and t == function.result else settled(t) for t in function.arguments]
        arguments = [
            self.compile(argument, type_) for argument, type_ in zip(node.arguments, types, strict=True)
        ]
        fit, call = fitting(wanted, node.line), function.call
        return lambda frame: fit(call(*[argument(frame) for argument in arguments]))


def _division(node: Binary, whole: bool) -> Callable[[Any, Any], Any]:
    def divide(a: Any, b: Any) -> Any:
        if b == 0:
            raise StructuredTextError("division by zero", node.line)
        if not whole:
            return a / b
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return a - b * quotient if node.operator == "MOD" else quotient

    return divide
