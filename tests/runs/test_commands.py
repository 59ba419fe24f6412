"""`clearloop model` and `clearloop demo`: from a log to a model, and what is said about it."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clearloop.data import Batch
from clearloop.runs import RunDirectory
from clearloop.surrogate import Surrogate
from clearloop.task import Task

LQR = Path(__file__).parents[2] / "examples" / "published" / "lqr.json"
ON_THE_MODEL = (LQR, "--task", "cartpole", "--on", "model", "--run")


def clearloop(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clearloop", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("runs") / "demo"
    result = clearloop("demo", "--budget", "2e7", "--out", out)
    assert result.returncode == 0, result.stderr
    return out, result.stdout


def test_demo_compares_promises_with_the_plant(demo: tuple[Path, str]) -> None:
    out, said = demo
    lines = said.splitlines()
    assert lines[0].startswith("Batch      10,000 transitions in 783 episodes")
    assert lines[1] == "Surrogate  10 models of the plant: good"
    assert "Published  GPRL equation 2.90, PID 3.00, LQR 3.12 on the plant" in lines
    (title,) = (number for number, line in enumerate(lines) if line.startswith("no.  complexity"))
    assert lines[title + 1][:3].isdigit()
    assert any(line.startswith("Promise    the pick promises ") for line in lines)
    assert all(len(line) <= 80 for line in lines if str(out) not in line)
    with (out / "front.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            assert abs(float(row["penalty_model"]) / float(row["penalty_system"]) - 1) < 0.05


def test_demo_leaves_a_run(demo: tuple[Path, str]) -> None:
    out, said = demo
    task = Task.load("cartpole")
    description = json.loads((out / "run.json").read_text())
    assert description["status"] == "finished"
    assert description["asked"]["command"] == "demo"
    assert json.loads((out / "quality.json").read_text())["verdict"] == "good"
    assert Surrogate.load(out / "surrogate", task).members == 10
    for name in ("model.png", "trajectories.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    shown = clearloop("show", out)
    assert shown.stdout in said
    pick = clearloop("show", out / "controllers" / f"{description['pick']['controller']}.json")
    assert "force is limited to -10 … 10 N." in pick.stdout


def test_a_new_run_in_its_place_finds_no_file_of_it(demo: tuple[Path, str], tmp_path: Path) -> None:
    """What a run finds it takes for its own, and --resume does not make it again."""
    task, run = Task.load("cartpole"), RunDirectory(Path(shutil.copytree(demo[0], tmp_path / "run")))
    assert (run.path / "replays.png").exists()
    asked = {"command": "demo", "task": "cartpole", "methods": {}, "budget": 1, "track": "best", "seed": 0}
    with run.claimed(replacing="demo"):
        run.begin(task, Batch.load(run.path / "batch.parquet", task), asked)
    left = {file.relative_to(run.path).as_posix() for file in run.path.rglob("*") if file.is_file()}
    assert left - {".lock"} == {"run.json", "batch.parquet", "surrogate/surrogate.safetensors"}


def test_evaluate_on_the_model_of_a_run(demo: tuple[Path, str]) -> None:
    out, _ = demo
    result = clearloop("evaluate", *ON_THE_MODEL, out, "--json")
    score = json.loads(result.stdout)
    assert score["on"] == "model"
    assert score["starts"] == 1024
    assert abs(score["penalty"]["mean"] / 3.116 - 1) < 0.04


def test_simulate_on_the_model_shows_every_member(demo: tuple[Path, str]) -> None:
    out, _ = demo
    result = clearloop("simulate", *ON_THE_MODEL, out, "--steps", "5")
    header, *rows = result.stdout.splitlines()
    assert header.startswith("member,step,time,theta")
    assert len(rows) == 10 * 6


def test_model_from_a_users_log(tmp_path: Path) -> None:
    log, out = tmp_path / "log.csv", tmp_path / "run"
    assert clearloop("data", "make", "cartpole", "--size", "2000", "--out", log).returncode == 0
    result = clearloop("model", "cartpole", "--data", log, "--track", "published", "--out", out, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["verdict"] in ("good", "fair", "poor")
    assert Surrogate.load(out / "surrogate", Task.load("cartpole")).track.name == "published"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--track", "bets"], "--track bets: expected best or published"),
        (["--data", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_model_refuses_in_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    result = clearloop("model", "cartpole", *words, "--out", tmp_path / "run")
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_run_without_a_model_is_named(tmp_path: Path) -> None:
    result = clearloop("evaluate", *ON_THE_MODEL, tmp_path)
    assert result.returncode == 2
    assert str(tmp_path) in result.stderr
