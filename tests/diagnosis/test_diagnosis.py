"""All of it together, as data."""

import json
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import Linear
from clearloop.diagnosis import diagnose
from clearloop.diagnosis import diagnosis as module
from tests.evaluation.planners import make_model as make_planned
from tests.evaluation.planners import make_planner
from tests.methods.linear_plants import make_log, make_model, make_task
from tests.methods.test_lqr import U, V
from tests.surrogate.models import SLIDER, slider_log

from .plants import SPRING, log

LAW = Linear(gains={"push": {"place": -3.0, "speed": -2.0}})
SPRINGY = make_model(SPRING, np.array([[1.0, 0.05], [-0.2, 0.98]]), np.array([[0.0], [0.05]]))


def test_on_a_plant() -> None:
    made = [
        diagnose(LAW, SPRING, batch=log(SPRING), surrogate=SPRINGY, rng=np.random.default_rng(4))
        for _ in range(2)
    ]
    first, second = (json.dumps(one.to_dict(), allow_nan=False) for one in made)
    assert first == second
    assert made[0].on == "system"
    assert made[0].left_out == {}
    assert made[0].linearisation is not None
    assert made[0].linearisation.stable
    assert [step.state for step in made[0].steps] == ["place"]
    assert made[0].robustness is not None
    assert made[0].robustness.starts == 128
    assert len(repr(made[0]).splitlines()) == 5 + 6


def test_without_a_plant_the_judging_members_answer() -> None:
    task = make_task(2)
    law = Linear(gains={"u0": {"x0": -0.5, "x1": -0.5}})
    found = diagnose(
        law, task, batch=make_log(task, U, V), surrogate=make_model(task, U, V), rng=np.random.default_rng(0)
    )
    assert found.on == "model"
    assert found.steps == ()
    assert found.coverage is not None
    assert found.coverage.visited == 256 * 50  # one member judges
    json.dumps(found.to_dict(), allow_nan=False)


def test_each_part_asks_the_members_that_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    task, asked = make_task(2), {}
    model = make_model(task, U, V)
    parts = ("linearise", "linearise_each", "map_starts", "step_responses", "cover", "disturb")
    for name in parts:
        whole = getattr(module, name)

        def noting(*given: Any, name: str = name, whole: Any = whole, **more: Any) -> Any:
            asked[name] = more["surrogate"], more["members"]
            return whole(*given, **more)

        monkeypatch.setattr(module, name, noting)
    law = Linear(gains={"u0": {"x0": -0.5, "x1": -0.5}})
    diagnose(law, task, batch=make_log(task, U, V), surrogate=model, rng=np.random.default_rng(0))
    assert asked == dict.fromkeys(parts, (model, model.judge_members))


def test_starts_from_the_log() -> None:
    law = Linear(gains={"push": {"place": -0.5, "speed": -0.5}})
    task = SLIDER.model_copy(update={"starts": {"from": "batch"}})
    assert task.start_box is None
    found = diagnose(
        law, task, batch=slider_log(), surrogate=make_planned("slider"), rng=np.random.default_rng(0)
    )
    assert found.starts is not None
    assert found.starts.axes == {}
    assert found.starts.starts.shape == (1024, 2)


def test_planners_are_left_out_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(module, "linearise")
    planner = make_planner("slider")
    found = diagnose(
        planner, SLIDER, batch=slider_log(), surrogate=make_planned("slider"), rng=np.random.default_rng(0)
    )
    assert [found.starts, found.linearisation, found.coverage, found.robustness] == [None] * 4
    assert set(found.left_out) == {"starts", "linearisation", "steps", "coverage", "robustness"}
    assert "takes too long" in repr(found)
