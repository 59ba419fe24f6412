"""Critical gains and periods, on plants where they are known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from clearloop.arrays import Floats
from clearloop.methods.method import Trial
from clearloop.methods.pid import Critical, Laboratory, _is_bracketed, find_critical
from clearloop.surrogate import Surrogate
from clearloop.task import Task

from .linear_plants import make_log, make_model, make_problem, make_task

DT = 0.02
LAGS = make_task(3, reach=10.0, dt=DT, horizon=200)  # 1/(s + 1)³ from u0 to x2


def sampled(a: Floats, b: Floats, dt: float = DT) -> tuple[Floats, Floats]:
    """U and V of the derivative A x + B u, with u constant in each step."""
    n = len(a)
    whole = np.zeros((n + b.shape[1],) * 2)
    whole[:n] = dt * np.hstack([a, b])
    power = expm(whole)
    return power[:n, :n], power[:n, n:]


def lags(direction: float = 1.0) -> tuple[Floats, Floats]:
    return sampled(np.diag([1.0, 1.0], -1) - np.eye(3), np.array([[direction], [0.0], [0.0]]))


def laboratory(task: Task, u: Floats, v: Floats, model: Surrogate | None = None) -> Laboratory:
    problem = make_problem(task, make_log(task, u, v), model or make_model(task, u, v))
    rest = np.zeros(len(u)), np.zeros(v.shape[1])
    return Laboratory(problem, *rest, steps=4 * task.horizon, push=0.1)


def critical_gain(u: Floats, v: Floats, state: int) -> tuple[float, float]:
    """Where the closed loop's largest eigenvalue leaves the unit circle, by bisection; and the period."""
    low, high = 0.0, 100.0
    for _ in range(60):
        gain = (low + high) / 2
        values = np.linalg.eigvals(u - gain * v @ np.eye(len(u))[[state]])
        largest = values[np.argmax(np.abs(values))]
        low, high = (gain, high) if abs(largest) < 1 else (low, gain)
    return gain, 2 * np.pi / abs(np.angle(largest))


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_three_lags(direction: float) -> None:
    u, v = lags(direction)
    found, trials = find_critical(laboratory(LAGS, u, v), [], "x2", "u0")
    assert found is not None
    assert (found.input, found.action) == ("x2", "u0")
    gain, period = critical_gain(*lags(), 2)
    assert found.gain == pytest.approx(direction * gain, rel=2e-3)
    assert found.period == pytest.approx(period, rel=2e-3)
    assert direction * found.gain == pytest.approx(8, rel=0.05)  # as if it were not sampled
    assert found.period * DT == pytest.approx(2 * np.pi / np.sqrt(3), rel=0.03)
    assert trials[-1].ratio == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("push", [0.1, 0.37])
def test_a_plant_of_first_order_whose_oscillation_grows_at_once(push: float) -> None:
    task = make_task(1)
    u, v = np.ones((1, 1)), np.full((1, 1), push)
    found, _ = find_critical(laboratory(task, u, v), [], "x0", "u0")
    assert found is not None
    assert found.gain == pytest.approx(2 / push, rel=0.1)  # each step is to the other side, as far
    assert found.period == 2


def test_every_step_can_be_looked_at() -> None:
    found, trials = find_critical(laboratory(LAGS, *lags()), [], "x2", "u0")
    assert found is not None
    rungs = [trial for trial in trials if trial.oscillates]
    climb = [trial.gain for trial in trials[:-4]]
    np.testing.assert_allclose(np.array(climb[1:]) / climb[:-1], np.sqrt(2))
    assert rungs[0].ratio < 0.9  # at first it dies out
    for trial in trials:
        assert trial.errors.shape == (801,)
        np.testing.assert_allclose(trial.actions, trial.gain * trial.errors[:-1], atol=1e-12)
    assert np.abs(trials[-1].errors[-200:]).max() > 0.5 * np.abs(trials[-1].errors[:200]).max()


def test_an_unstable_plant_oscillates_best_at_some_gain() -> None:
    # ẍ = 4 x − u: under proportional control alone it never comes to rest, and falls below gain 4.
    u, v = sampled(np.array([[0.0, 1.0], [4.0, 0.0]]), np.array([[0.0], [-1.0]]))
    task = make_task(2, reach=10.0, dt=DT, horizon=200)
    found, trials = find_critical(laboratory(task, u, v), [], "x0", "u0")
    assert found is not None
    assert found.gain < -4
    assert all(trial.ratio > 1 for trial in trials if trial.oscillates)
    assert not any(trial.oscillates for trial in trials if -trial.gain < 4)
    values = np.linalg.eigvals(u - found.gain * v @ np.array([[1.0, 0.0]]))
    assert found.period == pytest.approx(2 * np.pi / np.abs(np.angle(values[0])), rel=0.01)


