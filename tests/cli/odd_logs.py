"""A small log, written in ways that people and programs write logs."""

import io
import itertools
from collections.abc import Callable, Sequence

import polars as pl

TASK = """
name = "tank"
dt = 1.0
discount = 0.9
horizon = 20
[states]
level = { unit = "m" }
flow = {}
[actions]
valve = { limits = [0, 100] }
[reward]
expression = "-abs(level - 1)"
[data]
flow = "Flow 1 (l/min)"
"""
RESAMPLED = TASK + "[sampling]\n"
HEADER = ("time", "level", "Flow 1 (l/min)", "valve")
ROWS = [(float(t), 0.5 + 0.125 * t, 12.5 - t, 10.0 * (t % 3) + 0.25) for t in range(8)]


def render(
    separator: str = ",",
    decimal: str = ".",
    *,
    end: str = "\n",
    header: tuple[str, ...] = HEADER,
    rows: Sequence[tuple[object, ...]] | None = None,
    quote: bool = False,
) -> str:
    def cell(value: object) -> str:
        text = f"{value:g}".replace(".", decimal) if isinstance(value, float) else str(value)
        return f'"{text}"' if quote or (separator in text and not isinstance(value, str)) else text

    names = [f'"{name}"' if quote or separator in name else name for name in header]
    lines = [separator.join(names), *(separator.join(map(cell, row)) for row in rows or ROWS)]
    return end.join(lines) + end


def with_cell(row: int, column: int, value: object) -> str:
    rows: list[list[object]] = [list(cells) for cells in ROWS]
    rows[row][column] = value
    return render(rows=[tuple(cells) for cells in rows])


def with_times(times: Sequence[object]) -> str:
    return render(rows=[(time, *row[1:]) for time, row in zip(times, ROWS, strict=True)])


def parquet(change: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame) -> bytes:
    buffer = io.BytesIO()
    change(pl.DataFrame(ROWS, schema=list(HEADER), orient="row")).write_parquet(buffer)
    return buffer.getvalue()


def excel(change: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame) -> bytes:
    buffer = io.BytesIO()
    change(pl.DataFrame(ROWS, schema=list(HEADER), orient="row")).write_excel(buffer)
    return buffer.getvalue()


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1")
DEGREES = ("time", "level", "Flow 1 (l/min)", "valve", "Temp (°C)")
WITH_DEGREES = [(*row, 20.5) for row in ROWS]

GOOD: dict[str, tuple[str, bytes]] = {}
for separator, decimal, encoding in itertools.product(",;\t|", ".,", ENCODINGS):
    text = render(separator, decimal, header=DEGREES, rows=WITH_DEGREES)
    GOOD[f"{separator!r} {decimal} {encoding}"] = "log.csv", text.encode(encoding)
PREAMBLES = {
    "comments": "# made by a historian\n# 2024-05-01, hall 3\n",
    "percent": "% exported\n",
    "blank": "\n\n",
    "words": "Export of plant 7\nSite: North, hall 3\n\n",
    "slashes": "// one\n// two\n",
}
for (name, preamble), separator in itertools.product(PREAMBLES.items(), ",;"):
    decimal = "," if separator == ";" else "."
    GOOD[f"{name} {separator}"] = "log.csv", (preamble + render(separator, decimal)).encode()
GOOD |= {
    name: ("log.csv", text.encode())
    for name, text in {
        "windows": render(end="\r\n"),
        "windows ;": render(";", ",", end="\r\n"),
        "old mac": render(end="\r"),
        "quoted": render(quote=True),
        "quoted ;": render(";", ",", quote=True),
        "blank after comma": render().replace(",", ", "),
        "blanks around ;": render(";", ",").replace(";", " ; "),
        "no last end": render().rstrip("\n"),
        "blank lines at the end": render() + "\n\n",
        "commented header": "# " + render(),
        "units below": render(rows=[("s", "m", "l/min", "%"), *ROWS]),
        "units in brackets below": render(";", ",", rows=[("[s]", "[m]", "[l/min]", "[%]"), *ROWS]),
        "plus signs": with_cell(4, 1, "+1.0"),
        "exponents": with_cell(4, 1, "10e-1"),
        "exponents ;": render(";", ",").replace("0,625", "6,25E-1"),
        "action empty at the end": with_cell(7, 3, ""),
        "NA at the end": with_cell(7, 3, "NA"),
        "iso": with_times([f"2024-01-01T00:00:0{t}" for t in range(8)]),
        "iso with blank": with_times([f"2024-01-01 00:00:0{t}" for t in range(8)]),
        "iso with fraction": with_times([f"2024-01-01 00:00:0{t}.000" for t in range(8)]),
        "iso with Z": with_times([f"2024-01-01T23:59:5{t}Z" for t in range(8)]),
        "two zones": with_times([f"2024-01-01T0{t % 2}:00:0{t}+0{t % 2}:00" for t in range(8)]),
        "winter begins": with_times(
            [*(f"2024-10-27T02:59:5{t}+02:00" for t in range(6, 10))]
            + [f"2024-10-27T02:00:0{t}+01:00" for t in range(4)]
        ),
        "german dates": with_times([f"31.12.2024 23:59:5{t}" for t in range(8)]),
        "english dates": with_times([f"31/12/2024 23:59:5{t}" for t in range(8)]),
        "american dates": with_times([f"12/31/2024 11:59:5{t} PM" for t in range(8)]),
        "times of day": with_times([f"12:00:0{t}" for t in range(8)]),
        "other columns": render(
            header=(*HEADER, "comment", "count"), rows=[(*row, "fine", 3) for row in ROWS]
        ),
        "empty columns": render(header=(*HEADER, "a", ""), rows=[(*row, "", "") for row in ROWS]),
    }.items()
}  # fmt: skip
GOOD["tabs in .tsv"] = "log.tsv", render("\t").encode()
GOOD["text file"] = "log.txt", render(";", ",").encode()
GOOD["capital suffix"] = "LOG.CSV", render().encode()
