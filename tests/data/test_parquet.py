"""What Parquet files claim to hold is read from the table at their end, and what is too much is refused."""

import random
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clearloop.data import parquet, read, sizes
from clearloop.data.parquet import claims
from clearloop.errors import ClearloopError

FRAME = pl.DataFrame({"a": np.arange(50.0), "b": ["x"] * 50, "c": [None, *range(49)]})


@pytest.mark.parametrize("groups", [7, 50])
@pytest.mark.parametrize("writer", ["polars", "pyarrow"])
def test_the_claims_are_those_that_pyarrow_reads(tmp_path: Path, writer: str, groups: int) -> None:
    path = tmp_path / "log.parquet"
    if writer == "polars":
        FRAME.write_parquet(path, row_group_size=groups)
    else:
        pq.write_table(FRAME.to_arrow(), path, row_group_size=groups)
    about = pq.ParquetFile(path).metadata
    columns = [
        about.row_group(i).column(j) for i in range(about.num_row_groups) for j in range(about.num_columns)
    ]
    assert claims(path) == (
        50, 3, sum(one.num_values for one in columns), sum(one.total_uncompressed_size for one in columns),
    )  # fmt: skip


def test_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "MOST_CELLS", 100)
    path = tmp_path / "log.parquet"
    pl.DataFrame({"a": [0.0] * 51, "b": [0.0] * 51}).write_parquet(path)
    with pytest.raises(ClearloopError, match=r"log.parquet: holds 51 rows of 2 columns, more than the 100"):
        read(path)
    pl.DataFrame({"a": [0.0] * 50, "b": [0.0] * 50}).write_parquet(path)
    assert read(path).shape == (50, 2)


def test_one_row_with_a_long_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million equal values pack to a few bytes."""
    monkeypatch.setattr(parquet, "MOST_CELLS", 100_000)
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"a": [[0] * 1_000_000], "b": [1.0]}), path, compression="zstd")
    assert path.stat().st_size < 2_000
    with pytest.raises(ClearloopError, match=r"log.parquet: holds 1,000,001 values in lists, more than"):
        read(path)


def test_a_long_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LARGEST_LOG", 2**20)
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"a": ["a" * 2**21]}), path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 5_000
    with pytest.raises(ClearloopError, match=r"log.parquet: holds 0.0 GiB, more than"):
        read(path)


def test_damaged_bytes_are_one_line(tmp_path: Path) -> None:
    """Or they make no difference; none ends in another error, and none takes long."""
    path = tmp_path / "log.parquet"
    FRAME.write_parquet(path)
    good, rng = path.read_bytes(), random.Random(0)  # noqa: S311
    footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    said = []
    for _ in range(300):
        damaged = bytearray(good)
        for _ in range(rng.choice((1, 1, 3))):
            damaged[rng.randrange(footer, len(good))] = rng.choice((0, 0x1B, 0x7F, 0x9C, 0xFB, 0xFF))
        path.write_bytes(damaged)
        try:
            claims(path)
        except ClearloopError as error:
            said.append(str(error))
    assert 20 < len(said) < 300
    assert all("is damaged, or is not a parquet file" in one for one in said)


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"\0" * 8 + b"PAR1", b"PAR1" + b"\xff" * 4 + b"PAR1", b"a,b\n1,2\n"]
)
def test_what_is_no_parquet_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log.parquet").write_bytes(content)
    with pytest.raises(ClearloopError, match=r"log.parquet: is damaged, or is not a parquet file"):
        read(tmp_path / "log.parquet")


@pytest.mark.parametrize("kind", [0x19, 0x1C])
def test_lists_and_structures_within_each_other_are_one_line(tmp_path: Path, kind: int) -> None:
    """Thousands of them, each a byte long, would be more than Python's stack holds."""
    table = bytes([0x49]) + bytes([kind]) * 5_000 + b"\0"
    path = tmp_path / "log.parquet"
    path.write_bytes(b"PAR1" + table + len(table).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ClearloopError, match="the table at its end is damaged"):
        claims(path)
