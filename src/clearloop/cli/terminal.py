"""What people see: lines and tables that fit the terminal, and progress on standard error."""

import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from clearloop.errors import ClearloopError
from clearloop.numbers import clock

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_Progress = Callable[[float, str], None]
"""Called with the share that is done, from 0 to 1, and what to say beside it."""


class InterruptedRunError(ClearloopError):
    """Ctrl-C, where something is left that can go on. The message says how."""


def say(text: str, *, indent: str = "    ", err: bool = False) -> None:
    """A line of output; one that is too long goes on in the next, indented."""
    for line in wrapped(text, shutil.get_terminal_size().columns, indent):
        typer.echo(line, err=err)


def wrapped(text: str, width: int, indent: str = "    ") -> list[str]:
    """Broken before signs and words, so that a formula goes on with its sign; if need be, before * and /.

    Never broken at NUL characters, which become blanks.
    """
    first = text[: len(text) - len(text.lstrip())]
    indent = first + indent
    glued = re.sub(r" ([-+<>]|[<>=!]=|and|or) ", " \\1\0", text.strip().replace(" = ", "\0=\0"))
    wrapper = textwrap.TextWrapper(
        width, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [piece for line in wrapper.wrap(glued) for piece in _cut(line.replace("\0", " "), width, indent)]


def _cut(line: str, width: int, indent: str) -> Iterator[str]:
    signs = [sign.start() for sign in re.finditer(r"(?<!\*)[*/]", line[:width])]
    if len(line) <= width or not signs or signs[-1] <= len(indent):
        yield line
    else:
        yield line[: signs[-1]]
        yield from _cut(indent + line[signs[-1] :], width, indent)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Columns with two blanks between them; `right`: columns of numbers. The last column wraps."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, title in enumerate(header):
        last = number == len(header) - 1
        grid.add_column(
            title, justify="right" if number in right else "left", no_wrap=not last, overflow="fold"
        )
    for row in rows:
        grid.add_row(*row)
    Console(highlight=False, markup=False, soft_wrap=False).print(grid)


@contextmanager
def progress(title: str) -> Iterator[_Progress]:
    """A bar with the time left on a terminal, a line every few seconds elsewhere; all on standard error."""
    if not sys.stderr.isatty():
        yield progress_lines(title)
        return
    with make_bar() as bar:
        yield moving(bar, title)


def make_bar() -> "Bar":
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    title, note = TextColumn("{task.description}"), TextColumn("{task.fields[note]}")
    columns = (title, BarColumn(20), TaskProgressColumn(), note)
    return Bar(*columns, console=Console(stderr=True), transient=True)


def moving(bar: "Bar", title: str) -> _Progress:
    """Progress that moves a bar."""
    task, time_left = bar.add_task(title, total=1.0, note=""), TimeLeft()

    def update(share: float, note: str) -> None:
        bar.update(task, completed=share, note=(note + time_left(share)).removeprefix(", "))

    return update


def progress_lines(title: str) -> _Progress:
    """Progress for where no bar can be: a line every few seconds."""
    time_left = TimeLeft()
    last = time.monotonic()

    def report(share: float, note: str) -> None:
        nonlocal last
        left = time_left(share)
        if time.monotonic() - last >= 5:
            last = time.monotonic()
            said = (note + left).removeprefix(", ")
            print(f"{title}  {share:.0%}  {said}".rstrip(), file=sys.stderr, flush=True)

    return report


class TimeLeft:
    """From the pace so far. What was done before the first call does not count: it may be of another day."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None

    def __call__(self, share: float) -> str:
        """`, 0:41 left`; nothing while it cannot be told, or when all is done."""
        now = time.monotonic()
        done_at_first, begun = self._first = self._first or (share, now)
        if not done_at_first < share < 1:
            return ""
        return f", {clock((now - begun) * (1 - share) / (share - done_at_first))} left"
