import numpy as np
import pytest

from clearloop.networks import Scaling


def test_standardised_columns_have_mean_0_and_deviation_1() -> None:
    rows = np.random.default_rng(0).normal([3.0, -200.0], [0.01, 50.0], size=(500, 2))
    standardised = Scaling.of(rows).standardise(rows)
    np.testing.assert_allclose(standardised.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(standardised.std(axis=0), 1.0, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -293.15, 1e12])
def test_a_constant_column_is_0_in_spite_of_rounding(value: float) -> None:
    rows = np.full((9_001, 1), value)
    scaling = Scaling.of(rows)
    assert scaling.scale == 0.0
    assert not scaling.standardise(rows).any()
    assert not scaling.standardise(rows + 5.0).any()


def test_small_variation_around_a_large_value_is_no_constant() -> None:
    assert Scaling.of(np.array([[1e6], [1e6 + 0.01]])).scale == pytest.approx(0.005, rel=1e-6)
