"""`clearloop tune`."""

import json
from pathlib import Path

import pytest

from clearloop.controllers import load
from clearloop.task import Task
from tests.cli.conftest import Run
from tests.methods.test_tuning import TEXT, make_log


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tune")
    (place / "oven.toml").write_text(TEXT)
    make_log(0.4, 6.0).write_csv(place / "log.csv")
    return place


def test_the_command_prints_a_table_and_writes_the_controller(run: Run, folder: Path) -> None:
    new = folder / "new.json"
    done = run("tune", "--task", folder / "oven.toml", "--data", folder / "log.csv", "--out", new,
               "--time-constant", "2", "--vendor", "siemens")  # fmt: skip
    assert done.code == 0, done.err
    assert "present" in done.out
    assert "AMIGO PID" in done.out
    assert "Siemens PID_Compact" in done.out
    assert "settles\n" in done.out  # the table fits 80 columns: no word is broken
    assert "* SIMC PI" in done.out
    assert json.loads(new.read_text())["outputs"]["u"]["loops"][0]["integral"] is True
    assert load(new).for_task(Task.load(folder / "oven.toml"))


def test_wrong_options_are_one_line(run: Run, folder: Path) -> None:
    task, log = folder / "oven.toml", folder / "log.csv"
    for more, said in (
        (("--only", "gain"), "--only gain: expected some of kp, ti, td, tf"),
        (("--vendor", "acme"), "--vendor acme: expected siemens, codesys, rockwell"),
        (("--most-change", "0.5"), "--most-change 0.5: expected a number above 1"),
        (("--structure", "fuzzy"), "--structure fuzzy: expected PI or PID"),
    ):
        done = run("tune", "--task", task, "--data", log, *more)
        assert done.code == 2
        assert said in done.err
    two = (folder / "oven.toml").read_text().replace("[reward]", "v = { limits = [0.0, 1.0] }\n[reward]")
    (folder / "two.toml").write_text(two)
    make_log(0.4, 6.0).with_columns(v=0.5).write_csv(folder / "two.csv")
    done = run("tune", "--task", folder / "two.toml", "--data", folder / "two.csv")
    assert "the task has 2 actions: draft a task for each, with clearloop init" in done.err
    assert "a log is missing" in run("tune", "--task", task).err
