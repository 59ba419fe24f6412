"""Columns by whatever people call them, and names for them that formulas can use."""

from collections.abc import Sequence

from clearloop.data.headers import identifier
from clearloop.data.survey import Column
from clearloop.errors import ClearloopError, did_you_mean, quoted


def find(text: str, columns: Sequence[Column]) -> Column:
    """A column by its name, by its name without the unit, or by what a task would call it."""
    for spelling in (lambda c: c.name, lambda c: c.header.name, lambda c: identifier(c.name)):
        found = [column for column in columns if spelling(column).casefold() == text.strip().casefold()]
        if len(found) == 1:
            return found[0]
    names = [column.name for column in columns] + [identifier(column.name) for column in columns]
    raise ClearloopError(f"no column {quoted(text)}{did_you_mean(text, names) or ';'} {listed(columns)}")


def listed(columns: Sequence[Column]) -> str:
    return "the columns are: " + ", ".join(quoted(column.name) for column in columns[:20])


def make_names(columns: Sequence[Column]) -> dict[str, str]:
    """Of each column, a name that formulas can use; all different."""
    names: dict[str, str] = {}
    for column in columns:
        name, number = identifier(column.name), 2
        while name in names.values():
            name, number = f"{identifier(column.name)}_{number}", number + 1
        if names.setdefault(column.name, name) != name:
            raise ClearloopError(f"column {quoted(column.name)} has two roles: name it once")
    return names
