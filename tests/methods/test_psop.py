"""PSO-P: the planner that it makes, and what it says about it."""

from pathlib import Path

import numpy as np
import pytest

from clearloop.controllers import Planner, load, save
from clearloop.evaluation import evaluate, with_model
from clearloop.methods import Result, learn
from clearloop.methods.learning import JUDGED_STARTS, PLANNED_STARTS
from clearloop.methods.lqr import LQR
from clearloop.methods.psop import PSOP
from clearloop.runs import Front, RunDirectory
from tests.controllers.kinds import CARTPOLE
from tests.methods.linear_plants import make_log, make_model, make_problem, make_task

U, V = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
TASK = make_task(2, horizon=30)
MODEL, BATCH = make_model(TASK, U, V), make_log(TASK, U, V)
SMALL = PSOP(horizon=10, hold=2, particles=12, rounds=3, tried=4)


def test_the_horizon_follows_the_tasks() -> None:
    planner = PSOP().planner(CARTPOLE, seed=7)
    assert (planner.horizon, planner.hold, planner.seed) == (60, 6, 7)
    other = PSOP(horizon=20, hold=1, particles=5, rounds=2, members=3).planner(TASK, seed=0)
    expected = Planner(
        run="..", outputs=("u0",), horizon=20, hold=1, particles=5, rounds=2, members=3, seed=0
    )
    assert other == expected
    far = PSOP().planner(make_task(2, horizon=1_000_000), seed=0)
    assert (far.horizon, far.hold) == (10_000, 1_000)


def test_its_one_round_tries_it_on_a_model_that_it_does_not_plan_with() -> None:
    problem = make_problem(TASK, BATCH, MODEL)
    search = SMALL.begin(problem, rng=np.random.default_rng(0))
    assert not search.done
    assert search.best == np.inf
    search.advance()
    assert search.done
    (candidate,) = search.candidates()
    score = evaluate(candidate.controller, TASK, surrogate=MODEL, members=[1], starts=problem.starts[:4])
    assert search.best == candidate.penalty == score.penalty
    assert problem.spent == 4 * 30 * (1 + 12 * 3 * 10)  # every step: the plant's, and those of the plans


def test_a_search_goes_on_where_it_was() -> None:
    problem = make_problem(TASK, BATCH, MODEL)
    first, second = (SMALL.begin(problem, rng=np.random.default_rng(1)) for _ in range(2))
    first.advance()
    second.restore(first.state())
    assert second.done
    assert second.best == first.best


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [
        learn(TASK, BATCH, method, rng=np.random.default_rng(5), surrogate=MODEL, budget=10_000_000)
        for method in (LQR(), SMALL)
    ]


def test_it_is_judged_from_fewer_starts_and_compared_on_those(results: list[Result]) -> None:
    linear, planned = results
    (point,), (other,) = planned.points, linear.points
    assert point.judged.penalties.shape == point.model.penalties.shape == (1, PLANNED_STARTS)
    assert other.judged.penalties.shape == (1, JUDGED_STARTS)
    front = Front.of(results)
    assert front.planners == [1]
    fewer = other.judged.penalties[:, :PLANNED_STARTS]
    assert front.judged[0].extra == 0.0
    assert front.judged[1].extra == pytest.approx(point.judged.penalty - fewer.mean(), abs=1e-12)
    beside = other.model.penalties[:, :PLANNED_STARTS].mean()
    assert [row.penalty_model for row in front.planned] == [beside, point.model.penalty]
    assert [row.starts for row in front.planned] == [PLANNED_STARTS] * 2


def test_it_is_never_the_pick_where_there_is_something_to_read(results: list[Result], tmp_path: Path) -> None:
    front = Front.of(results)
    assert front.judged[1].extra < 0  # though it is better
    assert front.best == front.pick == front.simplest == 0
    assert Front.of(results[1:]).pick == 0
    front.write(RunDirectory(tmp_path))
    assert Front.read(RunDirectory(tmp_path)) == front


def test_its_file_stands_in_a_run_and_finds_its_model_there(results: list[Result], tmp_path: Path) -> None:
    MODEL.save(tmp_path / "surrogate")
    (tmp_path / "controllers").mkdir()
    planner = results[1].best
    save(planner, tmp_path / "controllers" / "001.json")
    loaded = load(tmp_path / "controllers" / "001.json")
    scores = [
        evaluate(each, TASK, surrogate=MODEL, members=[2], starts=3)
        for each in (loaded, planner, with_model(planner, TASK, MODEL))
    ]
    for score in scores[1:]:
        np.testing.assert_array_equal(score.penalties, scores[0].penalties)
