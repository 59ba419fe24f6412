"""Data and models that cannot support a controller: an error with all reasons, or doubts that are kept."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clearloop.cli.terminal import say

if TYPE_CHECKING:
    from clearloop.data import Finding


def answer(source: str, reasons: "Sequence[Finding]", *, force: bool) -> list[dict[str, str]]:
    """Without reasons nothing; with `force` they are said and given back; otherwise the first is an error.

    `source`: what the data is called.
    """
    from clearloop.data.report import refuse

    if not reasons:
        return []
    if force or len(reasons) > 1:
        title = "By force, though this data cannot support a controller:" if force else "Not from this data:"
        say(title, err=True)
        for reason in reasons:
            say(f"  {reason.code}: {reason.message}", indent="    ", err=True)
    if not force:
        raise refuse(source, reasons)
    return in_words(reasons)


def in_words(reasons: "Sequence[Finding]") -> list[dict[str, str]]:
    """As they stand in `run.json`."""
    return [{"code": reason.code, "message": reason.message} for reason in reasons]
