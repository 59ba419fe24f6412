"""CSV files are read as they come, in any encoding and dialect that can be told without guessing."""

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearloop.data.sizes import check_lines
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    import polars as pl


# The dialect: what separates cells, decimal points or commas, and where the header is.
#
# Each way to read the first lines is tried, and the one that makes most sense wins.

SEPARATORS = ",;\t|"
MOST_LINES = 2_000  # from which the dialect is told
COMMENTS = ("#", "%", "//")
EMPTY = ("", "NA", "N/A", "#N/A", "n/a", "null", "NULL", "None", "-")
"""Cells that mean that there is no value."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
# 1,234 may be a thousand or a bit more than one; 0,234 and 12,5 and 1234,5 are clear.
UNCLEAR = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_OTHER = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?|\d{1,2}:\d{2}.*|true|false", re.IGNORECASE)
_UNIT = re.compile(r"[\[(].{0,12}[\])]|[^\W\d]{0,5}[%°/²³^·*\d-]{0,3}[^\W\d]{0,5}[²³\d]?")

Records = list[tuple[int, list[str]]]
"""The number of the line in which a record begins, and its cells."""


@dataclass(frozen=True, kw_only=True)
class CsvDialect:
    """The way in which a CSV file is written."""

    separator: str = ","
    """The character between two cells."""
    decimal_comma: bool = False
    """True if one and a half is written 1,5."""
    skip_lines: int = 0
    """The number of lines before the header."""
    unit_row: bool = False
    """True if the row after the header holds units."""
    line_end: str = "\n"


def sniff(text: str) -> CsvDialect:
    """Tell the dialect of a file from its first lines, which must be whole.

    Raises:
        ClearloopError: There is no header, or a number could mean two things.
    """
    line_end = "\r" if "\r" in text and "\n" not in text else "\n"
    lines = [line + "\n" for line in re.split(r"\r\n|\n|\r", text)[:MOST_LINES]]
    best, dialect = (-1.0, 0, 0), CsvDialect(line_end=line_end)
    records: Records = []
    for separator in SEPARATORS:
        found = _records(lines, separator)
        if found and len(found[0][1]) > 1 and _is_row(found[0][1]):
            raise ClearloopError("the first line holds values, not names: put the columns' names first")
        for decimal_comma in (False, True):
            score = _score(found, decimal_comma)
            if score > best:
                best, records = score, found
                dialect = CsvDialect(separator=separator, decimal_comma=decimal_comma, line_end=line_end)
    _refuse(records, dialect)
    return _with_header(dialect, records)


def is_value(cell: str, decimal_comma: bool) -> bool:
    """Return True for a number, a date, a time or a flag; False for a name or a unit."""
    cell = cell.strip()
    number = cell.replace(",", ".", 1) if decimal_comma and "." not in cell else cell
    if decimal_comma and "." in cell and _NUMBER.fullmatch(cell):
        return False
    return bool(_NUMBER.fullmatch(number) or _OTHER.fullmatch(cell))


def _records(lines: list[str], separator: str) -> Records:
    """Split lines into records, without empty ones."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    records, begin = [], 0
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                records.append((begin, cells))
            begin = reader.line_num
    except csv.Error:  # for example a quote that never ends: the records before it must do
        pass
    return records


def _width(records: Records) -> int:
    """Return the number of cells that most rows have."""
    counts = Counter(len(cells) for _, cells in records[1:] or records)
    return max(counts, key=lambda width: (counts[width], width), default=0)


def _score(records: Records, decimal_comma: bool) -> tuple[float, int, int]:
    """Rate a reading: by the share of cells that are values, then by columns, then by what is usual."""
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
    """Return True if most cells are values and not names."""
    filled = [cell for cell in cells if cell.strip()]
    return 2 * sum(is_value(cell, False) or is_value(cell, True) for cell in filled) > len(filled)


def _refuse(records: Records, dialect: CsvDialect) -> None:
    """Refuse a number that could mean two things."""
    if dialect.decimal_comma and dialect.separator != ";":
        cells = [cell.strip() for _, row in records[1:] for cell in row if "," in cell]
        if cells and all(UNCLEAR.fullmatch(cell) for cell in cells):
            what = f"{cells[0]!r} may be a number with a thousands separator or with a decimal comma"
            raise ClearloopError(
                f"{what}: write it as {cells[0].replace(',', '.')} or {cells[0].replace(',', '')}"
            )


def _with_header(dialect: CsvDialect, records: Records) -> CsvDialect:
    """Skip what stands before the header: rows of another width, and comments."""
    width = _width(records)
    names = []
    for line, cells in records:
        if _is_row(cells):
            break
        names.append((line, cells))
    wide = [(line, cells) for line, cells in names if len(cells) == width]
    if not wide or len(names) == len(records):  # no header, or no values: nothing is skipped
        return dialect
    while len(wide) > 1 and wide[0][1][0].startswith(COMMENTS):
        wide = wide[1:]
    line, _ = wide[0]
    units = len(wide) == 2 and all(_UNIT.fullmatch(cell.strip()) for cell in wide[1][1])
    return CsvDialect(
        separator=dialect.separator,
        decimal_comma=dialect.decimal_comma,
        skip_lines=line,
        unit_row=units,
        line_end=dialect.line_end,
    )


# The file.

