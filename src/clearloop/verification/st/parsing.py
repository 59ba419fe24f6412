"""A parser of the subset of Structured Text that is exported: from text to words, from words to a tree."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import NamedTuple, NoReturn

from clearloop.errors import ClearloopError


class StructuredTextError(ClearloopError):
    """An error in a text, with the line in which it is."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


_KEYWORDS = """
AND ARRAY BOOL BY CONSTANT DINT DO ELSE ELSIF END_FOR END_FUNCTION END_FUNCTION_BLOCK END_IF END_PROGRAM
END_VAR FALSE FOR FUNCTION FUNCTION_BLOCK IF LINT LREAL MOD NOT OF OR PROGRAM REAL RETURN THEN TO TRUE VAR
VAR_INPUT VAR_OUTPUT VAR_TEMP XOR
"""
_ELSEWHERE = """
ACTION ANY AT BYTE CASE CONFIGURATION DATE DWORD END_ACTION END_CASE END_REPEAT END_STRUCT END_TYPE
END_WHILE EXIT INT LWORD ON REPEAT RESOURCE RETAIN SINT STEP STRING STRUCT TASK TIME TRANSITION TYPE UDINT
UINT ULINT UNTIL USINT VAR_ACCESS VAR_EXTERNAL VAR_GLOBAL VAR_IN_OUT WHILE WITH WORD WSTRING
"""
KEYWORDS = frozenset(_KEYWORDS.split())
ELSEWHERE = frozenset(_ELSEWHERE.split())  # keywords of the language that no exported text contains

_TOKEN = re.compile(
    r"""
    (?P<blank>   \s+ )
  | (?P<comment> \(\*.*?\*\) | //[^\n]* )
  | (?P<open>    \(\* )
  | (?P<typed>   [A-Za-z]+\#[+-]?[0-9A-Za-z_.]+(?:(?<=[eE])[+-][0-9]+)? )
  | (?P<real>    [0-9](?:_?[0-9])*\.[0-9](?:_?[0-9])*(?:[eE][+-]?[0-9]+)? )
  | (?P<integer> [0-9](?:_?[0-9])* )
  | (?P<name>    [A-Za-z_][A-Za-z0-9_]* )
  | (?P<sign>    := | \.\. | <= | >= | <> | [-+*/<>=()\[\],;:&.] )
  | (?P<wrong>   . )
    """,
    re.VERBOSE | re.DOTALL,
)


class Lexeme(NamedTuple):
    """A word of a text.

    Attributes:
        kind: keyword, name, typed, real, integer, sign or end.
        text: The word; names and keywords in upper case.
        line: Its line, from 1.
        spelling: The word as it stands in the text.
    """

    kind: str
    text: str
    line: int
    spelling: str

    def __str__(self) -> str:
        return f"'{self.spelling}'" if self.text else "the end of the text"


def lexemes(text: str) -> Iterator[Lexeme]:
    """Yield the words of a text, the last of which is the end."""
    line, previous = 1, ""
    for found in _TOKEN.finditer(text):
        kind, word = found.lastgroup or "wrong", found[0]
        if kind == "comment" and "(*" in word[2:]:
            raise StructuredTextError("a comment begins inside a comment", line)
        if kind == "open":
            raise StructuredTextError("a comment does not end", line)
        if kind == "wrong":
            raise StructuredTextError(f"unexpected {word!r}", line)
        if kind == "name":
            kind, word = _word(word, line)
        if kind in ("name", "keyword") and previous in ("integer", "real"):
            raise StructuredTextError(f"a number runs into '{word}'; a real number is written 1.0E5", line)
        if kind not in ("blank", "comment"):
            yield Lexeme(kind, word, line, found[0])
        previous = kind
        line += found[0].count("\n")
    yield Lexeme("end", "", line, "")


def _word(word: str, line: int) -> tuple[str, str]:
    upper = word.upper()
    if upper in KEYWORDS:
        return "keyword", upper
    if upper in ELSEWHERE:
        raise StructuredTextError(f"{upper} is not part of the subset that is exported", line)
    if "__" in word or word.endswith("_"):
        raise StructuredTextError(
            f"'{word}': a name must not have two underscores together or end with one", line
        )
    return "name", upper


class Words:
    """The words of a text, one after the other, of which the present one can be inspected."""

    def __init__(self, text: str) -> None:
        self._tokens = lexemes(text)
        self.token = next(self._tokens)

    def advance(self) -> Lexeme:
        """Return the present word and go on to the next one."""
        token = self.token
        self.token = next(self._tokens, token)
        return token

    def accept(self, text: str) -> bool:
        """Go on to the next word if the present one is this, and return whether it was."""
        if self.token.text == text:
            self.advance()
            return True
        return False

    def expect(self, text: str) -> Lexeme:
        """Return the present word, which must be this one, and go on."""
        if self.token.text != text:
            self.refuse(f"'{text}'")
        return self.advance()

    def expect_name(self) -> Lexeme:
        """Return the present word, which must be a name, and go on."""
        if self.token.kind != "name":
            self.refuse("a name")
        return self.advance()

    def refuse(self, wanted: str) -> NoReturn:
        """Raise an error that says what was expected in place of the present word."""
        raise StructuredTextError(f"expected {wanted}, found {self.token}", self.token.line)


