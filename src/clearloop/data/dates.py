"""Dates and times of day that are text, as seconds. What could be two dates is refused."""

import re
from typing import TYPE_CHECKING

from clearloop.data.report import Finding
from clearloop.errors import quoted

if TYPE_CHECKING:
    import polars as pl

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
    """Seconds since 1970, or since midnight for times of day; null for what is no date. No zone is UTC."""
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
    """01/02/2024 is the first of February, or the second of January."""
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

    # Rust's regular expressions know no conditions, but all of this.
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
