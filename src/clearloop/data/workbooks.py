"""How much an Excel file unpacks to, and how far its cells reach: a reader fills in all empty cells between.

Nothing that the file claims of itself is believed. Its parts are unpacked piece by piece, and a sheet is
followed as a reader follows it, so a file of a few kilobytes with one cell far away is refused in time.
"""

import zipfile
import zlib
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from clearloop.data import sizes
from clearloop.data.sizes import check_cells, check_unpacked
from clearloop.errors import ClearloopError

_CHUNK = 2**20  # bytes
_TOLD = (b"sheetData", b"sst")  # elements of the parts that tell a reader how much memory it needs
_MARK = b"\xef\xbb\xbf"  # a byte-order mark
_DIGITS = "0123456789"
_VALUES = ("v", "is")  # the elements that hold the value of a cell
_MOST_DIGITS = 9  # of the number of a row; the largest is 1,048,576
_MOST_LETTERS = 6  # of a column; the last is XFD
# What reading a zip file raises: it is damaged, packed in an unknown way, or locked by a password.
_DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, KeyError)


def check_workbook(path: Path) -> None:
    """Refuse an Excel file whose parts unpack to too much, or whose sheets span too many cells.

    Raises:
        ClearloopError: It is too large, or it is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check_parts(archive)
    except _DAMAGED_ZIP as error:
        _refuse(str(error) or type(error).__name__)


def _refuse(why: str) -> NoReturn:
    raise ClearloopError(f"is damaged, or is not an Excel file: {' '.join(why.split())}")


def _check_parts(archive: zipfile.ZipFile) -> None:
    parts = archive.infolist()  # a sheet may stand in a part of any name
    check_unpacked(sum(part.file_size for part in parts))
    unpacked = 0
    for part in parts:
        before, size, tells = b"", 0, False
        for piece in _pieces(archive, part):
            size += len(piece)
            check_unpacked(unpacked + size)
            tells = tells or any(word in before + piece for word in _TOLD)
            before = piece[1 - len(_TOLD[0]) :]
        unpacked += size
        if tells:
            extent = measure(_pieces(archive, part))
            check_cells(extent.rows, extent.columns)
            if extent.strings > size:
                _refuse(f"it claims to hold {extent.strings:,} texts, and cannot")


def _pieces(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    """Unpack a part, also beyond the size that it claims to have."""
    whole = copy(part)
    whole.file_size = sizes.LARGEST_LOG + _CHUNK
    with archive.open(whole) as file:
        while piece := file.read(_CHUNK):
            yield piece


# Sheets.


class Extent:
    """The last row and the last column of a sheet that hold something, both counted from 1.

    Of the list of texts, which is a part of its own, it is the number of texts that the list claims to have.

    A row or a cell that does not say where it is follows the one before. Cells that have only a format do
    not count: a reader leaves them out.
    """

    def __init__(self) -> None:
        self.rows = self.columns = self.strings = 0
        self._row, self._digits = 0, "0"  # of the present element of a row
        self._column = 0  # of the present cell, if it does not say it
        self._reference: str | None = None  # of the present cell
        self._known: set[str] = set()  # the letters of columns that have been counted

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Follow the beginning of an element; there are two for every cell, so this must be quick."""
        name = tag.rpartition(":")[2] if ":" in tag else tag
        if name == "c":
            before, self._reference = self._reference, attributes.get("r")
            if self._reference is None:
                self._column = 1 + (self._column if before is None else _place(before)[1])
        elif name in _VALUES:
            self._count()
        elif name == "row":
            self._row = _place(attributes["r"])[0] if "r" in attributes else self._row + 1
            self._digits, self._column, self._reference = str(self._row), 0, None
        elif name == "sst":
            claims = (attributes.get(claim, "").strip("+ ") for claim in ("count", "uniqueCount"))
            self.strings = max(self.strings, *(int(one[:20]) for one in claims if one.isdecimal()), 0)

    def _count(self) -> None:
        """Count the present cell, which has a value."""
        row, column = self._row, self._column
        if self._reference is not None:
            letters = self._reference.rstrip(_DIGITS)
            here = self._reference[len(letters) :] == self._digits
            if here and letters in self._known and row <= self.rows:
                return
            row, column = _place(self._reference)
            self._known.add(letters)
        self.rows, self.columns = max(self.rows, row), max(self.columns, column)


def measure(pieces: Iterator[bytes]) -> Extent:
    """Return the extent of a sheet, or of the list of texts, from its XML in pieces.

    Raises:
        ClearloopError: It is no XML.
    """
    extent = Extent()
    parser = expat.ParserCreate("iso-8859-1")  # every byte is a letter of it, and tags are ASCII
    parser.StartElementHandler = extent.begin
    first = True
    try:
        for piece in pieces:
            parser.Parse(piece.removeprefix(_MARK) if first else piece, False)
            first = False
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        _refuse(f"a part of it is no XML: {error}")
    return extent


def _place(reference: str) -> tuple[int, int]:
    """Return row and column of a reference such as B7: 7 and 2; the column is 0 if only a row is given."""
    letters = reference.rstrip(_DIGITS)
    digits = reference[len(letters) :]
    if len(digits) > _MOST_DIGITS or len(letters) > _MOST_LETTERS:
        _refuse(f"a cell at {reference[:20]}")
    column = 0
    for letter in letters.upper():
        column = 26 * column + ord(letter) - ord("A") + 1
    return int(digits or 0), column
