import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.plants.exploration import make_batch
from clearloop.runs import RunDirectory
from clearloop.task import Task


@pytest.fixture(scope="module")
def task() -> Task:
    return Task.load("cartpole")


@pytest.fixture(scope="module")
def batch(task: Task) -> Batch:
    return make_batch(task, rng=np.random.default_rng(0), size=50)


ASKED = {"task": "cartpole", "methods": {}, "budget": 1, "track": "best", "seed": 0}


def begin(path: Path, task: Task, batch: Batch, asked: dict[str, Any]) -> RunDirectory:
    run = RunDirectory(path)
    with run.claimed(replacing=str(asked.get("command"))):
        run.begin(task, batch, asked)
    return run


def test_a_run_says_what_was_asked_and_from_what(tmp_path: Path, task: Task, batch: Batch) -> None:
    run = begin(tmp_path / "deep" / "run", task, batch, {"command": "model", "seed": 3})
    begun = json.loads((run.path / "run.json").read_text())
    assert begun["status"] == "running"
    date = datetime.strptime(begun["begun"], "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC)
    assert timedelta() <= datetime.now(UTC) - date <= timedelta(minutes=10)
    assert begun["asked"] == {"command": "model", "seed": 3}
    assert begun["data"]["fingerprint"] == batch.fingerprint()
    assert Batch.load(run.path / "batch.parquet", task).fingerprint() == batch.fingerprint()
    assert Task.from_dict(begun["task"]) == task
    pick = {"controller": "003", "reason": "the best"}
    run.mark("finished", pick=pick)
    assert run.describe() == {**begun, "status": "finished", "pick": pick}


def test_a_run_does_not_move_in_with_strangers(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_text("all of it")
    with pytest.raises(ClearloopError, match="holds files that do not belong to a run"):
        RunDirectory(tmp_path).check_free()
    with pytest.raises(ClearloopError, match="do not belong to a run"), RunDirectory(tmp_path).claimed():
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]


def test_what_a_killed_beginning_left_is_not_a_stranger(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / ".run.json.1234.partial").touch()
    with RunDirectory(tmp_path).claimed():
        pass


def test_an_old_run_makes_room_for_a_new_one_of_its_command(tmp_path: Path, task: Task, batch: Batch) -> None:
    run = begin(tmp_path, task, batch, {**ASKED, "command": "demo", "seed": 1})
    for name in ("front.csv", "controllers/001.json", "checkpoint/gprl.safetensors", "notes.txt"):
        run.folder(str(Path(name).parent))
        (tmp_path / name).write_text("old")
    for other in ("", "learn"):
        with pytest.raises(ClearloopError, match="already holds a run of 'clearloop demo'"):
            run.check_free(replacing=other)
    with run.claimed(replacing="demo"):
        assert (tmp_path / "front.csv").exists()  # until the new one begins
    again = begin(tmp_path, task, batch, {**ASKED, "command": "demo", "seed": 2})
    assert again.describe()["asked"]["seed"] == 2
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("[!.]*") if path.is_file()}
    assert files == {"run.json", "batch.parquet", "notes.txt"}


def test_a_file_in_the_way_is_named(tmp_path: Path, task: Task, batch: Batch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ClearloopError, match="cannot be a run directory"):
        RunDirectory(tmp_path / "file").check_free()
    with pytest.raises(ClearloopError, match="cannot be created"):
        begin(tmp_path / "file" / "run", task, batch, {})


def test_two_at_a_time_would_spoil_each_others_files(tmp_path: Path, task: Task, batch: Batch) -> None:
    run = begin(tmp_path, task, batch, {**ASKED, "command": "learn"})
    with run.held():
        with (
            pytest.raises(ClearloopError, match="another process is at work there"),
            RunDirectory(tmp_path).held(),
        ):
            pass
        with (
            pytest.raises(ClearloopError, match="another process is at work there"),
            RunDirectory(tmp_path).claimed(replacing="learn"),
        ):
            pass
        run.go_on()
    with RunDirectory(tmp_path).held():
        pass


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"status": "running"}', "[" * 100_000])
def test_a_damaged_description_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ClearloopError, match=r"run\.json: damaged"):
        RunDirectory(tmp_path).describe()


def test_a_task_of_another_version_is_one_line(tmp_path: Path, task: Task, batch: Batch) -> None:
    run = begin(tmp_path, task, batch, {**ASKED, "command": "learn"})
    assert run.task() == task
    run.write_json("run.json", {**run.describe(), "task": {"name": "x", "wishes": 3}})
    with pytest.raises(ClearloopError, match=r"run\.json: "):
        run.task()
