"""The cells of one column as numbers, seconds or flags, and a finding for each kind that is none."""

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clearloop.data.dates import text_seconds
from clearloop.data.report import Finding
from clearloop.errors import quoted

if TYPE_CHECKING:
    import polars as pl

GROUPED = re.compile(r"[+-]?\d{1,3}([ '.,\u00a0\u202f])\d{3}(\1\d{3})*([.,]\d+)?")
COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


def numbers(column: "pl.Series", may_be_empty: Flags) -> tuple[Floats, list[Finding]]:
    """[rows] with NaN where there is no finite number; `may_be_empty` says in which rows that is no fault."""
    import polars as pl

    if column.dtype == pl.String:
        column = column.str.strip_chars().replace("", None)
        values = column.cast(pl.Float64, strict=False)
    elif column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        values = column.cast(pl.Float64)
    else:  # dates, lists and what else a file may hold
        values = pl.repeat(None, len(column), dtype=pl.Float64, eager=True)
    array = values.fill_null(np.nan).to_numpy(writable=True)
    text = (values.is_null() & column.is_not_null()).to_numpy()
    infinite = np.isinf(array)
    array[infinite] = np.nan
    empty = np.isnan(array) & ~(text | infinite | may_be_empty)
    return array, [
        *_found("text", "text cell", column, text),
        *_found("infinite", "infinite cell", column, infinite),
        *_found("missing-values", "empty cell", column, empty),
    ]


def seconds(column: "pl.Series", unit: float = 1.0) -> tuple[Floats, list[Finding]]:
    """Dates and times of day count in seconds; numbers are taken as so many times `unit` seconds."""
    import polars as pl

    never = np.zeros(len(column), dtype=np.bool_)
    if column.dtype in (pl.Datetime, pl.Date):
        return numbers(column.cast(pl.Datetime("us")).to_physical() / 1e6, never)
    if column.dtype == pl.Duration:
        return numbers(column.cast(pl.Duration("us")).to_physical() / 1e6, never)
    if column.dtype == pl.Time:
        return numbers(column.to_physical() / 1e9, never)
    if column.dtype == pl.String and not is_numeric(column):
        dates, findings = text_seconds(column)
        array = dates.fill_null(np.nan).to_numpy(writable=True)
        text = np.isnan(array) & column.is_not_null().to_numpy()
        found = _found("text", "cell without a number or a date", column, text)
        return array, [
            *findings,
            *found,
            *_found("missing-values", "empty cell", column, np.isnan(array) & ~text),
        ]
    values, findings = numbers(column, never)
    return values if unit == 1.0 else values * unit, findings


def is_numeric(column: "pl.Series") -> bool:
    """Whether the first cell of a text column is a number."""
    import polars as pl

    first = column.drop_nulls().head(1).str.strip_chars()
    return not len(first) or first.cast(pl.Float64, strict=False).null_count() == 0


def flags(column: "pl.Series") -> tuple[Flags, list[Finding]]:
    """true/false or 1/0, in capitals or not; an empty cell is false."""
    import polars as pl

    if column.dtype == pl.String:
        column = column.str.strip_chars().str.to_lowercase().replace({"true": "1", "false": "0"})
    values, findings = numbers(column, np.ones(len(column), dtype=np.bool_))
    odd = ~(np.isnan(values) | (values == 0) | (values == 1))
    return values == 1, [*findings, *_found("text", "cell other than true or false", column, odd)]


def _found(code: str, kind: str, column: "pl.Series", bad: Flags) -> list[Finding]:
    rows = np.flatnonzero(bad) + 1
    if not len(rows):
        return []
    what = f"{len(rows):,} {kind if len(rows) == 1 else kind.replace('cell', 'cells')}"
    place = f"in row {rows[0]:,}" if len(rows) == 1 else f"between rows {rows[0]:,} and {rows[-1]:,}"
    example = "" if code == "missing-values" else f", first {quoted(str(column[int(rows[0]) - 1]))}"
    advice = _advice(str(column[int(rows[0]) - 1])) if code == "text" else ""
    advice = advice or "drop those rows and begin a new episode there"
    message = f"column {quoted(column.name)} has {what} {place}{example}; {advice}"
    where = {"count": len(rows), "first_row": int(rows[0]), "last_row": int(rows[-1])}
    return [Finding("problem", code, message, {"column": column.name, **where})]


def _advice(cell: str) -> str:
    """For a number that is written in another way."""
    if GROUPED.fullmatch(cell.strip()):
        return "write numbers without thousands separators"
    if COMMA.fullmatch(cell.strip()):
        return "write all numbers with a decimal point, or all with a decimal comma"
    return ""
