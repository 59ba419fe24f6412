"""What the page is told of a task."""

import json
from pathlib import Path

import pytest

from clearloop.errors import ClearloopError
from clearloop.studio.library import Catalog, Runs
from clearloop.studio.stage import Stage, goal_of, limits_of
from clearloop.task import Task
from tests.studio.test_session import STAGES


def test_lines_on_the_floor_are_found_whatever_the_reward_looks_like() -> None:
    task = Task.load("cartpole")
    assert limits_of(task) == {"theta": (-0.7, 0.7), "rho": (-2.4, 2.4)}
    assert goal_of(task) == {"theta": (-0.25, 0.25), "rho": (-0.5, 0.5)}
    tables = task.model_dump(mode="json", exclude_none=True)
    tables["states"]["rho"]["setpoint"] = 0.75
    tables["reward"]["cases"][0]["when"] = "theta**2 > 0.49 or rho - 1 > 2 or 0 > rho + 1"
    moved = Task.from_dict(tables)
    assert limits_of(moved) == {"theta": (-0.7, 0.7), "rho": (-1.0, 3.0)}
    assert goal_of(moved)["rho"] == (0.25, 1.25)


def test_where_nothing_fails_and_nothing_has_steps_there_are_none() -> None:
    for name in ("tank", "motor", "pendulum"):
        assert limits_of(Task.load(name)) == goal_of(Task.load(name)) == {}


@pytest.mark.parametrize(
    ("name", "drawing", "pose", "pushed"),
    [
        ("cartpole", "cartpole", {"theta": "theta", "rho": "rho"}, "theta_dot"),
        ("cartpole-hardware", "cartpole", {"theta": "angle", "rho": "place"}, "turn"),
        ("pendulum", "pendulum", {"x": "x", "y": "y"}, "theta_dot"),
        ("motor", "strip", {}, "rate"),
        ("tank", "strip", {}, "lower"),
    ],
)
def test_the_drawing_is_chosen_by_the_states(
    name: str, drawing: str, pose: dict[str, str], pushed: str
) -> None:
    assert STAGES[name].drawing == (drawing, pose, pushed)


def test_true_states_are_drawn_where_sensors_show_others() -> None:
    states = STAGES["cartpole-hardware"].describe()["states"]
    hidden = {state["name"]: state["hidden"] for state in states}
    assert (hidden["theta"], hidden["rho"], hidden["angle"], hidden["place"]) == (False, False, True, True)


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_the_description_is_json_and_complete(stage: Stage) -> None:
    about = json.loads(json.dumps(stage.describe(), allow_nan=False))
    assert about["playable"] is True
    assert about["pace"] == min(stage.task.dt, 0.1)
    for state in about["states"]:
        low, high = state["range"]
        assert low < high
        assert state["steerable"] == (state["name"] in stage.task.setpoints)
    assert [action["name"] for action in about["actions"]] == list(stage.task.actions)


def test_a_task_of_ones_own_is_played_first(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    text = json.loads(json.dumps(Task.load("cartpole").model_dump(mode="json", exclude_none=True)))
    text["name"] = "mine"
    file.write_text(_toml(text))
    catalog = Catalog(Runs(tmp_path), str(file))
    assert catalog.first == "mine"
    assert catalog.stage("mine").source == str(file)
    assert "cartpole" in catalog.stages
    with pytest.raises(ClearloopError, match="no task 'yours'"):
        catalog.stage("yours")


def test_a_task_without_a_plant_is_listed_and_not_played(tmp_path: Path) -> None:
    file = tmp_path / "log.toml"
    file.write_text(
        'name = "log"\ndt = 1.0\ndiscount = 0.9\nhorizon = 5\n[states]\nx = {}\n'
        '[actions]\nu = { limits = [0, 1] }\n[reward]\nexpression = "-x"\n'
    )
    catalog = Catalog(Runs(tmp_path), str(file))
    assert {"name": "log", "title": "Log", "playable": False} in catalog.describe()
    with pytest.raises(ClearloopError, match="cannot be played"):
        catalog.stage("log")


def _toml(tables: dict[str, object]) -> str:
    """JSON values as inline tables."""

    def value(one: object) -> str:
        if isinstance(one, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {value(item)}" for key, item in one.items()) + "}"
        if isinstance(one, list):
            return "[" + ", ".join(map(value, one)) + "]"
        return json.dumps(one)

    return "".join(f"{key} = {value(item)}\n" for key, item in tables.items())
