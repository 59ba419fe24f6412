"""The formulas and names that stand in a controller file, and what is said about those that make no sense."""

from collections.abc import Collection
from functools import lru_cache

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import Expression, FormulaError, Variable, parse

Known = tuple[str, ...] | None
"""The names that there are; None where no task has said so yet."""

# A controller in plain Python reads its formulas at every step.
_parse = lru_cache(maxsize=4096)(parse)


def read_formula(text: str, place: str = "", known: Known = None) -> Expression:
    """`place`: where it stands in the file."""
    try:
        return _parse(text, known)
    except FormulaError as error:
        raise ClearloopError(f"{place}: {error}") from error


def read_variable(text: str, place: str = "", known: Known = None) -> Variable:
    """A name, perhaps with a lag, as it stands in gains, premises and inputs."""
    variable = read_formula(text, place, known)
    if not isinstance(variable, Variable):
        raise ClearloopError(f"{place}: expected a name such as theta or theta[t-2], found {quoted(text)}")
    return variable


def check_names(place: str, names: Collection[str], what: str, known: Collection[str]) -> None:
    """Refuse names that a task does not have as `what`."""
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there is {', '.join(known) or 'none'}"
            raise ClearloopError(f"{place}: {quoted(name)} is not {what} of the task{hint}")
