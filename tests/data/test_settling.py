"""How fast a plant is: lags and dead times are found again, and what they leave tells of disturbances."""

import numpy as np
import pytest

from clearloop.data.settling import fit_dynamics, settling_rows, wanders
from tests.data.process_logs import Loop, moves

ROWS = 3000


@pytest.mark.parametrize(("lag", "dead"), [(8, 0), (40, 10), (150, 60)])
def test_a_lag_and_a_dead_time_are_found_through_noise(lag: float, dead: int) -> None:
    rng = np.random.default_rng(0)
    u, y, state = moves(rng, ROWS, (60, 200), (0, 100)), np.empty(ROWS), 40.0
    for t in range(ROWS):
        y[t] = state
        state += (0.5 * u[max(t - dead, 0)] + 15 - state) / lag
    fit = fit_dynamics(y + rng.normal(0, 1.0, ROWS), [u])
    assert fit is not None
    assert fit.lag == pytest.approx(lag, rel=0.25)
    assert fit.settling == pytest.approx(3 * lag + dead, rel=0.2)
    assert fit.explained > 0.9


def test_two_actions_share_one_lag() -> None:
    rng = np.random.default_rng(1)
    first, second = (moves(rng, ROWS, (50, 150), (0, 100)) for _ in range(2))
    y, state = np.empty(ROWS), 0.0
    for t in range(ROWS):
        y[t] = state
        state += (0.5 * first[t] - 0.3 * second[t] - state) / 30
    both, one = fit_dynamics(y, [first, second]), fit_dynamics(y, [first])
    assert both is not None
    assert both.lag == pytest.approx(30, rel=0.1)
    assert one is None or one.explained < 0.8


@pytest.mark.parametrize("course", ["integrating", "unrelated", "still"])
def test_no_lag_is_claimed_where_there_is_none(course: str) -> None:
    rng = np.random.default_rng(2)
    u = rng.uniform(-1, 1, ROWS)
    signals = {"integrating": np.cumsum(u), "unrelated": rng.normal(size=ROWS), "still": np.full(ROWS, 3.0)}
    assert fit_dynamics(signals[course], [u]) is None


def test_a_loop_settles_in_the_time_that_its_steps_need() -> None:
    rng = np.random.default_rng(3)
    aims = moves(rng, ROWS, (200, 300), (40, 70))
    fast, _ = Loop(gain=0.8, lag=25, kp=4.0, ki=0.16).run(aims, rng)
    slow, _ = Loop(gain=0.8, lag=25, kp=0.5, ki=0.02).run(aims, rng)
    quick, long = settling_rows(fast, aims), settling_rows(slow, aims)
    assert quick is not None
    assert long is not None
    assert 5 < quick < 30 < 60 < long < 200
    assert settling_rows(rng.normal(50, 10, ROWS), aims) is None  # nothing follows


def test_a_setpoint_that_always_moves_is_followed_with_a_lag() -> None:
    rng = np.random.default_rng(4)
    aims, y = 10 * np.sin(np.arange(ROWS) / 40) + 5 * np.sin(np.arange(ROWS) / 13), np.zeros(ROWS)
    for t in range(ROWS - 1):
        y[t + 1] = y[t] + (aims[t] - y[t]) / 15
    assert settling_rows(y + rng.normal(0, 0.2, ROWS), aims) == pytest.approx(45, rel=0.2)


def test_noise_does_not_wander_and_a_load_does() -> None:
    rng = np.random.default_rng(5)
    noise = rng.normal(0, 1.0, ROWS)
    assert wanders(noise, 100) < 0.2
    assert wanders(noise + 3 * np.sin(np.arange(ROWS) / 200), 100) > 1.5
    assert wanders(noise, ROWS) == 0  # too few blocks to tell
