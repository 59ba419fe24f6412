"""Oscillations of which period and ratio are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from clearloop.methods.pid import find_oscillation

TIMES: NDArray[np.float64] = np.arange(400.0)


@given(
    period=st.floats(8, 150),
    ratio=st.floats(0.5, 2.0),
    phase=st.floats(0, 6.28),
    middle=st.floats(-100, 100),
    size=st.floats(0.1, 10),
)
def test_period_and_ratio_are_found(
    period: float, ratio: float, phase: float, middle: float, size: float
) -> None:
    first = size * ratio ** (-400 / period if ratio > 1 else 0)
    growth = first * ratio ** (TIMES / period)
    found = find_oscillation(middle + growth * np.sin(2 * np.pi * TIMES / period + phase))
    if found is not None:
        assert found.period == pytest.approx(period, rel=0.02)
        assert found.ratio == pytest.approx(ratio, rel=0.03)
    else:
        assert period > 100 or abs(np.log(ratio)) * 400 / period > 10


def test_the_fastest_there_is() -> None:
    found = find_oscillation(3.0 + 0.5 * np.cos(np.pi * TIMES))
    assert found is not None
    assert found.period == 2
    assert found.ratio == pytest.approx(1)


@pytest.mark.parametrize(
    "signal",
    [np.exp(-TIMES / 50), TIMES, np.ones(400), np.zeros(1), np.sin(TIMES / 100), np.zeros(0)],
)
def test_what_hardly_turns_does_not_oscillate(signal: np.ndarray) -> None:
    assert find_oscillation(signal) is None


def test_rounding_is_no_oscillation() -> None:
    rng = np.random.default_rng(0)
    assert find_oscillation(np.exp(-TIMES / 3) * np.cos(TIMES / 40) + rng.normal(0, 1e-12, 400)) is None


def test_what_the_start_stirs_up_does_not_count() -> None:
    found = find_oscillation(np.sin(TIMES / 5) + 5 * np.exp(-TIMES / 20))
    assert found is not None
    assert found.ratio == pytest.approx(1, rel=1e-3)
    assert found.period == pytest.approx(10 * np.pi, rel=1e-3)
