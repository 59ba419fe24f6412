"""Statements as functions of a frame, which they change."""

from collections.abc import Callable

from clearloop.export.interpreter.compilation import Compiler, Frame
from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.syntax import Assignment, Element, For, If, Invocation, Return, Statement
from clearloop.export.interpreter.types import INTEGERS, check, fitting

Execute = Callable[[Frame], bool]
"""One statement; whether the unit returns."""


class Statements:
    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler

    def all(self, statements: tuple[Statement, ...]) -> list[Execute]:
        return [self._one(statement) for statement in statements]

    def _one(self, statement: Statement) -> Execute:
        match statement:
            case Assignment():
                return self._assignment(statement)
            case If():
                return self._if(statement)
            case For():
                return self._for(statement)
            case Invocation():
                return self._invocation(statement)
            case Return():
                return lambda _: True

    def _invocation(self, node: Invocation) -> Execute:
        inputs = [
            (name, self.compiler.compile(value, self.compiler.member(node.instance, name, node.line)))
            for name, value in node.inputs
        ]

        def invoke(frame: Frame) -> bool:
            frame[node.instance].step({name: value(frame) for name, value in inputs})
            return False

        return invoke

    def _assignment(self, node: Assignment) -> Execute:
        name = node.target.name
        if not self.compiler.variable(name, node.line).writable:
            raise StructuredTextError(f"{name} cannot be assigned to", node.line)
        value = self.compiler.compile(node.value, self.compiler.type_of(node.target))
        if isinstance(node.target, Element):
            position = self.compiler.position(node.target)

            def assign_element(frame: Frame) -> bool:
                frame[name][position(frame)] = value(frame)
                return False

            return assign_element

        def assign(frame: Frame) -> bool:
            frame[name] = value(frame)
            return False

        return assign

    def _if(self, node: If) -> Execute:
        branches = [(self.compiler.condition(test), self.all(body)) for test, body in node.branches]
        otherwise = self.all(node.otherwise)

        def run(frame: Frame) -> bool:
            chosen = next((body for test, body in branches if test(frame)), otherwise)
            return any(statement(frame) for statement in chosen)

        return run

    def _for(self, node: For) -> Execute:
        name = node.variable.name
        kind = check(self.compiler.type_of(node.variable), INTEGERS, node.line)
        first, last, step = (self.compiler.compile(one, kind) for one in (node.first, node.last, node.step))
        body = self.all(node.body)
        fit = fitting(kind, node.line)

        def run(frame: Frame) -> bool:
            frame[name], end, stride = first(frame), last(frame), step(frame)
            if stride == 0:
                raise StructuredTextError("FOR with a step of 0", node.line)
            while (frame[name] <= end) if stride > 0 else (frame[name] >= end):
                if any(statement(frame) for statement in body):
                    return True
                frame[name] = fit(frame[name] + stride)
            return False

        return run
