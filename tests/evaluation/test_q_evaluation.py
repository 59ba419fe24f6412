"""Fitted Q evaluation against a value function that is known."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.controllers import PID, Equation
from clearloop.errors import ClearloopError
from clearloop.evaluation import FittedQ, fitted_q
from clearloop.evaluation.q_evaluation import Approximator, NetworkFits, Trees
from clearloop.networks import Training
from clearloop.task import Task
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.evaluation.corridor import CORRIDOR, PENALTIES, STARTS, TEXT, WARY, batch

EXACT = Trees(members=2, trees=3, leaf=1, regrown=1)
SMALL = NetworkFits(
    members=2,
    training=Training(hidden=(20, 20), activation="tanh", epochs=300, batch_size=15, learning_rate=5e-3),
)


def value(approximator: Approximator, controller: Equation = WARY, task: Task = CORRIDOR) -> FittedQ:
    rng = np.random.default_rng(0)
    return fitted_q(controller, task, batch(), starts=STARTS, approximator=approximator, rng=rng)


def test_trees_with_a_leaf_for_each_pair_give_the_table() -> None:
    found = value(EXACT)
    np.testing.assert_allclose(found.penalties, [PENALTIES, PENALTIES], rtol=0, atol=1e-12)
    assert found.penalty == pytest.approx(np.mean(PENALTIES))
    assert found.standard_error == pytest.approx(0, abs=1e-12)


def test_networks_come_near_the_table() -> None:
    np.testing.assert_allclose(value(SMALL).penalties.mean(axis=0), PENALTIES, rtol=0, atol=0.25)


def test_failure_is_paid_for_all_the_steps_that_are_left() -> None:
    found = value(EXACT).penalties[0]
    left = sum(0.9**k for k in range(12))
    assert found[4] == pytest.approx(left)
    dive = Equation(outputs={"move": "1"})
    assert value(EXACT, dive).penalties[0, 3] == pytest.approx(0.3 + left - 1)


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_as_many_iterations_as_the_horizon_has_steps(horizon: int) -> None:
    task = Task.from_toml(TEXT.replace("horizon = 12", f"horizon = {horizon}"))
    waiting = sum(0.3 * 0.9**k for k in range(horizon))
    assert value(EXACT, task=task).penalties[0, 3] == pytest.approx(waiting)


def test_without_discount() -> None:
    task = Task.from_toml(TEXT.replace("discount = 0.9", "discount = 1.0"))
    np.testing.assert_allclose(value(EXACT, task=task).penalties[0, 3:], [0.3 * 12, 12.0])


def test_a_reward_that_is_always_the_same() -> None:
    cases = TEXT[TEXT.index("[reward]") : TEXT.index("[starts]")]
    task = Task.from_toml(TEXT.replace(cases, '[reward]\nexpression = "0"\n'))
    assert value(EXACT, task=task).penalty == 0.0


def test_the_same_generator_gives_the_same_value() -> None:
    one, other = value(SMALL), value(SMALL)
    np.testing.assert_array_equal(one.penalties, other.penalties)
    assert one.standard_error > 0


def test_starts_from_the_batch() -> None:
    task = Task.from_toml(TEXT.replace("place = [0.0, 4.0]", 'from = "batch"'))
    found = fitted_q(WARY, task, batch(), starts=7, approximator=EXACT, rng=np.random.default_rng(0))
    assert found.penalties.shape == (2, 7)
    assert found.to_dict()["starts"] == 7


def test_a_setpoint_moves_the_goal() -> None:
    """With the aim at 4, the place 4 - 2 is where the place -2 would be: the reward is that of the errors."""
    text = TEXT.replace("place = {}", "place = { setpoint = 0.0 }").replace(
        "place < 0.5", "abs(place.error) < 0.5"
    )
    task = Task.from_toml(text)
    stay = Equation(outputs={"move": "0"}, setpoint={"place": 3.0})
    expected = [0.3 * sum(0.9**k for k in range(12))] * 3 + [0.0]
    np.testing.assert_allclose(value(EXACT, stay, task).penalties[0, :4], expected, atol=1e-12)


def test_the_json_of_the_contract() -> None:
    document = value(EXACT).to_dict()
    assert list(document) == ["task", "on", "starts", "penalty", "failures"]
    assert (document["task"], document["on"], document["starts"]) == ("corridor", "batch", 5)
    assert document["failures"] is None
    one = replace(value(EXACT), penalties=np.ones((1, 5)))
    assert one.to_dict()["penalty"] == {"mean": 1.0, "se": None}
    assert repr(one) == "corridor: penalty   1.000   (from the batch alone, 5 starts)"


def test_progress_is_told_after_each_iteration() -> None:
    shares: list[float] = []
    rng = np.random.default_rng(0)
    fitted_q(WARY, CORRIDOR, batch(), starts=3, approximator=EXACT, rng=rng, progress=shares.append)
    np.testing.assert_allclose(shares, np.arange(1, 13) / 12)


def test_controllers_that_remember_are_refused() -> None:
    assert isinstance(KINDS["pid"], PID)
    with pytest.raises(
        ClearloopError, match="a pid remembers more than the task's window holds: evaluate it on a model"
    ):
        fitted_q(KINDS["pid"], CARTPOLE, batch(), rng=np.random.default_rng(0))
    back = Equation(outputs={"move": "place[t-2]"})
    with pytest.raises(ClearloopError, match=r"looks back further than history = 1 .* a history of 3"):
        value(EXACT, back)


def test_logged_rewards_are_for_logged_setpoints() -> None:
    cases = TEXT[TEXT.index("[reward]") : TEXT.index("[starts]")]
    text = TEXT.replace(cases, '[reward]\ncolumn = "cost"\n').replace(
        "place = {}", "place = {setpoint = 0.0}"
    )
    task = Task.from_toml(text)
    logged = replace(batch(), columns=task.columns, rewards=np.zeros(30))
    aiming = Equation(outputs={"move": "0"}, setpoint={"place": 3.0})
    with pytest.raises(ClearloopError, match="the logged rewards are for other setpoints"):
        fitted_q(aiming, task, logged, starts=3, approximator=EXACT, rng=np.random.default_rng(0))
    still = Equation(outputs={"move": "0"})
    found = fitted_q(still, task, logged, starts=3, approximator=EXACT, rng=np.random.default_rng(0))
    assert found.penalty == 0.0
