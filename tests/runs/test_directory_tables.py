"""Tables of a run: what is written is read."""

import math
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.errors import ClearloopError
from clearloop.runs.directory import read_table, write_table


@dataclass(frozen=True)
class Row:
    name: str
    count: int
    size: float
    error: float | None


rows = st.builds(
    Row,
    name=st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1),
    count=st.integers(-(2**62), 2**62),
    size=st.floats(allow_nan=False),
    error=st.none() | st.floats(allow_nan=False),
)


@settings(deadline=None)
@given(written=st.lists(rows, max_size=5))
def test_what_is_written_is_read(written: list[Row], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "table.csv"
    write_table(path, Row, written)
    assert read_table(path, Row, infinite=("size", "error")) == tuple(written)


def test_what_is_unknown_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_table(path, Row, [Row('min(a, "b")', 3, 0.1, math.nan), Row("x", -1, 1e-300, None)])
    assert path.read_bytes() == b'name,count,size,error\n"min(a, ""b"")",3,0.1,\nx,-1,1e-300,\n'
    assert [row.error for row in read_table(path, Row)] == [None, None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,count,size\na,1,2\n", "row 1, column 'error'"),
        ("name,count,size,error\na,1,2,\nb,x,2,\n", "row 2, column 'count'"),
        ("name,count,size,error\na,,2,\n", "row 1, column 'count'"),
        ("name,count,size,error\na\n", "row 1, column 'count'"),
        ("name,count,size,error\na,1,nan,\n", "row 1, column 'size'"),
        ("name,count,size,error\na,1,2,-inf\n", "row 1, column 'error'"),
        ('name,count,size,error\n"a,1,2,\n', "unexpected end of data"),
    ],
)
def test_damage_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ClearloopError) as error:
        read_table(path, Row)
    assert f"{path}: damaged: {message}" in str(error.value)
