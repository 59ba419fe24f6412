"""Small files that unpack to something huge, and files that never end, are refused before they are read."""

import os
from pathlib import Path

import pytest

from clearloop.data import read, sizes
from clearloop.errors import ClearloopError


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "MOST_CELLS", 100)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_csv_file_of_many_tiny_cells(tmp_path: Path, encoding: str, separator: str) -> None:
    header = separator.join(["a°", '"b c"', "d", "e"])
    row = "\n" + separator.join("1234")
    (tmp_path / "log.csv").write_text(header + 26 * row + "\n", encoding=encoding)
    with pytest.raises(ClearloopError, match=r"log.csv: holds 26 rows of 4 columns, more than the 100 cells"):
        read(tmp_path / "log.csv")
    (tmp_path / "log.csv").write_text(header + 25 * row + "\n", encoding=encoding)
    assert read(tmp_path / "log.csv").shape == (25, 4)


@pytest.mark.usefixtures("few")
def test_short_lines_of_a_csv_file_count_as_whole_rows(tmp_path: Path) -> None:
    """The reader fills them up: a line of two bytes takes as much memory as the header is wide."""
    (tmp_path / "log.csv").write_text("a,b,c,d,e,f,g,h,i,j\n" + "1\n" * 11)
    with pytest.raises(
        ClearloopError, match=r"log.csv: holds 11 rows of 10 columns, more than the 100 cells"
    ):
        read(tmp_path / "log.csv")


@pytest.mark.usefixtures("few")
def test_lines_that_end_as_on_old_machines_are_counted(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"a,b\r" + b"1,2\r" * 51)
    with pytest.raises(ClearloopError, match=r"log.csv: holds 51 rows of 2 columns"):
        read(tmp_path / "log.csv")


def test_devices_and_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for device in ("zero", "urandom"):
        (tmp_path / f"{device}.csv").symlink_to(f"/dev/{device}")
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(
            ClearloopError, match=f"{path.name}: cannot be read: a device or a pipe may never end"
        ):
            read(path)


def test_a_file_that_claims_to_be_huge(tmp_path: Path) -> None:
    with (tmp_path / "log.csv").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(ClearloopError, match=r"log.csv: holds 931.3 GiB, more than the 4 GiB"):
        read(tmp_path / "log.csv")


@pytest.mark.parametrize("text", ["a" + "," * 300_000, "x" * 300_000])
def test_a_line_that_does_not_end(tmp_path: Path, text: str) -> None:
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(ClearloopError, match=r"log.csv: its first line has more than 262,144 characters"):
        read(tmp_path / "log.csv")


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/log\xff.csv"))
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ClearloopError, match=r"the name of this file is not UTF-8: rename it") as caught:
        read(path)
    str(caught.value).encode()  # it can be printed
