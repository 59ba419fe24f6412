"""The [sampling] table: how a log becomes rows that are `dt` apart."""

from typing import Annotated, Literal

from clearloop.task.tables import Positive, Table, expecting

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
"""Of each unit that a numeric time column may have."""


class Sampling(Table):
    time_unit: Annotated[
        Literal["ns", "us", "ms", "s", "min", "h"], expecting(f"one of {', '.join(SECONDS)}, in quotes")
    ] = "s"
    """Of a time column that holds numbers; dates know their own."""
    resample: Annotated[Literal["linear", "none"], expecting('"linear" or "none"')] = "linear"
    """Where rows are not `dt` apart: states by linear interpolation, all else held; or left as they are."""
    gap: Positive | None = None
    """Seconds without a row after which a new episode begins; five `dt` if not given."""

    @property
    def seconds(self) -> float:
        """In one unit of the time column."""
        return SECONDS[self.time_unit]
