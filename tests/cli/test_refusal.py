"""`clearloop learn` on logs and models that cannot support a controller."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clearloop.cli import learn
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.surrogate import Surrogate, Track
from clearloop.task import Task
from tests.cli.conftest import Done, Run
from tests.runs.guessing import PUSHER, linear_model, make_quick
from tests.surrogate.models import linear_network

QUICK = ("--method", "guess", "--budget", "4e5")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with a small task, which is the current one; models are had in a moment."""
    make_quick(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pusher.toml").write_text(PUSHER)
    return tmp_path


def error(done: Done) -> str:
    assert done.code == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    return line.removeprefix("error: ")


def write_log(name: str, law: Callable[[float, float], float], rows: int = 15) -> None:
    """Of the pusher, from many places, pushed by a law."""
    rng = np.random.default_rng(0)
    lines = ["episode,place,speed,push"]
    for episode in range(40):
        place, speed = rng.uniform(-2, 2), rng.uniform(-1, 1)
        for _ in range(rows):
            push = float(np.clip(law(place, speed), -2, 2))
            lines.append(f"{episode},{place},{speed},{push}")
            place, speed = place + 0.1 * speed, 0.98 * speed + 0.3 * push
    Path(name).write_text("\n".join(lines))


def test_a_log_that_cannot_support_a_controller_is_refused(run: Run, here: Path) -> None:
    write_log("law.csv", lambda place, speed: -0.1 * place - 0.2 * speed)
    message = error(run("learn", "pusher.toml", "--data", "law.csv", *QUICK))
    assert message.startswith(
        "law.csv: no controller can be learned from this data: push never varies independently"
    )
    assert "random signal added" in message
    assert not (here / "runs").exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("rows", [[1], [1, 2, 3], range(1, 600, 15)])
def test_an_action_that_only_begins_otherwise_is_refused_as_constant(run: Run, rows: Sequence[int]) -> None:
    write_log("law.csv", lambda *_: 0.5)
    lines = Path("law.csv").read_text().splitlines()
    for row in rows:
        lines[row] = lines[row].removesuffix("0.5") + "0.7"
    Path("law.csv").write_text("\n".join(lines))
    for command in ("learn pusher.toml --data law.csv", "data check law.csv --task pusher.toml"):
        done = run(*command.split())
        assert done.code in (1, 2)
        assert "push never changes, except in the first or last" in " ".join((done.out + done.err).split())


@pytest.mark.usefixtures("here")
def test_force_goes_on_and_says_so(run: Run) -> None:
    write_log("law.csv", lambda place, speed: -0.1 * place - 0.2 * speed)
    done = run("learn", "pusher.toml", "--data", "law.csv", *QUICK, "--force", "--out", "run")
    assert done.code == 0, done.err
    assert "but the search is forced" in done.err
    assert "FORCED" in done.out
    (doubt,) = json.loads(Path("run/run.json").read_text())["doubts"]
    assert doubt["code"] == "determined-action"
    assert json.loads(run("show", "run", "--json").out)["doubts"] == [doubt]


@pytest.mark.usefixtures("here")
def test_doubts_are_noted_with_the_first_file_of_a_forced_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed right after it has begun, and continued, must not forget them."""

    def die(*_: object) -> None:
        raise ClearloopError("no further")

    write_log("law.csv", lambda place, speed: -0.1 * place - 0.2 * speed)
    with monkeypatch.context() as patch:
        patch.setattr(Batch, "save", die)
        assert run("learn", "pusher.toml", "--data", "law.csv", *QUICK, "--force", "--out", "run").code == 2
    (doubt,) = json.loads(Path("run/run.json").read_text())["doubts"]
    assert doubt["code"] == "determined-action"


@pytest.mark.usefixtures("here")
def test_all_reasons_are_listed(run: Run) -> None:
    Path("few.csv").write_text("place,speed,push\n" + "\n".join(f"{i % 7},{i % 5},0.5" for i in range(60)))
    done = run("learn", "pusher.toml", "--data", "few.csv", *QUICK)
    assert done.code == 2
    first, *reasons, last = done.err.splitlines()
    assert first == "No controller can be learned from this data:"
    assert {"size", "constant-action"} <= {line.strip().split(":")[0] for line in reasons}
    assert last.startswith("error: few.csv: no controller can be learned from this data: ")


@pytest.mark.usefixtures("here")
def test_a_model_that_predicts_nothing_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def useless(task: Task, batch: Batch, track: Track, seed: int) -> Surrogate:
        model = linear_model(task, batch, track, seed)
        wrong = tuple(tuple(linear_network(np.zeros(3), 0.3) for _ in member) for member in model.dynamics)
        return replace(model, dynamics=wrong)

    with monkeypatch.context() as patch:
        patch.setattr(learn, "learn_model", useless)
        done = run("learn", "pusher.toml", *QUICK, "--out", "run")
    assert done.code == 2
    assert "place cannot be predicted from this log" in done.err
    description = json.loads(Path("run/run.json").read_text())
    assert description["status"] == "refused"
    assert description["doubts"][0]["code"] == "unpredictable"
    assert "no controller can be learned from its data" in error(run("show", "run"))
    resumed = run("learn", "pusher.toml", "--out", "run", "--resume").err
    assert "no controller can be learned from this data" in resumed
    assert run("learn", "pusher.toml", *QUICK, "--out", "run").code == 0  # what was refused can be replaced


@pytest.mark.usefixtures("here")
def test_the_log_itself_stands_beside_the_front(run: Run) -> None:
    rng = np.random.default_rng(1)
    write_log("random.csv", lambda *_: float(rng.uniform(-2, 2)), rows=40)
    done = run("learn", "pusher.toml", "--data", "random.csv", *QUICK, "--out", "run")
    assert done.code == 0, done.err
    assert "The log " in done.out
    document = json.loads(run("show", "run", "--json").out)
    assert document["doubts"] == []
    assert document["log"]["kind"] == "log"
    assert document["log"]["penalty"] > 0
    assert [row["controller"] for row in document["trust"]] == [
        row["controller"] for row in document["front"]
    ]
    for row in document["trust"]:
        assert 0 <= row["outside"] <= 1
        assert row["from_log"] > 0
        assert bool(row["warnings"]) == (row["outside"] > 0.1)
        assert not row["warnings"] or f"Beware     {row['controller']}" in done.out
