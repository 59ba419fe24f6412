"""The front of a run: numbers over all methods, and the pick."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.controllers import Equation
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation
from clearloop.methods import Point, Result
from clearloop.methods.learning import PLANNED_STARTS
from clearloop.runs import Front, RunDirectory
from clearloop.runs.directory import read_state, write_state
from clearloop.runs.front import (
    PublishedEntry,
    Scored,
    Trusted,
    _evenly,
    _spread,
    beside_planners,
)
from clearloop.runs.learning import result_from_state, result_to_state

NOISE = np.random.default_rng(0).normal(size=(40, 64))
NOISE -= NOISE.mean(axis=1, keepdims=True)


def evaluation(on: str, cost: float, noise: int = 0) -> Evaluation:
    penalties = cost + NOISE[noise : noise + 2]
    return Evaluation("pole", on, penalties, penalties > 2)


def result(method: str, costs: Sequence[float], first: int = 0, *, tested: bool = True) -> Result:
    """A controller for each cost, each longer than the one before; they differ by 0.1 from start to start."""
    points = []
    for n, cost in enumerate(costs, first):
        equation = Equation(outputs={"u": " + ".join(["0.123456789*x"] * (n + 1))})
        judged = Evaluation(
            "pole", "model", cost + NOISE[:2] + 0.1 * NOISE[n + 3], np.zeros((2, 64), np.bool_)
        )
        system = evaluation("system", cost, n) if tested else None
        points.append(Point(equation, judged, evaluation("model", cost), system))
    return Result(method, tuple(points), 1000)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1).map(lambda x: round(x, 2)), min_size=1, max_size=8, unique=True))
def test_the_pick_is_within_a_standard_error_of_the_best_and_nothing_simpler_is(costs: list[float]) -> None:
    found = result("gprl", sorted(costs, reverse=True))
    by_start = [point.judged.penalties.mean(axis=0) for point in found.points]
    extras = [cost - by_start[-1] for cost in by_start]
    close = [extra.mean() <= extra.std(ddof=1) / 8 for extra in extras]
    assert Front.of([found]).pick == close.index(True)


def test_the_pick_is_the_simplest_that_cannot_be_told_from_the_best() -> None:
    # a standard error of the difference is about 0.1 * sqrt(2) / 8 = 0.018
    front = Front.of([result("gprl", [3.0, 2.0, 1.01, 1.0])])
    assert (front.simplest, front.pick, front.best) == (0, 2, 3)
    assert front.reason("64 starts").startswith(
        "the simplest that cannot be told from the best, 004: on 64 starts it costs 0.0"
    )
    assert Front.of([result("gprl", [3.0, 2.0, 1.2, 1.0])]).pick == 3
    alone = Front.of([result("gprl", [3.0, 2.0, 1.2, 1.0])]).reason("64 starts")
    assert alone.startswith("the best on 64 starts; ")


def test_methods_follow_each_other_and_share_the_pick() -> None:
    front = Front.of([result("psonn", [1.0], first=9), result("gprl", [3.0, 1.005, 1.001])])
    assert [entry.controller for entry in front.entries] == ["001", "002", "003", "004"]
    assert [entry.method for entry in front.entries] == ["psonn", "gprl", "gprl", "gprl"]
    assert front.simplest == 1
    assert front.pick == 2  # gprl's second: as good as the network, and simpler
    assert [row.extra == 0 for row in front.judged].count(True) == 1


@pytest.mark.parametrize("tested", [True, False])
def test_a_front_is_read_as_it_was_written(tmp_path: Path, tested: bool) -> None:
    known = [PublishedEntry("lqr", "LQR", 1.5, 1.25, 0.1, True)] if tested else []
    front = Front.of([result("gprl", [3.0, 1.1, 1.0], tested=tested)], known)
    front.write(RunDirectory(tmp_path))
    assert Front.read(RunDirectory(tmp_path)) == front
    assert (tmp_path / "published.csv").exists() == tested


def test_no_controllers_are_an_error() -> None:
    with pytest.raises(ClearloopError, match="found no controller"):
        Front.of([Result("gprl", (), 3)])


def test_results_are_kept_to_the_bit(tmp_path: Path) -> None:
    found = result("gprl", [3.0, 1.1])
    write_state({"result": result_to_state(found)}, tmp_path / "x")
    back = result_from_state(read_state(tmp_path / "x")["result"])
    assert (back.method, back.steps) == (found.method, found.steps)
    assert back.front.equals(found.front)
    for one, two in zip(found.points, back.points, strict=True):
        assert one.controller == two.controller
        np.testing.assert_array_equal(one.judged.penalties, two.judged.penalties)
        assert one.system is not None
        assert two.system is not None
        np.testing.assert_array_equal(one.system.failed, two.system.failed)


@pytest.mark.parametrize("promise", [2.0, -2.0])
def test_models_that_differ_are_a_warning_whatever_the_sign_of_the_penalty(promise: float) -> None:
    assert Trusted("001", promise, 0.05, 0.19, None).warnings == []
    assert Trusted("001", promise, 0.11, 0.21, None).warnings == [
        "11 % of its path is outside the logged region",
        "the models' estimates of its cost differ by 0.21",
    ]


def test_a_warning_begins_beyond_its_limit() -> None:
    assert Trusted("001", 2.0, 0.1, 0.2, None).warnings == []
    assert Trusted("001", 2.0, None, None, None).warnings == []
    assert len(Trusted("001", 0.5, None, 0.06, None).warnings) == 1


def test_planners_are_compared_from_their_own_starts() -> None:
    """They are scored from fewer starts, so that everything beside them is scored from these alone."""
    plain = Scored("001", False, evaluation("model", 1.0), evaluation("system", 2.0))
    planner = Scored("002", True, evaluation("model", 0.5), None)
    assert beside_planners([plain, plain]) == ()
    rows = beside_planners([plain, planner])
    first = NOISE[:2, :PLANNED_STARTS]
    assert [(row.controller, row.planner, row.starts) for row in rows] == [
        ("001", False, first.shape[1]), ("002", True, first.shape[1]),
    ]  # fmt: skip
    assert rows[0].penalty_model == pytest.approx(1.0 + first.mean())
    assert rows[0].penalty_system == pytest.approx(2.0 + first.mean())
    assert rows[0].failures_system == pytest.approx(np.mean(2.0 + first > 2))
    assert (rows[1].penalty_system, rows[1].failures_system) == (None, None)


def judged_by(*costs: Sequence[float]) -> Front:
    points = [
        replace(
            point, judged=Evaluation("pole", "model", np.array([cost]), np.zeros((1, len(cost)), np.bool_))
        )
        for point, cost in zip(result("gprl", [1.0] * len(costs)).points, costs, strict=True)
    ]
    return Front.of([Result("gprl", tuple(points), 10)])


def test_two_are_compared_from_the_starts_that_both_have() -> None:
    front = judged_by([1.0, 3.0, 8.0], [2.0, 3.0])
    assert [row.penalty for row in front.judged] == [4.0, 2.5]
    assert [row.extra for row in front.judged] == [-0.5, 0.0]
    assert front.judged[0].extra_se == pytest.approx(0.5)


def test_of_one_start_there_is_no_error() -> None:
    front = judged_by([1.0], [0.5])
    assert [(row.extra, row.extra_se) for row in front.judged] == [(0.5, None), (0.0, None)]
    assert (front.best, front.pick) == (1, 1)


def test_rows_of_a_log_are_chosen_evenly_and_not_from_a_few() -> None:
    assert _evenly(29).tolist() == []
    assert _evenly(30).tolist() == list(range(30))
    many = _evenly(1_000)
    assert (len(many), many[0], many[-1]) == (256, 0, 999)
    assert set(np.diff(many)) == {3, 4}


def test_the_spread_of_the_models_is_unbiased() -> None:
    failed = np.zeros((2, 3), np.bool_)
    assert _spread(Evaluation("pole", "model", np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]), failed)) == (
        pytest.approx(np.sqrt(2.0))
    )
    assert _spread(Evaluation("pole", "model", np.ones((1, 3)), failed[:1])) is None
