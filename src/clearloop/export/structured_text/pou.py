"""Program organisation units: functions and function blocks, as text of IEC 61131-3."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from clearloop.export.about import commented
from clearloop.export.about import harmless as printable
from clearloop.export.structured_text.folding import STEP, folded

Section = Literal["VAR_INPUT", "VAR_OUTPUT", "VAR CONSTANT", "VAR", "VAR_TEMP"]
SECTIONS: tuple[Section, ...] = ("VAR_INPUT", "VAR_OUTPUT", "VAR CONSTANT", "VAR", "VAR_TEMP")


@dataclass(frozen=True)
class Declaration:
    section: Section
    name: str
    type: str
    """LREAL, REAL, DINT, LINT or BOOL; of its elements, if it is an array"""
    initial: tuple[str, ...] = ()
    """literals; none: 0"""
    bounds: tuple[int, int] | None = None
    """of an array's index"""
    words: str = ""
    """what it is, for people"""


@dataclass(frozen=True, kw_only=True)
class Pou:
    name: str
    result: str | None = None
    """the type of a function's value; None: it is a function block"""
    words: tuple[str, ...]
    """lines for people"""
    declarations: tuple[Declaration, ...]
    body: str

    def section(self, section: Section) -> tuple[Declaration, ...]:
        return tuple(one for one in self.declarations if one.section == section)


def harmless(words: str) -> str:
    """Words that neither end a comment nor begin one."""
    words = printable(words)
    while "(*" in words or "*)" in words:
        words = words.replace("(*", "( *").replace("*)", "* )")
    return words


def to_text(pou: Pou) -> str:
    kind = "FUNCTION" if pou.result else "FUNCTION_BLOCK"
    head = f"{kind} {pou.name}" + (f" : {pou.result}" if pou.result else "")
    lines = [*comment(pou.words), head]
    for section in SECTIONS:
        declared = pou.section(section)
        if declared:
            lines += [section, *(line for one in declared for line in declared_lines(one)), "END_VAR"]
    return "\n".join([*lines, "", pou.body.strip("\n"), f"END_{kind}", ""])


def comment(words: tuple[str, ...]) -> Iterator[str]:
    """One line, or several with the marks on lines of their own."""
    harmed = [harmless(line) for line in words]
    if len(harmed) == 1:
        yield f"(* {harmed[0]} *)"
    elif harmed:
        yield "(*"
        yield from commented(harmed, " ")
        yield "*)"


def declared_lines(one: Declaration) -> list[str]:
    kind = f"ARRAY [{one.bounds[0]}..{one.bounds[1]}] OF {one.type}" if one.bounds else one.type
    initial = ", ".join(one.initial)
    start = f" := [{initial}]" if one.bounds and initial else f" := {initial}" if initial else ""
    *lines, last = folded(f"{one.name} : {kind}{start};", STEP)
    return [*lines, f"{last} (* {harmless(one.words)} *)" if one.words else last]
