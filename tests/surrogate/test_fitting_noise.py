"""What models cannot explain is replayed; what they can is not."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers import Equation, encode
from clearloop.evaluation import evaluate
from clearloop.kernels.engine import roll_out
from clearloop.plants.exploration import make_batch
from clearloop.plants.scenarios import Scenarios
from clearloop.surrogate import Surrogate
from clearloop.surrogate.noise import Noise
from tests.plants.kettle import KETTLE
from tests.surrogate.models import QUICK

BATCH = make_batch(KETTLE, rng=np.random.default_rng(0), size=1500)
MODEL = Surrogate.fit(KETTLE, BATCH, track=QUICK, rng=np.random.default_rng(1))
LAW = Equation(outputs={"burner": "1 - 0.4*warmth - 0.05*owed + 0.2*trend - 0.3*room"})


def test_stretches_are_replayed_to_the_end_of_their_episodes() -> None:
    residuals = np.arange(6.0)[:, None]
    noise = Noise(residuals, np.array([False, False, True, False, False, True]))
    drawn = noise.draw(200, 10, seed=1)[:, :, 0]
    assert drawn.shape == (200, 10)
    follows = drawn[:, 1:] == drawn[:, :-1] + 1
    assert follows[(drawn[:, :-1] != 2) & (drawn[:, :-1] != 5)].all()
    assert set(drawn[:, 0]) == {0, 3}  # an episode that is too short is replayed from its first row on
    np.testing.assert_array_equal(drawn, noise.draw(200, 10, seed=1)[:, :, 0])
    assert noise.draw(200, 10, seed=2)[:, 0].tolist() != drawn[:, :1].tolist()
    assert Noise.none().draw(5, 3, seed=0).size == 0


def test_only_what_is_predicted_can_be_noisy() -> None:
    assert KETTLE.predicted == ("warmth",)
    assert MODEL.noise.residuals.shape[1] == 1
    assert 0.05 < MODEL.noise.residuals.std() < 0.5  # a flicker of 0.1 comes and goes, and the model is rough
    calm = Surrogate.fit(KETTLE, BATCH, track=replace(QUICK, noise=1.0), rng=np.random.default_rng(1))
    assert not len(calm.noise.residuals)


def test_files_keep_it(tmp_path: object) -> None:
    MODEL.save(f"{tmp_path}/model")
    again = Surrogate.load(f"{tmp_path}/model", KETTLE)
    np.testing.assert_array_equal(again.noise.residuals, MODEL.noise.residuals)
    np.testing.assert_array_equal(again.noise.last, MODEL.noise.last)


def twin(scenarios: Scenarios, n: int, member: int) -> NDArray[np.float64]:
    """Rewards [T] of the law on a member, step by step with `predict`."""
    noise = MODEL.draw_noise(scenarios)[n]
    window = np.tile([*scenarios.starts[n], 0.0], 2)
    rewards = []
    for step, aims in enumerate(scenarios.setpoints[n]):
        warmth, room, trend, owed = window[:4]
        action = np.clip(1 - 0.4 * (warmth - aims[0]) - 0.05 * owed + 0.2 * trend - 0.3 * room, 0, 2)
        window[4] = action
        later = scenarios.setpoints[n, min(step + 1, scenarios.steps - 1)]
        after = np.array([0.0, scenarios.script[n, step + 1, 0], 0.0, 0.0])
        seen = {"after": after[None], "setpoints": later[None], "noise": noise[step : step + 1]}
        states = MODEL.predict(window[None], member, **seen)[0]
        effort = 0.1 * abs(action - window[9])
        rewards.append(-abs(states[0] - aims[0]) - effort + 0.01 * states[2] * states[1])
        window = np.array([*states, 0.0, *window[:5]])
    return np.array(rewards)


def test_rollouts_are_predictions_step_by_step() -> None:
    scenarios = Scenarios.scoring(KETTLE, 4).veiled(KETTLE)
    penalties = evaluate(LAW, KETTLE, surrogate=MODEL, starts=scenarios).penalties
    discounts = 0.9 ** np.arange(KETTLE.horizon)
    for member in range(MODEL.members):
        for n in range(4):
            expected = -(twin(scenarios, n, member) @ discounts)
            np.testing.assert_allclose(penalties[member, n], expected, rtol=1e-9)


def test_what_was_logged_is_what_comes_from_outside() -> None:
    rows = np.array([0, 3, 20])
    scenarios = Scenarios.logged(KETTLE, BATCH, rows)
    assert BATCH.setpoints is not None
    np.testing.assert_array_equal(scenarios.starts[:, :4], BATCH.states[rows])
    np.testing.assert_array_equal(scenarios.starts[1, 5:10], [*BATCH.states[2], *BATCH.actions[2]])
    np.testing.assert_array_equal(scenarios.starts[0, 5:10], [*BATCH.states[0], 0.0])  # before: as at first
    np.testing.assert_array_equal(scenarios.script[1, :5, 0], BATCH.states[3:8, 1])
    np.testing.assert_array_equal(scenarios.setpoints[1, :5, 0], BATCH.setpoints[3:8, 0])
    last = np.flatnonzero(BATCH.episodes == BATCH.episodes[20])[-1]
    assert (scenarios.script[2, last - 20 :, 0] == BATCH.states[last, 1]).all()
    policies = encode([LAW], KETTLE, history=2)
    rollout = roll_out(
        policies, MODEL.system(np.float64, [0], 2), scenarios.job(KETTLE, 2), trajectories=True
    )
    np.testing.assert_array_equal(np.asarray(rollout.states)[0, 0, :, :, 1], scenarios.script[:, :, 0])
