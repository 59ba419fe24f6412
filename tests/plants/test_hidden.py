"""Plants with hidden states, delays, noise, derived and external states: the engine and a plain twin."""

from collections.abc import Mapping

import gymnasium
import numpy as np
import pytest

from clearloop.controllers import Equation, from_json, to_json
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate, simulate
from clearloop.plants.environment import PlantEnvironment
from clearloop.plants.exploration import make_batch
from clearloop.plants.scenarios import Scenarios
from clearloop.task import Task
from tests.plants.kettle import KETTLE, course

LAW = Equation(outputs={"burner": "1 - 0.4*warmth - 0.05*owed + 0.2*trend - 0.3*room"})


def choose(seen: Mapping[str, float], aim: float) -> float:  # noqa: ARG001
    return 1 - 0.4 * seen["warmth"] - 0.05 * seen["owed"] + 0.2 * seen["trend"] - 0.3 * seen["room"]


def test_the_engine_and_the_twin_agree() -> None:
    scenarios = Scenarios.scoring(KETTLE, 8)
    penalties = evaluate(LAW, KETTLE, starts=scenarios).penalties[0]
    discounts = 0.9 ** np.arange(KETTLE.horizon)
    for n in range(8):
        _, _, rewards = course(scenarios, n, choose)
        assert penalties[n] == pytest.approx(-(rewards @ discounts), rel=1e-12)


def test_so_do_trajectories() -> None:
    run = simulate(LAW, KETTLE, start={"body": 1.5, "scale": 1.0})
    names = KETTLE.unveiled.state_names
    point = np.array([[{"body": 1.5, "scale": 1.0}.get(name, 0.0) for name in names]])
    same = Scenarios.explored(KETTLE, point, np.random.default_rng(0), KETTLE.horizon)
    states, actions, rewards = course(same, 0, choose)
    np.testing.assert_allclose(run.states[0], states, rtol=1e-12)
    np.testing.assert_allclose(run.actions[0, :, 0], actions, rtol=1e-12)
    np.testing.assert_allclose(run.rewards[0], rewards, rtol=1e-12)


def test_a_controller_computes_what_it_is_not_shown() -> None:
    run = simulate(LAW, KETTLE, start={"body": 1.5, "scale": 1.0})
    controller = LAW.for_task(KETTLE)
    assert set(controller.derived) == {"trend", "owed"}
    assert set(Equation(outputs={"burner": "1 - trend"}).for_task(KETTLE).derived) == {"trend"}
    again = from_json(to_json(controller))
    memory = again.reset()
    for t in range(KETTLE.horizon):
        shown = {"warmth": float(run.states[0, t, 0]), "room": float(run.states[0, t, 1])}
        action = again.act(shown, memory, {"warmth": float(run.setpoints[t, 0])})
        assert action["burner"] == pytest.approx(float(run.actions[0, t, 0]), abs=1e-12)


def test_a_setpoint_that_moves_must_be_given() -> None:
    controller = LAW.for_task(KETTLE)
    assert controller.follows == {"warmth": "wanted"}
    with pytest.raises(ClearloopError, match="the setpoint of 'warmth' is missing"):
        controller.act({"warmth": 1.0, "room": 0.0}, controller.reset())
    fixed = LAW.model_copy(update={"setpoint": {"warmth": 2.0}}).for_task(KETTLE)
    assert fixed.follows == {}
    assert "warmth stands for warmth - setpoint; the setpoint is 'wanted' in the log." in controller.words()


def test_a_file_that_derives_otherwise_is_refused() -> None:
    other = LAW.model_copy(update={"derived": {"trend": "warmth - warmth[t-1]"}})
    with pytest.raises(ClearloopError, match=r"derived.trend: task 'kettle' has another formula: 0.5\*trend"):
        other.for_task(KETTLE)


def test_scoring_sets_are_beginnings_of_one_another() -> None:
    few, many = Scenarios.scoring(KETTLE, 8), Scenarios.scoring(KETTLE, 32)
    for name in ("starts", "setpoints", "script"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name)[:8])


def test_a_model_sees_nothing_that_is_hidden() -> None:
    full = Scenarios.scoring(KETTLE, 8)
    seen = full.veiled(KETTLE)
    assert seen.starts.shape == (8, 4)
    np.testing.assert_array_equal(seen.starts, full.starts[:, :4])
    np.testing.assert_array_equal(seen.script, full.script[:, :, :1])  # the room, not the flicker
    assert seen.veiled(KETTLE) is seen


def test_a_batch_is_what_the_law_does_and_its_file_gives_the_same_again() -> None:
    batch = make_batch(KETTLE, rng=np.random.default_rng(4))
    assert batch.columns.needed == ("warmth", "room", "burner", "wanted")
    again = Batch.from_frame(batch.to_frame().drop("trend", "owed"), KETTLE)
    np.testing.assert_array_equal(again.states, batch.states)
    assert batch.fingerprint() == again.fingerprint()
    assert len(np.unique(np.asarray(batch.setpoints))) > 10


def test_the_environment_is_the_same_plant() -> None:
    environment = PlantEnvironment(KETTLE)
    observation, info = environment.reset(seed=3)
    scenario = environment._scenario
    seen, rewards = [observation], []
    for _ in range(KETTLE.horizon):
        aim = info["setpoints"]["warmth"]
        names = dict(zip(KETTLE.states, observation, strict=True))
        action = choose(names | {"warmth": names["warmth"] - aim}, aim)
        observation, reward, _, _, info = environment.step(np.array([action]))
        seen.append(observation)
        rewards.append(reward)
    states, _, expected = course(scenario, 0, choose)
    np.testing.assert_allclose(seen, states, rtol=1e-12)
    np.testing.assert_allclose(rewards, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_pendulum_is_gymnasiums(seed: int) -> None:
    ours, theirs = PlantEnvironment("pendulum"), gymnasium.make("Pendulum-v1").unwrapped
    theirs.reset(seed=seed)
    theta, theta_dot = theirs.state  # type: ignore[attr-defined]
    task = Task.load("pendulum").unveiled
    start = {"theta": theta, "theta_dot": theta_dot}
    ours.reset(options={"start": [start.get(name, 0.0) for name in task.state_names]})
    for torque in np.random.default_rng(seed).uniform(-2.5, 2.5, 200):
        _, reward, *_ = theirs.step(np.array([torque]))
        observation, own, *_ = ours.step(np.array([torque]))
        theta, theta_dot = theirs.state  # type: ignore[attr-defined]
        np.testing.assert_allclose(observation, [np.cos(theta), np.sin(theta), theta_dot], atol=1e-11)
        assert own == pytest.approx(float(reward), abs=1e-10)
