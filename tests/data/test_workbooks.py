"""Small Excel files that unpack to something huge are refused before a reader opens them."""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from clearloop.data import read, sizes
from clearloop.data.workbooks import measure
from clearloop.errors import ClearloopError

SHEET, TEXTS, LIST = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/workbook.xml"
Change = Callable[[str, str], tuple[str, str]]
"""From the name of a part and its text to new ones."""


@pytest.fixture(scope="module")
def parts() -> dict[str, str]:
    """The parts of a workbook with a few numbers and texts."""
    buffer = io.BytesIO()
    pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}).write_excel(buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def write(path: Path, parts: dict[str, str], change: Change = lambda name, text: (name, text)) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(*change(name, text))
    return path


def within(part: str, old: str, new: str) -> Change:
    """Replace something in one part."""
    return lambda name, text: (name, re.sub(old, new, text, flags=re.DOTALL) if name == part else text)


def cells(xml: str) -> Change:
    """Add rows to the sheet."""
    return within(SHEET, "</sheetData>", xml + "</sheetData>")


FAR = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


@pytest.mark.parametrize(
    "far",
    [
        FAR,
        FAR.replace("=", " = "),
        FAR.replace('"', "'"),
        FAR.replace("XFD", "xfd"),
        FAR.replace("<c ", '<c s=">" t=\'" r="A1"\' '),
        FAR.replace("<v>1</v>", "<is><t>far</t></is>"),
        "<!-- </sheetData> -->" + FAR,
        '<row r="1048576"><c><v>1</v></c></row><row r="9">' + "<c><v>1</v></c>" * 16384 + "</row>",
        '<row r="1"><c r="XFC1"/><c><v>1</v></c></row><row r="1048576"><c r="A9"/><c><v>1</v></c></row>',
    ],
)
def test_a_sheet_with_a_cell_far_away(tmp_path: Path, parts: dict[str, str], far: str) -> None:
    path = write(tmp_path / "far.xlsx", parts, cells(far))
    assert path.stat().st_size < 100_000
    with pytest.raises(ClearloopError, match=r"far.xlsx: holds 1,048,576 rows of 16,384 columns, more than"):
        read(path)


def test_rows_that_do_not_say_where_they_are_follow_each_other(tmp_path: Path, parts: dict[str, str]) -> None:
    rows = '<row r="3"><c r="XFD3"><v>1</v></c></row>' + "<row><c><v>1</v></c></row>" * 19_997
    with pytest.raises(ClearloopError, match=r"far.xlsx: holds 20,000 rows of 16,384 columns, more than"):
        read(write(tmp_path / "far.xlsx", parts, cells(rows)))


@pytest.mark.parametrize("name", ["xl/worksheets/Sheet1.XML", "xl/elsewhere/sheet1.xml", "xl/sheet1.bin"])
def test_a_sheet_may_be_a_part_of_any_name(tmp_path: Path, parts: dict[str, str], name: str) -> None:
    def moved(part: str, text: str) -> tuple[str, str]:
        text = text.replace("worksheets/sheet1.xml", name.removeprefix("xl/"))
        return (name, text.replace("</sheetData>", FAR + "</sheetData>")) if part == SHEET else (part, text)

    with pytest.raises(ClearloopError, match=r"far.xlsx: holds 1,048,576 rows of 16,384 columns"):
        read(write(tmp_path / "far.xlsx", parts, moved))


@pytest.mark.parametrize(
    "place", ["A4294967297", "A" + "0" * 5_000 + "1", "AAAAAAAAAAA1", "XFD" * 3_000 + "1"]
)
def test_a_place_that_no_sheet_has(tmp_path: Path, parts: dict[str, str], place: str) -> None:
    """A reader may compute it in 32 bits."""
    path = write(tmp_path / "far.xlsx", parts, cells(f'<row><c r="{place}"><v>1</v></c></row>'))
    with pytest.raises(ClearloopError, match=r"far.xlsx: is damaged, or is not an Excel file: a cell at"):
        read(path)


def test_cells_that_have_only_a_format_do_not_count(tmp_path: Path, parts: dict[str, str]) -> None:
    """Spreadsheets keep them where somebody has coloured a whole row."""
    format = '<row r="1048576"><c r="XFD1048576" s="1"/><c r="A1048576" s="1"><f>1+1</f></c></row>'  # noqa: A001
    assert read(write(tmp_path / "log.xlsx", parts, cells(format))).shape == (2, 2)


@pytest.mark.parametrize("claim", ["count", "uniqueCount"])
def test_a_list_that_claims_to_have_many_texts(tmp_path: Path, parts: dict[str, str], claim: str) -> None:
    """A reader takes memory for all of them, and its process is aborted."""
    change = within(TEXTS, f'{claim}="[0-9]*"', f'{claim}="4000000000"')
    with pytest.raises(ClearloopError, match=r"log.xlsx: .* it claims to hold 4,000,000,000 texts"):
        read(write(tmp_path / "log.xlsx", parts, change))


@pytest.mark.parametrize("part", [SHEET, TEXTS])
def test_a_workbook_that_unpacks_to_more_than_a_log_may_have(
    tmp_path: Path, parts: dict[str, str], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "log.xlsx", parts, within(part, "$", " " * 2**20))
    monkeypatch.setattr(sizes, "LARGEST_LOG", 2**19)
    with pytest.raises(ClearloopError, match=r"log.xlsx: holds 0.0 GiB, more than"):
        read(path)


@pytest.mark.parametrize("whole", [False, True])
def test_a_part_that_is_larger_than_it_claims(
    tmp_path: Path, parts: dict[str, str], whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of parts says that this one has 100 bytes; what is packed says otherwise."""
    path = write(tmp_path / "log.xlsx", parts, within(TEXTS, "$", " " * 2**22))
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        checksum = zlib.crc32(archive.read(TEXTS)[: None if whole else 100])
    entry = content.rindex(b"PK\1\2", 0, content.rindex(TEXTS.encode()))
    struct.pack_into("<I", content, entry + 16, checksum)
    struct.pack_into("<I", content, entry + 24, 100)
    path.write_bytes(content)
    monkeypatch.setattr(sizes, "LARGEST_LOG", 2**20)
    with pytest.raises(ClearloopError, match=r"log.xlsx: holds 0.0 GiB, more than"):
        read(path)


def test_what_is_behind_the_end_of_an_archive_hides_nothing(tmp_path: Path, parts: dict[str, str]) -> None:
    path = write(tmp_path / "far.xlsx", parts, cells(FAR))
    path.write_bytes(path.read_bytes() + bytes(200_000))
    with pytest.raises(ClearloopError, match=r"far.xlsx: is damaged, or is not an Excel file"):
        read(path)


def test_a_workbook_without_sheets(tmp_path: Path, parts: dict[str, str]) -> None:
    change = within(LIST, "<sheets>.*</sheets>", "<sheets></sheets>")
    with pytest.raises(ClearloopError, match=r"none.xlsx: holds no sheet$"):
        read(write(tmp_path / "none.xlsx", parts, change))


def test_damaged_bytes_of_a_workbook_are_one_line(tmp_path: Path, parts: dict[str, str]) -> None:
    """A flipped bit may spoil the list of parts, a size, the way of packing, or what is packed."""
    path = write(tmp_path / "log.xlsx", parts)
    good, said = path.read_bytes(), set()
    for place in range(0, len(good), 11):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :])
        try:
            read(path)
        except ClearloopError as error:
            said.add(str(error).split(": ")[1])
    assert "is damaged, or is not an Excel file" in said


@pytest.mark.parametrize("size", [3, 7, 1000])
def test_the_extent_of_a_sheet_does_not_depend_on_how_it_is_cut(size: int) -> None:
    sheet = (
        b'\xef\xbb\xbf<s><sheetData><row r="1"><c r="B1"><v/></c></row><row r="12"><x:c r="AB12"><x:v/></x:c>'
        b"<c><v>\xff</v></c></row><row><c><v/></c></row></sheetData></s>"
    )
    found = measure(sheet[i : i + size] for i in range(0, len(sheet), size))
    assert (found.rows, found.columns) == (13, 29)
