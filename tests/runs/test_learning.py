"""A result that was written into a checkpoint is the same result."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import Equation
from clearloop.methods import Candidate
from clearloop.methods.learning import judge
from clearloop.runs import learning
from clearloop.runs.directory import read_state, write_state
from clearloop.runs.front import PublishedEntry
from clearloop.runs.learning import result_from_state, result_to_state
from tests.methods.linear_plants import make_log, make_model, make_task

TASK = make_task(2)
U, V = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])


def test_a_result_survives_its_file(tmp_path: Path) -> None:
    candidates = [
        Candidate(Equation(outputs={"u0": "-x0"}), 1.0),
        Candidate(Equation(outputs={"u0": "-3*x0 - 3*x1"}), 0.5),
        Candidate(Equation(name="beside it", outputs={"u0": "x0"}), 3.0, compared=True),
    ]
    result = judge(
        "guess", candidates, TASK, make_log(TASK, U, V), make_model(TASK, U, V),
        steps=7, rng=np.random.default_rng(0),
    )  # fmt: skip
    write_state(result_to_state(result), tmp_path / "state")
    again = result_from_state(read_state(tmp_path / "state"))
    assert (again.method, again.steps) == ("guess", 7)
    assert again.front.equals(result.front)
    assert len(again.points) == 2
    assert [point.controller for point in again.beside] == [point.controller for point in result.beside]
    assert again.beside[0].controller.name == "beside it"
    np.testing.assert_array_equal(again.beside[0].judged.penalties, result.beside[0].judged.penalties)


def test_published_controllers_stand_beside_the_front_with_their_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = [
        SimpleNamespace(file=f"{one}.json", title=one, system=paid) for one, paid in (("a", 3.0), ("b", None))
    ]
    on = [SimpleNamespace(penalty=1.5), SimpleNamespace(penalty=2.5, failures=0.25)]
    monkeypatch.setattr(learning, "score_published", lambda *_: [(one, *on) for one in known])
    nothing: Any = None
    rows, scores = learning._published(nothing, nothing)
    assert rows == [
        PublishedEntry("a.json", "a", 1.5, 2.5, 0.25, True),
        PublishedEntry("b.json", "b", 1.5, 2.5, 0.25, False),
    ]
    assert [tuple(score) for score in scores] == [("a.json", False, *on), ("b.json", False, *on)]
