"""From text to words: numbers, names and signs, each with its column."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from clearloop.errors import quoted
from clearloop.expression.error import FormulaError

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

# What people write elsewhere, and how it is written here.
_ELSEWHERE = {"^": "**", "²": "**2", "³": "**3", "·": "*", "÷": "/", ";": ","}
_ELSEWHERE |= {"×": "*", "−": "-", "–": "-"}  # noqa: RUF001 - that they look alike is the trouble
_ELSEWHERE |= {"=": "==", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
_ELSEWHERE |= {"&&": "and", "&": "and", "||": "or", "|": "or", "!": "not"}


class Token(NamedTuple):
    kind: str
    """number, name, sign or end"""
    text: str
    column: int

    def __str__(self) -> str:
        return quoted(self.text) if self.text else "the end of the formula"


def scan(text: str) -> Iterator[Token]:
    """The words of a formula one by one, the last of them its end; an error where no word can begin."""
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
    """Where a word with non-ASCII characters stops being a name."""
    if not word[0].isidentifier():
        return 0
    return next(i for i, character in enumerate(word) if not f"_{character}".isidentifier())


def _unexpected(character: str, column: int) -> FormulaError:
    advice = suggestion(_ELSEWHERE.get(character))
    return FormulaError(f"unexpected character {quoted(character)}", column, advice)


def suggestion(word: str | None) -> str:
    return f"did you mean '{word}'?" if word else ""
