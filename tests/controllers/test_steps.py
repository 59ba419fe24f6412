"""Controllers of actions that take only some values: what their files say, and what they choose."""

import json
from typing import Any

import pytest

from clearloop.controllers import Controller, Equation, encode, from_json, to_json
from clearloop.errors import ClearloopError
from clearloop.task import Task
from tests.controllers.kinds import CARTPOLE, KINDS

REST = {"theta": 0.0, "theta_dot": 0.0, "rho": 0.0, "rho_dot": 0.0}


def stepped(step: float, low: float = -10.0, high: float = 10.0) -> Task:
    tables = CARTPOLE.model_dump(mode="json")
    tables["actions"]["force"] |= {"step": step, "limits": [low, high]}
    return Task.from_dict(tables)


def controller(**fields: Any) -> Controller:
    table = {"clearloop": 1, "kind": "equation", "outputs": {"force": "theta"}, **fields}
    return from_json(json.dumps(table))


def choose(one: Controller, theta: float) -> float:
    return one.act({**REST, "theta": theta}, one.reset())["force"]


def test_what_it_chooses_is_limited_then_rounded_halves_up() -> None:
    one = controller(limits={"force": [0, 10]}, steps={"force": 2.5})
    asked = (-3.0, 1.2, 1.25, 3.7, 3.75, 99.0)
    assert [choose(one, theta) for theta in asked] == [0, 0, 2.5, 2.5, 5, 10]


def test_past_actions_are_the_rounded_ones() -> None:
    one = Equation(outputs={"force": "0.6 + force[t-1]"}, limits={"force": (0, 3)}, steps={"force": 1})
    memory = one.reset()
    assert [one.act(REST, memory)["force"] for _ in range(4)] == [1, 2, 3, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_the_task_gives_its_step_and_files_keep_it(kind: str) -> None:
    one = KINDS[kind].for_task(stepped(2.5))
    assert one.steps == {"force": 2.5}
    assert json.loads(to_json(one))["steps"] == {"force": 2.5}
    assert from_json(to_json(one)) == one
    assert one.for_task(stepped(2.5)) == one
    assert "steps" not in json.loads(to_json(KINDS[kind].for_task(CARTPOLE)))
    assert "force is limited to -10 … 10 N in steps of 2.5." in list(one.words())
    assert "force is -10 or 10 N." in list(KINDS[kind].for_task(stepped(20)).words())


def test_a_file_may_want_fewer_values_than_the_task_has() -> None:
    one = controller(limits={"force": [-5, 5]}, steps={"force": 5}).for_task(stepped(2.5))
    assert (one.limits, one.steps) == ({"force": (-5.0, 5.0)}, {"force": 5.0})
    alone = controller(limits={"force": [-5, 5]}, steps={"force": 0.1}).for_task(CARTPOLE)
    assert alone.steps == {"force": 0.1}


FILES: list[tuple[dict[str, Any], str]] = [
    ({"steps": {"force": 1}}, "steps.force: give limits.force, too"),
    ({"limits": {"force": [0, 1]}, "steps": {"force": 0.3}}, "steps.force: expected limits that"),
    ({"limits": {"force": [0, 1]}, "steps": {"force": 3}}, "steps.force: expected limits that"),
    ({"limits": {"force": [0, 1]}, "steps": {"force": 1e-9}}, "steps.force: expected limits that"),
    ({"limits": {"force": [0, 1]}, "steps": {"force": 0}}, "steps.force: expected a number greater than 0"),
    ({"limits": {"force": [0, 1]}, "steps": {"force": "1"}}, "steps.force: expected a number greater than 0"),
    ({"limits": {"force": [0, 1]}, "steps": [1]}, "steps: expected a table"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), FILES)
def test_wrong_files_are_told_where_and_what(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ClearloopError) as caught:
        controller(**fields)
    assert str(caught.value).startswith(f"controller: {expected}")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"limits": {"force": [-5, 4]}}, "steps.force: expected limits that are a whole number of steps"),
        ({"limits": {"force": [-9, 1]}}, "limits.force: expected a whole multiple of the task's step 2.5"),
        (
            {"limits": {"force": [-5, 5]}, "steps": {"force": 2}},
            "steps.force: expected a whole multiple of the task's step 2.5",
        ),
        ({"limits": {"forc": [0, 1]}, "steps": {"forc": 1}}, "limits: 'forc' is not an action"),
    ],
)
def test_what_does_not_fit_the_task_is_told(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ClearloopError) as caught:
        controller(**fields).for_task(stepped(2.5))
    assert str(caught.value).startswith(expected)


def test_a_population_has_one_step() -> None:
    fine = controller(limits={"force": [-10, 10]}, steps={"force": 1})
    with pytest.raises(ClearloopError, match="the same kind, shape, limits and steps"):
        encode([fine, controller()], CARTPOLE, history=1)
    assert encode([fine], CARTPOLE, history=1).counts.tolist() == [20]
    assert encode([controller()], CARTPOLE, history=1).counts.tolist() == [0]
