"""What people see: tables that fit the terminal, and progress on standard error."""

import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer

Progress = Callable[[float, str], None]
"""Called with the share that is done, from 0 to 1, and what to say beside it."""


def say(text: str) -> None:
    """A line of output; one that is too long goes on in the next, indented."""
    for line in _wrapped(text, shutil.get_terminal_size().columns):
        typer.echo(line)


def _wrapped(text: str, width: int) -> list[str]:
    """Broken before signs and words, so that a formula goes on with its sign; if need be, before * and /."""
    first = text[: len(text) - len(text.lstrip())]
    indent = first + "    "
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


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
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
def progress(title: str) -> Iterator[Progress]:
    """A bar with the time left on a terminal, a line every few seconds elsewhere; all on standard error."""
    if not sys.stderr.isatty():
        yield _lines(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0, note="")

        def update(share: float, note: str) -> None:
            bar.update(task, completed=share, note=note)

        yield update


def _lines(title: str) -> Progress:
    last = time.monotonic()

    def report(share: float, note: str) -> None:
        nonlocal last
        if time.monotonic() - last >= 5:
            last = time.monotonic()
            print(f"{title} {share:.0%} {note}".rstrip(), file=sys.stderr, flush=True)

    return report
