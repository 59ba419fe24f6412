import numpy as np
import pytest

from clearloop.controllers import Equation
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.methods import BUDGETS, Candidate, Problem, Result
from clearloop.methods.learning import JUDGED_STARTS, judge, read_budget
from clearloop.plants.scenarios import Scenarios
from tests.methods.linear_plants import make_log, make_model, make_problem, make_task

TASK = make_task(2)
U, V = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
BATCH, MODEL = make_log(TASK, U, V), make_model(TASK, U, V)

GOOD, POOR, POOR_AND_LONG = "-3*x0 - 3*x1", "-x0", "x0 + 1*x1 + 0*x0"


def judged(*formulas: str) -> Result:
    candidates = [Candidate(Equation(outputs={"u0": formula}), 0.0) for formula in formulas]
    return judge("gprl", candidates, TASK, BATCH, MODEL, steps=7, rng=np.random.default_rng(0))


def formulas(result: Result) -> list[str]:
    return [point.controller.summary for point in result.points]


def test_the_dominated_are_dropped_and_the_rest_is_sorted() -> None:
    result = judged(POOR_AND_LONG, GOOD, POOR)
    assert formulas(result) == [Equation(outputs={"u0": text}).summary for text in (POOR, GOOD)]


def test_of_two_equally_complex_ones_the_better_stays() -> None:
    better = Equation(outputs={"u0": GOOD}).summary
    assert formulas(judged("3*x0 - 3*x1", GOOD)) == [better]
    assert formulas(judged(GOOD, "3*x0 - 3*x1")) == [better]


def test_judges_on_starts_of_its_own_and_promises_on_the_scoring_set() -> None:
    (point,) = judged(GOOD).points
    promise = evaluate(point.controller, TASK, surrogate=MODEL, members=MODEL.judge_members)
    assert point.model.penalty == promise.penalty
    assert point.judged.penalties.shape == (1, JUDGED_STARTS)
    assert point.judged.penalty != promise.penalty
    assert point.system is None


def test_the_front_has_the_columns_of_the_file() -> None:
    front = judged(GOOD, POOR).front
    assert front.columns == [
        "controller", "method", "complexity", "penalty_model", "penalty_model_se", "penalty_system",
        "penalty_system_se", "failures_system", "formula", "penalty_low", "penalty_high", "penalty_disturbed",
        "phase_margin", "gain_margin", "delay_margin", "ms", "robust",
    ]  # fmt: skip
    assert front["controller"].to_list() == ["001", "002"]
    assert front["penalty_system"].to_list() == [None, None]
    assert "2 controllers" in repr(judged(GOOD, POOR))


def test_budgets_have_names() -> None:
    assert read_budget("quick") == BUDGETS["quick"] < BUDGETS["standard"] < BUDGETS["full"]
    assert read_budget(123) == 123
    with pytest.raises(ClearloopError, match="budget qick: expected quick, standard, full"):
        read_budget("qick")


def test_starts_come_from_the_log_where_the_task_names_no_box() -> None:
    boxless = make_task(2, starts={"from": "batch"})
    starts = Scenarios.drawn(boxless, make_log(boxless, U, V), 50, np.random.default_rng(1))
    assert {tuple(start[:2]) for start in starts.starts} <= {tuple(state) for state in BATCH.states}


def test_a_problem_counts_steps_and_uses_what_there_is() -> None:
    from clearloop.methods.gprl import GPRL, Equations

    problem: Problem = make_problem(TASK, BATCH, MODEL, starts=16)
    equations = Equations(problem, GPRL().functions)
    genomes = [equations.grow(np.random.default_rng(n), 2) for n in range(3)]
    ((_, policies),) = equations.encode(genomes)
    one = problem.penalties(policies, starts=16, members=1)
    assert problem.spent == 3 * 16 * 1 * TASK.horizon
    many = problem.penalties(policies, starts=16, members=99)
    assert problem.spent == 3 * 16 * (1 + 2) * TASK.horizon
    np.testing.assert_allclose(one, many, rtol=1e-6)  # every member is the plant


def test_what_is_compared_stands_beside_the_front_however_it_is_judged() -> None:
    of = [Equation(name=name, outputs={"u0": formula}) for name, formula in (("a", POOR), ("b", GOOD))]
    candidates = [Candidate(of[0], 0.0), *(Candidate(each, 0.0, compared=True) for each in of)]
    result = judge("nfq", candidates, TASK, BATCH, MODEL, steps=7, rng=np.random.default_rng(0))
    assert [point.controller.name for point in result.points] == ["a"]
    assert [point.controller.name for point in result.beside] == ["a", "b"]
    assert (
        result.beside[0].judged.penalty == result.points[0].judged.penalty > result.beside[1].judged.penalty
    )
    assert result.best is result.points[0].controller
    assert len(result.front) == 1
