"""What a Parquet file says of its size, from the table at its end: a small file may unpack to any amount.

No library that we need shows these numbers, so the table is read here: it is written in the compact protocol
of Thrift, and of its fields only four are of interest. A list in one row may hold any number of values, and a
text of one letter repeated packs to nothing, so the number of rows alone tells too little.
"""

from pathlib import Path
from typing import Any, NamedTuple

from clearloop.data.sizes import MOST_CELLS, check_cells, check_unpacked
from clearloop.errors import ClearloopError

_MAGIC = b"PAR1"
_LARGEST_FOOTER = 256 * 1024**2  # bytes
_DEEPEST = 40  # structures, lists and maps within each other; real tables have five
# The fields of interest, by their numbers in parquet.thrift.
_ROWS, _ROW_GROUPS = 3, 4  # of the file; the first also of a group
_COLUMNS = 1  # of a group
_ABOUT = 3  # of a column
_VALUES, _UNPACKED = 5, 6  # of what is said about a column


class Claims(NamedTuple):
    """What a file says that it holds."""

    rows: int
    columns: int
    values: int
    """in all columns together; a list in one row has many"""
    unpacked: int
    """bytes"""


def check_parquet(path: Path) -> None:
    """Refuse a Parquet file that unpacks to more than a log may have.

    Raises:
        ClearloopError: It is too large, or it is damaged.
    """
    found = claims(path)
    check_cells(found.rows, found.columns)
    if found.values > MOST_CELLS:
        raise ClearloopError(
            f"holds {found.values:,} values in lists, more than the {MOST_CELLS:,} that a log may have: "
            "write a column for each number"
        )
    check_unpacked(found.unpacked)


def claims(path: Path) -> Claims:
    """Read what a file says of its size.

    Raises:
        ClearloopError: It is no Parquet file.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != _MAGIC or not 0 < length <= min(size - 8, _LARGEST_FOOTER):
            raise ClearloopError("is damaged, or is not a parquet file: it has no table at its end")
        file.seek(size - 8 - length)
        footer = file.read(length)
    try:
        return _summed(_Reader(footer).structure())
    except (IndexError, ValueError, TypeError, AttributeError) as error:
        raise ClearloopError(
            "is damaged, or is not a parquet file: the table at its end is damaged"
        ) from error


def _summed(table: dict[int, Any]) -> Claims:
    groups = table.get(_ROW_GROUPS, [])
    columns = [column.get(_ABOUT, {}) for group in groups for column in group.get(_COLUMNS, [])]
    return Claims(
        rows=max(table.get(_ROWS, 0), sum(group.get(_ROWS, 0) for group in groups)),
        columns=max((len(group.get(_COLUMNS, [])) for group in groups), default=0),
        values=sum(column.get(_VALUES, 0) for column in columns),
        unpacked=sum(column.get(_UNPACKED, 0) for column in columns),
    )


class _Reader:
    """A reader of Thrift's compact protocol; structures become dictionaries by the numbers of fields."""

    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    def structure(self, depth: int = 0) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._number()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)  # true and false
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("too deep")
        match kind:
            case 1 | 2 | 3:  # in a list, true and false are bytes
                return self._byte()
            case 4 | 5 | 6:
                return self._number()
            case 7:
                return self._skip(8)
            case 8:
                return self._skip(self._varint())
            case 9 | 10:
                head = self._byte()
                count = head >> 4 if head >> 4 < 15 else self._varint()
                return [self._value(head & 15, depth + 1) for _ in range(self._enough(count))]
            case 11:
                return self._skip_map(depth)
            case 12:
                return self.structure(depth + 1)
        raise ValueError("an unknown kind")

    def _skip_map(self, depth: int) -> None:
        if count := self._enough(self._varint()):
            kinds = self._byte()
            for _ in range(count):
                self._value(kinds >> 4, depth + 1)
                self._value(kinds & 15, depth + 1)

    def _enough(self, count: int) -> int:
        """Return a number of elements, each of which takes a byte or more."""
        if count > len(self._content) - self._place:
            raise ValueError("it ends early")
        return count

    def _skip(self, count: int) -> None:
        self._place += self._enough(count)

    def _byte(self) -> int:
        self._place += 1
        return self._content[self._place - 1]

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 63:
                raise ValueError("too long a number")

    def _number(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)
