"""Writes the log of a case as Parquet or as an Excel file, with odd types of columns."""

import contextlib
import random


def write_log(name: str, seed: int) -> None:
    """Write `log.csv` again under a name that ends in .parquet or .xlsx; as text if it cannot be read."""
    import polars as pl

    rng = random.Random(seed)  # noqa: S311 - nothing is secret
    try:
        frame = pl.read_csv(
            "log.csv", infer_schema_length=None, truncate_ragged_lines=True, encoding="utf8-lossy"
        )
    except pl.exceptions.PolarsError:
        frame = pl.DataFrame({"theta": [0.0, 1.0], "force": ["x", None]})
    kinds = (
        pl.String, pl.Int8, pl.UInt64, pl.Float32, pl.Boolean, pl.Date, pl.Datetime("ms", "UTC"),
        pl.Duration("us"), pl.Categorical, pl.Decimal(20, 3), pl.Time, pl.Binary, pl.Null,
    )  # fmt: skip
    for column in frame.columns:
        if rng.random() < 0.15:
            with contextlib.suppress(pl.exceptions.PolarsError):
                frame = frame.with_columns(pl.col(column).cast(rng.choice(kinds), strict=False))
        elif rng.random() < 0.05:
            with contextlib.suppress(pl.exceptions.PolarsError):
                frame = frame.with_columns(
                    rng.choice((pl.struct(column).alias(column), pl.concat_list(column)))
                )
    if name.endswith(".parquet"):
        frame.write_parquet(name)
        return
    import xlsxwriter

    with xlsxwriter.Workbook(name, {"nan_inf_to_errors": True, "strings_to_numbers": False}) as book:
        sheet = book.add_worksheet()
        for row, cells in enumerate([frame.columns, *frame.head(60).rows()]):
            for place, cell in enumerate(cells):
                value = cell.decode("latin-1") if isinstance(cell, bytes) else cell
                with contextlib.suppress(TypeError, ValueError):
                    sheet.write(row + rng.choice((0,) * 500 + (5,)), place, value)
