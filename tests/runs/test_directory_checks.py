"""What is checked before a run goes on, and what it then has."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.methods.lqr import LQR
from clearloop.methods.method import find_method
from clearloop.plants.exploration import make_batch
from clearloop.runs import Request, RunDirectory, directory
from clearloop.runs.directory import changed_settings, read_table, settings_of, write_table
from clearloop.task import Task

TASK = Task.load("cartpole")
REQUEST = Request(
    command="learn", task="cartpole", data=("a.csv", "b.csv"), methods=(find_method("lqr")(),), budget=20_000,
    track="published", value="batch", seed=7,
)  # fmt: skip


def batch(seed: int = 0) -> Batch:
    return make_batch(TASK, rng=np.random.default_rng(seed), size=30)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    found = RunDirectory(tmp_path / "run")
    with found.claimed():
        found.begin(TASK, batch(), REQUEST.to_dict())
    return found


def test_a_request_is_read_as_it_was_written(run: RunDirectory) -> None:
    asked = run.describe()["asked"]
    assert Request.from_dict(asked) == REQUEST
    assert asked["data"] == ["a.csv", "b.csv"]
    for name in asked.keys() - {"robust", "stay"}:  # version 0.1 did not ask
        with pytest.raises(ClearloopError, match="does not say what was asked"):
            Request.from_dict({key: value for key, value in asked.items() if key != name})


def test_the_description_is_made_to_be_read(run: RunDirectory) -> None:
    lines = (run.path / "run.json").read_text().splitlines()
    assert lines[:2] == ["{", '  "status": "running",']
    with pytest.raises(ValueError, match="not JSON compliant"):
        run.write_json("x.json", {"x": float("nan")})


def test_the_copy_of_the_batch_is_kept_or_made_again(run: RunDirectory) -> None:
    copy = run.path / "batch.parquet"
    before = copy.read_bytes()

    def refuse() -> Batch:
        raise AssertionError("there is a copy")

    assert run.batch(TASK, refuse).fingerprint() == batch().fingerprint()
    copy.unlink()
    with pytest.raises(ClearloopError, match=r"was started with other data than log\.csv holds now"):
        run.batch(TASK, lambda: batch(1), "log.csv")
    assert not copy.exists()
    assert run.batch(TASK, batch).fingerprint() == batch().fingerprint()
    assert copy.read_bytes() == before


def test_a_finished_run_keeps_no_checkpoints(run: RunDirectory) -> None:
    names = ("checkpoint/a.safetensors", "candidates.csv", "front.csv", ".front.csv.7.partial")
    run.folder("checkpoint")

    def left() -> list[bool]:
        return [(run.path / name).exists() for name in names]

    for name in names:
        (run.path / name).touch()
    run.sweep()
    assert left() == [True, True, True, False]
    run.mark("finished", pick={"controller": "001", "reason": "it is the only one"})
    run.sweep()
    assert left() == [False, False, True, False]
    assert not (run.path / "checkpoint").exists()


def test_a_run_that_goes_on_removes_what_was_half_written(run: RunDirectory) -> None:
    (run.path / ".front.csv.7.partial").touch()
    run.go_on(methods=["lqr"])
    assert not list(run.path.glob(".*.partial"))
    assert (run.describe()["status"], run.describe()["methods"]) == ("running", ["lqr"])


def test_the_task_of_a_run_is_that_of_its_beginning(run: RunDirectory) -> None:
    assert run.task() == TASK
    begun = run.describe()["task"]
    directory.check_task(run, begun, TASK)
    with pytest.raises(ClearloopError, match="'discount' of the task 'cartpole' has changed"):
        directory.check_task(run, begun, TASK.model_copy(update={"discount": 0.5}))
    with pytest.raises(ClearloopError, match="was started with the task 'cartpole', not 'tank'"):
        directory.check_task(run, begun, Task.load("tank"))
    document = json.loads((run.path / "run.json").read_text())
    document["task"]["dt"] = -1
    (run.path / "run.json").write_text(json.dumps(document))
    with pytest.raises(ClearloopError, match=r"run\.json"):
        run.task()


def test_what_was_asked_must_be_asked_again(run: RunDirectory) -> None:
    directory.check_option(run, "--seed", 1, 1)
    with pytest.raises(ClearloopError, match="was started with --budget 20,000, not 300; leave --budget out"):
        directory.check_option(run, "--budget", 20_000, 300)
    with pytest.raises(ClearloopError, match="with --method lqr,pid, not gprl"):
        directory.check_option(run, "--method", ("lqr", "pid"), ("gprl",))
    with pytest.raises(ClearloopError, match=r"was started with clearloop 0\.0, not"):
        directory.check_version(run, {"clearloop": "0.0"})
    directory.check_version(run, run.describe()["versions"])
    directory.check_command(run, run.describe()["asked"], "bench", "learn")
    with pytest.raises(ClearloopError, match="holds a run of 'clearloop learn', which this command cannot"):
        directory.check_command(run, run.describe()["asked"], "bench")
    (lqr,) = REQUEST.methods
    directory.check_settings(run, (lqr,), (lqr,))
    with pytest.raises(ClearloopError, match=r"was started with --set lqr\.caution"):
        directory.check_settings(run, (lqr,), (LQR(caution=9.0),))


def test_settings_that_differ_from_the_defaults() -> None:
    default = settings_of(find_method("lqr")())
    assert list(changed_settings(default, default)) == []
    changed = {**default, "caution": 1.5}
    assert list(changed_settings(changed, default)) == ["caution=1.5"]
    assert list(changed_settings({"a": {"b": [1, 2], "c": 3}}, {"a": {"b": [1], "c": 3}})) == ["a.b=1,2"]
    assert list(changed_settings({"a": {"b": 1}}, {"a": None})) == ["a={'b': 1}"]


@dataclass(frozen=True)
class Numbers:
    one: float
    other: float | None


def test_numbers_of_numpy_are_written_as_numbers(tmp_path: Path) -> None:
    write_table(tmp_path / "x.csv", Numbers, [Numbers(np.float64(0.1), None)])
    assert (tmp_path / "x.csv").read_text() == "one,other\n0.1,\n"
    assert read_table(tmp_path / "x.csv", Numbers) == (Numbers(0.1, None),)
