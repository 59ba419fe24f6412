"""The twin of the hardware cart-pole: its sensors, its motor, and the player who makes its batch."""

import math
from dataclasses import replace

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.controllers import Equation
from clearloop.data import Batch
from clearloop.evaluation import simulate
from clearloop.kernels.engine import roll_out
from clearloop.methods.method import _readable
from clearloop.plants.environment import PlantEnvironment
from clearloop.plants.exploration import _explorers, law_window, make_batch
from clearloop.plants.plant import fixed_actions, lower_plant, task_window
from clearloop.plants.scenarios import Scenarios
from tests.plants.rig import COUNT, DROPOUTS, GRAIN, LATE, RIG, course, move

NAMES = RIG.unveiled.state_names
SHOWN = [NAMES.index(name) for name in RIG.states]
HIDDEN = [NAMES.index(name) for name in ("angle", "turn", "place", "speed")]


@pytest.fixture(scope="module")
def batch() -> Batch:
    return make_batch(RIG, rng=np.random.default_rng(0), size=17_000)


def scenarios(n: int, steps: int, seed: int) -> Scenarios:
    rng = np.random.default_rng(seed)
    return Scenarios.explored(RIG, RIG.unveiled.random_starts(n, rng), rng, steps)


def trajectories(some: Scenarios, forces: Floats) -> Floats:
    """[N, T + 1, S] of the engine, under forces [N, T]."""
    history = task_window(RIG)
    system, job = lower_plant(RIG, history=history), some.job(RIG, history)
    rollout = roll_out(fixed_actions(forces[:, :, None], RIG), system, job, trajectories=True)
    states: Floats = np.asarray(rollout.states)[0, 0]
    return states


def test_the_engine_and_the_twin_agree() -> None:
    some = scenarios(6, 60, seed=1)
    forces = np.random.default_rng(2).uniform(-12, 12, (6, 60))
    states = trajectories(some, forces)
    for n in range(6):
        shown, truth, _ = course(some, n, lambda t, _truth, _forces, n=n: float(forces[n, t]))  # type: ignore[misc]
        np.testing.assert_allclose(states[n, : len(shown)][:, SHOWN], shown, rtol=0, atol=1e-9)
        np.testing.assert_allclose(states[n, : len(truth)][:, HIDDEN], truth, rtol=0, atol=1e-9)
        assert (states[n, len(shown) :] == states[n, len(shown) - 1]).all()  # what has failed, stays


def test_angles_come_in_counts_and_places_in_grains() -> None:
    states = trajectories(scenarios(20, 100, seed=3), np.zeros((20, 100)))
    theta, _, rho, _ = states[:, :, SHOWN].transpose(2, 0, 1)
    np.testing.assert_allclose(theta / COUNT, np.round(theta / COUNT), atol=1e-9)
    np.testing.assert_allclose(rho / GRAIN, np.round(rho / GRAIN), atol=1e-9)
    assert np.abs(theta - states[:, :, HIDDEN[0]]).max() <= COUNT / 2 + 1e-12


def test_some_readings_are_missing_and_some_are_late() -> None:
    some = scenarios(200, 40, seed=4)  # before anything falls
    some = replace(some, starts=np.where(np.arange(len(NAMES)) == HIDDEN[0], 0.0, some.starts))
    states = trajectories(some, np.zeros((200, 40)))
    rho, place = states[:, 1:, SHOWN[2]], states[:, 1:, HIDDEN[2]]
    late = rho - place > 0.04
    assert late.mean() == pytest.approx(LATE, abs=4 * math.sqrt(LATE / late.size))
    luck = some.script[:, 1:, RIG.unveiled.scope.external.index("luck")]
    missing = luck < DROPOUTS
    assert missing.mean() == pytest.approx(DROPOUTS, abs=4 * math.sqrt(DROPOUTS / missing.size))
    assert (rho[missing] == states[:, :-1, SHOWN[2]][missing]).all()
    heard = ~(late | missing)
    assert np.std((rho - place)[heard]) == pytest.approx(math.hypot(0.003, 0.003 / math.sqrt(12)), rel=0.05)


