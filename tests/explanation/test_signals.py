"""Sums and filters over time, and least squares by parts, are what they say: compared with plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.data import Batch
from clearloop.explanation.fitting import measure_moments
from clearloop.explanation.signals import Signals
from tests.explanation.planted import TANK


def signals_of(values: list[float], lengths: list[int]) -> Signals:
    """One state without setpoint, in episodes of these lengths."""
    rows = len(values)
    episodes = np.repeat(np.arange(len(lengths)), lengths)
    batch = Batch(
        TANK.columns, np.array(values)[:, None], np.zeros((rows, 1)), episodes, np.zeros(rows, np.bool_),
        setpoints=np.zeros((rows, 1)),
    )  # fmt: skip
    return Signals.of(TANK, batch)


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[float], list[int]]:
    lengths = draw(st.lists(st.integers(2, 12), min_size=1, max_size=4))
    numbers = st.floats(-100, 100)
    return draw(st.lists(numbers, min_size=sum(lengths), max_size=sum(lengths))), lengths


@given(logs(), st.floats(0, 0.99), st.booleans())
def test_a_filtered_change_is_the_recursion(
    log: tuple[list[float], list[int]], pole: float, from_zero: bool
) -> None:
    values, lengths = log
    signals = signals_of(values, lengths)
    expected = []
    for begin in np.cumsum([0, *lengths[:-1]]):
        length = lengths[len([d for d in np.cumsum(lengths) if d <= begin])]
        before, change = (0.0 if from_zero else values[begin]), 0.0
        for value in values[begin : begin + length]:
            change = pole * change + (1 - pole) * (value - before)
            expected.append(change)
            before = value
    found = signals.filtered_change(signals.errors[:, 0], pole, from_zero)
    assert found == pytest.approx(expected, abs=1e-9)


@given(logs(), st.integers(0, 14), st.integers(0, 2))
def test_sums_and_delays_stay_within_episodes(
    log: tuple[list[float], list[int]], window: int, delay: int
) -> None:
    values, lengths = log
    signals = signals_of(values, lengths)
    sums, delayed = [], []
    begin = 0
    for length in lengths:
        episode = values[begin : begin + length]
        sums += [sum(episode[: t + 1][-window:]) for t in range(length)]
        delayed += [episode[max(0, t - delay)] for t in range(length)]
        begin += length
    errors = signals.errors[:, 0]
    assert signals.summed(errors, window) == pytest.approx(sums, abs=1e-9)
    assert signals.delayed(errors, delay) == pytest.approx(delayed)


def test_what_is_left_is_that_of_laws_fitted_to_the_other_parts() -> None:
    rng = np.random.default_rng(0)
    x, parts = rng.normal(3, 1, (2, 100)), np.repeat(np.arange(5), 20)
    y = 2 * x[0] + 1 + rng.normal(0, 0.5, 100)
    moments = measure_moments(np.stack([*x, y]), None, np.arange(20, 101, 20), np.zeros(100, np.int64))
    left = 0.0
    design = np.stack([*x, np.ones(100)], axis=1)
    for part in range(5):
        gains = np.linalg.lstsq(design[parts != part], y[parts != part])[0]
        left += float(np.sum((y - design @ gains)[parts == part] ** 2))
    assert moments.unexplained([0, 1]) == pytest.approx(left / np.sum((y - y.mean()) ** 2))
    assert moments.prune([0, 1]) == [0]


def test_a_law_among_hundreds_of_terms_is_found() -> None:
    """Of 150 terms three count. Dropping terms by trying each of them would take an inverse for each try."""
    rng = np.random.default_rng(4)
    x = rng.normal(0, 1, (150, 3000))
    y = 2 * x[7] - 0.3 * x[80] + 0.1 * x[149] + rng.normal(0, 0.2, 3000)
    moments = measure_moments(np.stack([*x, y]), None, np.arange(600, 3001, 600), np.zeros(3000, np.int64))
    assert len(moments.without_the_weakest(range(150))) == 48
    assert sorted(moments.prune(range(150))) == [7, 80, 149]
