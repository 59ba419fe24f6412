"""Means, intervals and order of methods."""

import numpy as np
import pytest

from clearloop.bench.engines import Failure
from clearloop.bench.table import Difference, Mean, Row, Scores, document, ordered, ranking, read_scores


def scores(method: str, seed: int, costs: list[float], *, track: str = "best") -> Scores:
    score = {"model": costs, "system": costs, "failures": 0.25, "complexity": 11}
    (found,) = read_scores({"scores": {method: score}}, track, seed)
    return found


def test_what_an_experiment_gave_is_a_row() -> None:
    found = scores("gprl", 3, [1.0, 2.0])
    assert found.row == Row("gprl", "best", 3, 1.5, 1.5, 0.25, 11)
    (untested,) = read_scores(
        {"scores": {"lqr": {"model": [1.0], "system": None, "failures": None, "complexity": 2}}}, "best", 0
    )
    assert untested.row == Row("lqr", "best", 0, 1.0, None, None, 2)


def test_means_with_standard_errors() -> None:
    assert str(Mean.of([1.0, 2.0, 3.0])) == "2.000 ± 0.577"
    assert str(Mean.of([2.5])) == "2.500"
    assert str(Mean.of([None, 1.0, 3.0])) == "2.000 ± 1.000"
    assert str(Mean.of([None])) == ""


def test_the_interval_of_a_difference_covers_the_truth() -> None:
    """Over many benches in which starts and searches are drawn anew: in about 95 of 100."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        starts = rng.normal(0, 1, 200)  # hard and easy ones, the same for both methods
        one, other = (
            [starts * slope + rng.normal(0, 0.05) + mean + rng.normal(0, 0.2, 200) for _ in range(10)]
            for mean, slope in ((3.0, 1.0), (2.9, 1.2))
        )
        found = Difference.of(one, other)
        covered += abs(found.mean - 0.1) <= found.half_width
    assert 0.92 <= covered / 400 <= 0.99


def test_the_error_of_a_difference_has_both_of_its_parts() -> None:
    """Of starts: variance 2 of two differences, so 1. Of searches: means 5 and 7, and 4 and 4, so 1 more."""
    one = [np.array([4.0, 6.0]), np.array([6.0, 8.0])]
    assert Difference.of(one[:1], [np.array([3.0, 3.0])]) == pytest.approx((2.0, 1.96))
    assert Difference.of(one, [np.array([4.0, 4.0])] * 2) == pytest.approx((2.0, 1.96 * np.sqrt(2.0)))


def test_pairing_makes_small_differences_certain() -> None:
    starts = np.random.default_rng(1).normal(0, 5, 1000)
    assert Difference.of([starts + 0.1], [starts]).certain
    assert not Difference.of([starts + 0.1], [starts[::-1]]).certain


def test_fewer_starts_are_compared_with_the_same_ones() -> None:
    long, short = np.array([1.0, 2.0, 30.0, 40.0]), np.array([0.5, 1.0])
    assert Difference.of([long], [short]).mean == pytest.approx(0.75)


def test_the_ranking_compares_each_with_the_next_better() -> None:
    found = [scores("lqr", 0, [3.0, 3.5]), scores("gprl", 0, [1.0, 2.0]), scores("pid", 0, [2.0, 4.0])]
    assert [(one.method, one.better) for one in ranking(found)] == [("pid", "gprl"), ("lqr", "pid")]
    assert ranking(found)[0].difference.mean == pytest.approx(1.5)


def test_methods_stand_as_in_the_paper() -> None:
    assert ordered(["gprl", "cloning", "nfq-last", "lqr", "gprl"]) == ["lqr", "nfq-last", "gprl", "cloning"]


def test_the_document_says_all() -> None:
    found = [scores("gprl", seed, [1.0 + seed, 2.0, 3.0]) for seed in (0, 1)]
    found += [scores("pso-p", seed, [1.0, 1.5]) for seed in (0, 1)]
    known = [scores("GPRL equation", 0, [2.5, 3.5, 4.5])]
    text = document(
        "cartpole", {"best": found}, {"best": known}, {"best-pid-0": Failure("no luck")}, in_paper=True
    )
    lines = text.splitlines()
    assert "| penalty | PSO-P | GPRL |" in lines
    assert "| plant | 1.250 ± 0.000 | 2.167 ± 0.167 |" in lines
    assert "| plant, paper | 4.20 ± 0.04 | 2.71 ± 0.03 |" in lines
    assert "| gprl | 1.750 ± 0.250 |" in lines  # from the starts of the planner
    assert any(line.startswith("| gprl | pso-p | +0.500 ± ") for line in lines)
    assert "| GPRL equation | 3.500 | 3.500 | 25.0 % |" in lines
    assert "- best-pid-0, no luck" in lines


def test_where_every_experiment_failed() -> None:
    text = document("cartpole", {"best": []}, {"best": []}, {"best-pid-0": Failure("no luck")}, in_paper=True)
    assert "No experiment was finished." in text.splitlines()
    assert "- best-pid-0, no luck" in text.splitlines()
