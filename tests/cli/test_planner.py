"""A planner on the command line: evaluated, simulated and shown like any other controller."""

import csv
import io
import json
from pathlib import Path

import pytest

from clearloop.controllers import save
from tests.cli.conftest import Run
from tests.evaluation.planners import make_model, make_planner
from tests.plants.mixer import TEXT


@pytest.fixture
def planner(tmp_path: Path) -> Path:
    """Of the mixer, in a run with its model."""
    make_model("mixer").save(tmp_path / "surrogate")
    (tmp_path / "controllers").mkdir()
    (tmp_path / "mixer.toml").write_text(TEXT, encoding="utf-8")
    save(make_planner("mixer", horizon=4, rounds=2), tmp_path / "controllers" / "001.json")
    return tmp_path / "controllers" / "001.json"


def test_evaluate_on_the_plant_and_on_the_model(run: Run, planner: Path) -> None:
    folder = planner.parents[1]
    words = ("evaluate", planner, "--task", folder / "mixer.toml", "--starts", 4, "--json")
    plant = run(*words)
    assert plant.code == 0, plant.err
    model = run(*words, "--on", "model", "--run", folder)
    scores = [json.loads(done.out) for done in (plant, model)]
    assert [score["on"] for score in scores] == ["system", "model"]
    assert scores[0]["penalty"]["mean"] == pytest.approx(scores[1]["penalty"]["mean"], abs=1e-9)
    assert scores[0]["starts"] == 4


def test_simulate_and_show(run: Run, planner: Path) -> None:
    task = planner.parents[1] / "mixer.toml"
    done = run("simulate", planner, "--task", task, "--start", "level=0.5", "--steps", 6)
    assert done.code == 0, done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert len(rows) == 7
    assert float(rows[0]["level"]) == 0.5
    assert len({row["inlet"] for row in rows[:-1]}) > 1
    shown = run("show", planner, "--task", task)
    assert "looks 4 steps ahead (2 s)" in shown.out


def test_a_run_that_is_gone_is_one_line(run: Run, planner: Path) -> None:
    (planner.parents[1] / "surrogate" / "surrogate.json").unlink()
    done = run("evaluate", planner, "--task", planner.parents[1] / "mixer.toml", "--starts", 1)
    assert done.code == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("error: planner: there is no model in its run '..': ")
    assert "surrogate.json: cannot be read: No such file" in line
