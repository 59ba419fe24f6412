"""What every kind of controller promises."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.controllers import Controller, encode, from_json, load, save, to_json
from clearloop.kernels.layout import PROGRAM
from tests.controllers import strategies
from tests.controllers.kinds import CARTPOLE, KINDS, POPULATED, examples

EXAMPLES = settings(max_examples=25, deadline=None)

kinds = pytest.mark.parametrize("kind", POPULATED)
any_file = st.data()


@kinds
def test_every_kind_has_an_example(kind: str) -> None:
    assert examples(kind), f"tests/controllers/kinds.py has no controller of the kind {kind}"


def draw(data: st.DataObject, kind: str) -> Controller:
    return from_json(data.draw(strategies.files(kind)))


@kinds
@EXAMPLES
@given(data=any_file)
def test_a_saved_controller_is_the_same_controller(kind: str, data: st.DataObject) -> None:
    controller = draw(data, kind)
    text = to_json(controller)
    again = from_json(text)
    assert again == controller
    assert to_json(again) == text
    assert json.loads(text)["kind"] == kind


@kinds
@EXAMPLES
@given(data=any_file)
def test_a_task_gives_what_the_file_leaves_out_once_and_for_all(kind: str, data: st.DataObject) -> None:
    controller = draw(data, kind)
    complete = controller.for_task(CARTPOLE)
    assert complete.for_task(CARTPOLE) == complete
    assert from_json(to_json(complete)) == complete
    assert complete.name == controller.name
    assert complete.units.keys() == {"theta", "theta_dot", "rho", "rho_dot", "force"}
    assert complete.setpoint["rho"] == controller.setpoint.get("rho", 0.0)
    low, high = complete.limits["force"]
    assert -10 <= low < high <= 10
    assert complete.dt == (controller.dt or 0.025)


@kinds
@EXAMPLES
@given(data=any_file)
def test_it_explains_itself(kind: str, data: st.DataObject) -> None:
    controller = draw(data, kind)
    for one in (controller, controller.for_task(CARTPOLE)):
        assert one.complexity > 0
        assert len(one.summary.splitlines()) == 1
        assert all(len(line.splitlines()) == 1 for line in one.words())
        assert any("force" in line for line in one.words())


@kinds
@EXAMPLES
@given(data=any_file, observations=st.lists(strategies.states(), min_size=1, max_size=5))
def test_it_acts_within_its_limits(
    kind: str, data: st.DataObject, observations: list[dict[str, float]]
) -> None:
    controller = draw(data, kind).for_task(CARTPOLE)
    low, high = controller.limits["force"]
    memory = controller.reset()
    for observation in observations:
        action = controller.act(observation, memory)
        assert action.keys() == {"force"}
        assert low <= action["force"] <= high


@kinds
@EXAMPLES
@given(data=any_file)
def test_a_controller_without_limits_still_gives_finite_numbers(kind: str, data: st.DataObject) -> None:
    table = data.draw(strategies.tables(kind))
    table.pop("limits", None)
    controller = from_json(json.dumps(table))
    action = controller.act(data.draw(strategies.states()), controller.reset())
    assert math.isfinite(action["force"])


@kinds
@EXAMPLES
@given(data=any_file)
def test_populations_are_encoded_alike(kind: str, data: st.DataObject) -> None:
    controller = draw(data, kind)
    history = controller.history
    policies = encode([controller] * 3, CARTPOLE, history=history)
    assert policies.numbers.shape[0] == 3
    assert np.isfinite(policies.numbers).all()
    assert (policies.numbers == policies.numbers[0]).all()
    assert policies.spans.shape == (3, 2 if controller.policy == PROGRAM else 1)
    assert policies.spans.flat[-1] == len(policies.code) == len(policies.operand)
    assert policies.limits.shape == (1, 2)
    assert encode([controller], CARTPOLE, history=history, dtype=np.float32).numbers.dtype == np.float32


def test_the_same_memory_gives_the_same_action(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for name, controller in KINDS.items():
        path = tmp_path / f"{name}.json"
        save(controller, path)
        again = load(path)
        assert again == controller
        first, second = controller.reset(), again.reset()
        for theta in (0.1, -0.2, 0.05):
            state = {"theta": theta, "theta_dot": 0.0, "rho": 1.0, "rho_dot": 0.0}
            assert controller.act(state, first) == again.act(state, second)


COMPLEXITIES = {
    "equation": 15,  # FACTS: the published GPRL equation in newtons
    "linear": 5 * 3 - 1,
    "pid": 7 * 3 - 1,
    "fuzzy": 1 + (3 * 4 + 1) * 2 + (3 + 1),
    "network": 3 * (5 + 1) + 2 * (3 + 1) + 2 * (2 + 1) + (2 + 1),
    "greedy-q": 3 * (5 + 1) + 2 * (3 + 1) + (2 + 1),
}


@pytest.mark.parametrize("kind", COMPLEXITIES)
def test_complexity_counts_what_a_reader_must_read(kind: str) -> None:
    assert KINDS[kind].complexity == COMPLEXITIES[kind]
