"""Names in error messages: how they are quoted, and what a misspelt one was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_QUOTE = 60


def quoted(name: str) -> str:
    """The name in quotes, on one line and not too long, whatever is in it."""
    return repr(name if len(name) <= LONGEST_QUOTE else name[: LONGEST_QUOTE - 1] + "…")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Text to append to an error: `; did you mean 'discount'?`, or nothing."""
    spelling = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name[:LONGEST_QUOTE].casefold(), spelling, n=1)
    return f"; did you mean {quoted(spelling[close[0]])}?" if close else ""