# The tree of a text: units with their declarations, statements and expressions. Names are in upper case.

Value = float | bool | int

_Section = OneOf["VAR_INPUT", "VAR_OUTPUT", "VAR", "VAR_TEMP", "VAR CONSTANT"]


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant in the text; its type is ANY_REAL or ANY_INT where the text does not give one."""

    value: Value
    type: str
    line: int


@dataclass(frozen=True, slots=True)
class Identifier:
    """A variable."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an array."""

    name: str
    index: "StExpression"
    line: int


@dataclass(frozen=True, slots=True)
class Member:
    """An input or output of an instance of a function block."""

    instance: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Unary:
    """An operation with one operand: - or NOT."""

    operator: str
    operand: "StExpression"
    line: int


@dataclass(frozen=True, slots=True)
class Binary:
    """An operation with two operands."""

    operator: str
    left: "StExpression"
    right: "StExpression"
    line: int


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function."""

    function: str
    arguments: "tuple[StExpression, ...]"
    line: int


StExpression = Literal | Identifier | Element | Member | Unary | Binary | FunctionCall


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment to a variable or to an element of an array."""

    target: Identifier | Element
    value: StExpression
    line: int


@dataclass(frozen=True, slots=True)
class If:
    """A choice: conditions with their statements, and the statements if none of them holds."""

    branches: "tuple[tuple[StExpression, tuple[StStatement, ...]], ...]"
    otherwise: "tuple[StStatement, ...]"
    line: int


@dataclass(frozen=True, slots=True)
class For:
    """A loop over whole numbers."""

    variable: Identifier
    first: StExpression
    last: StExpression
    step: StExpression
    body: "tuple[StStatement, ...]"
    line: int


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call of an instance of a function block."""

    instance: str
    inputs: tuple[tuple[str, StExpression], ...]
    line: int


@dataclass(frozen=True, slots=True)
class Return:
    """The end of the execution of a unit."""

    line: int


StStatement = Assignment | If | For | Invocation | Return


@dataclass(frozen=True, slots=True)
class VarDeclaration:
    """The declaration of a variable.

    Attributes:
        name: Its name in upper case.
        spelling: Its name as it stands in the text.
        section: The section of the unit that it stands in.
        type: Its type, that of its elements for an array, or a function block for an instance.
        bounds: The first and last index of an array; None: it is not an array.
        initial: The initial value or values; empty: zeros.
        line: Its line, from 1.
    """

    name: str
    spelling: str
    section: _Section
    type: str
    bounds: tuple[int, int] | None
    initial: tuple[Literal, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ProgramUnit:
    """A function, a function block or a program; `result` is the type of a function's value, else None."""

    name: str
    spelling: str
    result: str | None
    declarations: tuple[VarDeclaration, ...]
    body: tuple[StStatement, ...]
    line: int

    def section(self, section: _Section) -> tuple[VarDeclaration, ...]:
        """Return the variables of a section."""
        return tuple(one for one in self.declarations if one.section == section)


# Expressions are parsed by precedence climbing, with the levels of IEC 61131-3, table 55.

_LEVELS = {"OR": 1, "XOR": 2, "AND": 3, "&": 3, "=": 4, "<>": 4, "<": 5, ">": 5, "<=": 5, ">=": 5}
_LEVELS |= {"+": 6, "-": 6, "*": 7, "/": 7, "MOD": 7}

_DEEPEST = 300
_WHOLE = re.compile(r"[+-]?[0-9](_?[0-9])*")
_REAL = re.compile(r"[+-]?[0-9](_?[0-9])*\.[0-9](_?[0-9])*([eE][+-]?[0-9]+)?")


