"""A focus gives nearly the differences between laws that all starts give, from few of them."""

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.methods.focus import Focus

N = 512


def make_costs(laws: int, seed: int) -> Floats:
    """Laws that cost the same from most starts; from one in twenty they fail or do not."""
    rng = np.random.default_rng(seed)
    shared = 2 + rng.random(N)
    difficult = np.random.default_rng(9).random(N) < 0.05
    costs: Floats = (
        shared + difficult * rng.choice([0.0, 10.0], (laws, N)) + 0.01 * rng.normal(size=(laws, N))
    )
    return costs


def test_differences_between_laws_are_more_exact_than_on_an_even_sample() -> None:
    known = make_costs(8, 0)
    new = known.min(axis=0) + np.abs(make_costs(30, 1) - make_costs(1, 1)[:1])
    errors = []
    for seed in range(40):
        focus = Focus.draw(known, 32, rng=np.random.default_rng(seed))
        errors.append(focus.penalties(new[:, focus.starts]) - new.mean(axis=1))
    even = new[:, :: N // 32].mean(axis=1) - new.mean(axis=1)
    assert abs(np.mean(errors)) < 0.05  # no bias
    assert np.std(errors) < 0.5 * np.std(even)


def test_the_reference_keeps_its_penalty() -> None:
    known = make_costs(8, 0)
    best = known[[np.argmin(known.mean(axis=1))]]
    focus = Focus.draw(known, 32, rng=np.random.default_rng(0))
    assert focus.penalties(best[:, focus.starts]) == pytest.approx(best.mean())


@pytest.mark.parametrize("n", [1, 8, 32, 300, N, 2 * N])
def test_the_sample_has_the_size_that_is_asked_for(n: int) -> None:
    focus = Focus.draw(make_costs(8, 0), n, rng=np.random.default_rng(1))
    assert abs(len(focus.starts) - min(n, N)) <= 1
    assert (np.diff(focus.starts) > 0).all()


def test_laws_that_agree_everywhere_are_told_apart_by_an_even_sample() -> None:
    focus = Focus.draw(np.tile(make_costs(1, 0), (4, 1)), 32, rng=np.random.default_rng(1))
    assert len(focus.starts) == 32
    assert focus.weights == pytest.approx(1 / 32)
