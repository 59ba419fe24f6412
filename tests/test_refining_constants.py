"""Constants wherever they stand, and their digits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.controllers import to_json
from clearloop.numbers import significant
from clearloop.refining import digits_of, sizes, with_size
from tests.controllers.kinds import KINDS

READABLE = ("equation", "lagging equation", "linear", "pid", "fuzzy")


@given(st.floats(1e-9, 1e9), st.integers(1, 6))
def test_rounding_keeps_so_many_digits(value: float, digits: int) -> None:
    short = significant(value, digits)
    assert digits_of(short) <= digits


@pytest.mark.parametrize(
    ("value", "digits"),
    [(0.1, 1), (10.0, 1), (1200.0, 2), (0.00250, 2), (1e-7, 1), (1.5e20, 2), (3.14159, 6)],
)
def test_digits_are_those_that_mean_something(value: float, digits: int) -> None:
    assert digits_of(value) == digits


@pytest.mark.parametrize("kind", READABLE)
def test_nothing_changes_if_no_constant_does(kind: str) -> None:
    same = KINDS[kind].with_constants(lambda value: value)
    assert sizes(same) == sizes(KINDS[kind])
    if not kind.endswith("equation"):
        assert to_json(same) == to_json(KINDS[kind])


def test_constants_of_one_size_change_together_and_keep_their_signs() -> None:
    changed = to_json(with_size(KINDS["fuzzy"], 0.39, 0.4))
    assert changed.count('"width": 0.4') == 2
    changed = to_json(with_size(KINDS["fuzzy"], 0.9, 1.0))
    assert '"then": 1.0' in changed
    assert '"then": -1.0' in changed


def test_windows_and_setpoints_are_not_constants() -> None:
    assert 40.0 not in sizes(KINDS["pid"])
    assert 0.4 not in sizes(KINDS["linear"])  # its setpoint
    assert set(sizes(KINDS["linear"])) == {2.8, 38.8, 3.9, 10.1, 0.1}
