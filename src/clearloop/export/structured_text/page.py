"""A function block while it is written: what is declared so far, and the lines of its body."""

from collections.abc import Hashable

from clearloop.export.naming import Names
from clearloop.export.precision import Precision
from clearloop.export.structured_text.folding import STEP, folded
from clearloop.export.structured_text.pou import Declaration, Pou, Section
from clearloop.export.structured_text.words import DIALECT, RESERVED, finished, real

OWN = ("restart", "running", "k", "manual", "was_manual", "acted")


class Page:
    def __init__(self, name: str, precision: Precision) -> None:
        self.precision = precision
        self.names = Names({*RESERVED, *OWN}, ignore_case=True)
        self.name = self.names.give("block", block_name(name))
        self._declarations: dict[str, Declaration] = {}
        self._lines: list[str] = []

    def pou(self, words: list[str]) -> Pou:
        return Pou(
            name=self.name,
            words=tuple(words),
            declarations=tuple(self._declarations.values()),
            body="\n".join(self._lines),
        )

    def declare(
        self,
        section: Section,
        name: str,
        words: str = "",
        *,
        type_: str = "",
        initial: tuple[str, ...] = (),
        bounds: tuple[int, int] | None = None,
    ) -> str:
        kind = type_ or real(self.precision)
        self._declarations[name] = Declaration(section, name, kind, initial, bounds, words)
        return name

    def temporary(self, thing: Hashable, wish: str = "") -> str:
        """A value that is needed in this call only; a thing that has a name keeps it."""
        return self.declare("VAR_TEMP", self.names.give(thing, wish))

    def say(self, words: str) -> None:
        """A comment before what follows."""
        self._lines += [*[""][: len(self._lines)], f"(* {words} *)"]

    def write(self, *lines: str) -> None:
        for line in lines:
            indent = line[: len(line) - len(line.lstrip())]
            self._lines += folded(finished(line.strip(), self.precision), indent)

    def loop(self, first: int, last: int, *lines: str, indent: str = "") -> None:
        """Over k; downwards where the first is above the last."""
        self.declare("VAR_TEMP", "k", type_="DINT")
        step = " BY -1" if first > last else ""
        self.write(f"{indent}FOR k := {first} TO {last}{step} DO")
        self.write(*[f"{indent}{STEP}{line}" for line in lines], f"{indent}END_FOR;")

    def number(self, value: float) -> str:
        return DIALECT.number(value, self.precision)


def block_name(name: str) -> str:
    """What a file is called is mostly a name for a block, too."""
    if name.upper() in RESERVED:
        return f"{name}_controller"
    return name if name[:1].isalpha() else f"controller_{name}"
