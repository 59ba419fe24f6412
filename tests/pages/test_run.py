"""A run from Python gives what the shell writes."""

from pathlib import Path

import pytest

import clearloop as cl
from clearloop.runs import Front, RunDirectory


@pytest.fixture(scope="module")
def run(finished: RunDirectory) -> cl.Run:
    return cl.Run(finished.path)


def test_a_run_is_opened(run: cl.Run, finished: RunDirectory) -> None:
    front = Front.read(finished)
    assert run.front["controller"].to_list() == [entry.controller for entry in front.entries]
    assert run.front["penalty_model"].to_list() == [entry.penalty_model for entry in front.entries]
    assert run.pick == front.entries[front.pick].controller
    assert run.controller().summary == cl.load(finished.path / "controllers" / f"{run.pick}.json").summary
    assert (run.task.name, len(run.batch)) == ("pusher", len(run.batch))
    assert run.surrogate.members >= 1
    assert repr(run).startswith("run: ")


def test_it_writes_the_pages_of_the_shell(run: cl.Run, tmp_path: Path) -> None:
    card = run.card(out=tmp_path / "card.html")
    assert f"Controller {run.pick}" in card.read_text()
    assert len(run.pack(out=tmp_path / "pick.zip")) == 64
    assert (tmp_path / "pick.zip").read_bytes().startswith(b"PK")


def test_it_refines(run: cl.Run) -> None:
    found = run.refine(digits=1, tolerance=0.5)
    assert found.controller.complexity <= run.controller().complexity
    assert found.before > 0


def test_what_is_not_there_is_said_in_one_line(run: cl.Run, tmp_path: Path) -> None:
    with pytest.raises(cl.ClearloopError, match=r"no controller '999'; this run has 001"):
        run.controller("999")
    with pytest.raises(cl.ClearloopError):
        cl.Run(tmp_path)
