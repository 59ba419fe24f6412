"""The cells of one column as numbers, seconds or flags, and a finding for each kind that is none."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clearloop.data.report import Finding
from clearloop.errors import quoted

if TYPE_CHECKING:
    import polars as pl

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


def seconds(column: "pl.Series") -> tuple[Floats, list[Finding]]:
    """Dates and times of day count in seconds; plain numbers are taken as they are."""
    import polars as pl

    if column.dtype in (pl.Datetime, pl.Date):
        column = column.cast(pl.Datetime("us")).to_physical() / 1e6
    elif column.dtype == pl.Duration:
        column = column.cast(pl.Duration("us")).to_physical() / 1e6
    elif column.dtype == pl.Time:
        column = column.to_physical() / 1e9
    return numbers(column, np.zeros(len(column), dtype=np.bool_))


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
    advice = "drop those rows and begin a new episode there"
    message = f"column {quoted(column.name)} has {what} {place}{example}; {advice}"
    where = {"count": len(rows), "first_row": int(rows[0]), "last_row": int(rows[-1])}
    return [Finding("problem", code, message, {"column": column.name, **where})]
