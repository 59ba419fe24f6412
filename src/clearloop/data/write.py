"""From a polars frame to a file."""

from pathlib import Path
from typing import TYPE_CHECKING

from clearloop.errors import ClearloopError
from clearloop.files import whole_file

if TYPE_CHECKING:
    import polars as pl


def write(frame: "pl.DataFrame", path: str | Path) -> None:
    """A CSV or Parquet file, by extension."""
    import polars as pl

    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ClearloopError(f"{path}: expected a name that ends in .csv or .parquet")
    try:
        with whole_file(path) as file:
            frame.write_csv(file) if suffix == ".csv" else frame.write_parquet(file)
    except pl.exceptions.PolarsError as error:
        raise ClearloopError(f"{path}: cannot be written: {str(error).partition(chr(10))[0]}") from error