class Operands(Words):
    """A parser of expressions."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def expression(self, loosest: int = 1) -> StExpression:
        """Parse an expression as far as its operators have at least the precedence `loosest`."""
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

    def _operand(self) -> StExpression:
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

    def _name(self, name: Lexeme) -> StExpression:
        if self.token.text == "(":
            self.advance()
            arguments = [self.expression()]
            while self.accept(","):
                arguments.append(self.expression())
            self.expect(")")
            return FunctionCall(name.text, tuple(arguments), name.line)
        if self.accept("."):
            return Member(name.text, self.expect_name().text, name.line)
        return self.element(name)

    def element(self, name: Lexeme) -> Identifier | Element:
        """Parse the rest of a variable or of an element of an array."""
        if not self.accept("["):
            return Identifier(name.text, name.line)
        index = self.expression()
        self.expect("]")
        return Element(name.text, index, name.line)

    def signed_literal(self) -> Literal:
        """Parse a literal with a sign, as initial values have it."""
        sign = self.advance() if self.token.text in ("-", "+") else None
        literal = self._literal(self.advance())
        if sign and sign.text == "-":
            return Literal(-literal.value, literal.type, literal.line)
        return literal

    def _literal(self, token: Lexeme) -> Literal:
        if token.text in ("TRUE", "FALSE"):
            return Literal(token.text == "TRUE", "BOOL", token.line)
        if token.kind == "typed":
            return _typed(token)
        if token.kind == "integer":
            return Literal(int(token.text), "ANY_INT", token.line)
        if token.kind == "real":
            return Literal(_real(token.text, token), "ANY_REAL", token.line)
        raise StructuredTextError(f"expected a value, found {token}", token.line)


def _typed(token: Lexeme) -> Literal:
    """Read a typed literal such as `LREAL#-1.5`, `DINT#3` or `BOOL#TRUE`."""
    kind, _, text = token.text.upper().partition("#")
    if kind == "BOOL" and text in ("TRUE", "FALSE"):
        return Literal(text == "TRUE", "BOOL", token.line)
    if kind in ("DINT", "LINT") and _WHOLE.fullmatch(text):
        return Literal(int(text), kind, token.line)
    if kind in ("REAL", "LREAL") and _REAL.fullmatch(text):
        return Literal(_real(text, token), kind, token.line)
    raise StructuredTextError(f"{token} is not a literal", token.line)


def _real(text: str, token: Lexeme) -> float:
    value = float(text)
    if math.isinf(value):
        raise StructuredTextError(f"{token} is too large", token.line)
    return value


# Units, declarations and statements.

TYPES = ("LREAL", "REAL", "DINT", "LINT", "BOOL")
_SECTIONS: dict[str, _Section] = {
    "VAR_INPUT": "VAR_INPUT",
    "VAR_OUTPUT": "VAR_OUTPUT",
    "VAR": "VAR",
    "VAR_TEMP": "VAR_TEMP",
}
_LONGEST = 1_000_000


def parse_st(text: str) -> tuple[ProgramUnit, ...]:
    """Parse a text and return its functions, function blocks and programs.

    Raises:
        StructuredTextError: If the text is not of the subset that is exported.
    """
    parser = _Parser(text)
    units = []
    while parser.token.kind != "end":
        units.append(parser.unit())
    return tuple(units)


class _Parser(Operands):
    def unit(self) -> ProgramUnit:
        start = self.advance()
        if start.text not in ("FUNCTION", "FUNCTION_BLOCK", "PROGRAM"):
            raise StructuredTextError(f"expected FUNCTION or FUNCTION_BLOCK, found {start}", start.line)
        name = self.expect_name()
        result = None
        if start.text == "FUNCTION":
            self.expect(":")
            result = self._type()
        declarations: list[VarDeclaration] = []
        while self.token.text in _SECTIONS:
            declarations += self._section()
        body = self._statements(f"END_{start.text}")
        self.expect(f"END_{start.text}")
        self.accept(";")
        return ProgramUnit(name.text, name.spelling, result, tuple(declarations), body, start.line)

    def _section(self) -> list[VarDeclaration]:
        section = _SECTIONS[self.advance().text]
        if section == "VAR" and self.accept("CONSTANT"):
            section = "VAR CONSTANT"
        found: list[VarDeclaration] = []
        while not self.accept("END_VAR"):
            found += self._declaration(section)
        return found

    def _declaration(self, section: _Section) -> list[VarDeclaration]:
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
            VarDeclaration(name.text, name.spelling, section, kind, bounds, initial, name.line)
            for name in names
        ]

    def _type(self) -> str:
        if self.token.text not in TYPES:
            self.refuse(f"a type ({', '.join(TYPES)})")
        return self.advance().text

    def _bounds(self) -> tuple[int, int]:
        """Parse the bounds of an array, `ARRAY [0..39] OF`."""
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
                f"an array from {bounds[0]} to {bounds[1]} has {len(values)} initial values", line
            )
        return tuple(values)

    def _items(self) -> list[Literal]:
        """Parse an initial value of an array, or `40(0.0)` for many equal ones."""
        literal = self.signed_literal()
        if literal.type != "ANY_INT" or not self.accept("("):
            return [literal]
        repeated = self.signed_literal()
        self.expect(")")
        return [repeated] * int(literal.value)

    def _statements(self, *ends: str) -> tuple[StStatement, ...]:
        found: list[StStatement] = []
        while self.token.text not in ends:
            if not self.accept(";"):
                found.append(self._statement())
        return tuple(found)

    def _statement(self) -> StStatement:
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

    def _invocation(self, instance: Lexeme) -> Invocation:
        """Parse the rest of a call such as `controller(theta := 0.1, rho := x);`."""
        inputs: list[tuple[str, StExpression]] = []
        while self.token.text != ")" and (not inputs or self.expect(",")):
            name = self.expect_name()
            self.expect(":=")
            inputs.append((name.text, self.expression()))
        self.expect(")")
        self.expect(";")
        return Invocation(instance.text, tuple(inputs), instance.line)

    def _if(self) -> If:
        line = self.token.line
        branches: list[tuple[StExpression, tuple[StStatement, ...]]] = []
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
        return For(Identifier(name.text, name.line), first, last, step, body, line)
