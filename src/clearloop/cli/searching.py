"""What people see of a search: a bar with the best penalty so far, and under it the front as it grows."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clearloop.cli.terminal import count, lines, make_bar, moving
from clearloop.report.sentences import format_penalty, rounded

if TYPE_CHECKING:
    from rich.text import Text

    from clearloop.methods import Candidate
    from clearloop.runs import News
    from clearloop.runs.watching import Tell

MOST_ROWS = 8  # of the front


@contextmanager
def searching(method: str) -> "Iterator[Tell]":
    """On a terminal; a line every few seconds elsewhere. All on standard error."""
    title = f"Searching  {method}"
    if not sys.stderr.isatty():
        report = lines(title)
        yield lambda news: report(news.share, _note(news, f", {count(len(news.candidates), 'controller')}"))
        return
    from rich.console import Console, Group
    from rich.live import Live

    bar = make_bar()
    move = moving(bar, title)
    shown: Sequence[Candidate] = ()
    with Live(Group(bar), console=Console(stderr=True), transient=True) as live:

        def update(news: "News") -> None:
            nonlocal shown
            move(news.share, _note(news))
            if news.candidates is not shown:
                shown = news.candidates
                live.update(Group(bar, *_front(shown, live.console.width)))

        yield update


def _note(news: "News", more: str = "") -> str:
    return "judging the front" if news.over else f"best {format_penalty(news.best)}{more}"


def _front(candidates: "Sequence[Candidate]", width: int) -> "Iterator[Text]":
    """Some of it, from the simplest to the best: complexity, penalty, formula."""
    from rich.text import Text

    for candidate in _some(candidates):
        controller, penalty = candidate.controller, format_penalty(candidate.penalty)
        row = f"{controller.complexity:>10}  {penalty:>8}  {rounded(controller.summary)}"
        yield Text(row if len(row) <= width else f"{row[: width - 1]}…", style="dim")


def _some(candidates: "Sequence[Candidate]") -> "Sequence[Candidate]":
    """At most MOST_ROWS, evenly spread, both ends included."""
    last = len(candidates) - 1
    if last < MOST_ROWS:
        return candidates
    return [candidates[round(i * last / (MOST_ROWS - 1))] for i in range(MOST_ROWS)]
