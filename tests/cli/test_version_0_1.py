"""What version 0.1 left behind is opened by every later version: a finished run, one that was interrupted,
and a controller of every kind. `expected.json` holds what version 0.1 itself made of them.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import clearloop as cl
from clearloop.cli import learn
from tests.cli.conftest import Run

KEPT = Path(__file__).parents[1] / "version_0_1"
EXPECTED: dict[str, Any] = json.loads((KEPT / "expected.json").read_text())
CONTROLLERS = sorted(file.stem for file in (KEPT / "controllers").glob("*.json"))


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that may be written to; the working directory."""
    folder = tmp_path / "kept"
    shutil.copytree(KEPT, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", EXPECTED["actions"])
def test_controllers_act_as_they_did(name: str) -> None:
    controller = cl.load(KEPT / "controllers" / f"{name}.json").for_task(cl.Task.load("cartpole"))
    memory = controller.reset()
    for observation, action in zip(EXPECTED["observations"], EXPECTED["actions"][name], strict=True):
        assert controller.act(observation, memory) == pytest.approx(action, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", CONTROLLERS)
def test_controllers_cost_what_they_did(name: str, kept: Path, run: Run) -> None:
    file, expected = kept / "controllers" / f"{name}.json", EXPECTED["evaluations"][name]
    done = run("evaluate", file, "--task", "cartpole", "--starts", expected["starts"], "--json")
    found = json.loads(done.out)
    assert found["penalty"] == pytest.approx(expected["penalty"], rel=1e-9)
    assert (found["on"], found["failures"]) == (expected["on"], expected["failures"])


@pytest.mark.parametrize("name", CONTROLLERS)
def test_controllers_are_shown_and_exported(name: str, kept: Path, run: Run) -> None:
    file = kept / "controllers" / f"{name}.json"
    assert run("show", file).code == 0
    assert json.loads(run("show", file, "--json").out)["kind"] == cl.load(file).kind
    done = run("export", file, "--to", "python", "--out", "law.py")
    assert done.code == (2 if name == "planner" else 0)


def test_the_finished_run_is_shown_reported_and_refined(kept: Path, run: Run) -> None:
    assert "007" in run("show", "finished").out
    pick = json.loads(run("show", "finished", "--json").out)
    assert len(pick["front"]) == 7
    assert run("report", "finished").code == 0
    assert (kept / "finished" / "report.html").stat().st_size > 100_000
    assert run("card", "007", "--run", "finished").code == 0
    done = run("evaluate", "007", "--run", "finished", "--on", "model", "--json")
    assert json.loads(done.out)["penalty"]["mean"] == pytest.approx(2.635968817488067, rel=1e-9)
    assert run("export", "007", "--run", "finished", "--to", "st", "--out", "law.st").code == 0
    assert run("verify", "007", "--run", "finished", "--to", "python").code == 0


def test_the_interrupted_run_is_resumed(kept: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learn, "make_report", lambda run: run.path)  # the finished run has one made, above
    done = run("learn", "cartpole", "--out", "interrupted", "--resume")
    assert done.code == 0, done.err
    assert json.loads((kept / "interrupted" / "run.json").read_text())["status"] == "finished"
    for name in ("controllers/002.json", "controllers/007.json"):
        assert (kept / "interrupted" / name).read_bytes() == (kept / "finished" / name).read_bytes()
    new, old = (
        (kept / folder / "front.csv").read_text().splitlines() for folder in ("interrupted", "finished")
    )
    commas = old[0].count(",")
    later = new[0].split(",")[commas + 1 :]
    assert later == [
        "penalty_low", "penalty_high", "penalty_disturbed",
        "phase_margin", "gain_margin", "delay_margin", "ms", "robust",
    ]  # fmt: skip
    assert [row.rsplit(",", len(later))[0] for row in new] == old
