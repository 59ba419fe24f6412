"""A run that is stopped at any moment and goes on: the same bytes as one that was not."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clearloop.cli import learn as learn_command
from clearloop.runs import learning
from clearloop.runs.directory import read_state
from tests.cli.conftest import Done, Run
from tests.runs.guessing import PUSHER, make_quick

ROOT = Path(__file__).parents[2]
GP = ("gp.islands=5,9", "gp.population=6", "gp.offspring=6", "rounds.promoted=2")
ASKED = (
    "--method", "guess", "--method", "gprl", "--budget", "1e6", "--seed", "3",
    *(word for setting in GP for word in ("--set", f"gprl.{setting}")),
)  # fmt: skip

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture
def learn(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """`clearloop learn` of a small task, with a checkpoint after every round."""
    make_quick(monkeypatch)
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.chdir(tmp_path)
    Path("pusher.toml").write_text(PUSHER)
    return lambda *words: run("learn", "pusher.toml", *words)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def whole(learn: Run, store: Path) -> Path:
    """A run that nothing happened to; the same for all tests. What it said is in `said`."""
    if not (store / "said").exists():
        done = learn(*ASKED, "--out", store / "run")
        assert done.code == 0, done.err
        (store / "said").write_text(done.out)
    return store / "run"


def stopped(place: str) -> Done:
    """In a process of its own, in the current folder."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.runs.program", "learn", "pusher.toml", *ASKED, "--out", "run"],
        env={**os.environ, "KILL_AT": place, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def outcome(run: Path) -> dict[str, bytes]:
    files = [run / "front.csv", run / "judged.csv", *sorted((run / "controllers").iterdir())]
    return {file.name: file.read_bytes() for file in files}


def progress(run: Path) -> list[str]:
    """Without the seconds."""
    return [row.rpartition(",")[0] for row in (run / "progress.csv").read_text().splitlines()]


def timing(run: Path) -> list[tuple[str, ...]]:
    """Without the seconds."""
    rows = [row.split(",") for row in (run / "timing.csv").read_text().splitlines()]
    return [(phase, method, steps) for phase, method, _, steps in rows]


@pytest.mark.parametrize(
    "place",
    [
        "batch.parquet:1",  # before anything was learned
        "timing.csv:1",  # before it was noted how long the batch took
        "timing.csv:3",  # and how long the first search
        "progress.csv:3",
        "guess.safetensors:3",
        "gprl.safetensors:2",
        "front.csv:1",  # when all was found, and not all written
    ],
)
def test_killed_and_resumed_is_as_if_nothing_had_happened(
    learn: Run, whole: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    assert stopped(place).code == -signal.SIGKILL
    assert json.loads(Path("run/run.json").read_text())["status"] == "running"
    if place.startswith("gprl"):
        assert "result" in read_state(Path("run/checkpoint/guess.safetensors"))
        assert "learning" in read_state(Path("run/checkpoint/gprl.safetensors"))
    monkeypatch.setenv("CLEARLOOP_THREADS", "1")
    resumed = learn("--out", "run", "--resume")
    assert resumed.code == 0, resumed.err
    assert outcome(Path("run")) == outcome(whole)
    assert progress(Path("run")) == progress(whole)
    assert timing(Path("run")) == timing(whole)
    said = (whole.parent / "said").read_text().replace(str(whole), "run")
    assert resumed.out.partition("\n\n")[2] == said.partition("\n\n")[2]
    now, then = (json.loads((path / "run.json").read_text()) for path in (Path("run"), whole))
    assert now == then | {"begun": now["begun"]}
    left = {path.name for path in Path("run").rglob("*")}
    assert left == {path.name for path in whole.rglob("*")}
    assert "checkpoint" not in left


def test_ctrl_c_keeps_the_round_and_says_how_to_go_on(learn: Run, whole: Path) -> None:
    done = stopped(f"guess.safetensors:2:{int(signal.SIGINT)}")
    assert done.code == 130
    assert (
        done.err.splitlines()[-1]
        == "interrupted; to continue: clearloop learn pusher.toml --out run --resume"
    )
    assert done.out.splitlines()[0].startswith("Batch")
    assert json.loads(Path("run/run.json").read_text())["status"] == "interrupted"
    state = read_state(Path("run/checkpoint/guess.safetensors"))
    assert state["learning"]["search"]["round"] == 2  # the one after which it was asked
    refused = learn(*ASKED, "--out", "run")
    assert refused.code == 2
    assert "run: already holds a run of 'clearloop learn'" in refused.err
    assert learn("--out", "run", "--resume").code == 0
    assert outcome(Path("run")) == outcome(whole)


def test_ctrl_c_in_the_report_leaves_a_finished_run(
    learn: Run, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(learn_command, "make_report", stop)
        patch.setattr(os, "_exit", sys.exit)
        done = learn(*ASKED, "--out", "run")
    assert done.code == 130
    assert done.err.splitlines()[-1].startswith("interrupted; to continue: clearloop learn pusher.toml")
    assert json.loads(Path("run/run.json").read_text())["status"] == "finished"
    resumed = learn("--out", "run", "--resume")
    assert resumed.code == 0
    assert resumed.err == "run: the run is finished; these missing files are written now: report.html\n"
    assert outcome(Path("run")) == outcome(whole)
    assert Path("run/report.html").exists()


def test_what_a_killed_run_lacks_is_made_and_said(learn: Run, whole: Path) -> None:
    run = Path("lacking")
    shutil.copytree(whole, run)
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text.replace('"command": "learn"', '"command": "demo"'))
    lacking = ["model.png", "report.html", "trajectories.png"]
    for name in lacking:
        (run / name).unlink(missing_ok=True)
    for name in (".report.html.1.partial", "checkpoint/guess.safetensors", "candidates.csv"):
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn_command, "_draw", lambda _, run: (run.path / "trajectories.png").touch())
        resumed = learn("--out", run, "--resume")
        again = learn("--out", run, "--resume")
    assert resumed.code == 0
    assert (
        " ".join(resumed.err.split())
        == f"lacking: the run is finished; these missing files are written now: {', '.join(lacking)}"
    )
    assert all((run / name).exists() for name in lacking)
    assert not list(run.glob(".*.partial")) + list(run.glob("checkpoint")) + list(run.glob("candidates.csv"))
    assert (again.code, again.err, again.out) == (0, "", resumed.out)
