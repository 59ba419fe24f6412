"""Every method keeps the same promises."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from clearloop.controllers import Controller, Equation, to_json
from clearloop.data import Batch
from clearloop.evaluation import evaluate
from clearloop.methods import Method, Problem, Result, Search, learn, snapshot
from clearloop.methods.cloning import Cloning
from clearloop.methods.evolving import Rounds, Sample
from clearloop.methods.fgprl import FGPRL
from clearloop.methods.fpsrl import FPSRL
from clearloop.methods.gprl import GPRL
from clearloop.methods.method import State
from clearloop.methods.nfq import NFQ
from clearloop.methods.psonn import PSONN
from clearloop.methods.psop import PSOP
from clearloop.methods.swarm import Stages, SwarmStage
from clearloop.registry import METHODS
from clearloop.runs.directory import read_state, write_state
from clearloop.search.cma import CMA
from clearloop.search.gp.genome import GP
from clearloop.search.pso import PSO
from clearloop.task import Task
from clearloop.task.tables import to_levels
from tests.methods.linear_plants import make_log, make_model, make_task

ROUNDS = Rounds(
    race=Sample(8, 1), promoted=2, tune=Sample(8, 1), score=Sample(16, 1), polished=2, final=Sample(16, None)
)
STAGES = Stages(
    swarm=PSO(particles=20),
    explore=Sample(8, 1),
    cma=CMA(candidates=8),
    descend=(SwarmStage(0.6, 2, Sample(8, 1)), SwarmStage(1.0, 1, Sample(16, None))),
)
QUICK: dict[str, Method] = {
    "gprl": GPRL(gp=GP(islands=(11, 21), population=8, offspring=8), rounds=ROUNDS),
    "fgprl": FGPRL(gp=GP(islands=(15, 31), population=8, offspring=8), rounds=ROUNDS),
    "fpsrl": FPSRL(rules=(2,), stages=STAGES),
    "psonn": PSONN(hidden=(3,), stages=STAGES),
    "nfq": NFQ(hidden=(8,), levels=5, iterations=20, epochs=30),
    "cloning": Cloning(epochs=20),
    "pso-p": PSOP(horizon=8, hold=2, particles=10, rounds=2, tried=4),
}
"""Settings for those that would take long; others are tested as they are."""
SMALL: dict[str, Method] = {name: QUICK.get(name) or method() for name, method in METHODS.items()}
BUDGET = 3_000_000

SINGLE = make_task(2, symmetric=True)
U, V = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
CHAIN = np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
PAIR = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1]])
GOOD = np.array([[-1.5, -2.0, 0.0], [0.0, 0.0, -2.0]])


def run(method: Method, seed: int = 0, **more: object) -> Result:
    log = make_log(SINGLE, U, V)
    if isinstance(method, Cloning):  # which needs something to clone
        log = under_law(log, np.array([[-1.0, -1.5]]))
    return learn(
        SINGLE, log, method, rng=np.random.default_rng(seed), budget=BUDGET,
        surrogate=make_model(SINGLE, U, V), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def under_law(log: Batch, gains: np.ndarray) -> Batch:
    """The same states, as if actions had been chosen by a good law, and a little at random."""
    return replace(log, actions=np.clip(log.states @ gains.T + 0.1 * log.actions, -1, 1))


class First(NamedTuple):
    result: Result
    spent: list[int]
    """after each round"""
    second_round: State | None
    """as it was then, if there was one"""


@cache
def first_run(name: str) -> First:
    """Once for all tests."""
    spent: list[int] = []
    states: list[State] = []

    def watch(search: Search, problem: Problem) -> None:
        spent.append(problem.spent)
        if len(spent) == 2:
            states.append(deepcopy(snapshot(search, problem)))

    result = run(SMALL[name], watch=watch)
    return First(result, spent, states[0] if states else None)


def written(result: Result) -> list[str]:
    return [to_json(point.controller) for point in result.points]


def test_every_method_is_here() -> None:
    assert {name: type(method) for name, method in SMALL.items()} == METHODS
    assert set(QUICK) <= set(METHODS)


@pytest.fixture(params=SMALL)
def method(request: pytest.FixtureRequest) -> Method:
    return SMALL[request.param]


def test_gives_a_front_of_controllers_better_than_doing_nothing(method: Method) -> None:
    result = first_run(method.name).result
    lowest = {True: np.inf, False: np.inf}  # of all, and of the robust ones
    for point in sorted(result.points, key=lambda one: (one.controller.complexity, one.judged.penalty)):
        cost, fit = point.judged.penalty, point.kept.robust is True
        assert cost < lowest[False] or (fit and cost < lowest[True])
        lowest = {True: min(cost, lowest[True]) if fit else lowest[True], False: min(cost, lowest[False])}
    complexities = [point.controller.complexity for point in result.points]
    assert complexities == sorted(complexities)
    idle = evaluate(Equation(outputs={"u0": "0"}), SINGLE, surrogate=make_model(SINGLE, U, V))
    assert result.points[-1].model.penalty < 0.7 * idle.penalty
    assert result.best is result.best_point.controller


def learn_pair(method: Method, **steps: float) -> tuple[Task, Result]:
    """Three states that only both actions together bring to rest; some of them in whole steps."""
    actions = {f"u{a}": {"limits": [-1, 1]} | ({"step": steps[f"u{a}"]} if steps else {}) for a in range(2)}
    task = make_task(3, 2, actions=actions, reward={"expression": "-abs(x0) - abs(x2)"})
    log = make_log(task, CHAIN, PAIR)
    if isinstance(method, Cloning):
        log = under_law(log, GOOD)
        log = replace(log, actions=to_levels(log.actions, task.action_limits, task.action_counts))
    model = make_model(task, CHAIN, PAIR)
    return task, learn(task, log, method, rng=np.random.default_rng(0), budget=BUDGET, surrogate=model)


def courses(task: Task, controller: Controller) -> list[list[float]]:
    """The actions of a few episodes, one after the other."""
    states = np.random.default_rng(1).uniform(-1, 1, (5, 3))
    rows = []
    for x in states:
        memory = controller.reset()
        for _ in range(20):
            action = controller.act(dict(zip(task.state_names, x.tolist(), strict=True)), memory)
            rows.append([action[name] for name in task.action_names])
            x = CHAIN @ x + PAIR @ rows[-1]  # noqa: PLW2901
    return rows


@pytest.mark.parametrize("steps", [{}, {"u0": 1.0, "u1": 0.25}], ids=["any values", "whole steps"])
def test_controls_several_actions(method: Method, steps: dict[str, float]) -> None:
    task, result = learn_pair(method, **steps)
    idle = evaluate(Equation(outputs={"u0": "0", "u1": "0"}), task, surrogate=make_model(task, CHAIN, PAIR))
    assert result.points[-1].model.penalty < 0.85 * idle.penalty
    assert set(result.best.actions) == {"u0", "u1"}
    assert result.best.steps == steps
    actions = np.array(courses(task, result.best))
    assert (actions.std(axis=0) > 0.05).all()
    assert (np.abs(actions) <= 1).all()
    np.testing.assert_array_equal(actions, to_levels(actions, task.action_limits, task.action_counts))
    if steps:
        assert set(actions[:, 0].tolist()) <= {-1.0, 0.0, 1.0}


def test_the_same_seed_gives_the_same_front(method: Method) -> None:
    assert written(run(method)) == written(first_run(method.name).result)


def test_goes_on_from_a_file_as_if_nothing_had_happened(method: Method, tmp_path: Path) -> None:
    first = first_run(method.name)
    if first.second_round is not None:  # a method of one round has nothing to go on with
        write_state(first.second_round, tmp_path / "state")
        assert written(run(method, resume=read_state(tmp_path / "state"))) == written(first.result)


def test_counts_what_it_spends_and_stops(method: Method) -> None:
    first = first_run(method.name)
    assert list(first.spent) == sorted(first.spent)
    assert first.result.steps == first.spent[-1]
    assert all(steps < BUDGET for steps in first.spent[:-1])
    assert first.spent[-1] < 2 * BUDGET
