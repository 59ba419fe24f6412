"""A frame that is written in any dialect is read back equal."""

import csv
import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.data import read
from clearloop.data.cells import numbers
from clearloop.data.csv import CsvDialect, sniff
from clearloop.errors import ClearloopError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dialects")


letters = st.characters(codec="latin-1", categories=["L"])
names = st.text(letters, min_size=1, max_size=4).flatmap(
    lambda stem: st.sampled_from([stem, f"{stem} (°C)", f"{stem} [m/s²]", f"{stem} 1", f"{stem};, |x"])
)
numbers_of_logs = st.floats(allow_nan=False, allow_infinity=False, width=64)
frames = st.lists(names, min_size=2, max_size=5, unique=True).flatmap(
    lambda header: st.tuples(
        st.just(header),
        st.lists(
            st.lists(numbers_of_logs, min_size=len(header), max_size=len(header)), min_size=3, max_size=20
        ),
    )
)


@settings(max_examples=150, deadline=None)
@given(
    frame=frames,
    separator=st.sampled_from(",;\t|"),
    decimal=st.sampled_from(".,"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    end=st.sampled_from(["\n", "\r\n"]),
    preamble=st.sampled_from(["", "# a comment\n", "Plant 7\n\n", "\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_every_dialect_keeps_every_bit(
    folder: Path,
    frame: tuple[list[str], list[list[float]]],
    separator: str,
    decimal: str,
    encoding: str,
    end: str,
    preamble: str,
    quoting: int,
) -> None:
    header, rows = frame
    # One number in each column that is clear in any notation, so that nothing has to be guessed.
    rows = [[0.5] * len(header), *rows]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(header)
    writer.writerows([[repr(value).replace(".", decimal) for value in row] for row in rows])
    path = folder / "log.csv"
    path.write_bytes((preamble + text.getvalue()).encode(encoding, errors="replace"))
    back = read(path)
    assert back.columns == [name.encode(encoding, errors="replace").decode(encoding) for name in header]
    for index, column in enumerate(back):
        values, found = numbers(column, np.zeros(len(column), dtype=np.bool_))
        assert found == []
        assert values.tolist() == [row[index] for row in rows]


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=200) | st.text("0123456789,;.\t|\"'\n\r #ab-e", max_size=200))
def test_any_text_has_a_dialect_or_a_reason(text: str) -> None:
    said = ""
    try:
        assert isinstance(sniff(text), CsvDialect)
    except ClearloopError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode("utf-16")))
def test_any_bytes_are_a_frame_or_one_line(folder: Path, content: bytes) -> None:
    path = folder / "any.csv"
    path.write_bytes(content)
    said = f"{path}: "
    try:
        assert isinstance(read(path), pl.DataFrame)
    except ClearloopError as error:
        said = str(error)
    assert said.startswith(f"{path}: ")
    assert len(said.splitlines()) == 1


def test_whole_numbers_first_and_decimal_commas_late(folder: Path) -> None:
    path = folder / "late.csv"
    path.write_text("a;b\n" + "1;2\n" * 100_000 + "3;4,5\n")
    assert read(path)["b"][-1] == 4.5


def test_a_special_letter_far_down(folder: Path) -> None:
    path = folder / "far.csv"
    path.write_bytes(("a,b\n" + "1,x\n" * 100_000 + "2,é\n").encode("latin-1"))
    assert read(path).row(-1) == (2, "é")


def test_units_below_the_header_are_no_row(folder: Path) -> None:
    path = folder / "units.csv"
    path.write_text("time;angle\ns;deg\n0,0;1,5\n0,1;1,75\n")
    assert read(path).rows() == [(0.0, 1.5), (0.1, 1.75)]
