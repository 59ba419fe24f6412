"""A test bench for the PLC: a program that runs a block on rows of inputs and compares what it does."""

from collections.abc import Sequence
from dataclasses import dataclass

from clearloop.export.naming import Names
from clearloop.export.precision import Precision
from clearloop.export.structured_text.folding import STEP, folded
from clearloop.export.structured_text.pou import Declaration, Pou, comment, declared_lines
from clearloop.export.structured_text.words import RESERVED, number, real


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What a block is given in some calls, and what it should do then."""

    inputs: Sequence[Sequence[float]]
    """[N, I], in the order of the block's inputs"""
    actions: Sequence[Sequence[float]]
    """[N, A], in the order of its outputs"""
    ranges: Sequence[Sequence[float]]
    """[N, A]: what a difference is relative to"""
    first: Sequence[bool]
    """[N]: whether the past is forgotten before"""
    compared: Sequence[bool]
    """[N]: not where the last places of a number decide"""
    tolerance: float


def bench(block: Pou, rows: Rows, precision: Precision) -> str:
    """The text of the program; it goes beside the block's."""
    return _Bench(block, rows, precision).text()


class _Bench:
    def __init__(self, block: Pou, rows: Rows, precision: Precision) -> None:
        self.block, self.rows, self.precision = block, rows, precision
        own = {"tested", "row", "done", "worst", "equal", "first", "compared"}
        self.names = Names({*RESERVED, *own, block.name}, ignore_case=True)
        self.name = self.names.give("program", f"{block.name}_bench")
        self.tables: list[Declaration] = []

    def text(self) -> str:
        remembers = any(one.name == "restart" for one in self.block.section("VAR_INPUT"))
        given = [one.name for one in self.block.section("VAR_INPUT") if one.type != "BOOL"]
        call = [f"{name} := {self._table(name, 'given', k)}[row]" for k, name in enumerate(given)]
        if remembers:
            self._flags("first", self.rows.first)
            call.append("restart := first[row]")
        self._flags("compared", self.rows.compared)
        lines = [
            f"FOR row := 1 TO {len(self.rows.inputs)} DO",
            f"{STEP}tested({', '.join(call)});",
            f"{STEP}IF compared[row] THEN",
            *(f"{STEP}{STEP}{line}" for line in self._comparisons()),
            f"{STEP}END_IF;",
            "END_FOR;",
            f"equal := worst <= {number(self.rows.tolerance, self.precision)};",
            "done := TRUE;",
        ]
        body = ["IF NOT done THEN", *(STEP + line for line in lines), "END_IF;"]
        words = (
            f"Test bench of {self.block.name}: call it once and look at equal and worst.",
            "worst is the largest difference to the expected actions, relative to the range of the action.",
        )
        return "\n".join(
            [
                *comment(words),
                f"PROGRAM {self.name}",
                "VAR CONSTANT",
                *(line for one in self.tables for line in declared_lines(one)),
                "END_VAR",
                "VAR",
                *(line for one in self._variables() for line in declared_lines(one)),
                "END_VAR",
                "",
                *(part for line in body for part in folded(line.strip(), line[: -len(line.lstrip())])),
                "END_PROGRAM",
                "",
            ]
        )

    def _variables(self) -> list[Declaration]:
        kind = real(self.precision)
        return [
            Declaration("VAR", "tested", self.block.name),
            Declaration("VAR", "row", "DINT"),
            Declaration("VAR", "done", "BOOL"),
            Declaration("VAR", "worst", kind),
            Declaration("VAR", "equal", "BOOL"),
        ]

    def _table(self, name: str, word: str, column: int) -> str:
        """Constants, one for each row."""
        rows = self.rows.inputs if word == "given" else self.rows.actions
        table = self.names.give((name, word), f"{name}_{word}")
        values = tuple(number(row[column], self.precision) for row in rows)
        self.tables.append(Declaration("VAR CONSTANT", table, real(self.precision), values, (1, len(rows))))
        return table

    def _flags(self, name: str, flags: Sequence[bool]) -> None:
        values = tuple(str(bool(flag)).upper() for flag in flags)
        self.tables.append(Declaration("VAR CONSTANT", name, "BOOL", values, (1, len(values))))

    def _comparisons(self) -> list[str]:
        lines = []
        for column, output in enumerate(self.block.section("VAR_OUTPUT")):
            wanted = f"{self._table(output.name, 'expected', column)}[row]"
            ranges = {row[column] for row in self.rows.ranges}
            size = number(ranges.pop(), self.precision) if len(ranges) == 1 else f"MAX(ABS({wanted}), 1.0)"
            lines.append(f"worst := MAX(worst, ABS(tested.{output.name} - {wanted}) / {size});")
        return lines
