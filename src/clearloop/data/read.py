"""From a file or any dataframe to a polars frame. What the columns mean is not known here."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearloop.data.delimited import read_csv
from clearloop.data.minari_dataset import minari_name, read_minari
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    import polars as pl


def read(path: str | Path) -> "pl.DataFrame":
    """A CSV, Parquet or Excel file, told apart by its extension; or `minari:NAME`."""
    import polars as pl

    if (name := minari_name(path)) is not None:
        return read_minari(name)
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ClearloopError(f"{path}: expected a file that ends in {', '.join(READERS)}, or minari:NAME")
    try:
        with path.open("rb"):  # the system's own words for a missing file, a folder, a locked door
            pass
        return _without_blanks(reader(path))
    except OSError as error:
        raise ClearloopError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ClearloopError as error:
        raise ClearloopError(f"{path}: {error}") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ClearloopError(
            f"{path}: is damaged, or no {path.suffix[1:]} file: {first_line(error)}"
        ) from error


def _without_blanks(frame: "pl.DataFrame") -> "pl.DataFrame":
    """`# time, theta` means the columns `time` and `theta`, unless that would make two of one name."""
    names = [name.strip() for name in frame.columns]
    names[:1] = [name.lstrip("#% ") or name for name in names[:1]]
    if len(set(names)) < len(names):
        return frame
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def _read_parquet(path: Path) -> "pl.DataFrame":
    import polars as pl

    return pl.read_parquet(path, glob=False, hive_partitioning=False)


def _read_excel(path: Path) -> "pl.DataFrame":
    """The first sheet of a workbook."""
    import polars as pl

    try:
        import fastexcel
    except ImportError as error:
        raise ClearloopError("Excel files need an extra: pip install 'clearloop[excel]'") from error
    try:
        return pl.read_excel(path, infer_schema_length=None)
    except fastexcel.FastExcelError as error:
        raise ClearloopError(f"is damaged, or no Excel file: {first_line(error)}") from error


READERS = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".txt": read_csv,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
}


def from_any(frame: Any) -> "pl.DataFrame":
    """A dataframe of any library that narwhals knows: polars, pandas, pyarrow, …"""
    import narwhals.stable.v2 as nw
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    try:
        converted: pl.DataFrame = nw.from_native(frame, eager_only=True).to_polars()
    except (TypeError, ValueError, ImportError, pl.exceptions.PolarsError) as error:
        raise ClearloopError(
            f"expected a dataframe with one type in each column: {first_line(error)}"
        ) from error
    return converted


def first_line(error: BaseException) -> str:
    """The first line of what a library says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
