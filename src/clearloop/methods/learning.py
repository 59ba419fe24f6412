"""From a batch to a front of controllers: rounds of search until the budget is spent, then the judgement."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from clearloop.data import Batch
from clearloop.data.report import refuse
from clearloop.errors import ClearloopError
from clearloop.methods.batch_value import batch_score, batch_value, best_few
from clearloop.methods.method import Method, Search, State
from clearloop.methods.problem import Problem
from clearloop.methods.result import Result, judge
from clearloop.surrogate import BEST, Surrogate, Track, trust
from clearloop.task import Task

BUDGETS = {"quick": 1_500_000_000, "standard": 6_000_000_000, "full": 45_000_000_000}
"""In steps of the model, so that they mean the same on every machine."""

VALUES = ("model", "batch")

Watch = Callable[[Search, Problem], None]
"""Called after every round."""


def learn(
    task: Task,
    batch: Batch,
    method: Method,
    *,
    rng: np.random.Generator,
    budget: str | int = "standard",
    track: Track = BEST,
    value: str = "model",
    surrogate: Surrogate | None = None,
    watch: Watch | None = None,
    resume: State | None = None,
    force: bool = False,
) -> Result:
    """Controllers for a task, found by one method on a surrogate of the batch; learned here if none is given.

    `budget`: steps of the model, or the name of a usual amount. `value`: what is minimised and what the front
    is chosen by: penalties on the "model", or those that fitted Q evaluation finds in the "batch" alone; the
    model then only says what it thinks of the front. `resume`: what `snapshot` gave in an earlier call of
    `watch`; with the same other arguments the result is the same as without the interruption. `force`: search
    even if the data, or the model that is learned here, cannot support a controller, which is an error else.
    """
    if value not in VALUES:
        raise ClearloopError(f"value {value}: expected {' or '.join(VALUES)}")
    model_rng, search_rng, judge_rng = streams(rng)
    if surrogate is None:
        surrogate = Surrogate.fit(task, batch, track=track, rng=model_rng)
        if not force and (reasons := trust(task, batch, surrogate).refusals):
            raise refuse(f"task {task.name}", reasons)
    with threadpool_limits(limits=1, user_api="blas"):  # more threads add up in another order
        (value_rng,) = rng.spawn(1)
        from_batch = batch_value(task, batch, rng=value_rng) if value == "batch" else None
        problem = Problem(
            task, batch, surrogate, budget=read_budget(budget), rng=search_rng, value=from_batch
        )
        search = method.begin(problem, rng=search_rng)
        if resume is not None:
            problem.spent = resume["spent"]
            search.restore(resume["search"])
        while not search.done and problem.spent < problem.budget:
            search.advance()
            if watch is not None:
                watch(search, problem)
        found, score = search.candidates(), None
        if from_batch is not None:
            found, score = best_few(found), batch_score(task, batch, rng=value_rng)
        return judge(
            method.name, found, task, batch, surrogate, steps=problem.spent, rng=judge_rng, score=score
        )


class Streams(NamedTuple):
    model: np.random.Generator
    search: np.random.Generator
    judge: np.random.Generator


def streams(rng: np.random.Generator) -> Streams:
    """What the parts of `learn` draw from."""
    return Streams(*rng.spawn(3))


def snapshot(search: Search, problem: Problem) -> State:
    """What `learn` can resume from."""
    return {"spent": problem.spent, "search": search.state()}


def read_budget(budget: str | int) -> int:
    if isinstance(budget, int):
        return budget
    if budget not in BUDGETS:
        raise ClearloopError(f"budget {budget}: expected {', '.join(BUDGETS)}, or a number of model steps")
    return BUDGETS[budget]
