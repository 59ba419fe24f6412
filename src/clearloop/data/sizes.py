"""The size of a log is checked before it is read: a small file may unpack to more than any memory holds."""

from pathlib import Path

from clearloop.errors import ClearloopError
from clearloop.files import check_ends
from clearloop.numbers import counted

MOST_CELLS = 200_000_000  # of a log: 1.6 GB as numbers
LARGEST_LOG = 4 * 1024**3  # bytes of a file, or of what a workbook unpacks to
_CHUNK = 2**20  # bytes


def check_file(path: Path) -> None:
    """Refuse a file that is too large; an OSError if it may never end, or if there is none."""
    check_ends(path)
    check_unpacked(path.stat().st_size)


def check_cells(rows: int, columns: int) -> None:
    """Refuse a table that has too many cells."""
    if rows * columns > MOST_CELLS:
        raise ClearloopError(
            f"holds {rows:,} rows of {counted(columns, 'column')}, more than the {MOST_CELLS:,} cells that a "
            "log may have: split it, or keep only the columns that the task needs"
        )


def check_lines(path: Path, columns: int, *, before: int, line_end: bytes) -> None:
    """Refuse a text file whose lines make too many cells, however short they are.

    A reader fills every line up to the width of the header, so a line of one byte costs a whole row.

    Args:
        path: The file. It is read in pieces, and only if its size leaves a doubt.
        columns: The width of the header.
        before: The number of lines up to the header, with it.
        line_end: What ends a line.
    """
    if path.stat().st_size * columns <= MOST_CELLS:
        return
    with path.open("rb") as file:
        ends = sum(chunk.count(line_end) for chunk in iter(lambda: file.read(_CHUNK), b""))
    check_cells(max(0, ends - before), columns)


def check_unpacked(size: int) -> None:
    """Refuse more bytes than a log may have, as they will be in memory."""
    if size > LARGEST_LOG:
        limit = f"{LARGEST_LOG / 1024**3:.0f} GiB that a log may have"
        raise ClearloopError(f"holds {size / 1024**3:,.1f} GiB, more than the {limit}: split it")
