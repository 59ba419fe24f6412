"""Searches on the batch alone."""

import numpy as np
import polars as pl
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from clearloop.controllers import to_json
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.methods import Method, Problem, Result, learn, snapshot
from clearloop.methods.learning import batch_value
from clearloop.methods.lqr import LQR, design
from clearloop.registry import METHODS
from tests.methods.linear_plants import make_log, make_model, make_task
from tests.methods.small_values import make_values_small
from tests.methods.test_conformance import SMALL, U, V

TASK = make_task(2, symmetric=True)
LOG, MODEL = make_log(TASK, U, V), make_model(TASK, U, V)


@pytest.fixture(autouse=True)
def _small_values(monkeypatch: pytest.MonkeyPatch) -> None:
    make_values_small(monkeypatch)


def run(method: Method, **more: object) -> Result:
    return learn(
        TASK, LOG, method, rng=np.random.default_rng(0), budget=10_000_000, surrogate=MODEL, value="batch",
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.needs_model])
def test_methods_search_and_are_judged_on_the_batch(name: str) -> None:
    result = run(SMALL[name], robust=False)  # a robust front keeps what a better one without margins beats
    assert result.points
    assert all(point.judged.on == "batch" for point in result.points)
    assert all(point.model.on == "model" for point in result.points)
    costs = [point.judged.penalty for point in result.points]
    assert costs == sorted(costs, reverse=True)


def test_what_is_spent_are_logged_steps() -> None:
    result = run(SMALL["lqr"])
    value = batch_value(TASK, LOG, rng=np.random.default_rng(0))
    assert value.cost == len(value.steps.reward) * TASK.horizon
    assert result.steps == 5 * value.cost  # LQR tries five weights


@pytest.mark.parametrize("name", ["pid", "pso-p"])  # cloning and NFQ first look at the log
def test_methods_that_need_the_model_say_so(name: str) -> None:
    with pytest.raises(ClearloopError, match="needs a model of the plant: it cannot use --value batch"):
        run(SMALL[name])


def test_sums_do_not_depend_on_the_number_of_cores() -> None:
    seen = []
    with threadpool_limits(2, user_api="blas"):
        run(SMALL["lqr"], watch=lambda *_: seen.extend(threadpool_info()))
    assert {one["num_threads"] for one in seen if one["user_api"] == "blas"} == {1}


def test_an_unknown_value() -> None:
    with pytest.raises(ClearloopError, match="value plant: expected model or batch"):
        learn(TASK, LOG, SMALL["lqr"], rng=np.random.default_rng(0), value="plant", surrogate=MODEL)


def test_a_search_that_goes_on_ends_the_same() -> None:
    states = []

    def watch(search: object, problem: Problem) -> None:
        states.append(snapshot(search, problem))  # type: ignore[arg-type]

    whole = run(SMALL["fpsrl"], watch=watch)
    assert len(states) > 2
    again = run(SMALL["fpsrl"], resume=states[1])
    assert [to_json(p.controller) for p in again.points] == [to_json(p.controller) for p in whole.points]
    assert [p.judged.penalty for p in again.points] == [p.judged.penalty for p in whole.points]


def test_where_no_gain_can_be_found_nothing_is_done_for_comparison() -> None:
    still = Batch.from_frame(LOG.to_frame().with_columns(u0=pl.lit(0.5)), TASK)  # no telling what it does
    with pytest.raises(ClearloopError):
        design(TASK, still, LQR())
    value = batch_value(TASK, still, rng=np.random.default_rng(0))
    assert np.isfinite(value.steps.reward).all()
