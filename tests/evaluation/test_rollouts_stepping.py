"""Episodes of planners: on models, on plants, in plain Python, from many starts at once."""

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.controllers import Controller, Planner
from clearloop.evaluation import SetpointChange, evaluate, simulate, with_model
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from tests.evaluation.planners import CART, make_model, make_planner
from tests.methods.linear_plants import make_model as make_linear
from tests.plants.mixer import MIXER, course
from tests.surrogate.models import CARTPOLE, SLIDER


def act_out(controller: Controller, model: Surrogate, start: Floats, steps: int) -> tuple[Floats, Floats]:
    """States and actions by plain Python and NumPy."""
    task, memory = model.task, controller.reset()
    width = len(task.states) + len(task.actions)
    window = np.tile(np.append(start, np.zeros(len(task.actions))), task.history)
    states, actions = [start], []
    for _ in range(steps):
        chosen = controller.act(dict(zip(task.states, states[-1].tolist(), strict=True)), memory)
        actions.append([chosen[name] for name in task.actions])
        window[len(task.states) : width] = actions[-1]
        states.append(model.predict(window[None], 0)[0])
        window = np.concatenate([states[-1], np.zeros(len(task.actions)), window])[: window.size]
        window[width : width + len(task.states)] = states[-2]
        window[width + len(task.states) : 2 * width] = actions[-1]
    return np.array(states), np.array(actions)


def test_the_episode_is_that_of_plain_python() -> None:
    planner, model = make_planner("cart", hold=2), make_model("cart")
    start = np.array([1.5, -0.5])
    states, actions = act_out(planner, model, start, 7)
    trajectory = simulate(planner, CART, surrogate=model, start={"place": 1.5, "speed": -0.5}, steps=7)
    np.testing.assert_allclose(trajectory.actions[0], actions, rtol=0, atol=1e-12)
    np.testing.assert_allclose(trajectory.states[0], states, rtol=0, atol=1e-12)
    np.testing.assert_allclose(trajectory.rewards[0], -np.abs(states[1:, 0]), rtol=0, atol=1e-12)
    assert trajectory.states.shape == (3, 8, 2)  # every member of the model
    assert len(np.unique(actions)) > 3


def test_a_plant_whose_reward_looks_back() -> None:
    planner = make_planner("mixer", horizon=5)
    for model in (None, make_model("mixer")):
        trajectory = simulate(planner, MIXER, surrogate=model, start={"level": 0.25, "heat": 0.5})
        actions = [(inlet, burner) for inlet, burner in trajectory.actions[0].tolist()]
        states, rewards, failed = course((0.25, 0.5), actions)
        np.testing.assert_allclose(trajectory.states[0], states, rtol=0, atol=1e-12)
        assert trajectory.rewards[0].tolist() == rewards
        assert not failed
        assert rewards.count(0.5) >= 8


def test_penalties_are_those_of_the_trajectories() -> None:
    planner, starts = make_planner("mixer", horizon=4), MIXER.scoring_starts(5)
    result = evaluate(planner, MIXER, starts=5)
    assert result.penalties.shape == (1, 5)
    for start, penalty, failed in zip(starts, result.penalties[0], result.failed[0], strict=True):
        trajectory = simulate(planner, MIXER, start=dict(zip(MIXER.states, start.tolist(), strict=True)))
        expected = -(trajectory.rewards[0] @ 0.9 ** np.arange(12))
        assert penalty == pytest.approx(expected, abs=1e-12)
        assert not failed


@pytest.mark.parametrize("absorbing", [True, False])
def test_what_fails_stays_and_pays_where_failure_absorbs(absorbing: bool) -> None:
    planner, model = make_planner("slider", absorbing=absorbing), make_model("slider", absorbing=absorbing)
    starts = np.array([[0.0, 0.0], [4.75, 0.75]])  # the second cannot be stopped before 5, but comes back
    result = evaluate(planner, SLIDER, surrogate=model, members=[1, 2], starts=starts)
    assert result.failed.tolist() == [[False, True]] * 2
    assert (result.penalties[:, 0] == 0.0).all()
    whole = sum(0.9**k for k in range(1, 15))
    trajectory = simulate(planner, SLIDER, surrogate=model, start={"place": 4.75, "speed": 0.75})
    stays = (np.diff(trajectory.states[0], axis=0)[2:] == 0.0).all()
    assert bool(stays) is absorbing
    assert bool(result.penalties[0, 1] == pytest.approx(whole)) is absorbing


def test_all_have_failed() -> None:
    result = evaluate(
        make_planner("slider"), SLIDER, surrogate=make_model("slider"), starts=np.array([[4.75, 2.0]])
    )
    assert result.failures == 1.0


def test_a_setpoint_that_changes_is_followed() -> None:
    planner = make_planner("cart", horizon=10, hold=2, particles=30, rounds=15)
    change = SetpointChange("place", 1.5, 12)
    trajectory = simulate(planner, CART, surrogate=make_model("cart"), setpoints=[change], steps=30)
    assert abs(trajectory.states[0, 12, 0]) < 0.15
    assert abs(trajectory.states[0, -1, 0] - 1.5) < 0.15


def test_it_tells_how_far_it_is() -> None:
    told: list[float] = []
    evaluate(
        make_planner("cart"),
        CART,
        surrogate=make_model("cart"),
        members=[0, 2],
        starts=2,
        progress=told.append,
    )
    np.testing.assert_allclose(told, np.arange(1, 25) / 24)


def test_somebody_elses_environment() -> None:
    tables = CARTPOLE.model_dump(mode="json", exclude_none=True)
    name = "clearloop.plants.environment:clearloop/cartpole-v0"
    task = Task.from_dict(tables | {"plant": {"gymnasium": name}, "horizon": 4})
    rising, pushed = np.eye(4) + np.diag([0.025, 0.0, 0.025], 1), np.array([[0.0], [-0.04], [0.0], [0.02]])
    model = make_linear(task, rising, pushed)
    planner = with_model(Planner(run=".", outputs=("force",), horizon=4, particles=8, rounds=2), task, model)
    trajectory = simulate(planner, task)
    assert trajectory.actions.shape == (1, 4, 1)
    discounts = task.discount ** np.arange(4)
    assert evaluate(planner, task, starts=1).penalty == pytest.approx(-(trajectory.rewards[0] @ discounts))
