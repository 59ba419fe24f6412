"""Transfer functions from logs: the plant is known here."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.signal import cont2discrete, lfilter

from clearloop.data import Batch
from clearloop.methods.transfer import Transfer, find_transfer, sampled
from clearloop.task import Task

DT = 0.5


def test_sampling_is_that_of_scipy() -> None:
    top, bottom = [-0.7, 2.0], [6.0, 5.0, 1.0]
    found = sampled(top, bottom, 0.0, DT)
    num, den, _ = cont2discrete((top, bottom), DT)
    np.testing.assert_allclose(found.a, den, atol=1e-12)
    np.testing.assert_allclose(found.b[:3], num[0], atol=1e-12)
    np.testing.assert_allclose(found.b[3:], 0.0, atol=1e-12)


def test_a_dead_time_between_two_steps_is_that_of_finer_steps() -> None:
    late = sampled([2.0], [3.0, 1.0], 3.4 * DT, DT)
    fine = sampled([2.0], [3.0, 1.0], 17 * DT / 5, DT / 5)
    rng = np.random.default_rng(1)
    u = rng.normal(size=60)
    expected = lfilter(fine.b, fine.a, np.repeat(u, 5))[::5]
    np.testing.assert_allclose(lfilter(late.b, late.a, u), expected, atol=1e-10)


@cache
def find(
    top: tuple[float, ...],
    bottom: tuple[float, ...],
    delay: float,
    *,
    drift: float = 0.0,
    start: float = 0.0,
    later: float = 1.0,
) -> Transfer:
    """Fit the log of two open-loop experiments with noise, with another start and offset each.

    In the second one the plant's gain is `later` times as large.
    """
    rng = np.random.default_rng(2)
    tables = []
    for episode in range(2):
        plant = sampled(np.array(top) * (later if episode else 1.0), bottom, delay, DT)
        u = np.repeat(rng.choice([-1.0, 0.0, 1.0], 12), 50)
        wander = drift * lfilter([1.0], [1.0, -0.95], rng.normal(size=len(u)))
        begin = start * np.exp(-np.arange(len(u)) * DT / 4)
        y = lfilter(plant.b, plant.a, u) + begin + 5 * episode + wander + 0.02 * rng.normal(size=len(u))
        tables.append(pl.DataFrame({"episode": episode, "y": y, "u": u}))
    task = Task.from_dict({
        "name": "plant", "dt": DT, "discount": 0.99, "horizon": 50,
        "states": {"y": {}}, "actions": {"u": {"limits": [-2, 2]}},
        "reward": {"expression": "-abs(y)"}, "starts": {"y": [-1, 1]},
    })  # fmt: skip
    found = find_transfer(task, Batch.from_frame(pl.concat(tables), task), "y", "u")
    assert found is not None
    return found


def gain_error(found: Transfer, top: tuple[float, ...], bottom: tuple[float, ...], delay: float) -> float:
    """The largest error of the frequency response up to 0.2 radians a step."""
    z = np.exp(1j * np.geomspace(1e-2, 0.2, 50))
    return float(np.abs(found.process.response(z) / sampled(top, bottom, delay, DT).response(z) - 1).max())


def test_a_lag_with_dead_time_is_found() -> None:
    found = find((2.0,), (4.0, 1.0), 1.3)
    assert found.structure.order == 1
    assert not found.structure.integrates
    assert found.gains[0] == pytest.approx(2.0, rel=0.01)
    assert np.exp(found.x[0]) == pytest.approx(4.0, rel=0.02)
    assert found.x[1] * DT == pytest.approx(1.3, abs=0.05)
    assert found.residual == pytest.approx(0.02, rel=0.1)
    assert found.follows


def test_a_slow_disturbance_does_not_spoil_the_plant() -> None:
    found = find((2.0,), (4.0, 1.0), 1.3, drift=0.05)
    assert gain_error(found, (2.0,), (4.0, 1.0), 1.3) < 0.15


def test_a_zero_in_the_right_half_plane_is_found_from_any_start() -> None:
    top, bottom = (-1.5, 1.0), (4.0, 5.0, 1.0)
    assert gain_error(find(top, bottom, 0.0, start=2.0), top, bottom, 0.0) < 0.05


def test_an_integrator_is_one() -> None:
    found = find((0.1,), (2.0, 1.0, 0.0), 1.0)
    assert found.structure.integrates
    assert gain_error(found, (0.1,), (2.0, 1.0, 0.0), 1.0) < 0.05


def test_other_plants_that_the_log_allows_are_close() -> None:
    found = find((2.0,), (4.0, 1.0), 1.3)
    assert len(found.others) >= 6
    z = np.exp(1j * 0.3)
    off = [abs(one.response(z) / found.process.response(z) - 1) for one in found.others]
    assert 0 < np.median(off) < 0.05


def test_a_plant_of_the_form_has_no_rivals() -> None:
    assert find((2.0,), (4.0, 1.0), 1.3).rivals == ()
    assert find((2.0,), (4.0, 1.0), 1.3, drift=0.05).rivals == ()


def test_halves_of_a_log_that_show_different_plants_are_rivals() -> None:
    found = find((2.0,), (4.0, 1.0), 1.3, later=1.3)
    gains = sorted(float(one.response(1.0 + 0j).real) for one in found.rivals)
    assert gains[0] == pytest.approx(2.0, rel=0.05)
    assert gains[-1] == pytest.approx(2.6, rel=0.05)


def test_a_plant_of_another_form_has_a_rival_that_is_nearer_to_it() -> None:
    """A resonance beside a lag, which no structure has room for."""
    lag, swing = [4.0, 1.0], [1.0, 0.2, 1.0]
    top, bottom = np.polyadd(np.multiply(2.0, swing), np.multiply(0.4, lag)), np.convolve(lag, swing)
    found = find(tuple(top.tolist()), tuple(bottom.tolist()), 0.0)
    z = np.exp(1j * np.geomspace(0.05, 1.0, 30))
    truth = sampled(top, bottom, 0.0, DT).response(z)
    off = [np.abs(one.response(z) / truth - 1).mean() for one in (found.process, *found.rivals)]
    assert off[0] > 0.1
    assert min(off[1:]) < 0.5 * off[0]
