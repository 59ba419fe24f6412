"""Our plants as Gymnasium environments."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from clearloop.errors import ClearloopError
from clearloop.plants.environment import PlantEnvironment
from tests import twin
from tests.plants.mixer import MIXER, course

# Gymnasium would rather have actions in [-1, 1]; ours are in newtons, as the controllers' are.
units = pytest.mark.filterwarnings("ignore:.*we recommend using a symmetric and normalized space")


@units
def test_gymnasiums_own_checker_finds_nothing() -> None:
    environment = gymnasium.make("clearloop/cartpole-v0")
    assert environment.spec is not None
    assert environment.spec.max_episode_steps == 100
    check_env(environment.unwrapped)
    environment.close()


@units
def test_nor_in_the_plant_of_any_other_task() -> None:
    check_env(PlantEnvironment(MIXER), skip_render_check=True)


def test_a_fresh_process_makes_it_by_its_name() -> None:
    code = """
import gymnasium
environment = gymnasium.make("clearloop.plants.environment:clearloop/cartpole-v0")
print(environment.reset(options={"start": [0.1, 0, 0, 0]})[0].tolist())
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "[0.1, 0.0, 0.0, 0.0]\n"


def test_a_step_is_the_twins_step() -> None:
    environment = PlantEnvironment()
    rng = np.random.default_rng(5)
    state, _ = environment.reset(seed=1)
    failures = 0
    for _ in range(120):
        force = rng.uniform(-12, 12, 1)  # what is beyond the limits is limited
        expected, reward, failed = twin.step(state[None], np.clip(force, -10, 10))
        state, got, terminated, truncated, info = environment.step(force)
        np.testing.assert_allclose(state, expected[0], rtol=0, atol=1e-13)
        assert (got, terminated, truncated, info) == (
            reward[0],
            failed[0],
            False,
            {"setpoints": {"rho": 0.0}},
        )
        if terminated:
            failures += 1
            state, _ = environment.reset()
    assert failures > 1


def test_rewards_that_look_back_see_the_whole_episode() -> None:
    environment = PlantEnvironment(MIXER)
    rng = np.random.default_rng(0)
    failures = 0
    for seed in range(20):
        start, _ = environment.reset(seed=seed)
        steps, states, rewards = list[tuple[float, float]](), [start], []
        terminated = False
        while not terminated and len(steps) < 8:
            action = rng.uniform([-0.5, 0.0], [1.0, 2.0])
            steps.append((action[0], action[1]))
            state, reward, terminated, _, _ = environment.step(action)
            states.append(state)
            rewards.append(reward)
        expected, expected_rewards, failed = course((start[0], start[1]), steps)
        np.testing.assert_allclose(states, expected, rtol=0, atol=1e-12)
        assert rewards == expected_rewards
        assert terminated == failed
        failures += failed
    assert 0 < failures < 20


def test_starts_are_given_or_drawn_from_the_box_by_the_seed() -> None:
    environment = PlantEnvironment()
    start, _ = environment.reset(options={"start": [0.1, 0.2, -0.3, 0.4]})
    assert start.tolist() == [0.1, 0.2, -0.3, 0.4]
    first, _ = environment.reset(seed=7)
    second, _ = environment.reset()
    again, _ = environment.reset(seed=7)
    assert first.tolist() == again.tolist() != second.tolist()
    assert abs(first[0]) <= 0.6
    assert first[1] == first[3] == 0.0


@pytest.mark.parametrize("start", [[0.1], [0.1, 0, 0, float("nan")], [0, 0, 0, 1e13], [[0, 0, 0, 0]]])
def test_a_start_that_is_none_is_refused(start: list[float]) -> None:
    with pytest.raises(ClearloopError, match="start: expected a finite number for each of theta, theta_dot"):
        PlantEnvironment().reset(options={"start": start})


def test_what_is_returned_is_the_callers_own() -> None:
    environment = PlantEnvironment()
    state, _ = environment.reset(options={"start": [0.1, 0, 0, 0]})
    state[:] = 99
    after, *_ = environment.step(np.zeros(1))
    assert abs(after[0]) < 0.2
    kept = after.copy()
    environment.step(np.zeros(1))
    assert after.tolist() == kept.tolist()
