"""Numbers for JSON: six digits, which is more than any figure shows, and null for what is no number."""

import math
from typing import Any

DIGITS = 6


def rounded(values: Any) -> Any:
    """A number, an array, or a list of them, as JSON values."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, list | tuple):
        return [rounded(value) for value in values]
    if not isinstance(values, float):
        return values
    return float(f"{values:.{DIGITS}g}") if math.isfinite(values) else None
