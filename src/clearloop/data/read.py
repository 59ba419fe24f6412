"""From a file or any dataframe to a polars frame. What the columns mean is not known here."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    import polars as pl


def read(path: str | Path) -> "pl.DataFrame":
    """A CSV or Parquet file, told apart by its extension."""
    import polars as pl

    path = Path(path)
    reader = {".csv": _read_csv, ".parquet": _read_parquet}.get(path.suffix.lower())
    if reader is None:
        raise ClearloopError(f"{path}: expected a file that ends in .csv or .parquet")
    try:
        with path.open("rb"):  # the system's own words for a missing file, a folder, a locked door
            pass
        return _without_blanks(reader(path))
    except OSError as error:
        raise ClearloopError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ClearloopError(f"{path}: is damaged, or no {path.suffix[1:]} file: {_line(error)}") from error


def _without_blanks(frame: "pl.DataFrame") -> "pl.DataFrame":
    """`time, theta` means the columns `time` and `theta`, unless that would make two of one name."""
    names = [name.strip() for name in frame.columns]
    if len(set(names)) < len(names):
        return frame
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def _read_csv(path: Path) -> "pl.DataFrame":
    import polars as pl

    try:
        return pl.read_csv(path, try_parse_dates=True, glob=False)
    except pl.exceptions.ComputeError:
        # The first rows were not like the later ones (0, 0, 0.5): look at all of them, seven times slower.
        return pl.read_csv(path, try_parse_dates=True, glob=False, infer_schema_length=None)


def _read_parquet(path: Path) -> "pl.DataFrame":
    import polars as pl

    return pl.read_parquet(path, glob=False, hive_partitioning=False)


def from_any(frame: Any) -> "pl.DataFrame":
    """A dataframe of any library that narwhals knows: polars, pandas, pyarrow, …"""
    import narwhals.stable.v2 as nw
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    try:
        converted: pl.DataFrame = nw.from_native(frame, eager_only=True).to_polars()
    except (TypeError, ValueError, ImportError, pl.exceptions.PolarsError) as error:
        raise ClearloopError(f"expected a dataframe with one type in each column: {_line(error)}") from error
    return converted


def _line(error: BaseException) -> str:
    """The first line of what a library says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
