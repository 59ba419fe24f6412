"""Margins of loops that are known, and of random ones against their eigenvalues."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.controllers import Equation, Linear
from clearloop.diagnosis.margins import Margin, _bearing, find_margins
from clearloop.evaluation.linearisation import (
    Linearisation,
    closed_loop,
    delayed,
    lengthened,
    linearise,
    loop_gains,
)
from clearloop.methods.linear_model import identify
from tests.diagnosis.plants import FIRST_ORDER, SPRING
from tests.methods.linear_plants import make_log, make_task
from tests.methods.test_lqr import U, V


def on_first_order(gain: float) -> Linearisation:
    found = linearise(Linear(gains={"u": {"y": -gain}}), FIRST_ORDER, spread=np.ones(1))
    assert found is not None
    return found


def margin_of(linear: Linearisation) -> Margin:
    found = find_margins(linear)
    assert found is not None
    (margin,) = found.actions
    return margin


def largest(moves: Floats, law: Floats) -> float:
    return float(np.abs(np.linalg.eigvals(closed_loop(moves, law))).max())


@pytest.mark.parametrize("gain", [0.5, 4.0, 15.0])
def test_an_integrator_bears_gains_up_to_two_in_a_step(gain: float) -> None:
    """y' = (1 - k dt) y is stable up to k dt = 2; L = k dt / (z - 1) crosses 1 where 2 sin(w dt/2) = k dt."""
    margin, dt = margin_of(on_first_order(gain)), FIRST_ORDER.dt
    half = np.arcsin(gain * dt / 2)
    assert margin.gain_up == pytest.approx(2 / (gain * dt), rel=1e-4)
    assert margin.gain_down is None  # without control it stays where it is
    assert margin.phase == pytest.approx(90 - np.degrees(half), abs=0.01)
    assert margin.delay == pytest.approx((np.pi / 2 - half) / (2 * half / dt), rel=1e-4)


def test_a_loop_that_is_unstable_has_no_margins() -> None:
    found = find_margins(on_first_order(25.0))
    assert found is not None
    assert not found.stable
    assert found.actions == ()
    assert "unstable" in repr(found)


def test_a_law_that_switches_where_it_rests_has_none_at_all() -> None:
    linear = linearise(Equation(outputs={"push": "-5*sign(place)"}), SPRING, spread=np.ones(2))
    assert linear is not None
    assert find_margins(linear) is None


@pytest.mark.parametrize("seed", range(40))
def test_margins_are_where_eigenvalues_leave_the_unit_circle(seed: int) -> None:
    """Of a law that reads the past, and what it did before."""
    rng, task = np.random.default_rng(seed), make_task(2, history=2)
    moves, law = np.zeros((2, 2, 3)), np.zeros((1, 2, 3))
    while largest(moves, law) > 0.98 or not law.any():
        moves[:, 0] = rng.uniform(-1.2, 1.2, (2, 3))
        law[0, 0, :2], law[0, 1] = rng.uniform(-1, 1, 2), rng.uniform(-0.4, 0.4, 3)
    nothing = np.zeros(2)
    linear = Linearisation(
        task=task, aims=nothing, point=nothing, action=np.zeros(1), drift=nothing, at_rest=True, smooth=True,
        moves=moves, law=law, memory=3, modes=(),
    )  # fmt: skip
    margin = margin_of(linear)
    gains = np.array([1.0, 1.0, 0.0])  # of what it sees; what it did is what it chose
    for factor, beyond in ((margin.gain_up, 1.01), (margin.gain_down, 1 / 1.01)):
        if factor is not None:
            assert largest(moves, law * np.where(gains, factor / beyond, 1.0)) < 1
            assert largest(moves, law * np.where(gains, factor * beyond, 1.0)) > 1
    stable = [largest(delayed(moves, 0, d), lengthened(law, 2 + d)) < 1 for d in range(20)]
    borne = stable.index(False) - 1 if False in stable else None
    if borne is not None:
        assert margin.delay is not None
        assert borne <= margin.delay / task.dt + 1e-6
        assert margin.delay / task.dt < borne + 1


def scalar(u: float, gain: float, dt: float) -> Linearisation:
    """s' = u s + a with a = gain s."""
    task, nothing = make_task(1, dt=dt), np.zeros(1)
    return Linearisation(
        task=task, aims=nothing, point=nothing, action=nothing, drift=nothing, at_rest=True, smooth=True,
        moves=np.array([[[u, 1.0]]]), law=np.array([[[gain, 0.0]]]), memory=0, modes=(),
    )  # fmt: skip


@pytest.mark.parametrize("dt", [0.1, 0.5, 2.0])
def test_a_loop_that_is_lost_one_step_later_bears_no_delay_at_all(dt: float) -> None:
    """z + 0.5 = 0.6 is stable, (z + 0.5) z = 0.6 is not, though the phase alone would bear 1.5 steps."""
    margin = margin_of(scalar(-0.5, 0.6, dt))
    crossover = np.arccos(0.6**2 - 1.25)  # |exp(i w dt) + 0.5| = 0.6
    phase = -np.degrees(np.angle(np.exp(1j * crossover) + 0.5)) % 360
    assert margin.phase == pytest.approx(min(phase, 360 - phase), abs=0.01)
    assert phase / np.degrees(crossover) == pytest.approx(1.5, abs=0.01)
    assert margin.delay == 0.0


