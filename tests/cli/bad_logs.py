"""Logs that cannot be used, and what is said of each."""

import polars as pl

from tests.cli.odd_logs import HEADER, ROWS, excel, parquet, render, with_cell, with_times

FORMATS = "expected a file that ends in .csv, .tsv, .txt, .parquet, .xlsx, .npz, or minari:NAME"
BAD_TEXTS: dict[str, tuple[str, str]] = {
    "only a header": (render(rows=[()]), "no two rows follow each other"),
    "one row": (render(rows=ROWS[:1]), "no two rows follow each other"),
    "no header": (render().partition("\n")[2], "the first line holds values, not names"),
    "no header ;": (render(";", ",").partition("\n")[2], "the first line holds values"),
    "no action": (render(header=(*HEADER[:3], "x")), "no column 'valve'"),
    "other case": (
        render(header=("time", "Level", *HEADER[2:])), "no column 'level'; did you mean 'Level'?",
    ),
    "unit in header": (
        render(header=("time", "level [m]", *HEADER[2:])), "did you mean 'level [m]'?",
    ),
    "far unit in header": (
        render(header=("time", "Level (metres WC)", *HEADER[2:])),
        "did you mean 'Level (metres WC)'?",
    ),
    "name without unit": (
        render(header=("time", "level", "Flow 1", "valve")), "did you mean 'Flow 1'?",
    ),
    "the same name twice": (
        render(header=("time", "level", "level", "valve")), "no column 'Flow 1 (l/min)'",
    ),
    "level twice": (
        render(header=(*HEADER, "level"), rows=[(*row, 1.0) for row in ROWS]),
        "two columns are called 'level'",
    ),
    "a longer line": ((render() + "8,1,2,3,4\n"), "more cells than the header has names"),
    "a shorter line": ((render() + "8,1\n"), "1 empty cell in row 9"),
    "two dialects": ((render() + render(";", ",").partition("\n")[2]), "text cell"),
    "thousands": (with_cell(3, 2, '"1,234.5"'), "write numbers without thousands separators"),
    "thousands ;": (
        render(";", ",", rows=[*ROWS[:7], (7.0, 1.0, "1.234,5", 5.0)]), "thousands separators",
    ),
    "thousands '": (with_cell(3, 2, "1'234.5"), "thousands separators"),
    "thousands with blanks": (
        render(";", ",", rows=[*ROWS[:7], (7.0, 1.0, "1 234,5", 5.0)]), "thousands separators",
    ),
    "comma among points": (with_cell(3, 2, '"1,5"'), "all numbers with a decimal point, or"),
    "point among commas": (
        render(";", ",", rows=[*ROWS[:7], (7.0, 1.0, "9.5", 5.0)]), "text cell",
    ),
    "word": (with_cell(3, 2, "Bad"), "1 text cell in row 4, first 'Bad'"),
    "unit in cell": (with_cell(3, 2, "5 l"), "1 text cell in row 4, first '5 l'"),
    "excel error": (with_cell(3, 2, "#DIV/0!"), "text cell"),
    "hex": (with_cell(3, 2, "0x1F"), "text cell"),
    "empty": (with_cell(3, 2, ""), "1 empty cell in row 4"),
    "blank": (with_cell(3, 2, "  "), "1 empty cell in row 4"),
    "NaN": (with_cell(3, 2, "NaN"), "1 empty cell in row 4"),
    "NA": (with_cell(3, 2, "NA"), "1 empty cell in row 4"),
    "null": (with_cell(3, 1, "null"), "1 empty cell in row 4"),
    "infinite": (with_cell(3, 2, "inf"), "1 infinite cell in row 4"),
    "negative infinite": (with_cell(3, 2, "-Infinity"), "1 infinite cell in row 4"),
    "too huge": (with_cell(3, 2, "1e999"), "1 infinite cell in row 4"),
    "action empty in between": (with_cell(3, 3, ""), "column 'valve' has 1 empty cell"),
    "a whole column empty": (
        render(rows=[(row[0], row[1], "", row[3]) for row in ROWS]), "8 empty cells",
    ),
    "a column of text": (
        render(rows=[(row[0], row[1], "on", row[3]) for row in ROWS]), "8 text cells",
    ),
    "shuffled": (
        render(rows=[ROWS[i] for i in (0, 2, 1, 3, 5, 4, 7, 6)]), "runs backwards in 3 places",
    ),
    "backwards": (render(rows=ROWS[::-1]), "runs backwards in 7 places"),
    "dates backwards": (
        with_times([f"2024-01-01T00:00:0{9 - t}" for t in range(8)]), "runs backwards",
    ),
    "ambiguous dates": (
        with_times([f"01/02/2024 00:00:0{t}" for t in range(8)]),
        "which may begin with the day or with the month",
    ),
    "no such dates": (
        with_times([f"2024-13-4{t}" for t in range(8)]), "8 cells without a number or a date",
    ),
    "one bad date": (
        with_times([*(f"2024-01-01T00:00:0{t}" for t in range(7)), "later"]),
        "1 cell without a number or a date in row 8, first 'later'",
    ),
    "no time in a row": (with_cell(3, 0, ""), "column 'time' has 1 empty cell in row 4"),
    "torn episode": (
        render(header=(*HEADER, "episode"), rows=[(*row, t // 2 % 2) for t, row in enumerate(ROWS)]),
        "episode '0' begins again in row 5",
    ),
    "every row an episode": (
        render(header=(*HEADER, "episode"), rows=[(*row, t) for t, row in enumerate(ROWS)]),
        "no two rows follow each other",
    ),
    "odd flags": (
        render(header=(*HEADER, "terminal"), rows=[(*row, "maybe") for row in ROWS]),
        "text cells",
    ),
    "flags beyond 1": (
        render(header=(*HEADER, "terminal"), rows=[(*row, 2) for row in ROWS]),
        "8 cells other than true or false",
    ),
    "endless quote": (render().replace("0.5", '"0.5'), "log.csv: "),
}  # fmt: skip
BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "nothing": ("log.csv", b"", "is damaged, or is not a csv file"),
    "only ends of lines": ("log.csv", b"\n\n\n", "is damaged, or is not a csv file"),
    "only a mark": ("log.csv", b"\xef\xbb\xbf", "is damaged, or is not a csv file"),
    "zeros": ("log.csv", bytes(1000), "binary data"),
    "junk": ("log.csv", bytes(range(256)) * 20, "binary data"),
    "picture": ("log.csv", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(50), "binary data"),
    "parquet in csv": ("log.csv", parquet(), "log.csv: "),
    "csv in parquet": ("log.parquet", render().encode(), "is damaged, or is not a parquet file"),
    "cut parquet": ("log.parquet", parquet()[:-20], "is damaged, or is not a parquet file"),
    "half a parquet": ("log.parquet", parquet()[: len(parquet()) // 2], "or is not a parquet file"),
    "empty parquet": ("log.parquet", b"", "is damaged, or is not a parquet file"),
    "csv in xlsx": ("log.xlsx", render().encode(), "is damaged, or is not an Excel file"),
    "cut xlsx": ("log.xlsx", excel()[:-200], "is damaged, or is not an Excel file"),
    "spreadsheet": ("log.ods", b"PK", FORMATS),
    "json": ("log.json", b"{}", FORMATS),
    "no suffix": ("log", render().encode(), FORMATS),
    "cut in a line": ("log.csv", render().encode()[:-10], "empty cell"),
    "either": (
        "log.tsv", b"time\tlevel\tvalve\n1\t1,234\t5\n2\t1,235\t6\n",
        "may be a number with a thousands separator or with a decimal comma",
    ),
    "lists in parquet": (
        "log.parquet", parquet(lambda frame: frame.with_columns(level=pl.concat_list("level", "valve"))),
        "8 text cells",
    ),
    "text in parquet": (
        "log.parquet", parquet(lambda frame: frame.with_columns(level=pl.lit("a"))), "8 text cells",
    ),
    "no rows in parquet": ("log.parquet", parquet(lambda frame: frame.clear()), "no two rows follow each"),
    "no column in parquet": ("log.parquet", parquet(lambda frame: frame.drop("level")), "no column 'level'"),
    "empty cell in xlsx": (
        "log.xlsx", excel(lambda frame: frame.with_columns(level=pl.when(pl.col("time") != 3).then("level"))),
        "1 empty cell in row 4",
    ),
    "no column in xlsx": ("log.xlsx", excel(lambda frame: frame.drop("valve")), "no column 'valve'"),
    "web page": ("log.csv", b"<!DOCTYPE html><html><body>Sign in</body></html>\n", "log.csv: "),
}  # fmt: skip
BAD = BAD_FILES | {name: ("log.csv", text.encode(), said) for name, (text, said) in BAD_TEXTS.items()}
