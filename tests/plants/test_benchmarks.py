"""The plants of the field's benchmarks, step by step against other people's code."""

import gymnasium
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from clearloop.plants.environment import PlantEnvironment
from clearloop.plants.exploration import make_batch
from clearloop.task import Task


@pytest.mark.parametrize("seed", range(4))
def test_the_mountain_car_is_gymnasiums(seed: int) -> None:
    ours = PlantEnvironment("mountaincar")
    theirs = gymnasium.make("MountainCarContinuous-v0").unwrapped
    rng = np.random.default_rng(seed)
    start = [rng.uniform(-1.2, 0.4), rng.uniform(-0.07, 0.07)]
    ours.reset(options={"start": start})
    theirs.reset(seed=seed)
    theirs.state = np.array(start)  # type: ignore[attr-defined]
    arrived = False
    for step in range(200):
        state = np.asarray(theirs.state, np.float64)  # type: ignore[attr-defined]
        force = np.sign(state[1]) if step % 3 else rng.uniform(-1.5, 1.5)
        _, _, arrived, _, _ = theirs.step(np.array([force]))
        expected = np.asarray(theirs.state, np.float64)  # type: ignore[attr-defined]
        observation, reward, *_ = ours.step(np.array([np.clip(force, -1, 1)]))
        np.testing.assert_allclose(observation, expected, atol=2e-5)  # theirs is in single precision
        assert reward == (0.0 if observation[0] >= 0.45 else -1.0)
        if arrived:
            break
    assert arrived
    stays, reward, *_ = ours.step(np.array([-1.0]))
    assert stays[0] == observation[0]
    assert reward == 0.0


def swinging(_: float, state: np.ndarray, force: float) -> list[float]:
    """Cart and pole by Newton and Euler, solved as a linear system for both accelerations."""
    theta, theta_dot, _rho, rho_dot = state
    cart, pole, half, g = 1.0, 0.1, 0.5, 9.81
    inertia = pole * (2 * half) ** 2 / 12 + pole * half**2  # of a rod, about its end
    masses = [[cart + pole, pole * half * np.cos(theta)], [pole * half * np.cos(theta), inertia]]
    forces = [force + pole * half * theta_dot**2 * np.sin(theta), pole * g * half * np.sin(theta)]
    rho_ddot, theta_ddot = np.linalg.solve(masses, forces)
    return [theta_dot, theta_ddot, rho_dot, rho_ddot]


@pytest.mark.parametrize("seed", range(3))
def test_the_swing_up_is_newtons(seed: int) -> None:
    ours, rng = PlantEnvironment("swingup"), np.random.default_rng(seed)
    state = np.array([rng.uniform(-3, 3), rng.uniform(-8, 8), 0.0, 0.3])
    names = Task.load("swingup").unveiled.state_names
    known = dict(zip(("theta", "theta_dot", "rho", "rho_dot"), state, strict=True))
    ours.reset(options={"start": [known.get(name, 0.0) for name in names]})
    for force in rng.uniform(-10, 10, 40):
        state = solve_ivp(swinging, (0, 0.025), state, args=(force,), rtol=1e-10, atol=1e-12).y[:, -1]
        observation, *_ = ours.step(np.array([force]))
        expected = [np.cos(state[0]), np.sin(state[0]), *state[1:]]
        np.testing.assert_allclose(observation, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["mountaincar", "swingup"])
def test_batches_of_random_data_reach_everything(name: str) -> None:
    task = Task.load(name)
    batch = make_batch(task, rng=np.random.default_rng(0), size=4000)
    assert len(batch) == 4000
    spans = np.ptp(batch.states, axis=0)
    least = {"mountaincar": [1.7, 0.13], "swingup": [1.99, 1.99, 15, 4, 5]}[name]
    assert (spans > least).all(), spans
    assert batch.rewards is None or len({*batch.rewards[np.isfinite(batch.rewards)]}) > 1
