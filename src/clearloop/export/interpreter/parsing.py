"""From text to tree: units, declarations and statements of the subset of Structured Text that is exported."""

from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.operands import Operands
from clearloop.export.interpreter.scanning import Token
from clearloop.export.interpreter.syntax import (
    Assignment,
    Declaration,
    Expression,
    For,
    If,
    Invocation,
    Literal,
    Name,
    Return,
    Section,
    Statement,
    Unit,
)

TYPES = ("LREAL", "REAL", "DINT", "LINT", "BOOL")
_SECTIONS: dict[str, Section] = {
    "VAR_INPUT": "VAR_INPUT",
    "VAR_OUTPUT": "VAR_OUTPUT",
    "VAR": "VAR",
    "VAR_TEMP": "VAR_TEMP",
}
_LONGEST = 1_000_000


def parse(text: str) -> tuple[Unit, ...]:
    """The functions and function blocks of a text; `StructuredTextError` for whatever is none."""
    parser = _Parser(text)
    units = []
    while parser.token.kind != "end":
        units.append(parser.unit())
    return tuple(units)


class _Parser(Operands):
    def unit(self) -> Unit:
        start = self.advance()
        if start.text not in ("FUNCTION", "FUNCTION_BLOCK", "PROGRAM"):
            raise StructuredTextError(f"expected FUNCTION or FUNCTION_BLOCK, found {start}", start.line)
        name = self.expect_name()
        result = None
        if start.text == "FUNCTION":
            self.expect(":")
            result = self._type()
        declarations: list[Declaration] = []
        while self.token.text in _SECTIONS:
            declarations += self._section()
        body = self._statements(f"END_{start.text}")
        self.expect(f"END_{start.text}")
        self.accept(";")
        return Unit(name.text, name.spelling, result, tuple(declarations), body, start.line)

    def _section(self) -> list[Declaration]:
        section = _SECTIONS[self.advance().text]
        if section == "VAR" and self.accept("CONSTANT"):
            section = "VAR CONSTANT"
        found: list[Declaration] = []
        while not self.accept("END_VAR"):
            found += self._declaration(section)
        return found

    def _declaration(self, section: Section) -> list[Declaration]:
        names = [self.expect_name()]
        while self.accept(","):
            names.append(self.expect_name())
        self.expect(":")
        bounds = self._bounds() if self.token.text == "ARRAY" else None
        instance = section == "VAR" and bounds is None and self.token.kind == "name"
        kind = self.advance().text if instance else self._type()
        initial = self._initial(bounds) if self.accept(":=") else ()
        self.expect(";")
        return [
            Declaration(name.text, name.spelling, section, kind, bounds, initial, name.line) for name in names
        ]

    def _type(self) -> str:
        if self.token.text not in TYPES:
            self.refuse(f"a type ({', '.join(TYPES)})")
        return self.advance().text

    def _bounds(self) -> tuple[int, int]:
        """`ARRAY [0..39] OF`."""
        self.expect("ARRAY")
        self.expect("[")
        first = self._whole()
        self.expect("..")
        last = self._whole()
        self.expect("]")
        self.expect("OF")
        if not 0 <= last - first < _LONGEST:
            raise StructuredTextError(f"an array cannot run from {first} to {last}", self.token.line)
        return first, last

    def _whole(self) -> int:
        literal = self.signed_literal()
        if literal.type != "ANY_INT":
            raise StructuredTextError("expected a whole number", literal.line)
        return int(literal.value)

    def _initial(self, bounds: tuple[int, int] | None) -> tuple[Literal, ...]:
        if bounds is None:
            return (self.signed_literal(),)
        line = self.expect("[").line
        values = self._items()
        while self.accept(","):
            values += self._items()
        self.expect("]")
        if len(values) != bounds[1] - bounds[0] + 1:
            raise StructuredTextError(
                f"an array from {bounds[0]} to {bounds[1]} begins with {len(values)} values", line
            )
        return tuple(values)

    def _items(self) -> list[Literal]:
        """One initial value of an array, or `40(0.0)`, the same one many times."""
        literal = self.signed_literal()
        if literal.type != "ANY_INT" or not self.accept("("):
            return [literal]
        repeated = self.signed_literal()
        self.expect(")")
        return [repeated] * int(literal.value)

    def _statements(self, *ends: str) -> tuple[Statement, ...]:
        found: list[Statement] = []
        while self.token.text not in ends:
            if not self.accept(";"):
                found.append(self._statement())
        return tuple(found)

    def _statement(self) -> Statement:
        if self.token.text == "IF":
            return self._if()
        if self.token.text == "FOR":
            return self._for()
        if self.token.text == "RETURN":
            line = self.advance().line
            self.expect(";")
            return Return(line)
        if self.token.kind != "name":
            self.refuse("a statement")
        name = self.advance()
        if self.accept("("):
            return self._invocation(name)
        target = self.element(name)
        self.expect(":=")
        value = self.expression()
        self.expect(";")
        return Assignment(target, value, name.line)

    def _invocation(self, instance: Token) -> Invocation:
        """`controller(theta := 0.1, rho := x);`."""
        inputs: list[tuple[str, Expression]] = []
        while self.token.text != ")" and (not inputs or self.expect(",")):
            name = self.expect_name()
            self.expect(":=")
            inputs.append((name.text, self.expression()))
        self.expect(")")
        self.expect(";")
        return Invocation(instance.text, tuple(inputs), instance.line)

    def _if(self) -> If:
        line = self.token.line
        branches: list[tuple[Expression, tuple[Statement, ...]]] = []
        while self.token.text in ("IF", "ELSIF") and (not branches or self.token.text == "ELSIF"):
            self.advance()
            condition = self.expression()
            self.expect("THEN")
            branches.append((condition, self._statements("ELSIF", "ELSE", "END_IF")))
        otherwise = self._statements("END_IF") if self.accept("ELSE") else ()
        self.expect("END_IF")
        self.expect(";")
        return If(tuple(branches), otherwise, line)

    def _for(self) -> For:
        line = self.advance().line
        name = self.expect_name()
        self.expect(":=")
        first = self.expression()
        self.expect("TO")
        last = self.expression()
        step = self.expression() if self.accept("BY") else Literal(1, "ANY_INT", line)
        self.expect("DO")
        body = self._statements("END_FOR")
        self.expect("END_FOR")
        self.expect(";")
        return For(Name(name.text, name.line), first, last, step, body, line)
