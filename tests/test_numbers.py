"""Numbers as people read them."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.numbers import (
    MINUS_SIGN,
    amount,
    careful_percent,
    clock,
    counted,
    estimate,
    floored_percent,
    format_penalty,
    json_values,
    number,
    penalty_with_error,
    percent,
    plain,
    quantity,
    rough_percent,
    shorten_numbers,
    signed,
    signed_estimate,
    significant,
)


def test_plain_numbers_have_no_power_of_ten_in_the_usual_range() -> None:
    known = {
        1098.4: "1100",
        5333.0: "5330",
        0.1234: "0.123",
        0.0: "0",
        -12345.6: "-12300",
        3.0: "3",
        12e6: "1.2e+07",
    }
    assert {value: plain(value) for value in known} == known


SHARES = st.floats(0, 1)
SIZES = st.floats(1e-9, 1e9)
NUMBERS = st.floats(-1e9, 1e9)


def read_percent(text: str) -> float:
    return float(text.removesuffix(" %")) / 100


@given(SIZES, st.integers(1, 6))
def test_significant_digits_are_near_and_stay(value: float, digits: int) -> None:
    short = significant(value, digits)
    assert abs(short - value) <= 0.5000001 * value * 10.0 ** (1 - digits)
    assert significant(short, digits) == short
    assert significant(-value, digits) == -short


@given(SHARES)
def test_a_percentage_is_the_share_to_within_its_places(share: float) -> None:
    assert read_percent(percent(share)) == pytest.approx(share, abs=0.00050001)
    assert read_percent(percent(share, 0)) == pytest.approx(share, abs=0.0050001)
    assert read_percent(rough_percent(share)) == pytest.approx(share, rel=0.0050001)


@given(SHARES)
def test_a_share_is_never_rounded_to_all_or_nothing(share: float) -> None:
    said = careful_percent(share)
    assert (said == "100 %") == (share >= 1 - 5e-9)
    assert (said == "0 %") == (share < 5e-9)


@given(SHARES)
def test_a_floored_percentage_promises_no_more_than_the_share(share: float) -> None:
    said = read_percent(floored_percent(share))
    assert share - 1.0001e-4 <= said <= share + 1e-9


def test_percentages() -> None:
    assert [percent(0.0614), percent(0.0614, 0), percent(1)] == ["6.1 %", "6 %", "100.0 %"]
    assert [rough_percent(0.000123), rough_percent(0.98765, 2)] == ["0.0123 %", "99 %"]
    assert [floored_percent(0.99999), floored_percent(1.0), floored_percent(0.29)] == [
        "99.99 %",
        "100 %",
        "29 %",
    ]
    assert [careful_percent(0.998), careful_percent(0.99999)] == ["99.8 %", "99.999 %"]


def test_penalties() -> None:
    assert [format_penalty(x) for x in (2.608, 0.0, -3.0, 0.00123, 2.5e7)] == [
        "2.61", "0.00", "-3.00", "0.00123", "2.5e+07",
    ]  # fmt: skip
    assert penalty_with_error(2.608, 0.1234) == "2.61 ± 0.12"
    assert penalty_with_error(2.608, None) == "2.61"


def test_estimates_have_their_error_where_it_is_known() -> None:
    assert estimate(2.9523, 0.0281) == "2.952 ± 0.028"
    assert estimate(2.9523) == estimate(2.9523, math.nan) == "2.952"
    assert signed_estimate(0.0051, 0.003) == "+0.005 ± 0.003"
    assert signed_estimate(-0.5, 0.1, 2) == "-0.50 ± 0.10"


def test_huge_estimates_are_short() -> None:
    assert estimate(-9.137e99, 5e98) == "-9.137e+99 ± 5.000e+98"
    assert estimate(1e9 - 1, 1e9) == "999999999.000 ± 1.000e+09"
    assert signed_estimate(1e12, 0.003, 2) == "+1.00e+12 ± 0.00"


@given(NUMBERS, st.integers(0, 4))
def test_no_difference_is_a_negative_zero(mean: float, places: int) -> None:
    said = signed_estimate(mean, 0.0, places).split(" ± ")[0]
    assert said.startswith("-") == (float(said) < 0)


@given(NUMBERS)
def test_pages_show_a_true_minus_and_no_negative_zero(value: float) -> None:
    said = number(value)
    assert "-" not in said
    assert said != f"{MINUS_SIGN}0"
    assert float(said.replace(MINUS_SIGN, "-")) == significant(value, 4)
    assert signed(value) == ("+" if value > 0 else "") + said


def test_amounts_have_a_unit_if_there_is_one() -> None:
    assert [amount(0.1234, "rad"), amount(0.1234, ""), amount(-1234.5, "N", 4)] == [
        "0.12 rad",
        "0.12",
        "-1234 N",
    ]
    assert [quantity(-49.81, "N"), quantity(-0.0, "")] == [f"{MINUS_SIGN}49.81 N", "0"]


def test_counts_and_durations() -> None:
    assert [counted(n, "model") for n in (0, 1, 1024)] == ["0 models", "1 model", "1,024 models"]
    assert [clock(seconds) for seconds in (0, 59.4, 59.6, 3725)] == ["0:00", "0:59", "1:00", "62:05"]


def test_numbers_in_formulas_are_shortened_and_names_are_not() -> None:
    assert shorten_numbers("x1*2.34567 + y_2.error - 10 + z[t-12]") == "x1*2.35 + y_2.error - 10 + z[t-12]"
    assert shorten_numbers("0.99999*a - 12345.678*b + 1.5e-07*c") == "1*a - 12346*b + 1.5e-07*c"
    assert shorten_numbers("if theta~-0.20001 then +0.9") == "if theta~-0.2 then +0.9"


@given(SIZES)
def test_a_shortened_number_is_near_and_stays(value: float) -> None:
    short = shorten_numbers(repr(value))
    assert float(short) == pytest.approx(value, rel=0.0050001)
    assert shorten_numbers(short) == short


@given(st.recursive(st.floats() | st.integers() | st.booleans(), st.lists))
def test_whatever_is_not_finite_is_null_in_json(values: object) -> None:
    json.dumps(json_values(values), allow_nan=False)


def test_arrays_become_lists_of_six_digits() -> None:
    assert json_values((np.array([[1 / 3, np.nan]]), 2, "x")) == [[[0.333333, None]], 2, "x"]
