"""PID loops found with no number set by hand: the cart-pole's, on its linear model."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from clearloop.controllers import PID as Controller  # noqa: N811
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.methods import Problem, learn, snapshot
from clearloop.methods.linear_model import identify
from clearloop.methods.pid import PID, Critical, PIDSearch
from clearloop.plants.exploration import make_batch
from clearloop.search.pso import PSO
from clearloop.surrogate import Surrogate
from clearloop.task import Task

from .linear_plants import make_log, make_model, make_problem, make_task

CARTPOLE = Task.load("cartpole")
QUICK = PID(rounds=5, starts=32, swarm=PSO(particles=12), generations=0)


@pytest.fixture(scope="module")
def model() -> Surrogate:
    """Linear, and known where the batch is."""
    batch = make_batch(CARTPOLE, rng=np.random.default_rng(0), size=3000)
    linear = make_model(CARTPOLE, *identify(CARTPOLE, batch).matrices)
    region = np.stack([batch.states.min(axis=0), batch.states.max(axis=0)], axis=1)
    return replace(linear, region=np.vstack([region, CARTPOLE.action_limits]))


@pytest.fixture(scope="module")
def problem(model: Surrogate) -> Problem:
    batch = make_batch(CARTPOLE, rng=np.random.default_rng(0), size=3000)
    return make_problem(CARTPOLE, batch, model, starts=64)


@pytest.fixture(scope="module")
def search(problem: Problem) -> PIDSearch:
    """That is done."""
    search = QUICK.begin(problem, rng=np.random.default_rng(1))
    for _ in rounds(search):
        pass
    return search


def rounds(search: PIDSearch) -> Iterator[int]:
    count = 0
    while not search.done:
        search.advance()
        count += 1
        yield count


def test_the_loop_that_holds_the_plant_is_closed_first(search: PIDSearch) -> None:
    assert [critical.input for critical in search.closed] == ["theta", "rho"]
    theta, rho = search.closed
    assert theta.gain < -1.1 * 9.81  # what holds the pole against its weight
    assert rho.gain < 0
    assert 40 < theta.period < 80
    assert 100 < rho.period < 300


def test_every_gain_that_was_tried_is_there(search: PIDSearch) -> None:
    for critical in search.closed:
        tried = [trial for trial in search.trials if trial.input == critical.input]
        assert any(trial.gain == pytest.approx(critical.gain, rel=1e-5) for trial in tried)
        assert any(not trial.oscillates for trial in tried)
        assert all(trial.errors.shape == (401,) and trial.actions.shape == (400,) for trial in tried)


def test_only_weights_and_windows_are_searched(search: PIDSearch) -> None:
    (candidate,) = search.candidates()
    controller = candidate.controller
    assert isinstance(controller, Controller)
    loops = controller.outputs["force"].loops
    assert sum(loop.weight for loop in loops) == pytest.approx(1, abs=1e-3)
    for loop, critical in zip(loops, search.closed, strict=True):
        assert loop == critical.loop(loop.weight, loop.window)
        assert 1 <= loop.window <= CARTPOLE.horizon
    assert controller.limits == {"force": (-10.0, 10.0)}
    assert any("Ti = " in line and "Td = " in line for line in controller.words())


def test_what_it_finds_is_good_on_the_plant(search: PIDSearch) -> None:
    (candidate,) = search.candidates()
    assert candidate.penalty == search.best
    assert evaluate(candidate.controller, CARTPOLE).penalty < 3.6


def test_tuning_never_loses_to_the_table(problem: Problem) -> None:
    search = QUICK.begin(problem, rng=np.random.default_rng(2))
    best = [search.best for _ in rounds(search)]
    assert best[:2] == [np.inf] * 2  # a round for each loop
    assert best[2:] == sorted(best[2:], reverse=True)
    assert len(best) == 2 + QUICK.rounds
    assert best[-1] < best[2]


def test_it_goes_on_where_it_was(problem: Problem, search: PIDSearch) -> None:
    for stop in (1, 3):
        first = QUICK.begin(problem, rng=np.random.default_rng(1))
        assert next(count for count in rounds(first) if count == stop)
        second = QUICK.begin(problem, rng=np.random.default_rng(99))
        second.restore(first.state())
        for _ in rounds(second):
            pass
        assert second.candidates() == search.candidates()
        assert second.closed == search.closed
        for mine, other in zip(second.trials, search.trials, strict=True):
            np.testing.assert_array_equal(mine.errors, other.errors)
            assert mine.gain == other.gain


def test_learning_can_be_resumed(model: Surrogate) -> None:
    batch = make_batch(CARTPOLE, rng=np.random.default_rng(0), size=3000)
    settings = replace(QUICK, rounds=2)
    kept = []
    whole = learn(
        CARTPOLE,
        batch,
        settings,
        rng=np.random.default_rng(0),
        surrogate=model,
        watch=lambda search, problem: kept.append(snapshot(search, problem)),
    )
    again = learn(CARTPOLE, batch, settings, rng=np.random.default_rng(0), surrogate=model, resume=kept[2])
    assert again.front.equals(whole.front)
    assert again.steps == whole.steps
    assert whole.front["formula"].to_list() == ["PID on theta, rho"]


def test_a_plant_that_no_loop_can_hold_is_refused() -> None:
    # x0 runs away faster than any gain can answer: actions do nothing, on the model and in the log.
    u, v = np.array([[1.2]]), np.array([[0.1]])
    task = make_task(1)
    problem = make_problem(task, make_log(task, u, 0 * v), make_model(task, u, 0 * v))
    with pytest.raises(ClearloopError, match=r"no effect of u0|pid: no gain gives a sustained oscillation"):
        QUICK.begin(problem, rng=np.random.default_rng(0)).advance()


def test_a_plant_that_rests_elsewhere_gets_a_bias() -> None:
    u, v = np.array([[0.9, 0.0], [0.1, 0.9]]), np.array([[0.1], [0.01]])
    states = {"x0": {}, "x1": {"setpoint": 0.5}}
    task = make_task(2, states=states, reward={"expression": "-abs(x1.error)"})
    problem = make_problem(task, make_log(task, u, v), make_model(task, u, v))
    search = QUICK.begin(problem, rng=np.random.default_rng(0))
    rest = np.linalg.solve(np.hstack([np.eye(2)[:, :1] - u[:, :1], -v]), (u - np.eye(2))[:, 1] * 0.5)[1]
    assert search.rest == pytest.approx([rest], rel=1e-3)
    for _ in rounds(search):
        pass
    (candidate,) = search.candidates()
    assert isinstance(candidate.controller, Controller)
    assert candidate.controller.outputs["u0"].bias != 0
    assert candidate.penalty == search.best


def test_a_symmetric_plant_gets_none(search: PIDSearch) -> None:
    (candidate,) = search.candidates()
    assert isinstance(candidate.controller, Controller)
    assert candidate.controller.outputs["force"].bias == 0.0


def test_two_actions_each_get_their_loop() -> None:
    u = np.array([[0.9, 0.0, 0.0, 0.0], [0.1, 0.9, 0.0, 0.0], [0.0, 0.0, 0.8, 0.0], [0.0, 0.0, 0.1, 0.9]])
    v = np.array([[0.1, 0.0], [0.01, 0.0], [0.0, 0.1], [0.0, 0.01]])
    task = make_task(4, 2, reward={"expression": "-abs(x1) - abs(x3)"})
    problem = make_problem(task, make_log(task, u, v), make_model(task, u, v))
    search = replace(QUICK, rounds=2).begin(problem, rng=np.random.default_rng(0))
    for _ in rounds(search):
        pass
    assert {(critical.input, critical.action) for critical in search.closed} == {("x1", "u0"), ("x3", "u1")}
    (candidate,) = search.candidates()
    assert isinstance(candidate.controller, Controller)
    assert [len(output.loops) for output in candidate.controller.outputs.values()] == [1, 1]


def test_no_window_is_longer_than_a_controller_can_have() -> None:
    task, u, v = make_task(1, symmetric=True), np.eye(1), np.eye(1)
    problem = make_problem(task, make_log(task, u, v), make_model(task, u, v))
    search = PID(generations=0).begin(problem, rng=np.random.default_rng(0))
    search.closed = [Critical("x0", "u0", 1.0, 90.0)]
    problem.task = make_task(1, symmetric=True, horizon=1_000_000)
    controller = search._controller(search._bounds[:, 1])
    assert controller.outputs["u0"].loops[0].window == 10_000