def test_a_loop_that_cannot_hold_the_plant_alone_waits_for_another() -> None:
    # x0 as before; x2 is pushed by x0 only, like a cart by its pole.
    a = np.array([[0.0, 1.0, 0.0, 0.0], [4.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [2.0, 0.0, 0.0, 0.0]])
    u, v = sampled(a, np.array([[0.0], [-1.0], [0.0], [0.0]]))
    task = make_task(4, reach=10.0, dt=DT, horizon=200)
    place = laboratory(task, u, v)
    first, _ = find_critical(place, [], "x0", "u0")
    assert first is not None
    assert find_critical(place, [], "x2", "u0")[0] is None
    second, _ = find_critical(place, [first], "x2", "u0")
    assert second is not None
    assert second.period > first.period


def test_an_action_without_effect_has_no_critical_gain() -> None:
    u, v = lags()
    place = laboratory(LAGS, u, v, model=make_model(LAGS, u, 0 * v))
    found, trials = find_critical(place, [], "x2", "u0")
    assert found is None
    assert not any(trial.oscillates for trial in trials)


def test_only_what_the_model_knows_counts() -> None:
    place = laboratory(LAGS, *lags(), model=make_model(LAGS, *lags(), reach=1e-6))
    assert find_critical(place, [], "x2", "u0")[0] is None


def test_only_what_is_within_limits_counts() -> None:
    place = laboratory(LAGS, *lags())
    gain = 3 * place.usual_gain("x2", "u0")
    assert np.isfinite(place.run([], "x2", "u0", 8.0).ratio)
    assert np.isnan(replace(place, push=20.0).run([], "x2", "u0", gain).ratio)


def test_a_plant_that_rests_at_an_action_is_tried_there() -> None:
    u, v = lags()
    place = replace(laboratory(LAGS, u, v), states=np.full(3, 2.0), actions=np.array([2.0]))
    found, trials = find_critical(place, [], "x2", "u0")
    assert found is not None
    assert found.gain == pytest.approx(critical_gain(u, v, 2)[0], rel=2e-3)
    assert trials[-1].actions.mean() == pytest.approx(2, abs=0.2)


def test_trials_are_paid_for() -> None:
    place = laboratory(LAGS, *lags())
    place.run([], "x2", "u0", 8.0)
    assert place.problem.spent == 2 * 800  # of the two members that are searched on


def test_the_table_is_the_published_one() -> None:
    loop = Critical("theta", "force", -14.3, 113.0).loop(0.95, 40)
    assert (loop.kp, loop.ki, loop.kd) == pytest.approx((-8.58, -0.151858, -121.193), rel=1e-5)
    assert (loop.weight, loop.window) == (0.95, 40)
    loop = Critical("rho", "force", -42.7, 331.0).loop()
    assert (loop.kp, loop.ki, loop.kd) == pytest.approx((-25.62, -0.154804, -1060.03), rel=1e-5)
    assert loop.window == 110
    assert loop.kp + loop.ki * loop.window == pytest.approx(-42.7, rel=0.01)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ({10.0: 0.1, 15.8: 0.08, 16.5: np.nan, 17.3: np.nan}, True),  # then the action is at its limits
        ({10.0: 0.1, 15.8: 0.08, 20.0: np.nan}, False),  # who knows what is between
        ({10.0: 9.0, 15.8: 0.08, 16.5: np.nan}, False),  # it grew before
        ({10.0: np.nan, 10.4: np.nan}, False),
    ],
)
def test_a_gain_just_below_the_limits_is_critical(ratios: dict[float, float], expected: bool) -> None:
    nothing = np.zeros(2)
    trials = [Trial("x", "u", gain, 20.0, ratio, nothing, nothing) for gain, ratio in ratios.items()]
    assert _is_bracketed(trials) is expected


def test_a_slow_loop_gets_the_longest_window_that_there_is() -> None:
    assert Critical("x0", "u0", 1.0, 9_000.0).loop().window == 3_000
    assert Critical("x0", "u0", 1.0, 90_000.0).loop().window == 10_000
