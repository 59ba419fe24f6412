"""Expressions: precedence climbing with the levels of IEC 61131-3, table 55; and literals."""

import math
import re

from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.scanning import Token
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
from clearloop.export.interpreter.words import Words

_LEVELS = {"OR": 1, "XOR": 2, "AND": 3, "&": 3, "=": 4, "<>": 4, "<": 5, ">": 5, "<=": 5, ">=": 5}
_LEVELS |= {"+": 6, "-": 6, "*": 7, "/": 7, "MOD": 7}

_DEEPEST = 300
_WHOLE = re.compile(r"[+-]?[0-9](_?[0-9])*")
_REAL = re.compile(r"[+-]?[0-9](_?[0-9])*\.[0-9](_?[0-9])*([eE][+-]?[0-9]+)?")


class Operands(Words):
    """Reads expressions."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def expression(self, loosest: int = 1) -> Expression:
        """What follows, as far as its operators bind at least as tightly as `loosest`; from left to right."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise StructuredTextError("an expression is nested too deeply", self.token.line)
        left = self._operand()
        while (level := _LEVELS.get(self.token.text, 0)) >= loosest:
            sign = self.advance()
            operator = "AND" if sign.text == "&" else sign.text
            left = Binary(operator, left, self.expression(level + 1), sign.line)
        self._depth -= 1
        return left

    def _operand(self) -> Expression:
        token = self.advance()
        if token.text in ("-", "NOT"):
            return Unary(token.text, self._operand(), token.line)
        if token.text == "(":
            inside = self.expression()
            self.expect(")")
            return inside
        if token.kind == "name":
            return self._name(token)
        return self._literal(token)

    def _name(self, name: Token) -> Expression:
        if self.token.text == "(":
            self.advance()
            arguments = [self.expression()]
            while self.accept(","):
                arguments.append(self.expression())
            self.expect(")")
            return Call(name.text, tuple(arguments), name.line)
        if self.accept("."):
            return Member(name.text, self.expect_name().text, name.line)
        return self.element(name)

    def element(self, name: Token) -> Name | Element:
        if not self.accept("["):
            return Name(name.text, name.line)
        index = self.expression()
        self.expect("]")
        return Element(name.text, index, name.line)

    def signed_literal(self) -> Literal:
        """As an initial value."""
        sign = self.advance() if self.token.text in ("-", "+") else None
        literal = self._literal(self.advance())
        if sign and sign.text == "-":
            return Literal(-literal.value, literal.type, literal.line)
        return literal

    def _literal(self, token: Token) -> Literal:
        if token.text in ("TRUE", "FALSE"):
            return Literal(token.text == "TRUE", "BOOL", token.line)
        if token.kind == "typed":
            return _typed(token)
        if token.kind == "integer":
            return Literal(int(token.text), "ANY_INT", token.line)
        if token.kind == "real":
            return Literal(_real(token.text, token), "ANY_REAL", token.line)
        raise StructuredTextError(f"expected a value, found {token}", token.line)


def _typed(token: Token) -> Literal:
    """`LREAL#-1.5`, `DINT#3`, `BOOL#TRUE`."""
    kind, _, text = token.text.upper().partition("#")
    if kind == "BOOL" and text in ("TRUE", "FALSE"):
        return Literal(text == "TRUE", "BOOL", token.line)
    if kind in ("DINT", "LINT") and _WHOLE.fullmatch(text):
        return Literal(int(text), kind, token.line)
    if kind in ("REAL", "LREAL") and _REAL.fullmatch(text):
        return Literal(_real(text, token), kind, token.line)
    raise StructuredTextError(f"{token} is no literal", token.line)


def _real(text: str, token: Token) -> float:
    value = float(text)
    if math.isinf(value):
        raise StructuredTextError(f"{token} is too large", token.line)
    return value
