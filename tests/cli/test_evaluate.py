"""`clearloop evaluate --on batch`."""

import json
from pathlib import Path

import polars as pl
import pytest

from clearloop.controllers import save
from tests.cli.conftest import Run
from tests.evaluation.corridor import CORRIDOR, TEXT, WARY, batch

ON_BATCH = ("evaluate", "wary.json", "--task", "corridor.toml", "--on", "batch")


@pytest.fixture
def corridor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corridor.toml").write_text(TEXT, encoding="utf-8")
    save(WARY.for_task(CORRIDOR), tmp_path / "wary.json")
    batch().save(tmp_path / "batch.parquet")
    return tmp_path


@pytest.mark.parametrize("approximator", ["trees", "networks"])
@pytest.mark.usefixtures("corridor")
def test_json_as_the_contract_says(run: Run, approximator: str) -> None:
    options = ("--data", "batch.parquet", "--approximator", approximator, "--starts", "8", "--json")
    done = run(*ON_BATCH, *options)
    document = json.loads(done.out)
    assert done.code == 0
    assert list(document) == ["task", "on", "starts", "penalty", "failures"]
    assert (document["task"], document["on"], document["starts"]) == ("corridor", "batch", 8)
    assert document["failures"] is None
    assert 0 < document["penalty"]["mean"] < 7.2
    assert document["penalty"]["se"] > 0
    assert run(*ON_BATCH, *options).out == done.out
    assert run(*ON_BATCH, *options, "--seed", "1").out != done.out


def test_the_batch_of_a_run(run: Run, corridor: Path) -> None:
    trees = ("--approximator", "trees")
    line = run(*ON_BATCH, *trees, "--run", corridor).out
    assert line == run(*ON_BATCH, *trees, "--data", "batch.parquet").out
    assert line.startswith("penalty   ")
    assert line.endswith("(from the batch alone, 1,024 starts)\n")


def test_a_task_with_a_plant_makes_its_own_batch(run: Run, tmp_path: Path, published: Path) -> None:
    task = tmp_path / "short.toml"
    text = (Path(__file__).parents[2] / "src/clearloop/tasks/cartpole.toml").read_text(encoding="utf-8")
    task.write_text(text.replace("horizon = 100", "horizon = 2"), encoding="utf-8")
    command = (
        "evaluate",
        published / "none.json",
        "--task",
        task,
        "--on",
        "batch",
        "--approximator",
        "trees",
    )
    done = run(*command, "--seed", "7")
    assert done.code == 0
    assert "The task's plant made a batch with --seed 7: 10,000 transitions" in done.err.replace("\n", " ")
    assert 0.05 < float(done.out.split()[1]) < 0.5


AIMED = """
name = "aimed"
dt = 1.0
discount = 0.9
horizon = 5
[states]
y = { setpoint = "wanted" }
[actions]
u = { limits = [0, 100] }
[reward]
expression = "-abs(y.error)"
"""


def test_a_log_with_setpoints_of_its_own_is_evaluated_at_their_median(run: Run, tmp_path: Path) -> None:
    rows = pl.int_range(400, eager=True)
    columns = {"y": 50 + (rows * 7) % 13, "u": (rows * 37) % 101, "wanted": 50 + 10 * (rows // 150)}
    log = pl.DataFrame(columns)
    controllers = tmp_path / "done" / "controllers"
    controllers.mkdir(parents=True)
    log.write_parquet(tmp_path / "done" / "batch.parquet")
    (tmp_path / "aimed.toml").write_text(AIMED)
    (controllers / "001.json").write_text(
        '{"clearloop": 1, "kind": "equation", "outputs": {"u": "50 - 2*y"}}'
    )
    options = ["--task", str(tmp_path / "aimed.toml"), "--on", "batch", "--approximator", "trees"]
    done = run("evaluate", "001", "--run", str(tmp_path / "done"), *options)
    assert done.code == 0
    assert "The estimate is for one setpoint, the median of the log: y = 60" in " ".join(done.err.split())
    alone = run("evaluate", str(controllers / "001.json"), *options)
    assert "has no [plant]" in alone.err
    (tmp_path / "done" / "run.json").write_text("{}")
    assert run("evaluate", str(controllers / "001.json"), *options).out == done.out
