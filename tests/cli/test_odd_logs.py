"""Logs as they come: each is read as it is meant, or answered by one line and exit code 2."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.cli.bad_logs import BAD
from tests.cli.conftest import Done, Run
from tests.cli.odd_logs import GOOD, RESAMPLED, ROWS, TASK, excel, parquet, with_times


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    (tmp_path / "task.toml").write_text(TASK, encoding="utf-8")
    (tmp_path / "resampled.toml").write_text(RESAMPLED, encoding="utf-8")
    return tmp_path


def is_one_line(done: Done) -> bool:
    lines = done.err.splitlines()
    return done.code == 2 and done.out == "" and len(lines) == 1 and lines[0].startswith("error: ")


def read_as_meant(run: Run, name: str, task: str = "task.toml") -> bool:
    done = run("data", "convert", name, "--task", task, "--out", "out.parquet")
    assert done.err == ""
    assert done.code == 0
    got = pl.read_parquet("out.parquet").select("level", "Flow 1 (l/min)").to_numpy()
    return np.array_equal(got, np.array([row[1:3] for row in ROWS]))


@pytest.mark.parametrize("case", GOOD)
def test_a_log_is_read_as_it_is_meant(run: Run, folder: Path, case: str) -> None:
    name, content = GOOD[case]
    (folder / name).write_bytes(content)
    assert read_as_meant(run, name)


@pytest.mark.parametrize("case", BAD)
def test_a_bad_log_gets_one_line(run: Run, folder: Path, case: str) -> None:
    name, content, expected = BAD[case]
    (folder / name).write_bytes(content)
    before = sorted(folder.iterdir())
    done = run("data", "convert", name, "--task", "task.toml", "--out", "out.parquet")
    assert expected in done.err
    assert is_one_line(done)
    checked = run("data", "check", name, "--task", "task.toml", "--json")
    assert is_one_line(checked) or (checked.code == 1 and '"severity": "problem"' in checked.out)
    drafted = run("init", name, "--state", "level", "--action", "valve", "--setpoint", "level=1", "--dt", "1")
    assert is_one_line(drafted) or drafted.code == 0
    (folder / "log.toml").unlink(missing_ok=True)
    assert sorted(folder.iterdir()) == before


def times_of(run: Run, times: list[Any], sampling: str) -> Done:
    Path("log.csv").write_text(with_times(times), encoding="utf-8")
    Path("sampled.toml").write_text(TASK + "[sampling]\n" + sampling, encoding="utf-8")
    return run("data", "convert", "log.csv", "--task", "sampled.toml", "--out", "out.parquet")


SAMPLING: dict[str, tuple[list[Any], str, str]] = {
    "seconds": (list(range(8)), "", ""),
    "milliseconds": ([1000 * t for t in range(8)], 'time_unit = "ms"', ""),
    "nanoseconds": ([10**9 * t for t in range(8)], 'time_unit = "ns"', ""),
    "minutes": ([round(t / 60, 6) for t in range(8)], 'time_unit = "min"', ""),
    "unsaid milliseconds": (
        [1000 * t for t in range(8)],
        "",
        "rows are 1000 s apart, but [sampling] counts more than 5 s as a gap",
    ),
    "far apart": (
        [10 * t for t in range(8)],
        "",
        "rows are 10 s apart, but [sampling] counts more than 5 s as a gap",
    ),
    "coarse clock": ([t // 4 for t in range(8)], "", "the clock is too coarse for resampling"),
    "unit": (
        list(range(8)),
        'time_unit = "days"',
        "[sampling] time_unit: expected one of ns, us, ms, s, min, h",
    ),
    "rule": (list(range(8)), 'resample = "cubic"', '[sampling] resample: expected "linear" or "none"'),
    "gap": (list(range(8)), "gap = 0", "[sampling] gap: expected a number greater than 0"),
    "key": (list(range(8)), "gaps = 1", "[sampling]: unknown key 'gaps'; did you mean 'gap'?"),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("case", SAMPLING)
def test_times_in_any_unit(run: Run, case: str) -> None:
    times, sampling, expected = SAMPLING[case]
    done = times_of(run, times, sampling)
    assert expected in done.err
    assert is_one_line(done) if expected else read_as_meant(run, "log.csv", "sampled.toml")


def test_what_is_no_file(run: Run, folder: Path) -> None:
    (folder / "folder.csv").mkdir()
    for name in (
        "none.csv",
        "folder.csv",
        "none.parquet",
        "folder.csv/log.csv",
        "minari:none/none-v0",
        "minari:",
    ):
        assert is_one_line(run("data", "check", name, "--task", "task.toml")), name
        assert is_one_line(run("init", name)), name


def test_files_of_other_kinds(run: Run, folder: Path) -> None:
    (folder / "log.parquet").write_bytes(parquet())
    (folder / "log.xlsx").write_bytes(excel())
    assert read_as_meant(run, "log.parquet")
    assert read_as_meant(run, "log.xlsx")
    (folder / "names.xlsx").write_bytes(excel(lambda frame: frame.cast(pl.String)))
    assert read_as_meant(run, "names.xlsx")
    done = run("data", "convert", "log.xlsx", "--task", "task.toml", "--out", "minari:tank/logged-v0")
    assert (done.code, done.err) == (0, "")
    assert read_as_meant(run, "minari:tank/logged-v0")
    again = run("data", "convert", "log.xlsx", "--task", "task.toml", "--out", "minari:tank/logged-v0")
    assert is_one_line(again)
