"""The file of a planner: settings, and where its model is."""

from pathlib import Path

import pytest

from clearloop.controllers import Planner, encode, from_json, load, save, to_json
from clearloop.errors import ClearloopError
from tests.controllers.kinds import CARTPOLE

TEXT = """{
  "clearloop": 1, "kind": "planner", "run": "..", "outputs": ["force"], "horizon": 40, "hold": 4,
  "particles": 20, "rounds": 5
}"""


def planner() -> Planner:
    controller = from_json(TEXT)
    assert isinstance(controller, Planner)
    return controller


def test_a_saved_planner_is_the_same_planner() -> None:
    complete = planner().for_task(CARTPOLE)
    assert from_json(to_json(complete)) == complete
    assert complete.limits == {"force": (-10.0, 10.0)}
    assert complete.seed == 0
    assert planner().complexity == 100


def test_its_run_is_found_from_the_folder_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "controllers" / "001.json"
    file.parent.mkdir()
    save(planner(), file)
    loaded = load(file).for_task(CARTPOLE)
    assert isinstance(loaded, Planner)
    assert loaded.run_directory.resolve() == tmp_path.resolve()
    assert loaded.run == ".."  # written as it was read
    absolute = planner().model_copy(update={"run": str(tmp_path / "elsewhere")})
    save(absolute, file)
    loaded = load(file)
    assert isinstance(loaded, Planner)
    assert loaded.run_directory == tmp_path / "elsewhere"


def test_it_explains_itself() -> None:
    words = "\n".join(planner().for_task(CARTPOLE).words())
    assert "looks 40 steps ahead (1 s)" in words
    assert "keeps an action for 4 steps (0.1 s)" in words
    assert "tries 100 plans" in words
    assert "force is limited to -10 … 10 N." in words
    assert "The setpoint of rho is 0 m." in words
    assert "40 steps ahead" in planner().summary


def test_without_its_model_it_does_not_act() -> None:
    controller = planner()
    with pytest.raises(ClearloopError, match="a planner needs its model to act"):
        controller.act({"theta": 0.1}, controller.reset())


def test_it_is_not_for_populations() -> None:
    with pytest.raises(ClearloopError, match="kind 'planner' cannot be run by the engine"):
        encode([planner()], CARTPOLE, history=1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["force"]', "[]", "outputs: "),
        ('["force"]', '["force", "force"]', "outputs: an action is named twice"),
        ('"hold": 4', '"hold": 0', "hold: expected a whole number from 1 to 10,000"),
        ('"hold": 4', '"hold": 4.5', "hold: expected a whole number from 1 to 10,000"),
        ('"hold": 4', '"seed": -1', "seed: expected a whole number from 0"),
        ('"hold": 4', '"carried": 0.7, "fresh": 0.4', "carried, fresh: expected shares"),
        ('"hold": 4', '"spread": 2', "spread: expected a number from 0 to 1"),
        ('"run": "..", ', "", "missing key 'run'"),
        ('"hold": 4', '"holds": 4', "unknown key 'holds'; did you mean 'hold'"),
    ],
)
def test_what_makes_no_sense_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ClearloopError, match=message):
        from_json(TEXT.replace(old, new))


def test_another_tasks_actions_are_refused() -> None:
    with pytest.raises(ClearloopError, match="outputs: 'push' is not an action of the task"):
        from_json(TEXT.replace("force", "push")).for_task(CARTPOLE)
