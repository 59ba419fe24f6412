"""`parse` turns text into a tree by precedence climbing, or says where the text is no formula."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, NoReturn

from clearloop.errors import quoted
from clearloop.expression.nodes import (
    COMPARISON,
    INFIX,
    MAX_DEPTH,
    MAX_LAG,
    NAMED_FUNCTIONS,
    NEGATION,
    OR,
    POWER,
    PREFIX,
    Call,
    Expression,
    FormulaError,
    Kind,
    Number,
    Operation,
    Variable,
    VariablePart,
    too_deep,
)
from clearloop.numbers import counted

# The grammar:
#
# formula  = operand { infix operand }, with the precedence of Python
# operand  = ( "-" | "+" | "not" ) operand | "(" formula ")" | number | variable
#          | function "(" formula { "," formula } ")"
# variable = name [ ".error" | ".setpoint" ] [ "[t]" | "[t-" steps "]" ]


def parse(text: str, names: Collection[str] | None = None, *, kind: Kind = "number") -> Expression:
    """Return the tree of a formula.

    Args:
        text: The formula.
        names: The names that it may use; None allows all.
        kind: The kind that is wanted, a number or a condition.

    Raises:
        FormulaError: The text is no such formula; the message has the column.
    """
    parser = _Parser(text, names)
    try:
        return parser.formula(kind)
    except RecursionError:  # the caller's own stack was nearly full
        raise too_deep(parser.token.column) from None


# The scanner splits text into numbers, names and signs, each with its column.

MAX_CHARACTERS = 1_000_000
MAX_TOKENS = 10_000  # hostile text is refused after this many, whatever it means

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number> (?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? )
  | (?P<name>   (?:[A-Za-z_]|[^\x00-\x7f\s])(?:[A-Za-z_0-9]|[^\x00-\x7f\s])* )
  | (?P<alien>  <> | && | \|\| )
  | (?P<sign>   \*\* | <= | >= | == | != | [-+*/<>()\[\],.] )
  | (?P<end>    \Z )
  | (?P<wrong>  . )
    )""",
    re.VERBOSE | re.DOTALL,
)

