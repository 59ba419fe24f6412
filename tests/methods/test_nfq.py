"""NFQ: on a problem of two states whose Q is known, and what it keeps of its iterates."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import GreedyQ
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.evaluation.q_evaluation import total_discount
from clearloop.methods import Problem, Result, Search, learn
from clearloop.methods.nfq import FINALISTS, NFQ, NFQSearch
from clearloop.networks.network import ACTIVATION_FUNCTIONS
from tests.methods.linear_plants import make_log, make_model, make_problem, make_task

# The state is -1 or 1, and becomes the action. It costs 0.3 to stay at -1, and 1 to leave it for 1.
REWARDS = {(-1, -1): -0.3, (-1, 1): -1.0, (1, -1): -0.1, (1, 1): 0.0}
ROOMS = {"expression": "if(x0 > 0, if(x0[t] > 0, 0, -1), if(x0[t] > 0, -0.1, -0.3))"}
# The same, but whoever goes from 1 to -1 has failed; that pays -1.
ABYSS = {
    "cases": [
        {"when": "x0 < 0 and x0[t] > 0", "value": -1.0, "failure": True},
        {"when": "x0[t] < 0", "value": -0.3},
    ],
    "otherwise": -0.1,
}
SETTINGS = NFQ(hidden=(6,), levels=2, iterations=12, epochs=150)


def begin(reward: dict[str, Any], absorbing: bool = True) -> NFQSearch:
    task = make_task(1, reward=reward)
    pairs = np.array([*REWARDS] * 3, float)
    batch = Batch(
        task.columns,
        np.column_stack([pairs[:, 0], pairs[:, 1]]).reshape(-1, 1),
        np.repeat(pairs[:, 1], 2)[:, None],
        np.repeat(np.arange(len(pairs)), 2),
        np.zeros(2 * len(pairs), np.bool_),
    )
    model = make_model(task, np.zeros((1, 1)), np.ones((1, 1)))
    model = replace(model, track=replace(model.track, absorbing=absorbing))
    return SETTINGS.begin(make_problem(task, batch, model), rng=np.random.default_rng(0))


def values(search: NFQSearch) -> dict[tuple[int, int], float]:
    """Q of each state and action, in units of the reward."""
    pairs = np.array([*REWARDS], float)
    shares = ACTIVATION_FUNCTIONS["sigmoid"](search.last.q(search.scaling.standardise(pairs))[:, 0])
    low, high = search.steps.reward.min(), search.steps.reward.max()
    found = total_discount(search.problem.task.discount, search.iteration) * (low + (high - low) * shares)
    return dict(zip(REWARDS, found.tolist(), strict=True))


def test_every_iterate_is_the_best_return_of_so_many_steps() -> None:
    search, expected = begin(ROOMS), dict.fromkeys(REWARDS, 0.0)
    for k in range(1, SETTINGS.iterations + 1):
        search.advance()
        best = {state: max(expected[state, -1], expected[state, 1]) for state in (-1, 1)}
        expected = {(s, a): reward + 0.9 * best[a] for (s, a), reward in REWARDS.items()}
        found = values(search)
        for pair, value in expected.items():
            assert found[pair] == pytest.approx(value, abs=0.02), (k, pair)
        assert (expected[-1, 1] > expected[-1, -1]) == (k > 3)  # to leave is worth it in the long run only
    assert search.done
    controller = search.candidates()[-1].controller
    for x in (-1.0, 1.0):
        assert controller.act({"x0": x}, controller.reset()) == {"u0": 1.0}


@pytest.mark.parametrize("absorbing", [True, False])
def test_where_failure_lasts_it_is_paid_for_to_the_end(absorbing: bool) -> None:
    search = begin(ABYSS, absorbing)
    while not search.done:
        search.advance()
    found, all_steps = values(search), total_discount(0.9, SETTINGS.iterations)
    assert found[1, 1] == pytest.approx(-0.1 * all_steps, abs=0.05)
    climbs = -0.3 - 0.1 * (
        total_discount(0.9, SETTINGS.iterations - 1) * 0.9
    )  # from -1 to 1 and then to stay there
    assert found[-1, 1] == pytest.approx(climbs, abs=0.05)
    goes_on = -1 + 0.9 * (-0.3 - 0.1 * 0.9 * total_discount(0.9, SETTINGS.iterations - 2))
    assert found[1, -1] == pytest.approx(-all_steps if absorbing else goes_on, abs=0.1)


U, V = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
TASK = make_task(2, symmetric=True)
SMALL = NFQ(hidden=(8,), levels=5, iterations=12, epochs=20)


def run(seed: int, curve: list[float]) -> Result:
    def watch(search: Search, problem: Problem) -> None:
        assert search.latest is not None
        curve.append(search.latest)
        assert search.best == min(curve)
        assert problem.share == pytest.approx(len(curve) / SMALL.iterations)

    return learn(
        TASK, make_log(TASK, U, V), SMALL, rng=np.random.default_rng(seed), budget=10**9,
        surrogate=make_model(TASK, U, V), watch=watch,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_selected_is_never_judged_worse_than_last(seed: int) -> None:
    curve: list[float] = []
    result = run(seed, curve)
    (selected,), (last,) = result.points, result.beside
    assert [point.controller.name for point in (selected, last)] == ["nfq-selected", "nfq-last"]
    assert selected.judged.penalty <= last.judged.penalty
    assert len(curve) == SMALL.iterations
    again = evaluate(last.controller, TASK, surrogate=make_model(TASK, U, V), starts=1024)
    assert last.model.penalty == pytest.approx(again.penalty, rel=1e-12)


def test_the_best_few_iterates_and_the_last_go_to_the_judges() -> None:
    search = SMALL.begin(make_problem(TASK, make_log(TASK, U, V), make_model(TASK, U, V)), rng=rng())
    assert search.candidates() == []
    curve = []
    while not search.done:
        search.advance()
        curve.append(search.last.penalty)
    *selected, final, last = search.candidates()
    assert [one.penalty for one in selected] == sorted(curve)[:FINALISTS]
    assert final.penalty == last.penalty == curve[-1]
    assert [one.compared for one in (*selected, final, last)] == [False] * (FINALISTS + 1) + [True]


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_it_learns_from_mirror_images_where_the_plant_is_symmetric() -> None:
    batch, plain = make_log(TASK, U, V), make_task(2)
    twice = SMALL.begin(make_problem(TASK, batch, make_model(TASK, U, V)), rng=rng())
    once = SMALL.begin(make_problem(plain, batch, make_model(plain, U, V)), rng=rng())
    assert len(twice.reward) == 2 * len(once.reward)
    np.testing.assert_array_equal(twice.steps.pairs[len(batch) :], -once.steps.pairs)


def test_it_reads_the_past_and_the_distance_from_the_setpoint() -> None:
    states = {"x0": {"setpoint": 0.25}, "x1": {}}
    task = make_task(2, history=2, states=states, reward={"expression": "-abs(x0.error)"})
    batch = make_log(task, U, V)
    model = make_model(task, U, np.hstack([V, np.zeros((2, 3))]))  # the past has no effect
    search = SMALL.begin(make_problem(task, batch, model), rng=rng())
    search.advance()
    controller = search.candidates()[-1].controller
    assert isinstance(controller, GreedyQ)
    assert controller.inputs == ("x0", "x1", "x0[t-1]", "x1[t-1]", "u0[t-1]")
    assert controller.setpoint == {"x0": 0.25}
    rows = np.flatnonzero(batch.episodes[:-1] == batch.episodes[1:])
    np.testing.assert_allclose(search.steps.state[:, 0], batch.states[rows, 0] - 0.25)
    np.testing.assert_allclose(search.steps.after[:, 0], batch.states[rows + 1, 0] - 0.25)
    np.testing.assert_allclose(search.steps.after[:, 2:4], search.steps.state[:, :2])
    np.testing.assert_allclose(search.steps.after[:, 4:], search.steps.action)


def test_not_every_combination_of_actions_can_be_compared() -> None:
    task, u, v = make_task(2, 2), np.eye(2), np.eye(2)
    problem = make_problem(task, make_log(task, u, v), make_model(task, u, v))
    with pytest.raises(ClearloopError, match="nfq: levels = 65: this gives 4,225 combinations of actions"):
        NFQ(levels=65).begin(problem, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("step", "levels", "expected"),
    [
        (None, 5, [-1, -0.5, 0, 0.5, 1]),
        (2.0, 5, [-1, 1]),  # on or off
        (0.5, 9, [-1, -0.5, 0, 0.5, 1]),
        (0.25, 5, [-1, -0.5, 0, 0.5, 1]),
        (0.1, 4, [-1, -0.3, 0.3, 1]),  # thirds are no steps: the nearest
    ],
)
def test_it_chooses_among_what_the_task_allows(
    step: float | None, levels: int, expected: list[float]
) -> None:
    task = make_task(1, actions={"u0": {"limits": [-1, 1], "step": step}})
    u, v = np.ones((1, 1)), np.ones((1, 1))
    problem = make_problem(task, make_log(task, u, v), make_model(task, u, v))
    search = replace(SETTINGS, levels=levels).begin(problem, rng=np.random.default_rng(0))
    search.advance()
    controller = search.candidates()[-1].controller
    assert isinstance(controller, GreedyQ)
    np.testing.assert_allclose(controller.outputs["u0"], expected, atol=1e-12)
