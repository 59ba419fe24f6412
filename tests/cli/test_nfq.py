"""NFQ on the command line: its run, its learning curve, and its controllers in the other commands."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from clearloop.controllers import GreedyQ, load
from tests.cli.conftest import Run
from tests.runs.guessing import PUSHER, make_quick

SMALL = ("--set", "nfq.hidden=8", "--set", "nfq.iterations=6", "--set", "nfq.epochs=10")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def learned(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: Path) -> Path:
    """`clearloop learn --method nfq`, the same for all tests."""
    make_quick(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pusher.toml").write_text(PUSHER)
    if not (store / "run").exists():
        done = run("learn", "pusher.toml", "--method", "nfq", *SMALL, "--out", "run")
        assert done.code == 0, done.err
        shutil.copytree("run", store / "run")
    return Path(shutil.copytree(store / "run", "run", dirs_exist_ok=True))


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_front_holds_what_was_selected_and_the_last_stands_beside_it(learned: Path) -> None:
    (row,) = table(learned / "front.csv")
    assert (row["controller"], row["method"]) == ("001", "nfq")
    assert row["formula"] == "best of 9 actions by a Q network 3-8-1"
    selected, last = (load(learned / "controllers" / f"{name}.json") for name in ("001", "nfq-last"))
    assert [one.name for one in (selected, last)] == ["nfq-selected", "nfq-last"]
    for controller in (selected, last):
        assert isinstance(controller, GreedyQ)
        assert controller.limits == {"push": (-2.0, 2.0)}
        assert controller.outputs["push"] == (-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2)


def test_the_learning_curve_has_every_iterate(learned: Path) -> None:
    rows = table(learned / "progress.csv")
    assert len(rows) == 6
    latest, best = ([float(row[name]) for row in rows] for name in ("latest", "best"))
    assert best == [min(latest[: n + 1]) for n in range(6)]
    assert len(set(latest)) > 1


@pytest.mark.parametrize("name", ["001", "nfq-last"])
def test_its_controllers_are_shown_scored_and_simulated(run: Run, learned: Path, name: str) -> None:
    file = learned / "controllers" / f"{name}.json"
    shown = run("show", file)
    assert shown.code == 0, shown.err
    assert "push is one of 9 values, -2 … 2 N." in shown.out
    for place in (("--on", "system"), ("--on", "model", "--run", learned)):
        scored = run("evaluate", file, "--task", "pusher.toml", *place, "--starts", 32, "--json")
        assert scored.code == 0, scored.err
        assert 0 <= json.loads(scored.out)["penalty"]["mean"] < 10
        made = run("simulate", file, "--task", "pusher.toml", *place, "--steps", 5, "--out", "path.csv")
        assert made.code == 0, made.err
        pushes = [float(row["push"]) for row in table(Path("path.csv")) if row["step"] != "5"]
        assert len(pushes) % 5 == 0
        assert all(push in (-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2) for push in pushes)


def test_the_front_is_shown(run: Run, learned: Path) -> None:
    done = run("show", learned)
    assert done.code == 0, done.err
    assert "best of 9 actions by a Q network 3-8-1" in " ".join(done.out.split())
