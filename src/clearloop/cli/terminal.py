"""Output for people is printed here: lines and tables that fit the terminal, and progress bars."""

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
    """The user pressed Ctrl-C, and the run can be continued. The message says how."""


# Control characters and bidirectional overrides, which could take over a terminal or reorder its text.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Escape control characters, because names in tasks, logs and controllers may hold any text."""
    return UNSAFE.sub(lambda found: repr(found[0])[1:-1], text)


def echo(text: str = "", *, err: bool = False) -> None:
    """Print text as it is, except for control characters; `err` prints on standard error."""
    typer.echo(visible(text), err=err)


def say(text: str, *, indent: str = "    ", err: bool = False) -> None:
    """Print a line, and wrap it to the width of the terminal.

    Args:
        text: The line.
        indent: Put before the second and later lines, after the indentation of the first.
        err: Print on standard error.
    """
    for line in wrapped(text, shutil.get_terminal_size().columns, indent):
        echo(line, err=err)


def shell_word(text: str) -> str:
    """Quote a file name for a command that people copy, if it holds blanks or other signs of the shell.

    Double quotes do in shells of all systems; print such a command with `echo`: no line break may cut it.
    """
    return text if re.fullmatch(r"[\w@%+=:,./\\-]+", text) else f'"{text}"'


def wrapped(text: str, width: int, indent: str = "    ") -> list[str]:
    """Break a line before signs and words, so that a formula continues with its sign, or before * and /.

    Args:
        text: The line. It is never broken at NUL characters, which become blanks.
        width: The columns of the terminal.
        indent: Put before the second and later lines, after the indentation of the first.

    Returns:
        The lines.
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


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[int] = (),
    wrapped: Sequence[int] = (),
) -> None:
    """Print a table with two blanks between its columns.

    Args:
        header: The titles of the columns.
        rows: The cells of each row.
        right: The numbers of the columns that are aligned to the right.
        wrapped: The numbers of the columns that wrap where the line is too short; the last if none is given.
    """
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, title in enumerate(header):
        fixed = number not in (wrapped or (len(header) - 1,))
        grid.add_column(
            visible(title), justify="right" if number in right else "left", no_wrap=fixed, overflow="fold"
        )
    for row in rows:
        grid.add_row(*map(visible, row))
    Console(highlight=False, markup=False, soft_wrap=False).print(grid)


@contextmanager
def progress(title: str) -> Iterator[_Progress]:
    """Show progress on standard error: a bar with the time left on a terminal, lines elsewhere.

    Yields:
        A function to call with the share that is done, from 0 to 1, and a note.
    """
    if not sys.stderr.isatty():
        yield progress_lines(title)
        return
    with make_bar() as bar:
        yield moving(bar, title)


def make_bar() -> "Bar":
    """Return a progress bar on standard error that disappears at its end."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    title, note = TextColumn("{task.description}"), TextColumn("{task.fields[note]}")
    columns = (title, BarColumn(20), TaskProgressColumn(), note)
    return Bar(*columns, console=Console(stderr=True), transient=True)


def moving(bar: "Bar", title: str) -> _Progress:
    """Return a function that moves the bar to a share and sets its note."""
    task, time_left = bar.add_task(title, total=1.0, note=""), TimeLeft()

    def update(share: float, note: str) -> None:
        bar.update(task, completed=share, note=(note + time_left(share)).removeprefix(", "))

    return update


def progress_lines(title: str) -> _Progress:
    """Return a function that prints share and note as a line, at most every five seconds."""
    time_left = TimeLeft()
    last = time.monotonic()

    def report(share: float, note: str) -> None:
        nonlocal last
        left = time_left(share)
        if time.monotonic() - last >= 5:
            last = time.monotonic()
            said = (note + left).removeprefix(", ")
            echo(f"{title}  {share:.0%}  {said}".rstrip(), err=True)

    return report


class TimeLeft:
    """An estimate of the time left, from the pace since the first call (a run may have begun yesterday)."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None

    def __call__(self, share: float) -> str:
        """Return text such as `, 0:41 left`, or nothing while the pace is unknown and when all is done."""
        now = time.monotonic()
        done_at_first, begun = self._first = self._first or (share, now)
        if not done_at_first < share < 1:
            return ""
        return f", {clock((now - begun) * (1 - share) / (share - done_at_first))} left"
