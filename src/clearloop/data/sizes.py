"""The size of a log is checked before it is read: a small file may unpack to more than any memory holds."""

import re
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from clearloop.errors import ClearloopError
from clearloop.files import check_ends
from clearloop.numbers import counted

MOST_CELLS = 200_000_000  # of a log: 1.6 GB as numbers
LARGEST_LOG = 4 * 1024**3  # bytes of a file, or of what a workbook unpacks to
_COLUMNS_OF_A_SHEET = 16_384
_REFERENCE = re.compile(rb"""\sr=["']([A-Z]{0,3})(\d{1,7})["']""")
_CELL = re.compile(rb"<(?:\w+:)?c[\s/>]")
_CHUNK = 2**20  # bytes


def check_file(path: Path) -> None:
    """Refuse a file that is too large; an OSError if it may never end, or if there is none."""
    check_ends(path)
    _check_bytes(path.stat().st_size)


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


def check_workbook(path: Path) -> None:
    """Refuse an Excel file whose sheets span too many cells: a reader fills in all empty ones."""
    if not zipfile.is_zipfile(path):  # an older format, in which sheets are small
        return
    with zipfile.ZipFile(path) as archive:
        _check_bytes(sum(part.file_size for part in archive.infolist()))
        for part in archive.namelist():
            if part.startswith("xl/worksheets/") and part.endswith(".xml"):
                with archive.open(part) as file:
                    check_cells(*_span(iter(lambda: file.read(_CHUNK), b"")))


def _check_bytes(size: int) -> None:
    if size > LARGEST_LOG:
        limit = f"{LARGEST_LOG / 1024**3:.0f} GiB that a log may have"
        raise ClearloopError(f"holds {size / 1024**3:,.1f} GiB, more than the {limit}: split it")


def _span(chunks: Iterator[bytes]) -> tuple[int, int]:
    """Return the last row and the last column of a sheet, from the references in its XML (`r="B7"`).

    Rows without a reference follow each other, and so do the cells of a row.
    """
    rows = columns = ends = 0
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"row>")
        ends += len(whole)
        for row in (*whole, rest):
            columns = max(columns, min(len(_CELL.findall(row)), _COLUMNS_OF_A_SHEET))
            for letters, number in _REFERENCE.findall(row):
                rows = max(rows, int(number))
                columns = max(columns, _column_number(letters))
        rest = rest[-_CHUNK:]
    return rows or ends, columns


@lru_cache(maxsize=_COLUMNS_OF_A_SHEET)
def _column_number(letters: bytes) -> int:
    """Return 1 for A, 27 for AA."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number
