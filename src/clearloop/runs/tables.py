"""Tables of a run as CSV, a dataclass for each kind of row: numbers read back as they were."""

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from clearloop.errors import ClearloopError
from clearloop.files import read_text, whole_file

Row = TypeVar("Row")

_LARGEST = 256 * 1024 * 1024  # bytes


def write_table(path: Path, kind: type[Row], rows: Iterable[Row]) -> None:
    """A column for each field; an empty cell for what is unknown: None or NaN."""
    names = _names(kind)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_printed(getattr(row, name)) for name in names] for row in rows)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def read_table(path: Path, kind: type[Row]) -> tuple[Row, ...]:
    """What `write_table` wrote; further columns do no harm."""
    try:
        cells = list(csv.DictReader(io.StringIO(read_text(path, _LARGEST)), strict=True))
    except csv.Error as error:
        raise ClearloopError(f"{path}: damaged: {error}") from error
    rows = [{name: row[name] or None for name in _names(kind) if name in row} for row in cells]
    try:
        return TypeAdapter(tuple[kind, ...]).validate_python(rows)  # type: ignore[valid-type]
    except ValidationError as error:
        row, column = error.errors()[0]["loc"][:2]
        raise ClearloopError(f"{path}: damaged: row {int(row) + 1}, column '{column}'") from error


def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)]


def _printed(cell: Any) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return repr(float(cell)) if isinstance(cell, float) else str(cell)
