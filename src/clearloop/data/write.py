"""From a polars frame to a file that appears whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    import polars as pl


def write(frame: "pl.DataFrame", path: str | Path) -> None:
    """A CSV or Parquet file, by extension."""
    import polars as pl

    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ClearloopError(f"{path}: expected a name that ends in .csv or .parquet")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            frame.write_csv(file) if suffix == ".csv" else frame.write_parquet(file)
        partial.replace(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise ClearloopError(f"{path}: cannot be written: {reason}") from error
    finally:
        with suppress(OSError):  # it is gone when all went well, and was never there when the folder is not
            partial.unlink()
