"""A CSV file as it comes: of any encoding and dialect that can be told without guessing."""

import codecs
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearloop.data.dialect import EMPTY, Dialect, sniff
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    import polars as pl

HEAD = 256 * 1024  # bytes that are looked at
COMMA_NUMBER = r"^\s*[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\s*$"
POINT_NUMBER = r"^\s*[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?\s*$"
MORE_CELLS = "a line has more cells than the header has names; with commas in numbers, put ; between cells"
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def read_csv(path: Path) -> "pl.DataFrame":
    """All cells that are numbers as numbers, the others as text; what they mean is told by the column."""
    import polars as pl

    encoding = _encoding(path)
    try:
        return _read(path, encoding)
    except pl.exceptions.ComputeError as error:
        if encoding != "utf-8" or "utf-8" not in str(error).lower():
            raise
        return _read(path, "cp1252")  # the first special letter stands far down


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
    source: Path | io.BytesIO = path
    if encoding == "utf-8":
        with path.open("rb") as file:
            head = file.read(HEAD).decode("utf-8-sig", errors="replace")
    else:
        text = path.read_bytes().decode(encoding, errors="replace")
        source, head = io.BytesIO(text.encode()), text[:HEAD]
    if _CONTROL.search(head):
        raise ClearloopError("is damaged, or no csv file: it holds binary data")
    if len(head) >= HEAD // 4:  # its last line may be cut
        head = head[: head.rfind("\n") + 1] or head
    dialect = sniff(head)
    frame = _parse(source, dialect)
    if dialect.separator != "," and not dialect.decimal_comma and _has_decimal_commas(frame):
        return _parse(source, replace(dialect, decimal_comma=True))  # whole numbers as far as one could see
    return frame


def _parse(source: Path | io.BytesIO, dialect: Dialect) -> "pl.DataFrame":
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

    if dialect.decimal_comma:  # polars would take 1.234 for a number, too
        return _with_points(_without_tail(parse(infer_schema=False)))
    try:
        return _without_tail(parse())
    except pl.exceptions.ComputeError as error:
        if "more fields" in str(error):
            raise ClearloopError(MORE_CELLS) from error
        # The first rows were not like the later ones (0, 0, 0.5): look at all of them, seven times slower.
        return _without_tail(parse(infer_schema_length=None))


def _without_tail(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Blank lines at the end are no rows."""
    blank = 0
    while blank < len(frame) and all(cell is None for cell in frame.row(-1 - blank)):
        blank += 1
    return frame.head(len(frame) - blank)


def _has_decimal_commas(frame: "pl.DataFrame") -> bool:
    """In a file whose first lines had neither commas nor points."""
    import polars as pl

    texts = frame.select(pl.selectors.string())
    with_point = any(dtype == pl.Float64 for dtype in frame.dtypes)
    return not with_point and any(column.str.contains(COMMA_NUMBER).any() for column in texts)


def _with_points(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Columns of numbers with decimal commas as numbers; one that has points, too, stays as it is."""
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
    """Text with numbers in it, which get their points."""
    import polars as pl

    mended = cells.str.replace(",", ".", literal=True)
    return pl.select(pl.when(cells.str.contains(COMMA_NUMBER)).then(mended).otherwise(cells)).to_series()
