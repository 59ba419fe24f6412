from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clearloop.arrays import Floats
from clearloop.search.cma import CMA, Descent, Descents, Rates, root, solved
from tests.search.landscapes import rosenbrock, sphere

EXAMPLES = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def descent_of(d: int = 5, candidates: int = 20, seed: int = 0, start: float = -2.0) -> Descent:
    bounds = np.tile([-4.0, 4.0], (d, 1))
    return Descent(bounds, np.full(d, start), CMA(candidates=candidates), rng=np.random.default_rng(seed))


def run(descent: Descent, cost: Callable[[Floats], Floats], generations: int) -> None:
    for _ in range(generations):
        descent.tell(cost(descent.ask()))


@pytest.mark.parametrize(("cost", "generations"), [(sphere, 150), (rosenbrock, 600)])
def test_finds_known_minima(cost: Callable[[Floats], Floats], generations: int) -> None:
    descent = descent_of()
    run(descent, cost, generations)
    position, value = descent.best
    assert value == cost(position[None])[0] < 1e-9
    assert position == pytest.approx(np.ones(5), abs=1e-4)


def test_the_shape_of_a_skewed_valley_does_not_matter() -> None:
    skew = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0] * 10.0 ** np.arange(-2, 1, 0.5)
    descent = descent_of(6)
    run(descent, lambda x: np.sum(((x - 0.7) @ skew) ** 2, axis=1), 400)
    assert descent.best[0] == pytest.approx(np.full(6, 0.7), abs=1e-4)


def test_finds_minima_in_walls_and_corners() -> None:
    descent = descent_of(4)
    seen = []

    def cost(x: Floats) -> Floats:
        seen.append(x)
        return x[:, 0] - 2 * x[:, 1] + sphere(x[:, 2:])

    run(descent, cost, 200)
    assert descent.best[0] == pytest.approx([-4, 4, 1, 1], abs=1e-3)
    assert np.abs(np.concatenate(seen)).max() <= 4


def test_what_is_not_a_number_comes_last() -> None:
    descent = descent_of(2, candidates=4)
    descent.ask()
    descent.tell(np.full(4, np.nan))
    assert descent.best[1] == np.inf
    asked = descent.ask()
    assert np.isfinite(asked).all()
    descent.tell(np.array([np.nan, 2.0, np.inf, 3.0]))
    assert descent.best[1] == 2.0
    assert np.array_equal(descent.best[0], asked[1])


def test_a_new_measure_replaces_the_old_cost() -> None:
    descent = descent_of(2)
    run(descent, sphere, 3)
    position, _ = descent.best
    descent.revalue(7.0)
    assert descent.best[1] == 7.0
    assert np.array_equal(descent.best[0], position)


def test_begins_where_it_is_told_to() -> None:
    descent = descent_of(3, candidates=500, start=2.0)
    asked = descent.ask()
    assert asked.mean(axis=0) == pytest.approx(np.full(3, 2.0), abs=0.15)
    assert asked.std(axis=0) == pytest.approx(np.full(3, 0.8), rel=0.15)  # a tenth of the range


@EXAMPLES
@given(st.integers(2, 200), st.integers(1, 200))
def test_rates_are_shares(candidates: int, d: int) -> None:
    rates = Rates.usual(candidates, d)
    assert rates.weights.sum() == pytest.approx(1)
    assert np.all(np.diff(rates.weights) <= 0)
    assert np.all(rates.weights >= 0)
    assert all(0 < rate <= 1 for rate in (rates.path, rates.sigma_path, rates.rank_one))
    assert 0 <= rates.rank_mu <= 1 - rates.rank_one


@EXAMPLES
@given(st.integers(1, 12), st.integers(0, 2**32))
def test_roots_are_roots(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    factors, right = rng.normal(size=(d, d + 2)), rng.normal(size=d)
    matrix = factors @ factors.T
    lower = root(matrix)
    assert np.array_equal(lower, np.tril(lower))
    assert lower @ lower.T == pytest.approx(matrix, abs=1e-9)
    assert lower @ solved(lower, right) == pytest.approx(right, abs=1e-6)


def test_a_flat_direction_has_a_root_too() -> None:
    assert np.isfinite(root(np.zeros((3, 3)))).all()
    assert np.isfinite(root(np.ones((3, 3)))).all()


@EXAMPLES
@given(st.integers(2, 12), st.integers(1, 4), st.integers(0, 12), st.integers(0, 2**32))
def test_goes_on_from_a_state_to_the_bit(candidates: int, d: int, generations: int, seed: int) -> None:
    def sequence(descent: Descent) -> list[bytes]:
        asked = []
        for _ in range(5):
            points = descent.ask()
            asked.append(points.tobytes())
            descent.tell(sphere(points))
        return asked

    descent = descent_of(d, candidates, seed)
    run(descent, sphere, generations)
    state = descent.state()
    expected = sequence(descent)
    other = descent_of(d, candidates, seed + 1)
    other.restore(state)
    assert sequence(other) == expected
    assert other.best[1] == descent.best[1]


def test_many_descents_at_once_are_the_descents_one_by_one() -> None:
    sizes, spread = [3, 1, 5], 0.02
    box = 1000.0  # so wide that no bound is reached
    rng = np.random.default_rng(0)
    many = Descents(sizes, 8, spread * 2 * box, rng=np.random.default_rng(1))
    bounds = [np.tile([-box, box], (d, 1)) for d in sizes]
    single = [Descent(own, np.zeros(len(own)), CMA(candidates=8, spread=spread), rng=rng) for own in bounds]
    aims = [rng.normal(0, 40, d) for d in sizes]
    for _ in range(30):
        asked = many.ask()
        costs = np.empty((3, 8))
        for n, (one, aim) in enumerate(zip(single, aims, strict=True)):
            assert np.all(asked[n, :, sizes[n] :] == 0)
            own = asked[n, :, : sizes[n]]
            one.asked = (own + box) / (2 * box)  # the same draws
            costs[n] = np.sum((own - aim) ** 2, axis=1)
            one.tell(costs[n])
        many.tell(costs)
        for n, one in enumerate(single):
            np.testing.assert_allclose(
                many.mean[n, : sizes[n]], (2 * one.mean - 1) * box, rtol=1e-6, atol=1e-6
            )
            np.testing.assert_allclose(many.sigma[n, 0], one.sigma * 2 * box, rtol=1e-6)
            d = sizes[n]
            np.testing.assert_allclose(many.covariance[n, :d, :d], one.covariance, rtol=1e-5, atol=1e-9)
