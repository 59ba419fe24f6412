"""What goes wrong through no fault of the program: one line for a person, and exit code 2."""

from collections.abc import Iterable

LONGEST_QUOTE = 60


class ClearloopError(Exception):
    """Bad input of any kind. The message says what is wrong, where, and what to do."""


class UnsuitableError(ClearloopError):
    """A method has nothing to give for this task and log; others may have."""


class ClearloopWarning(UserWarning):
    """Something was left out that the user may expect. The command line prints it as one line."""


def quoted(name: str) -> str:
    """A word of the user's in quotes, on one line and not too long, whatever is in it."""
    return repr(name if len(name) <= LONGEST_QUOTE else name[: LONGEST_QUOTE - 1] + "…")


def check_range(settings: object, names: str, least: float, most: float = 100_000) -> None:
    """An error for the first of these fields with a number that is out of range; None is no number."""
    for name in names.split():
        value = getattr(settings, name)
        several = value.values() if isinstance(value, dict) else value
        numbers = tuple(several) if isinstance(value, dict | tuple) else (value,)
        if not all(least <= number <= most for number in numbers if number is not None):
            found = ", ".join(map(str, numbers))
            kind = getattr(settings, "name", type(settings).__name__.lower())
            raise ClearloopError(f"{kind}: {name} = {found}: expected from {least:,g} to {most:,g}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Text to append to an error: `; did you mean 'discount'?`, or nothing."""
    from difflib import get_close_matches

    spelling = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name[:LONGEST_QUOTE].casefold(), spelling, n=1)
    return f"; did you mean {quoted(spelling[close[0]])}?" if close else ""
