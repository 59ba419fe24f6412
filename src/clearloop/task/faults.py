"""A fault in a task file as one line for a person: where it is, in TOML terms, and what is wrong."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from clearloop.errors import quoted

TABLES = ("states", "actions", "reward", "starts", "plant", "exploration", "data", "sampling")


class Fault(NamedTuple):
    where: tuple[str | int, ...]
    what: str


def first_of(faults: Sequence[Fault]) -> str:
    """The first fault, and how many more there are."""
    where, what = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return (f"{toml_path(where)}: {what}" if where else what) + more


def toml_path(where: Sequence[str | int]) -> str:
    """`[reward] cases[1].when` for ("reward", "cases", 1, "when")."""
    table = f"[{where[0]}]" if where[0] in TABLES else str(where[0])
    keys = ""
    for part in where[1:]:
        keys += f"[{part}]" if isinstance(part, int) else f".{part if part.isidentifier() else quoted(part)}"
    return f"{table} {keys.removeprefix('.')}".rstrip()


def faults_of(error: ValidationError) -> list[Fault]:
    return [_fault(detail) for detail in error.errors(include_url=False, include_input=False)]


def _fault(detail: ErrorDetails) -> Fault:
    where = detail["loc"]
    match detail["type"]:
        case "missing" if where[-1] in TABLES:
            return Fault(where[:-1], f"missing table [{where[-1]}]")
        case "missing":
            return Fault(where[:-1], f"missing key '{where[-1]}'")
        case "dict_type" | "model_type":
            return Fault(where, "expected a table")
        case "tuple_type":
            return Fault(where, "expected a list")
        case "too_long":
            return Fault(where, f"expected at most {detail['ctx']['max_length']} entries")
        case "too_short":
            return Fault(where, "expected at least one entry")
        case _:  # our own validators speak for themselves
            return Fault(where, detail["msg"])
