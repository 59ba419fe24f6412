"""`clearloop bench`: the same table on every engine, and nothing done twice."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from clearloop.bench.table import Course
from clearloop.controllers import load
from clearloop.evaluation import evaluate
from clearloop.runs import RunDirectory
from clearloop.task import Task
from tests.cli.conftest import Run
from tests.kills import differences, left_in
from tests.runs.guessing import PUSHER

SMALL = ("pusher.toml", "--method", "lqr", "--method", "fpsrl", "--seeds", "2", "--budget", "2e5")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pusher.toml").write_text(PUSHER)
    return tmp_path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bench of one experiment."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "pusher.toml").write_text(PUSHER)
    command = [sys.executable, "-m", "clearloop", "bench", *SMALL[:3], "--seeds", "1", "--out", "held"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "held"


def start(*arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "clearloop", "bench", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_bench_that_is_killed_goes_on_and_repeats_nothing(run: Run, here: Path) -> None:
    process = start(*SMALL, "--out", "killed")
    kept = here / "killed" / "experiments"
    while not list(kept.glob("*.json")):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = {file: file.stat().st_mtime_ns for file in (*kept.glob("*"), here / "killed" / "models")}
    done = run("bench", *SMALL, "--out", "killed", "--resume")
    assert done.code == 0, done.err
    assert {file: file.stat().st_mtime_ns for file in finished} == finished
    assert len(list(kept.glob("*.json"))) == 4

    _lose_a_worker(here)
    for name in ("table.csv", "controllers/best-fpsrl-1.json"):
        assert (here / "dask" / name).read_bytes() == (here / "killed" / name).read_bytes()
    _check_table(here / "killed")
    _check_show(run)
    _check_refusals(run)
    _check_more(run, here)


def _lose_a_worker(here: Path) -> None:
    """A bench on a cluster, of which one worker is killed while all are at work."""
    process = start(*SMALL, "--out", "dask", "--engine", "dask")
    while not list((here / "dask").glob("models/*/published.json")):
        assert process.poll() is None
        time.sleep(0.05)
    workers = [
        child for child in psutil.Process(process.pid).children() if "spawn_main" in str(child.cmdline())
    ]
    workers[0].kill()
    assert len(list((here / "dask").glob("experiments/*.json"))) < 4
    assert process.wait() == 0


def _check_show(run: Run) -> None:
    lines = run("show", "killed").out.splitlines()
    assert lines[2].split() == ["method", "model", "plant", "failures", "n"]
    assert [line.split()[0] for line in lines[3:5]] == ["lqr", "fpsrl"]
    assert all(len(line) <= 80 for line in lines)
    table = json.loads(run("show", "killed", "--json").out)["table"]
    assert [row["method"] for row in table] == ["lqr", "lqr", "fpsrl", "fpsrl"]


def _check_table(folder: Path) -> None:
    with (folder / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "method", "track", "seed", "penalty_model", "penalty_system", "failures_system", "complexity",
    ]  # fmt: skip
    assert [(row["method"], row["seed"]) for row in rows] == [
        ("lqr", "0"), ("lqr", "1"), ("fpsrl", "0"), ("fpsrl", "1"),
    ]  # fmt: skip
    assert rows[0] == rows[1] | {"seed": "0"}  # one batch for both
    assert rows[2]["penalty_model"] != rows[3]["penalty_model"]
    task = Task.load("pusher.toml")
    score = evaluate(load(folder / "controllers" / "best-fpsrl-1.json"), task)
    assert score.penalty == pytest.approx(float(rows[3]["penalty_system"]), rel=1e-12)
    assert "| penalty | LQR | FPSRL |" in (folder / "table.md").read_text()
    assert json.loads((folder / "run.json").read_text())["status"] == "finished"


def _check_refusals(run: Run) -> None:
    for option, value in (("--budget", "3e5"), ("--seed", "1"), ("--batch", "fresh")):
        given = [*SMALL, "--out", "killed", "--resume", option, value]
        done = run("bench", *given)
        assert done.code == 2
        assert f"was started with {option}" in done.err


def _check_more(run: Run, here: Path) -> None:
    """Without its options it is the bench that was begun; more experiments leave the others as they are."""
    before = (here / "killed" / "table.csv").read_text().splitlines()
    assert run("bench", "pusher.toml", "--out", "killed", "--resume").code == 0
    assert (here / "killed" / "table.csv").read_text().splitlines() == before
    done = run("bench", "pusher.toml", "--out", "killed", "--resume", "--seeds", "3")
    assert done.code == 0, done.err
    after = (here / "killed" / "table.csv").read_text().splitlines()
    assert [line for line in after if line.split(",")[2] != "2"] == before
    assert len(after) == len(before) + 2
    assert json.loads((here / "killed" / "run.json").read_text())["asked"]["seeds"] == 3
    assert run("bench", "pusher.toml", "--out", "killed", "--resume", "--seeds", "2").code == 0
    assert (here / "killed" / "table.csv").read_text().splitlines() == before


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("run.json", '"seeds": 1', '"seeds": Infinity', "run.json: damaged: Infinity is not a number"),
        ("run.json", '"seeds": 1', '"seeds": 0', "held: cannot be continued: run.json: damaged"),
        ("run.json", '"shared"', '"mine"', "held: cannot be continued: run.json: damaged"),
        ("run.json", '"track": "best"', '"track": "worst"', "held: cannot be continued: run.json: damaged"),
        ("run.json", '"versions": {', '"versions": [], "x": {', "run.json: damaged"),
        ("experiments/best-lqr-0.json", '"scores"', '"x"', "best-lqr-0.json: damaged: delete it"),
    ],
)
def test_damaged_files_are_one_line(
    run: Run, here: Path, small: Path, file: str, old: str, new: str, message: str
) -> None:
    shutil.copytree(small, here / "held")
    text = (here / "held" / file).read_text()
    assert old in text
    (here / "held" / file).write_text(text.replace(old, new))
    (here / "held" / "table.csv").unlink()
    text = (here / "held" / "run.json").read_text()
    (here / "held" / "run.json").write_text(text.replace('"finished"', '"interrupted"'))
    done = run("bench", "pusher.toml", "--out", "held", "--resume")
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") <= 2


@pytest.mark.parametrize("lost", [("batch.parquet",), ("table.csv", "table.md", "timing.csv")])
def test_what_a_killed_bench_had_not_written_is_written_later(
    run: Run, here: Path, small: Path, lost: tuple[str, ...]
) -> None:
    shutil.copytree(small, here / "held")
    before = left_in(here)
    for name in lost:
        (here / "held" / name).unlink()
    text = (here / "held" / "run.json").read_text()
    (here / "held" / "run.json").write_text(text.replace('"finished"', '"running"'))
    assert run("bench", "pusher.toml", "--out", "held", "--resume").code == 0
    assert differences(left_in(here), before) == []


def test_a_bench_does_not_go_on_with_another_batch(run: Run, here: Path, small: Path) -> None:
    shutil.copytree(small, here / "held")
    assert run("data", "make", "pusher.toml", "--seed", "9", "--out", "held/batch.parquet").code == 0
    done = run("bench", "pusher.toml", "--out", "held", "--resume", "--seeds", "2")
    assert done.code == 2
    assert "held: was started with other data than held/batch.parquet holds now" in done.err


def test_a_bench_and_a_run_do_not_go_on_as_each_other(run: Run, here: Path) -> None:
    for command, other in (("learn", "bench"), ("bench", "learn")):
        folder = here / command
        folder.mkdir()
        run_json = {
            "status": "interrupted",
            "asked": {
                "command": command,
                "task": "x",
                "methods": {},
                "budget": 1,
                "track": "best",
                "seed": 0,
            },
            "data": {"fingerprint": "", "summary": ""},
            "versions": {},
            "task": {"name": "x", "actions": {"push": {}}},
        }
        (folder / "run.json").write_text(json.dumps(run_json))
        done = run(other, "pusher.toml", "--out", command, "--resume")
        assert done.code == 2
        assert f"holds a run of 'clearloop {command}', which this command cannot continue" in done.err


def test_only_one_process_works_on_a_bench(run: Run, here: Path, small: Path) -> None:
    shutil.copytree(small, here / "held")
    with RunDirectory(here / "held").held():
        done = run("bench", "pusher.toml", "--out", "held", "--resume", "--seeds", "2")
    assert done.code == 2
    assert "another process is at work there" in done.err
    assert RunDirectory(here / "held").describe()["status"] == "finished"


def test_how_to_go_on_after_ctrl_c(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "my task.toml").write_text(PUSHER)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Course, "go", interrupt)
    monkeypatch.setattr(os, "_exit", sys.exit)
    done = run("bench", "my task.toml", "--seeds", "1", "--method", "lqr", "--out", "a b")
    assert done.code == 130
    assert "to continue: clearloop bench 'my task.toml' --out 'a b' --resume" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ("--engine", "spark"),
            "--engine spark: expected local, dask, or dask:ADDRESS with the address of a scheduler",
        ),
        (("--batch", "mine"), "--batch mine: expected shared or fresh"),
        (("--track", "worst"), "track"),
        (("--method", "gprk"), "did you mean 'gprl'"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, here: Path, given: tuple[str, str], message: str) -> None:
    done = run("bench", "pusher.toml", "--out", "new", *given)
    assert done.code == 2
    assert message in done.err
    assert not (here / "new").exists()


def test_without_a_plant_there_is_nothing_to_compare_on(run: Run, here: Path) -> None:
    (here / "bare.toml").write_text(PUSHER[: PUSHER.index("[exploration]")])
    done = run("bench", "bare.toml")
    assert done.code == 2
    assert "has no [plant] with equations" in done.err
