"""From Structured Text to words, each with its line."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from clearloop.export.interpreter.error import StructuredTextError

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
ELSEWHERE = frozenset(_ELSEWHERE.split())  # of the language, but of no text that is exported

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


class Token(NamedTuple):
    kind: str
    """keyword, name, typed, real, integer, sign or end"""
    text: str
    """names and keywords in upper case"""
    line: int
    spelling: str

    def __str__(self) -> str:
        return f"'{self.spelling}'" if self.text else "the end of the text"


def scan(text: str) -> Iterator[Token]:
    """The words one by one, the last of them the end."""
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
            yield Token(kind, word, line, found[0])
        previous = kind
        line += found[0].count("\n")
    yield Token("end", "", line, "")


def _word(word: str, line: int) -> tuple[str, str]:
    upper = word.upper()
    if upper in KEYWORDS:
        return "keyword", upper
    if upper in ELSEWHERE:
        raise StructuredTextError(f"{upper} is not part of the subset that is exported", line)
    if "__" in word or word.endswith("_"):
        raise StructuredTextError(f"'{word}': underscores stand alone, and never at the end of a name", line)
    return "name", upper
