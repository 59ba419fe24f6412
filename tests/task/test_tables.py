"""Actions that take only some values: limited, then rounded to the nearest, halves up."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.errors import ClearloopError
from clearloop.task import Task
from clearloop.task.tables import MOST_LEVELS, draw_levels, to_level, to_levels, whole
from tests.task.texts import edited

FORCE = "limits = [-10.0, 10.0]"


@st.composite
def ranges(draw: st.DrawFn) -> tuple[float, float, int]:
    low = draw(st.sampled_from([0.0, -10.0, 0.1, -1 / 3]) | st.floats(-1e3, 1e3))
    width = draw(st.sampled_from([1.0, 0.3, 100.0]) | st.floats(1e-2, 1e3))
    return low, low + width, draw(st.integers(1, 10) | st.integers(1, 10_000))


def shares() -> st.SearchStrategy[float]:
    return st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0.0, 1.0)


@given(ranges(), shares())
def test_the_level_is_the_nearest_and_its_own_level(ends: tuple[float, float, int], share: float) -> None:
    low, high, count = ends
    value = min(max(low + share * (high - low), low), high)
    level = to_level(value, low, high, count)
    assert low <= level <= high
    assert to_level(level, low, high, count) == level
    step = Fraction(high - low) / count
    assert abs(Fraction(level) - Fraction(value)) <= step / 2 + Fraction(1, 10**9)
    k = (Fraction(level) - Fraction(low)) / step
    assert abs(k - round(k)) < Fraction(1, 10**5)


@given(ranges(), st.lists(shares(), min_size=1, max_size=5))
def test_arrays_are_rounded_to_the_same_bits(ends: tuple[float, float, int], some: list[float]) -> None:
    low, high, count = ends
    values = low + np.array(some) * (high - low)
    limits, counts = np.array([[low, high], [-1.0, 1.0]]), np.array([count, 0])
    rounded = to_levels(np.stack([values, 3 * np.array(some)], axis=1), limits, counts)
    expected = [to_level(min(max(value, low), high), low, high, count) for value in values.tolist()]
    assert rounded[:, 0].tolist() == expected
    assert rounded[:, 1].tolist() == [min(3 * share, 1.0) for share in some]


@pytest.mark.parametrize(
    ("value", "low", "high", "count", "expected"),
    [
        (0.5, 0, 1, 1, 1),  # a half goes up
        (0.4999, 0, 1, 1, 0),
        (-0.5, -1, 1, 2, 0),
        (2.5, 0, 100, 100, 3),
        (0.31, 0, 1, 10, 0.3),
        (0.3, 0.0, 0.3, 3, 0.3),
        (14.9, 0, 100, 20, 15),
    ],
)
def test_levels(value: float, low: float, high: float, count: int, expected: float) -> None:
    assert to_level(value, low, high, count) == expected


def test_steps_are_counted_as_a_person_would() -> None:
    assert whole(0.3, 0.1) == 3
    assert whole(100.0, 1.0) == 100
    assert whole(1.0, 1e-6) == MOST_LEVELS
    assert whole(1.0, 0.3) is None
    assert whole(1.0, 1e-300) is None
    assert whole(1.7e308, 1e307) is None  # its steps cannot be counted without overflow
    assert not whole(1.0, 3.0)


def test_draws_are_uniform_over_the_levels() -> None:
    limits, counts = np.array([[0.0, 1.0], [-10.0, 10.0], [-1.0, 1.0]]), np.array([1.0, 4.0, 0.0])
    drawn = draw_levels(limits, counts, (20_000,), np.random.default_rng(0))
    switch, levels, free = drawn.T
    assert 0.48 < switch.mean() < 0.52
    values, often = np.unique(levels, return_counts=True)
    assert values.tolist() == [-10, -5, 0, 5, 10]
    np.testing.assert_allclose(often / len(levels), 0.2, atol=0.01)
    low, high = limits.T
    same = np.random.default_rng(0).uniform(low, high, size=(20_000, 3))
    np.testing.assert_array_equal(free, same[:, 2])
    assert math.isclose(free.mean(), 0, abs_tol=0.02)


def test_a_task_counts_its_steps() -> None:
    task = Task.from_toml(edited((FORCE, f"{FORCE}, step = 2.5")))
    assert task.action_counts.tolist() == [8]
    assert Task.load("cartpole").action_counts.tolist() == [0]
    assert Task.from_dict(task.model_dump(mode="json")) == task


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("3", ": step: expected limits that are a whole number of steps apart, at most 1,000,000"),
        ("1e-9", ": step: expected limits that are a whole number of steps apart"),
        ("0", ".step: expected a number greater than 0"),
        ("-1", ".step: expected a number greater than 0"),
        ("nan", ".step: expected a number greater than 0"),
        ('"1"', ".step: expected a number greater than 0"),
        ("true", ".step: expected a number greater than 0"),
    ],
)
def test_a_wrong_step_is_told(step: str, expected: str) -> None:
    with pytest.raises(ClearloopError) as caught:
        Task.from_toml(edited((FORCE, f"{FORCE}, step = {step}")))
    assert str(caught.value).startswith(f"task: [actions] force{expected}")
