"""A task with ready terms and an action in whole steps, all the way: batch, search, files, simulation."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from clearloop.controllers import load
from clearloop.evaluation import simulate
from clearloop.expression import to_text
from clearloop.task import Task
from tests.cli.conftest import Run
from tests.runs.guessing import PUSHER, make_quick
from tests.task.texts import edited

CASES = PUSHER[PUSHER.index("cases = [") : PUSHER.index("[starts]")]
TERMS = """
terms = [
  { track = "place", tolerance = 0.1, weight = 2 },
  { settle = "place", within = 0.2, slower_than = 0.5, weight = 0.1 },
  { rate = "push", weight = 0.1 },
]
failure = "abs(place) > 3"
failure_value = -20
"""
TEXT = edited(
    (CASES, TERMS),
    ("horizon = 15", "horizon = 15\nhistory = 2"),
    ('place = { unit = "m" }', 'place = { unit = "m", setpoint = 0.25 }'),
    ("limits = [-2, 2]", "limits = [-2, 2], step = 0.5"),
    text=PUSHER,
)


@pytest.fixture
def learned(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    make_quick(monkeypatch)
    monkeypatch.chdir(tmp_path)
    Path("pusher.toml").write_text(TEXT)
    done = run(
        "learn", "pusher.toml", "--method", "guess", "--method", "lqr", "--budget", "4e5", "--out", "run"
    )
    assert done.code == 0, done.err
    return tmp_path / "run"


def test_from_the_task_file_to_the_plant(run: Run, learned: Path) -> None:
    task = Task.load("pusher.toml")
    pushes = pl.read_parquet(learned / "batch.parquet")["push"].drop_nulls().unique().sort().to_list()
    assert pushes == [-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2]
    assert Task.from_dict(json.loads((learned / "run.json").read_text())["task"]) == task
    front = pl.read_csv(learned / "front.csv", schema_overrides={"controller": pl.String})
    assert {"guess", "lqr"} & set(front["method"])
    for name in front["controller"]:
        file = learned / "controllers" / f"{name}.json"
        controller = load(file)
        assert controller.steps == {"push": 0.5}
        assert "push is limited to -2 … 2 N in steps of 0.5." in run("show", file).out
        course = simulate(controller, task, start={"place": 1.5, "speed": 0.0}, steps=10)
        actions = np.asarray(course.actions).ravel()
        assert set((actions / 0.5).tolist()) <= set(range(-4, 5))
        assert run("evaluate", file, "--task", "pusher.toml", "--starts", "8").code == 0


def test_what_is_paid_is_what_the_terms_say(run: Run, learned: Path) -> None:
    task = Task.load("pusher.toml")
    batch = pl.read_parquet(learned / "batch.parquet")
    rows = batch.with_columns(
        after=pl.col("place").shift(-1).over("episode"),
        before=pl.col("push").shift(1, fill_value=0.0).over("episode"),
    ).drop_nulls("after")
    away = (rows["after"] - 0.25).abs().to_numpy()
    moved = (rows["after"] - rows["place"]).abs().to_numpy()
    costs = 2 * np.maximum(away - 0.1, 0) + 0.1 * ((away > 0.2) | (moved > 0.05))
    costs += 0.1 * (rows["push"] - rows["before"]).abs().to_numpy() / 4
    expected = np.where(rows["after"].abs().to_numpy() > 3, -20, -costs)
    np.testing.assert_allclose(rows["reward"].to_numpy(), expected, rtol=0, atol=1e-9)
    assert (expected == -20).any()
    assert task.reward_expression is not None
    assert to_text(task.reward_expression) in " ".join(run("tasks", "pusher.toml").out.split())
