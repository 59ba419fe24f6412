"""Program organisation units: functions and function blocks as text of IEC 61131-3."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from clearloop.exports.comments import WIDTH, commented, harmless
from clearloop.exports.printer import STEP

# Long lines of code are broken where a reader would break them.

_MOST_BRACKETS = 20
_BREAK = re.compile(r" (?=[-+] )| (?=AND |OR )|(?<=,) ")


def folded_lines(line: str, indent: str) -> list[str]:
    """Return the lines of a line of code, broken before signs and after commas, in few brackets."""
    room = WIDTH - len(indent) - len(STEP)
    parts = [line]
    for brackets in range(_MOST_BRACKETS):
        if max(map(len, parts)) <= room:
            break
        parts = list(_parts(line, brackets))
    lines = [indent + parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) <= WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(f"{indent}{STEP}{part}")
    return lines


def _parts(line: str, brackets: int) -> Iterator[str]:
    """Yield the parts of a line, broken at spaces that stand in at most so many brackets."""
    depth = start = 0
    for place, character in enumerate(line):
        depth += (character == "(") - (character == ")")
        if depth <= brackets and _BREAK.match(line, place):
            yield line[start:place]
            start = place + 1
    yield line[start:]


VarSection = Literal["VAR_INPUT", "VAR_OUTPUT", "VAR CONSTANT", "VAR", "VAR_TEMP"]
_SECTIONS: tuple[VarSection, ...] = ("VAR_INPUT", "VAR_OUTPUT", "VAR CONSTANT", "VAR", "VAR_TEMP")


@dataclass(frozen=True)
class Declaration:
    """The declaration of a variable.

    Attributes:
        section: The section of the unit that it stands in.
        name: The identifier.
        type: LREAL, REAL, DINT, LINT, BOOL or a function block; for an array, the type of its elements.
        initial: The literals of the initial value or values; none: 0.
        bounds: The first and last index of an array; None: it is no array.
        words: The comment beside it.
    """

    section: VarSection
    name: str
    type: str
    initial: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Pou:
    """A program organisation unit: a function or a function block.

    Attributes:
        name: The identifier.
        result: The type of a function's value; None: it is a function block.
        words: The lines of the comment before it.
        declarations: Its variables.
        body: Its statements.
    """

    name: str
    result: str | None = None
    words: tuple[str, ...]
    declarations: tuple[Declaration, ...]
    body: str

    def section(self, section: VarSection) -> tuple[Declaration, ...]:
        """Return the variables of a section."""
        return tuple(one for one in self.declarations if one.section == section)


def harmless_words(words: str) -> str:
    """Return a line for a comment, in which nothing ends the comment or begins another one."""
    words = harmless(words)
    while "(*" in words or "*)" in words:
        words = words.replace("(*", "( *").replace("*)", "* )")
    return words


def pou_text(pou: Pou) -> str:
    """Return the text of a unit."""
    kind = "FUNCTION" if pou.result else "FUNCTION_BLOCK"
    head = f"{kind} {pou.name}" + (f" : {pou.result}" if pou.result else "")
    lines = [*comment(pou.words), head]
    for section in _SECTIONS:
        declared = pou.section(section)
        if declared:
            lines += [section, *(line for one in declared for line in declared_lines(one)), "END_VAR"]
    return "\n".join([*lines, "", pou.body.strip("\n"), f"END_{kind}", ""])


def comment(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a comment; several lines stand between lines with the marks."""
    lines = [harmless_words(line) for line in words]
    if len(lines) == 1:
        yield f"(* {lines[0]} *)"
    elif lines:
        yield "(*"
        yield from commented(lines, " ")
        yield "*)"


def declared_lines(one: Declaration) -> list[str]:
    """Return the lines of a declaration."""
    kind = f"ARRAY [{one.bounds[0]}..{one.bounds[1]}] OF {one.type}" if one.bounds else one.type
    initial = ", ".join(one.initial)
    start = f" := [{initial}]" if one.bounds and initial else f" := {initial}" if initial else ""
    *lines, last = folded_lines(f"{one.name} : {kind}{start};", STEP)
    return [*lines, f"{last} (* {harmless_words(one.words)} *)" if one.words else last]