# Signs of other languages, and the signs of this one.
_ELSEWHERE = {"^": "**", "²": "**2", "³": "**3", "·": "*", "÷": "/", ";": ","}
_ELSEWHERE |= {"×": "*", "−": "-", "–": "-"}  # noqa: RUF001 - that they look alike is the trouble
_ELSEWHERE |= {"=": "==", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
_ELSEWHERE |= {"&&": "and", "&": "and", "||": "or", "|": "or", "!": "not"}


class Token(NamedTuple):
    """A word of a formula with its column, counted from 1."""

    kind: str
    """number, name, sign or end"""
    text: str
    column: int

    def __str__(self) -> str:
        return quoted(self.text) if self.text else "the end of the formula"


def scan(text: str) -> Iterator[Token]:
    """Yield the words of a formula one by one, the last of them its end.

    Raises:
        FormulaError: A character cannot begin a word, or the text is too long.
    """
    if len(text) > MAX_CHARACTERS:
        raise FormulaError(f"formula longer than {MAX_CHARACTERS:,} characters")
    for count, found in enumerate(_TOKEN.finditer(text)):
        kind = found.lastgroup or "wrong"
        word, column = found[kind], found.start(kind) + 1
        if count == MAX_TOKENS:
            raise FormulaError(f"formula longer than {MAX_TOKENS:,} numbers, names and signs", column)
        if kind == "name" and not word.isidentifier():
            offset = _first_alien(word)
            raise _unexpected(word[offset], column + offset)
        if kind in ("alien", "wrong"):
            raise _unexpected(word, column)
        yield Token(kind, word, column)


def _first_alien(word: str) -> int:
    """Return the position at which a word with non-ASCII characters stops being a name."""
    if not word[0].isidentifier():
        return 0
    return next(i for i, character in enumerate(word) if not f"_{character}".isidentifier())


def _unexpected(character: str, column: int) -> FormulaError:
    advice = suggestion(_ELSEWHERE.get(character))
    return FormulaError(f"unexpected character {quoted(character)}", column, advice)


def suggestion(word: str | None) -> str:
    """Return the advice to write another word, if there is one."""
    return f"did you mean '{word}'?" if word else ""


# The parser.

_PARTS: dict[str, VariablePart] = {"error": "error", "setpoint": "setpoint"}


class _Operand(NamedTuple):
    tree: Expression
    column: int


class _Parser:
    def __init__(self, text: str, names: Collection[str] | None) -> None:
        self.tokens = scan(text)
        self.token = Token("end", "", 1)
        self.names = names
        self.nesting = 0

    def formula(self, kind: Kind) -> Expression:
        self.advance()
        whole = self.expression(OR)
        self.close("")
        return _checked(whole, kind)

    def expression(self, loosest: int) -> _Operand:
        """Read as far as the precedence of operations is at least `loosest`."""
        self.nesting += 1
        if self.nesting > 2 * MAX_DEPTH:  # a level of the tree can take a sign and a parenthesis
            raise too_deep(self.token.column)
        left = self.operand()
        while (operation := INFIX.get(self.token.text)) and operation.precedence >= loosest:
            sign = self.advance()
            # All operations but ** associate to the left.
            right = self.expression(operation.precedence + (operation.precedence != POWER))
            left = _Operand(_call(operation, (left, right), sign.column), left.column)
            if operation.precedence == COMPARISON:
                self.refuse_chain()
        self.nesting -= 1
        return left

    def operand(self) -> _Operand:
        token = self.advance()
        if token.text == "(":
            tree = self.expression(OR).tree
            self.close(")")
        elif token.text == "-" and self.token.kind == "number":
            tree = self.negative(token)
        elif operation := PREFIX.get(token.text):
            tree = _call(operation, (self.expression(operation.precedence),), token.column)
        elif token.text == "+":
            tree = _checked(self.expression(NEGATION), "number")
        elif token.kind == "number":
            tree = _number(token)
        elif token.kind == "name" and token.text not in INFIX:
            tree = self.function(token) if self.token.text == "(" else self.variable(token)
        else:
            self.expected("a value", token)
        return _Operand(tree, token.column)

    def negative(self, sign: Token) -> Expression:
        """Read a negative number; but -3**2 is -(3**2)."""
        operand = self.expression(NEGATION)
        if isinstance(operand.tree, Number):
            return Number(-operand.tree.value)
        return _call(PREFIX["-"], (operand,), sign.column)

    def function(self, name: Token) -> Expression:
        operation = NAMED_FUNCTIONS.get(name.text)
        if operation is None:
            nearest = _nearest(name.text.lower(), NAMED_FUNCTIONS)
            raise FormulaError(f"unknown function {name}", name.column, nearest)
        arguments: list[_Operand] = []
        while not arguments or self.token.text == ",":
            self.advance()
            arguments.append(self.expression(OR))
        self.close(")")
        if len(arguments) != operation.arity:
            wanted = counted(operation.arity, "argument")
            raise FormulaError(f"{name} takes {wanted}, found {len(arguments)}", name.column)
        return _call(operation, arguments, name.column)

    def variable(self, name: Token) -> Variable:
        if name.text in NAMED_FUNCTIONS:
            self.expected(f"'(' after {name}")
        if self.names is not None and name.text not in self.names:
            raise FormulaError(f"unknown name {name}", name.column, _nearest(name.text, self.names))
        part = self.part() if self.token.text == "." else "value"
        lag = self.lag() if self.token.text == "[" else None
        return Variable(name.text, part, lag)

    def part(self) -> VariablePart:
        self.advance()
        word = self.advance()
        if word.text not in _PARTS:
            self.expected("'error' or 'setpoint'", word)
        return _PARTS[word.text]

    def lag(self) -> int:
        """Read a lag: past values are written [t-3], the present one [t]."""
        self.advance()
        self.expect("t")
        steps = 0
        if self.token.text != "]":
            self.expect("-")
            number = self.advance()
            if not number.text.isdecimal():
                self.expected("a whole number of steps", number)
            if len(number.text) > len(str(MAX_LAG)) or int(number.text) > MAX_LAG:
                raise FormulaError(f"lag of more than {MAX_LAG:,} steps", number.column)
            steps = int(number.text)
        self.expect("]")
        return steps

    def advance(self) -> Token:
        """Return the present token, and make the next one the present one."""
        token = self.token
        self.token = next(self.tokens, token)
        return token

    def expect(self, sign: str) -> None:
        if self.token.text != sign:
            self.expected(f"'{sign}'")
        self.advance()

    def close(self, sign: str) -> None:
        """End a parenthesis, or the formula if `sign` is empty."""
        found = self.token
        if found.kind in ("number", "name") or found.text == "(":
            near = found.text.lower()
            advice = suggestion(near) if near in INFIX else "write '*' to multiply"
            raise FormulaError(f"expected an operator, found {found}", found.column, advice)
        if found.text != sign:
            self.expected(f"'{sign}'" if sign else "an operator")
        self.advance()

    def expected(self, what: str, found: Token | None = None) -> NoReturn:
        found = found or self.token
        raise FormulaError(f"expected {what}, found {found}", found.column)

    def refuse_chain(self) -> None:
        following = INFIX.get(self.token.text)
        if following and following.precedence == COMPARISON:
            raise FormulaError("chained comparison", self.token.column, "join two comparisons with 'and'")


def _call(operation: Operation, operands: Iterable[_Operand], column: int) -> Call:
    pairs = zip(operands, operation.kinds, strict=True)
    arguments = tuple([_checked(operand, kind) for operand, kind in pairs])
    if max([argument.depth for argument in arguments]) >= MAX_DEPTH:
        raise too_deep(column)
    return Call(operation, arguments)


def _checked(operand: _Operand, kind: Kind) -> Expression:
    if operand.tree.kind != kind:
        raise FormulaError(f"expected a {kind}, found a {operand.tree.kind}", operand.column)
    return operand.tree


def _number(token: Token) -> Number:
    value = float(token.text)
    if value == float("inf"):
        raise FormulaError(f"number {token} is too large", token.column)
    return Number(value)


def _nearest(word: str, known: Iterable[str]) -> str:
    return suggestion(next(iter(difflib.get_close_matches(word, list(known), 1)), None))
