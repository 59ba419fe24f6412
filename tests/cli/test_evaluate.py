"""`clearloop evaluate --on batch`."""

import json
from pathlib import Path

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