@pytest.mark.parametrize(("force", "motor"), [(1.6, 0.0), (-1.7, 0.0), (5.0, 3.3), (-30.0, -8.3)])
def test_the_motor_is_late_and_weak(force: float, motor: float) -> None:
    some = scenarios(1, 10, seed=5)
    expected = some.starts[0, HIDDEN]
    states = trajectories(some, np.full((1, 10), force))[0]
    for t in range(10):
        np.testing.assert_allclose(states[t, HIDDEN], expected, rtol=0, atol=1e-9)
        expected = move(expected, motor if t >= 2 else 0.0)


def test_the_environment_is_the_same_plant_step_by_step() -> None:
    environment = PlantEnvironment(RIG)
    forces = np.random.default_rng(6).uniform(-10, 10, RIG.horizon)
    for seed in (0, 1):
        observation, _ = environment.reset(seed=seed)
        seen, failed, t = [observation], False, 0
        while t < RIG.horizon and not failed:
            observation, _, failed, _, _ = environment.step(forces[t : t + 1])
            seen.append(observation)
            t += 1
        states = trajectories(environment._scenario, forces[None])[0]
        np.testing.assert_array_equal(seen, states[: t + 1, SHOWN])
        again, _ = environment.reset(seed=seed)
        np.testing.assert_array_equal(again, seen[0])
        np.testing.assert_array_equal(environment.step(forces[:1])[0], seen[1])


def test_controllers_see_forty_nine_features_and_models_fifty() -> None:
    assert len(_readable(RIG)) == 49
    assert RIG.history * len(RIG.scope.names) == 50
    assert RIG.predicted == ("theta", "rho")  # two networks: the change of a position is its velocity


def test_the_published_equation_can_be_run() -> None:
    formula = "25*theta - theta[t-9]/(0.65 + theta_dot[t-8]) + rho[t-7] + rho_dot[t-1]"
    run = simulate(Equation(outputs={"force": formula}), RIG, start={"angle": 0.05})
    theta, turned, rho, moved = run.states[0].T
    t = 12
    expected = 25 * theta[t] - theta[t - 9] / (0.65 + turned[t - 8]) + rho[t - 7] + moved[t - 1]
    assert run.actions[0, t, 0] == pytest.approx(min(max(expected, -10), 10))


def test_the_batch_has_the_published_size(batch: Batch) -> None:
    assert len(batch) == 17_000


def test_the_same_seed_gives_the_same_batch() -> None:
    one, again, other = (make_batch(RIG, rng=np.random.default_rng(s), size=300) for s in (3, 3, 4))
    assert one.fingerprint() == again.fingerprint() != other.fingerprint()


def test_the_player_presses_or_does_not_and_keeps_it_up_for_seconds(batch: Batch) -> None:
    forces = np.abs(batch.actions[~np.isnan(batch.actions)])
    pressed = forces > 0
    assert ((forces[pressed] >= 5) & (forces[pressed] <= 10)).all()
    assert 0.1 < pressed.mean() < 0.9
    seconds = (np.bincount(batch.episodes) - 1) * RIG.dt
    assert 2 < seconds.mean() < 30
    assert batch.terminal.sum() > 10


def test_the_player_is_the_plain_one() -> None:
    steps = 120
    some = scenarios(3, steps, seed=7)
    signals = dict(zip(RIG.unveiled.scope.external, some.script.transpose(2, 0, 1), strict=True))
    for n in range(3):

        def press(t: int, truth: Floats, forces: list[float], n: int = n) -> float:
            then, late = truth[max(t - 8, 0)], truth[max(t - 10, 0)]
            eye = late if signals["weary"][n, t] > 0.5 else then
            cart = 0.02 * then[2] + 0.22 * then[3]
            felt = eye[0] + 0.26 * eye[1] + cart + signals["wander"][n, t] - 0.002 * sum(forces[-10:])
            return 0.0 if abs(felt) < 0.03 else math.copysign(float(signals["thumb"][n, t]), felt)

        _, _, expected = course(some, n, press)
        np.testing.assert_allclose(played(some, n)[: len(expected)], expected, atol=1e-9)


def played(some: Scenarios, n: int) -> Floats:
    """[T] the forces that the task's law chooses in one scenario."""
    history = max(task_window(RIG), law_window(RIG))
    one, system = some[n : n + 1], lower_plant(RIG, history=history)
    policies = _explorers(RIG, 1, some.steps, history, np.random.default_rng(0))
    rollout = roll_out(policies, system, one.job(RIG, history), trajectories=True)
    forces: Floats = np.asarray(rollout.actions)[0, 0, 0, :, 0]
    return forces
