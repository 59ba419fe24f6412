"""The cells of a column are read as numbers, seconds or flags, with a finding for those that are not."""

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clearloop.arrays import Flags, Floats
from clearloop.data.findings import Finding
from clearloop.errors import quoted
from clearloop.expression import is_name

if TYPE_CHECKING:
    import polars as pl


# Dates and times of day that are text. A column that could be read as two different dates is refused.

_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{1,2}(?:[.,]\d+)?))?"
    r"(?: ?(?P<half>[aApP])\.?[mM]\.?)?(?: ?(?P<zone>Z|UTC|[+-]\d{2}(?::?\d{2})?))?"
)
_AFTER = rf"(?:(?:T| +){_CLOCK})?$"
_YEAR_FIRST = re.compile(r"^(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})" + _AFTER)
_DOTS = re.compile(r"^(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})" + _AFTER)  # never month first
_DAY_FIRST = re.compile(r"^(?P<day>\d{1,2})[-/](?P<month>\d{1,2})[-/](?P<year>\d{4})" + _AFTER)
_MONTH_FIRST = re.compile(r"^(?P<month>\d{1,2})[-/](?P<day>\d{1,2})[-/](?P<year>\d{4})" + _AFTER)
_TIME_ONLY = re.compile(f"^{_CLOCK}$")
DAY = 86_400.0  # seconds


def text_seconds(column: "pl.Series") -> tuple["pl.Series", list[Finding]]:
    """Read text as seconds since 1970, or since midnight for times of day.

    A cell that is not a date is null. A date without a zone is in UTC.
    """
    import polars as pl

    cells = column.str.strip_chars()
    first = next((cell for cell in cells.head(1000) if cell), "")
    for pattern in (_YEAR_FIRST, _DOTS, _TIME_ONLY):
        if pattern.match(first):
            return _seconds(cells, pattern), []
    if _DAY_FIRST.match(first):
        return _either(cells, first)
    return pl.repeat(None, len(column), dtype=pl.Float64, eager=True).alias(column.name), []


def _either(cells: "pl.Series", example: str) -> tuple["pl.Series", list[Finding]]:
    """Decide whether 01/02/2024 is the first of February or the second of January."""
    day_first, month_first = _seconds(cells, _DAY_FIRST), _seconds(cells, _MONTH_FIRST)
    good = cells.is_not_null().sum()
    possible = [seconds for seconds in (day_first, month_first) if seconds.is_not_null().sum() == good]
    if len(possible) == 2 and not day_first.equals(month_first):
        what = (
            f"column {quoted(cells.name)} has dates such as {quoted(example)}, which may begin with the day "
            "or with the month; write them as year-month-day"
        )
        return day_first, [Finding("problem", "ambiguous-dates", what, {"column": cells.name})]
    return (possible or [day_first])[0], []


def _seconds(cells: "pl.Series", pattern: re.Pattern[str]) -> "pl.Series":
    import polars as pl

    # These patterns use only what Rust's regular expressions know: no look-around.
    parts = cells.str.extract_groups(pattern.pattern).struct.unnest()
    total = pl.lit(0.0)
    if "year" in parts.columns:
        date = pl.concat_str("year", "month", "day", separator="-").str.to_date("%Y-%m-%d", strict=False)
        total = date.to_physical().cast(pl.Float64) * DAY
    clock = pl.col("hour").cast(pl.Float64)
    late = pl.col("half").str.to_lowercase() == "p"
    clock = (
        pl.when(late & (clock < 12)).then(clock + 12).when(~late & (clock == 12)).then(0.0).otherwise(clock)
    )
    second = pl.col("second").str.replace(",", ".", literal=True).cast(pl.Float64)
    zone = pl.col("zone").str.replace(":", "", literal=True)
    away = zone.str.slice(1, 2).cast(pl.Float64, strict=False) * 3600
    away += zone.str.slice(3, 2).cast(pl.Float64, strict=False).fill_null(0) * 60
    away = pl.when(zone.str.starts_with("-")).then(-away).otherwise(away).fill_null(0.0)
    of_day = clock * 3600 + pl.col("minute").cast(pl.Float64) * 60 + second.fill_null(0.0) - away
    of_day = of_day.fill_null(0.0) if "year" in parts.columns else of_day
    return parts.select((total + of_day).alias(cells.name)).to_series()


# Numbers and flags.

GROUPED = re.compile(r"[+-]?\d{1,3}([ '.,\u00a0\u202f])\d{3}(\1\d{3})*([.,]\d+)?")
COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")


