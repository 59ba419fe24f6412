"""Numbers are formatted here for people: percentages, estimates with their errors, quantities with units.

Every page, table and message that shows a figure uses these functions, so that the same figure reads the same
everywhere. They return text; only `significant` and `json_values` return rounded numbers.
"""

import math
import re
from typing import Any

MINUS_SIGN = "\N{MINUS SIGN}"
FORMULA_DIGITS = 3  # significant digits of numbers in a formula that is shown; files keep all digits
JSON_DIGITS = 6  # significant digits: more than any figure shows

_HUGE = 1e9  # from here on digits after the point say nothing

_DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?")


def significant(value: float, digits: int) -> float:
    """Return `value` rounded to `digits` significant digits."""
    return float(f"{value:.{digits}g}")


def plain(value: float, digits: int = 3) -> str:
    """Format a number with `digits` significant digits, without a power of ten from 10⁻⁴ to 10⁶: `1100`."""
    rounded = significant(value, digits)
    return f"{rounded:.{digits}g}" if rounded and not 1e-4 <= abs(rounded) < 1e6 else f"{rounded:.15g}"


def percent(share: float, places: int = 1) -> str:
    """Format a share in percent with `places` digits after the point: `6.1 %` for 0.061."""
    return f"{100 * share:.{places}f} %"


def rough_percent(share: float, digits: int = 3) -> str:
    """Format a share in percent with `digits` significant digits: `0.0123 %`, `98.7 %`, `100 %`."""
    return f"{100 * share:.{digits}g} %"


def floored_percent(share: float) -> str:
    """Format a share in percent without rounding up, so that `100 %` means all: `99.99 %` for 0.99999."""
    return f"{math.floor(round(share * 1e4, 6)) / 100:g} %"


def careful_percent(share: float) -> str:
    """Format a share in percent with so many digits that only all reads `100 %` and only none reads `0 %`."""
    for places in range(1, 7):
        margin = 0.5 * 10.0 ** -(places + 2)
        if margin <= share < 1 - margin:
            return percent(share, places)
    return "100 %" if share > 0.5 else "0 %"


def format_penalty(value: float) -> str:
    """Format a penalty with two digits after the point; a tiny or huge one with three significant digits."""
    return f"{value:.2f}" if 0.01 <= abs(value) < 1e5 or value == 0 else f"{value:.3g}"


def penalty_with_error(mean: float, error: float | None) -> str:
    """Format a penalty and, if it is known, its standard error: `2.61 ± 0.12`."""
    return format_penalty(mean) + (f" ± {error:.2g}" if error is not None else "")


def estimate(mean: float, error: float = math.nan, places: int = 3) -> str:
    """Format a mean and its standard error with `places` digits after the point: `2.952 ± 0.028`.

    An error that is NaN is left out. Huge numbers are written with a power of ten.
    """
    return _placed(mean, places) + ("" if math.isnan(error) else f" ± {_placed(error, places)}")


def signed_estimate(mean: float, error: float, places: int = 3) -> str:
    """Format a difference with its sign and its standard error: `+0.005 ± 0.003`; never `-0.000`."""
    return f"{_placed(mean, places, '+z')} ± {_placed(error, places)}"


def _placed(value: float, places: int, sign: str = "") -> str:
    return f"{value:{sign}.{places}{'f' if abs(value) < _HUGE else 'e'}}"


def amount(value: float, unit: str, digits: int = 2) -> str:
    """Format a value and its unit, if it has one, for messages: `0.12 rad`."""
    return f"{value:.{digits}g} {unit}".rstrip()


def true_minus(text: str) -> str:
    """Replace each hyphen by the minus sign that pages print."""
    return text.replace("-", MINUS_SIGN)


def number(value: float, digits: int = 4) -> str:
    """Format a number for pages, with a true minus sign: `−49.8`; never `−0`."""
    return true_minus(f"{value + 0.0:.{digits}g}")


def signed(value: float) -> str:
    """Format a number like `number` does, with a plus sign if it is positive."""
    return ("+" if value > 0 else "") + number(value)


def quantity(value: float, unit: str) -> str:
    """Format a value and its unit, if it has one, for pages: `−49.8 N`."""
    return f"{number(value)} {unit}".rstrip()


def counted(many: int, what: str) -> str:
    """Format a count and its noun: `1 model`, `3 models`, `1,024 models`."""
    return f"{many:,} {what}" + "s" * (many != 1)


def clock(seconds: float) -> str:
    """Format a duration in minutes and seconds: `1:05`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def shorten_numbers(text: str) -> str:
    """Shorten the decimal numbers in a formula, or in a sentence with formulas, to three digits."""
    return _DECIMAL.sub(lambda match: _shortened(float(match[0])), text)


def _shortened(value: float) -> str:
    if value == 0 or not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{FORMULA_DIGITS}g}"
    places = max(0, FORMULA_DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def json_values(values: Any) -> Any:
    """Convert a number, an array or nested lists of numbers to JSON values.

    Numbers keep six significant digits; those that are not finite become None (null).
    """
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, list | tuple):
        return [json_values(value) for value in values]
    if not isinstance(values, float):
        return values
    return significant(values, JSON_DIGITS) if math.isfinite(values) else None
