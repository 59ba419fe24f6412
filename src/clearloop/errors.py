"""Errors that a user can cause; each is one line for a person, and the command line exits with code 2."""

from collections.abc import Iterable

LONGEST_QUOTE = 60  # characters of a user's text that a message repeats


class ClearloopError(Exception):
    """The input is bad. The message says in one line what is wrong, where, and what to do."""


class UnsuitableError(ClearloopError):
    """A method cannot give a controller for this task and log; other methods may be able to."""


class ClearloopWarning(UserWarning):
    """The program left out something that the user may expect. The command line prints it as one line."""


def quoted(name: str) -> str:
    """Return a user's text in quotes, on one line, escaped where needed and cut if it is long."""
    return repr(name if len(name) <= LONGEST_QUOTE else name[: LONGEST_QUOTE - 1] + "…")


def check_range(settings: object, names: str, least: float, most: float = 100_000) -> None:
    """Check that numeric settings are within a range.

    Args:
        settings: The object whose fields are checked. A field is a number, None (which is not checked), or a
            tuple or dictionary of numbers.
        names: The names of the fields, separated by blanks.
        least: The smallest number allowed.
        most: The largest number allowed.

    Raises:
        ClearloopError: The first of these fields with a number that is out of range.
    """
    for name in names.split():
        value = getattr(settings, name)
        several = value.values() if isinstance(value, dict) else value
        numbers = tuple(several) if isinstance(value, dict | tuple) else (value,)
        if not all(least <= number <= most for number in numbers if number is not None):
            found = ", ".join(map(str, numbers))
            kind = getattr(settings, "name", type(settings).__name__.lower())
            raise ClearloopError(f"{kind}: {name} = {found}: expected from {least:,g} to {most:,g}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return text to append to an error, such as `; did you mean 'discount'?`, or nothing.

    Args:
        name: The unknown name that the user gave.
        known: The names that would have been right.
    """
    from difflib import get_close_matches

    spelling = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name[:LONGEST_QUOTE].casefold(), spelling, n=1)
    return f"; did you mean {quoted(spelling[close[0]])}?" if close else ""
