"""What a card is made of, as plain data: both the page and the PDF are set from these."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from clearloop.report.formula import Formula


@dataclass(frozen=True)
class Cell:
    content: str | Formula
    indent: int = 0
    strong: bool = False


@dataclass(frozen=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: tuple[int, ...] = ()
    """columns that are aligned to the right"""
    codes: tuple[int, ...] = ()
    """columns that are set like code, in small letters"""
    widths: tuple[str, ...] = ()
    """of columns: `auto`, or a share such as `1fr`; all `auto` if none are given"""


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str | Formula | Cell]],
    *,
    numbers: Sequence[int] = (),
    codes: Sequence[int] = (),
    widths: Sequence[str] = (),
) -> Table:
    cells = tuple(tuple(c if isinstance(c, Cell) else Cell(c) for c in row) for row in rows)
    return Table(tuple(header), cells, tuple(numbers), tuple(codes), tuple(widths) or ("auto",) * len(header))


@dataclass(frozen=True)
class Section:
    title: str
    lines: tuple[str, ...] = ()
    """sentences above the table"""
    table: Table | None = None
    figure: str = ""
    """SVG"""
    caption: str = ""
    """what the figure shows, for those who cannot see it"""
    notes: tuple[str, ...] = ()
    """in small print, below"""


@dataclass(frozen=True)
class Card:
    title: str
    kind: str
    """what it is, of which task and which run"""
    name: str
    """what its maker called it; perhaps nothing"""
    equations: tuple[tuple[Formula, ...], ...]
    """of each output: pieces between which lines may break"""
    lines: tuple[str, ...]
    """below the equations: units, limits, setpoints"""
    rows: tuple[tuple[tuple[Section, ...], ...], ...]
    """from top to bottom, each of one column of sections, or of two side by side"""
    signatures: tuple[str, ...] = field(default=("Made and checked by", "Approved by"))