HEAD = 256 * 1024  # bytes from which encoding and dialect are told
COMMA_NUMBER = r"^\s*[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\s*$"
POINT_NUMBER = r"^\s*[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?\s*$"
MORE_CELLS = "a line has more cells than the header has names; with commas in numbers, put ; between cells"
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def read_csv(path: Path) -> "pl.DataFrame":
    """Read a CSV file: columns of numbers as numbers, the others as text.

    Raises:
        ClearloopError: The file is damaged, or could mean two things.
    """
    import polars as pl

    encoding = _encoding(path)
    try:
        return _read(path, encoding)
    except pl.exceptions.ComputeError as error:
        if encoding != "utf-8" or "utf-8" not in str(error).lower():
            raise
        return _read(path, "cp1252")  # the first letter that is not ASCII stands far down


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(HEAD)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if head[:200:2].count(0) > 50 or head[1:200:2].count(0) > min(50, len(head) // 4):
        return "utf-16-be" if head[:200:2].count(0) > head[1:200:2].count(0) else "utf-16-le"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _read(path: Path, encoding: str) -> "pl.DataFrame":
    with path.open(
        encoding="utf-8-sig" if encoding == "utf-8" else encoding, errors="replace", newline=""
    ) as text:
        head = text.read(HEAD)
    check_text(head)
    if "\n" not in head and "\r" not in head and path.stat().st_size > HEAD:
        raise ClearloopError(f"its first line has more than {HEAD:,} characters: write a line for each row")
    if len(head) >= HEAD // 4:  # the last line may be cut
        head = head[: head.rfind("\n") + 1] or head
    dialect = sniff(head)
    _check_cells(path, head, dialect)
    source = path if encoding == "utf-8" else _as_utf8(path, encoding)
    frame = _parse(source, dialect)
    if dialect.separator != "," and not dialect.decimal_comma and _has_decimal_commas(frame):
        return _parse(source, replace(dialect, decimal_comma=True))  # the first lines held only whole numbers
    return frame


def check_text(head: str) -> None:
    """Refuse a file that is no text, by its first lines.

    Raises:
        ClearloopError: There are control characters other than the ends of lines and cells.
    """
    if _CONTROL.search(head):
        raise ClearloopError("is damaged, or is not a csv file: it holds binary data")


def _as_utf8(path: Path, encoding: str) -> io.BytesIO:
    """Convert a file in pieces, so that its text is never in memory as a whole."""
    converted = io.BytesIO()
    with path.open(encoding=encoding, errors="replace", newline="") as text:
        for piece in iter(lambda: text.read(HEAD), ""):
            converted.write(piece.encode())
    converted.seek(0)
    return converted


def _check_cells(path: Path, head: str, dialect: CsvDialect) -> None:
    """Refuse a file with too many cells for the memory, before it is parsed."""
    lines = re.split(r"\r\n|\n|\r", head)[: dialect.skip_lines + 1]
    header = next(csv.reader(lines[-1:], delimiter=dialect.separator, skipinitialspace=True), [])
    check_lines(path, max(1, len(header)), before=len(lines), line_end=dialect.line_end.encode())


def _parse(source: Path | io.BytesIO, dialect: CsvDialect) -> "pl.DataFrame":
    import polars as pl

    def parse(**options: Any) -> pl.DataFrame:
        return pl.read_csv(
            source,
            separator=dialect.separator,
            skip_lines=dialect.skip_lines,
            skip_rows_after_header=int(dialect.unit_row),
            eol_char=dialect.line_end,
            null_values=list(EMPTY[1:]),
            glob=False,
            **options,
        )

    if dialect.decimal_comma:  # polars would read 1.234 as a number, too
        return _with_points(_without_tail(parse(infer_schema=False)))
    try:
        return _without_tail(parse())
    except pl.exceptions.ComputeError as error:
        if "more fields" in str(error):
            raise ClearloopError(MORE_CELLS) from error
        # Later rows are of another type than the first (0, 0, 0.5): look at all rows, seven times slower.
        return _without_tail(parse(infer_schema_length=None))


def _without_tail(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Drop blank lines at the end."""
    blank = 0
    while blank < len(frame) and all(cell is None for cell in frame.row(-1 - blank)):
        blank += 1
    return frame.head(len(frame) - blank)


def _has_decimal_commas(frame: "pl.DataFrame") -> bool:
    """Return True if numbers with decimal commas came after the lines that the dialect was told from."""
    import polars as pl

    texts = frame.select(pl.selectors.string())
    with_point = any(dtype == pl.Float64 for dtype in frame.dtypes)
    return not with_point and any(column.str.contains(COMMA_NUMBER).any() for column in texts)


def _with_points(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Turn columns with decimal commas into numbers; a column that has points, too, stays as it is."""
    import polars as pl

    columns = []
    for column in frame:
        cells = column.str.strip_chars().replace("", None)
        if not cells.str.contains(POINT_NUMBER).any():
            numbers = cells.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
            cells = numbers if numbers.null_count() == cells.null_count() else _mended(cells)
        columns.append(cells.alias(column.name))
    return pl.DataFrame(columns)


def _mended(cells: "pl.Series") -> "pl.Series":
    """Give the numbers in a column of text decimal points."""
    import polars as pl

    mended = cells.str.replace(",", ".", literal=True)
    return pl.select(pl.when(cells.str.contains(COMMA_NUMBER)).then(mended).otherwise(cells)).to_series()
