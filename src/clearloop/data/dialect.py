"""How a CSV file is written: what stands between cells, decimal points or commas, where the header is.

Found by looking at its first lines: each way to read them is tried, and the one that makes most sense wins.
"""

import csv
import re
from collections import Counter
from dataclasses import dataclass

from clearloop.errors import ClearloopError

SEPARATORS = ",;\t|"
MOST_LINES = 2_000  # that are looked at
COMMENTS = ("#", "%", "//")
EMPTY = ("", "NA", "N/A", "#N/A", "n/a", "null", "NULL", "None", "-")
"""Cells that say that there is no value."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
# 1,234 may be a thousand or a bit more than one; 0,234 and 12,5 and 1234,5 are clear.
UNCLEAR = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_OTHER = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?|\d{1,2}:\d{2}.*|true|false", re.IGNORECASE)
_UNIT = re.compile(r"[\[(].{0,12}[\])]|[^\W\d]{0,5}[%°/²³^·*\d-]{0,3}[^\W\d]{0,5}[²³\d]?")

Records = list[tuple[int, list[str]]]
"""The number of the line in which a record begins, and its cells."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    separator: str = ","
    """Stands between two cells."""
    decimal_comma: bool = False
    """Whether one and a half is 1,5."""
    skip_lines: int = 0
    """Lines before the header."""
    unit_row: bool = False
    """Whether the row after the header holds units."""
    line_end: str = "\n"


def sniff(text: str) -> Dialect:
    """`text`: the first lines of a file, whole ones."""
    line_end = "\r" if "\r" in text and "\n" not in text else "\n"
    lines = [line + "\n" for line in re.split(r"\r\n|\n|\r", text)[:MOST_LINES]]
    best, dialect = (-1.0, 0, 0), Dialect(line_end=line_end)
    records: Records = []
    for separator in SEPARATORS:
        found = _records(lines, separator)
        if found and len(found[0][1]) > 1 and _is_row(found[0][1]):
            raise ClearloopError("the first line holds values, no names: put the columns' names first")
        for decimal_comma in (False, True):
            score = _score(found, decimal_comma)
            if score > best:
                best, records = score, found
                dialect = Dialect(separator=separator, decimal_comma=decimal_comma, line_end=line_end)
    _refuse(records, dialect)
    return _with_header(dialect, records)


def is_value(cell: str, decimal_comma: bool) -> bool:
    """A number, a date, a time or a flag; no name, and no unit."""
    cell = cell.strip()
    number = cell.replace(",", ".", 1) if decimal_comma and "." not in cell else cell
    if decimal_comma and "." in cell and NUMBER.fullmatch(cell):
        return False
    return bool(NUMBER.fullmatch(number) or _OTHER.fullmatch(cell))


def _records(lines: list[str], separator: str) -> Records:
    """Those with anything in them."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    records, begin = [], 0
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                records.append((begin, cells))
            begin = reader.line_num
    except csv.Error:  # a quote that never ends, or the like: what was read before it must do
        pass
    return records


def _width(records: Records) -> int:
    """The number of cells that most rows have."""
    counts = Counter(len(cells) for _, cells in records[1:] or records)
    return max(counts, key=lambda width: (counts[width], width), default=0)


def _score(records: Records, decimal_comma: bool) -> tuple[float, int, int]:
    """The share of cells that mean something, then the number of columns, then what is more usual."""
    width = _width(records)
    header = next((cells for _, cells in records if len(cells) == width), [])
    alone = width == 1 and any(separator in header[0] for separator in SEPARATORS)
    if not header or alone or _is_row(header):
        return (0.0, 0, not decimal_comma)
    body = [cells for _, cells in records[1:] if len(cells) == width]
    good = sum(cell.strip() in EMPTY or is_value(cell, decimal_comma) for cells in body for cell in cells)
    share = good / max(1, sum(len(cells) for _, cells in records[1:]))
    return (round(share, 3), width, not decimal_comma)


def _is_row(cells: list[str]) -> bool:
    """Whether most cells are values, and not names."""
    filled = [cell for cell in cells if cell.strip()]
    return 2 * sum(is_value(cell, False) or is_value(cell, True) for cell in filled) > len(filled)


def _refuse(records: Records, dialect: Dialect) -> None:
    """What could mean two things is not guessed."""
    if dialect.decimal_comma and dialect.separator != ";":
        cells = [cell.strip() for _, row in records[1:] for cell in row if "," in cell]
        if cells and all(UNCLEAR.fullmatch(cell) for cell in cells):
            what = f"{cells[0]!r} may be a number with a thousands separator or with a decimal comma"
            raise ClearloopError(
                f"{what}: write it as {cells[0].replace(',', '.')} or {cells[0].replace(',', '')}"
            )


def _with_header(dialect: Dialect, records: Records) -> Dialect:
    """Skips what stands before the header: rows of another width, and comments."""
    width = _width(records)
    names = []
    for line, cells in records:
        if _is_row(cells):
            break
        names.append((line, cells))
    wide = [(line, cells) for line, cells in names if len(cells) == width]
    if not wide or len(names) == len(records):  # no header, or no values: as it stands
        return dialect
    while len(wide) > 1 and wide[0][1][0].startswith(COMMENTS):
        wide = wide[1:]
    line, _ = wide[0]
    units = len(wide) == 2 and all(_UNIT.fullmatch(cell.strip()) for cell in wide[1][1])
    return Dialect(
        separator=dialect.separator,
        decimal_comma=dialect.decimal_comma,
        skip_lines=line,
        unit_row=units,
        line_end=dialect.line_end,
    )