def numbers(
    column: "pl.Series", may_be_empty: Flags, largest: float = np.inf
) -> tuple[Floats, list[Finding]]:
    """Read a column as numbers.

    Args:
        column: Cells of any type.
        may_be_empty: The rows [rows] in which an empty cell is no fault.
        largest: The largest size of a number that can be used.

    Returns:
        The numbers [rows], NaN where there is none that can be used, and a finding for each kind of bad cell.
    """
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
    huge = (np.abs(array) > largest) & ~infinite
    array[infinite | huge] = np.nan
    empty = np.isnan(array) & ~(text | infinite | huge | may_be_empty)
    return array, [
        *_found("text", "text cell", column, text),
        *_found("infinite", "infinite cell", column, infinite),
        *_found("huge", f"cell beyond ±{largest:g}", column, huge),
        *_found("missing-values", "empty cell", column, empty),
    ]


def seconds(column: "pl.Series", unit: float = 1.0) -> tuple[Floats, list[Finding]]:
    """Read a column as seconds [rows]: dates, times of day, or numbers of `unit` seconds each."""
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
    """Return True if the first cell of a text column is a number."""
    import polars as pl

    first = column.drop_nulls().head(1).str.strip_chars()
    return not len(first) or first.cast(pl.Float64, strict=False).null_count() == 0


def flags(column: "pl.Series") -> tuple[Flags, list[Finding]]:
    """Read a column as flags [rows]: true/false or 1/0, in any case; an empty cell is false."""
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
    advice += ", or log it in a larger unit" if code == "huge" else ""
    message = f"column {quoted(column.name)} has {what} {place}{example}; {advice}"
    where = {"count": len(rows), "first_row": int(rows[0]), "last_row": int(rows[-1])}
    return [Finding("problem", code, message, {"column": column.name, **where})]


def _advice(cell: str) -> str:
    """Say how to write a number that is written in another way; empty for other text."""
    if GROUPED.fullmatch(cell.strip()):
        return "write numbers without thousands separators"
    if COMMA.fullmatch(cell.strip()):
        return "write all numbers with a decimal point, or all with a decimal comma"
    return ""


# Headers as people write them: `Temperature 1 (degC)` is `Temperature_1` in degrees Celsius.

TAKEN = ("time", "episode", "reward", "terminal", "from", "dt", "t")
"""Words that have another meaning in task files and formulas."""

# Units that may end a name without brackets: angle_deg, u_pct, tempo_ms.
_UNITS = (
    "deg rad degC degF K ms us ns s min h Hz rpm m mm cm km kg N Nm V mV A mA W kW MW bar mbar Pa kPa MPa"
)
_SUFFIXES = {unit.casefold(): unit for unit in _UNITS.split()}
_SUFFIXES |= {
    "pct": "%",
    "percent": "%",
    "c": "degC",
    "sec": "s",
    "mps": "m/s",
    "kmh": "km/h",
    "lpm": "l/min",
}
_BRACKETS = re.compile(r"^(?P<name>.*?)\s*[\[(](?P<unit>[^\[\]()]{0,20})[\])]\s*$", re.DOTALL)
_SIGNS = re.compile(r"^(?P<name>.*\w)[\s_]*(?P<unit>%|°[CFcf]?)\s*$", re.DOTALL)
_LETTERS = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "%": " percent ", "°": " deg "}


class Header(NamedTuple):
    """The name of a column, taken apart."""

    name: str
    """The name without the unit."""
    unit: str
    """The unit; empty if none is given."""


def split_header(column: str) -> Header:
    """Split the name of a column into name and unit: `angle_deg`, `Temperature (degC)`, `Valve %`."""
    if found := _BRACKETS.match(column) or _SIGNS.match(column):
        return Header(found["name"].strip() or column, _plain_unit(found["unit"]))
    stem, _, ending = column.rpartition("_")
    if stem and ending.casefold() in _SUFFIXES:
        return Header(stem, _SUFFIXES[ending.casefold()])
    return Header(column, "")


def _plain_unit(unit: str) -> str:
    unit = unit.strip().replace("°", "deg").removeprefix("in ")
    return _SUFFIXES.get(unit.casefold(), unit) if unit.casefold() in ("sec", "percent", "pct") else unit


def identifier(column: str) -> str:
    """Make a name for formulas from the name of a column: letters, digits and _, without the unit.

    Letters stay as they are written.
    """
    text = split_header(column).name
    for letter, plain in _LETTERS.items():
        text = text.replace(letter, plain)
    text = "".join(letter if f"_{letter}".isidentifier() else " " for letter in text)
    name = re.sub(r"[\s_]+", "_", text.strip()).strip("_") or "column"
    name = name if name.isidentifier() else f"x_{name}"
    taken = name in TAKEN or (len(name) > 1 and name.casefold() in TAKEN)  # T stays T
    return f"{name}_" if taken or not is_name(name) else name