@pytest.mark.parametrize("dt", [0.1, 0.5, 2.0])
def test_margins_in_steps_do_not_depend_on_the_time_step(dt: float) -> None:
    """L = 0.5 / (z - 1): gains and degrees are the same for every dt, and delays are in seconds."""
    margin = margin_of(scalar(1.0, -0.5, dt))
    half = np.arcsin(0.25)
    assert margin.gain_up == pytest.approx(4.0, rel=1e-4)
    assert margin.phase == pytest.approx(90 - np.degrees(half), abs=0.01)
    assert margin.delay == pytest.approx(dt * (np.pi / 2 - half) / (2 * half), rel=1e-4)


@pytest.mark.parametrize("dt", [0.1, 0.5, 2.0])
def test_the_modes_beside_margins_are_in_seconds(dt: float) -> None:
    found = find_margins(scalar(1.0, -0.5, dt))
    assert found is not None
    assert found.modes[0].time_constant == pytest.approx(dt / np.log(2))


@pytest.mark.parametrize("dt", [0.1, 0.5, 2.0])
def test_a_delay_in_whole_steps_is_the_last_that_is_borne_in_seconds(dt: float) -> None:
    """(z - 1) z² + 0.5 is stable, (z - 1) z³ + 0.5 is not: two steps are borne, whatever the phase says."""
    linear = scalar(1.0, -0.5, dt)
    late = [largest(delayed(linear.moves, 0, d), lengthened(linear.law, 1 + d)) for d in (2, 3)]
    assert late[0] < 1 < late[1]
    for said in (None, 2.9 * dt, 3.0 * dt, 50 * dt):
        found = _bearing(Margin("u0", None, None, None, said), linear.moves, linear.law, 0, dt)
        assert found.delay == pytest.approx(2.9 * dt if said == 2.9 * dt else 2 * dt)


def test_of_two_gains_at_which_a_loop_is_lost_the_nearer_counts() -> None:
    """Without control two modes grow: the second joins the first at a quarter of the gain."""
    moves, law = np.array([[[0.6, 1.3, 1.2]], [[1.2, -0.3, 0.1]]]), np.array([[[-1.3, -1.4, 0.0]]])
    nothing = np.zeros(2)
    linear = Linearisation(
        task=make_task(2), aims=nothing, point=nothing, action=np.zeros(1), drift=nothing, at_rest=True,
        smooth=True, moves=moves, law=law, memory=0, modes=(),
    )  # fmt: skip
    down = margin_of(linear).gain_down
    assert down is not None
    assert largest(moves, 1.01 * down * law) < 1 < largest(moves, 0.99 * down * law)
    assert largest(moves, law) < 1


def test_a_plant_that_needs_control_has_a_gain_margin_downwards() -> None:
    """s' = (1.5 - k) s is stable for k in 0.5 … 2.5."""
    margin = margin_of(scalar(1.5, -1.25, 0.1))
    assert margin.gain_up == pytest.approx(2.0, rel=1e-4)
    assert margin.gain_down == pytest.approx(0.4, rel=1e-4)


def test_the_words_say_each_margin_in_its_unit() -> None:
    found = find_margins(scalar(1.5, -1.25, 0.1))
    assert found is not None
    (margin,) = found.actions
    assert margin.phase is not None
    assert margin.delay is not None
    assert repr(found) == (
        "stable: largest eigenvalue 0.2500; u0 bears gain x 2, gain x 0.4 downwards,"
        f" {margin.phase:.3g} degrees, delay {margin.delay:.3g} s"
    )
    (row,) = found.to_dict()["actions"]
    assert row.pop("action") == "u0"
    expected = {"gain_up": 2.0, "gain_down": 0.4, "phase": margin.phase, "delay": margin.delay}
    assert row == pytest.approx(expected, rel=1e-5)


def test_the_loop_of_one_action_is_cut_while_the_other_is_closed() -> None:
    u, v = np.array([[0.9, 0.2], [0.0, 0.8]]), np.array([[1.0, 0.3], [0.1, 1.0]])
    gains = np.array([[-0.3, 0.1], [0.05, -0.4]])
    moves, law = np.hstack([u, v])[:, None], np.hstack([gains, np.zeros((2, 2))])[:, None]
    z = np.exp(1j * np.array([0.1, 1.0, 3.0]))
    for a in range(2):
        other = 1 - a
        inner = u + np.outer(v[:, other], gains[other])
        expected = [-gains[a] @ np.linalg.solve(point * np.eye(2) - inner, v[:, a]) for point in z]
        np.testing.assert_allclose(loop_gains(moves, law, z)[a], expected, rtol=1e-12)


def test_with_the_linear_model_of_a_log_it_need_not_rest() -> None:
    task = make_task(2)
    model = identify(task, make_log(task, U, V))
    law = np.concatenate([-np.linalg.lstsq(V, U)[0] * 0.3, np.zeros((1, 1))], axis=1)[:, None]
    nothing = np.zeros(2)
    linear = Linearisation(
        task=task, aims=nothing, point=nothing, action=np.zeros(1), drift=nothing, at_rest=False, smooth=True,
        moves=np.zeros((2, 1, 3)), law=law, memory=0, modes=(),
    )  # fmt: skip
    assert find_margins(linear) is None
    found = find_margins(linear, model)
    assert found is not None
    expected = np.abs(np.linalg.eigvals(U + V @ law[:, 0, :2])).max()
    assert abs(found.modes[0].value) == pytest.approx(expected, abs=1e-6)
    assert find_margins(replace(linear, law=np.zeros_like(law)), model) is None
