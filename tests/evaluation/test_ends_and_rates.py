"""Episodes that end well, and actions that may not jump: the same in the engine, in Python and in exports."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import Equation, Linear, encode
from clearloop.controllers.planner import Planner
from clearloop.data import check
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate, simulate, with_model
from clearloop.evaluation.q_evaluation import _targets, experience
from clearloop.evaluation.rollouts import LoggedCost, make_system, window
from clearloop.evaluation.stepping import Law
from clearloop.kernels.engine import roll_out
from clearloop.networks import Training
from clearloop.plants.environment import PlantEnvironment
from clearloop.plants.exploration import make_batch
from clearloop.plants.gym import EpisodeJudge
from clearloop.plants.scenarios import Scenarios
from clearloop.surrogate import Surrogate
from clearloop.surrogate.steps import BEST, Steps
from clearloop.task import Task
from clearloop.verification import Amount, verify
from tests import twin
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.evaluation.test_twin import STARTS

TROLLEY = """
name = "trolley"
dt = 0.5
discount = 0.9
horizon = 12
[states]
x = { unit = "m" }
[actions]
u = { unit = "m/s", limits = [-3, 3] }
[reward]
cases = [
  { when = "abs(x) > 6", value = -5.0, failure = true },
  { when = "abs(x) < 0.5", value = -0.25, success = true },
]
otherwise = -1.0
[starts]
x = [-4.0, 4.0]
[plant.derivative]
x = "u"
[exploration]
size = 400
steps = 12
"""
TO_ZERO, AWAY = Equation(outputs={"u": "-3*sign(x)"}), Equation(outputs={"u": "3*sign(x)"})


def trolley(**action: Any) -> Task:
    tables = Task.from_toml(TROLLEY).model_dump(mode="json")
    tables["actions"]["u"] |= action
    return Task.from_dict(tables)


# An episode that ends well.


def test_a_success_pays_once_and_is_no_failure() -> None:
    found = evaluate(TO_ZERO, trolley(), starts=np.array([[3.0], [1.5]]))
    assert found.penalties[0].tolist() == pytest.approx([1 + 0.9 * 0.25, 0.25])
    assert not found.failed.any()
    lost = evaluate(AWAY, trolley(), starts=np.array([[3.0]]))  # 4.5, 6, 7.5: fails, and pays to the end
    assert lost.failed.all()
    assert lost.penalty == pytest.approx(1 + 0.9 + 5 * sum(0.9**k for k in range(2, 12)))


def test_a_course_stays_where_it_succeeded() -> None:
    course = simulate(TO_ZERO, trolley(), start={"x": 3.0})
    assert course.states[0, :, 0].tolist() == pytest.approx([3.0, 1.5] + [0.0] * 11)
    assert course.rewards[0].tolist() == [-1.0, -0.25] + [0.0] * 10


def test_beside_terms_success_is_a_condition() -> None:
    tables = Task.from_toml(TROLLEY).model_dump(mode="json")
    tables["reward"] = {
        "expression": "-abs(x)",
        "failure": "abs(x) > 6",
        "failure_value": -9,
        "success": "abs(x) < 0.5 or x > 5",
    }
    task = Task.from_dict(tables)
    course = simulate(AWAY, task, start={"x": 3.0})
    assert course.rewards[0].tolist() == [-4.5, -6.0] + [0.0] * 10
    lost = simulate(AWAY, task, start={"x": 4.9})  # 6.4: a failure, although success holds too
    assert lost.rewards[0].tolist() == [-9.0] * 12


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ({"column": "reward", "success": "x > 1"}, "success is allowed only with terms or an expression"),
        ({"expression": "x", "success": "y > 1"}, "unknown name 'y'"),
        (
            {"cases": [{"when": "x > 1", "value": 0, "failure": True, "success": True}], "otherwise": 0},
            "either a failure or a success",
        ),
        (
            {
                "cases": [{"when": f"x > {k}", "value": 0, "success": True} for k in (2, 1)],
                "otherwise": 0,
            },
            "one case with success = true",
        ),
    ],
)
def test_a_success_that_cannot_be(reward: dict[str, Any], message: str) -> None:
    tables = Task.from_toml(TROLLEY).model_dump(mode="json") | {"reward": reward}
    with pytest.raises(ClearloopError, match=message):
        Task.from_dict(tables)


def test_logs_end_where_an_episode_succeeds_and_count_it_as_no_failure() -> None:
    task = trolley()
    batch = make_batch(task, rng=np.random.default_rng(0))
    steps = Steps.of(task, batch)
    x = steps.next[:, 0]
    assert (steps.succeeding == (np.abs(x) < 0.5)).all()
    assert (steps.failing == (np.abs(x) > 6)).all()
    assert 10 < steps.succeeding.sum() < len(steps) / 2
    assert (batch.terminal.sum(), len(batch)) == (steps.ending.sum(), 400)
    assert "of them ending" in repr(batch)
    assert not {"few-failures", "unknown-ends"} & {finding.code for finding in check(task, batch).findings}
    cost = LoggedCost(task, batch)
    at_once = np.flatnonzero(steps.succeeding[cost.rows - batch.episodes[cost.rows]])
    assert len(at_once) > 3
    assert set(cost.penalties(at_once).tolist()) == {0.25}


def test_values_from_the_log_alone_count_nothing_after_a_success() -> None:
    steps = experience(trolley(), Steps.of(trolley(), make_batch(trolley(), rng=np.random.default_rng(0))))
    targets = _targets(steps, np.full(len(steps.reward), -7.0), 0.9, 5)
    assert set(targets[steps.succeeding].tolist()) == {-0.25}
    assert targets[steps.failing].tolist() == pytest.approx([-5 * (1 - 0.9**5) / 0.1] * steps.failing.sum())
    others = ~(steps.succeeding | steps.failing)
    assert targets[others].tolist() == pytest.approx([-1 - 0.9 * 7] * others.sum())


def test_an_environment_and_a_judge_in_python_know_success() -> None:
    environment = PlantEnvironment(trolley())
    environment.reset(seed=0, options={"start": [1.5]})
    _, reward, terminated, _, _ = environment.step(np.array([-3.0]))
    assert (reward, terminated) == (-0.25, True)
    judge = EpisodeJudge(trolley(), {"x": 1.5})
    assert judge.judge({"u": -3.0}, {"x": 0.0}, {}) == (-0.25, -1)
    assert judge.judge({"u": 3.0}, {"x": 1.5}, {}) == (-1.0, 0)
    assert judge.judge({"u": 3.0}, {"x": 6.5}, {}) == (-5.0, 1)


# Actions that may not jump.


@pytest.mark.parametrize("upset", [False, True], ids=["calm", "disturbed"])
@pytest.mark.parametrize("kind", KINDS)
def test_rates_and_starts_equal_the_twins(kind: str, upset: bool) -> None:
    tables = CARTPOLE.model_dump(mode="json")
    tables["actions"]["force"] |= {"rate": 60.0, "start": 4.0}
    task = Task.from_dict(tables)
    controller = KINDS[kind].for_task(task).model_copy(update={"setpoint": {"rho": 0.3}})
    history = window(task, [controller])
    job = Scenarios.at(task, STARTS, {"rho": 0.3}).job(task, history)
    if upset:
        late, even = np.array([0, 1, 2, 3, 1, 0]), np.ones((6, 1))
        quiet = np.zeros((0, 0, 0))
        job = job._replace(
            disturbances=job.disturbances._replace(late=late, gain=even, offset=0 * even, noise=quiet)
        )
    found = roll_out(
        encode([controller], task, history=history), make_system(task, None, history), job, trajectories=True
    )
    expected = twin.roll_out(controller, STARTS, [0.3] * 40, job.disturbances, past=4.0)
    actions = np.asarray(found.actions)[0, 0, :, :40, 0]
    np.testing.assert_allclose(actions, expected.actions, rtol=0, atol=1e-7)
    changes = np.diff(np.pad(actions, ((0, 0), (1, 0)), constant_values=4.0))
    assert np.abs(changes).max() == pytest.approx(1.5)  # 60 N/s in 0.025 s


@pytest.mark.parametrize("to", ["python", "st"])
@pytest.mark.parametrize("kind", ["lagging equation", "pid", "pi as blocks have it", "linear"])
def test_exports_keep_rates_and_starts(kind: str, to: str, tmp_path: Path) -> None:
    tables = CARTPOLE.model_dump(mode="json")
    tables["actions"]["force"] |= {"rate": 60.0, "start": 4.0}
    one = KINDS[kind].for_task(Task.from_dict(tables))
    few = Amount(episodes=2, length=10, after=1, tries=0, share=0.1)
    verdict = verify(one, to=to, folder=tmp_path, rng=np.random.default_rng(0), amount=few)
    assert verdict.equal
    assert verdict.left_out <= 0.1 * verdict.vectors


def test_a_rate_holds_everywhere() -> None:
    task = trolley(rate=2.0, start=1.0)  # 1 m/s in a step
    expected = [0.0, -1.0, -2.0, -3.0]
    course = simulate(TO_ZERO, task, start={"x": 5.5}, steps=4)
    assert course.actions[0, :, 0].tolist() == expected
    memory, one = TO_ZERO.for_task(task).reset(), TO_ZERO.for_task(task)
    assert [one.act({"x": 5.5}, memory)["u"] for _ in range(4)] == expected
    environment = PlantEnvironment(task)
    environment.reset(options={"start": [5.5]})
    seen = [environment.step(np.array([-3.0]))[0][0] for _ in range(2)]
    assert seen == [5.5, 5.0]
    batch = make_batch(task, rng=np.random.default_rng(0))
    first = np.flatnonzero(np.diff(batch.episodes, prepend=-1))
    changes = np.abs(np.diff(batch.actions[:, 0]))
    assert np.nanmax(np.delete(changes, first[1:] - 1)) == pytest.approx(1.0)
    assert np.abs(batch.actions[first, 0] - 1.0).max() <= 1.0
    assert Steps.of(task, batch).before[0].tolist() == [batch.states[0, 0], 1.0]
    law = Law(TO_ZERO, task)
    assert law(np.array([[[5.5, 0.0], [5.5, -1.0]]])).tolist() == [[-2.0]]
    assert Law(TO_ZERO, task, smooth=True)(np.array([[[5.5, 0.0], [5.5, -1.0]]])).tolist() == [[-3.0]]


def test_levels_are_reached_in_whole_steps() -> None:
    task = trolley(rate=2.9, start=1.0, step=0.5)  # 1.45 in a step: 1
    course = simulate(TO_ZERO, task, start={"x": 5.5}, steps=4)
    assert course.actions[0, :, 0].tolist() == [0.0, -1.0, -2.0, -3.0]


def test_past_actions_begin_with_the_start() -> None:
    task = trolley(start=2.0)
    half = Equation(outputs={"u": "u[t-1]/2 + u[t-2]/4"})
    course = simulate(half, task, start={"x": 5.0}, steps=3)
    memory, one = half.for_task(task).reset(), half.for_task(task)
    asked = [one.act({"x": 5.0}, memory)["u"] for _ in range(3)]
    assert course.actions[0, :, 0].tolist() == asked == [1.5, 1.25, 1.0]
    tables = task.model_dump(mode="json")
    tables["states"]["sum"] = {"formula": "sum[t-1] + u[t-1]"}
    tables["history"] = 2
    course = simulate(half, Task.from_dict(tables), start={"x": 4.0}, steps=3)
    assert course.states[0, :, 1].tolist() == [2.0, 3.5, 4.75, 5.75]


def test_a_planner_keeps_rates(tmp_path: Path) -> None:
    task = trolley(rate=2.0, start=1.0)
    batch = make_batch(task, rng=np.random.default_rng(0), size=300)
    few = replace(BEST, search=1, judge=0, repeats=False, training=Training(epochs=2))
    surrogate = Surrogate.fit(task, batch, track=few, rng=np.random.default_rng(0))
    planner = Planner(run=str(tmp_path), outputs=("u",), horizon=4, particles=8, rounds=2)
    course = simulate(with_model(planner, task, surrogate), task, start={"x": 5.5}, steps=6)
    changes = np.diff(course.actions[0, :, 0], prepend=1.0)
    assert np.abs(changes).max() <= 1.0 + 1e-6


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"rate": 0.0}, "greater than 0"),
        ({"start": 4.0}, "start: expected a value within the limits, -3 … 3"),
        ({"step": 1.0, "start": 0.5}, "start: expected one of the values that the steps allow"),
        ({"step": 1.0, "rate": 1.0}, "less than one step of 1 in 0.5 s"),
    ],
)
def test_rates_and_starts_that_cannot_be(action: dict[str, Any], message: str) -> None:
    with pytest.raises(ClearloopError, match=message):
        trolley(**action)


def test_a_controller_of_its_own_is_slower_still() -> None:
    slow = Linear(gains={"u": {"x": -9.0}}, rates={"u": 1.0}, dt=0.5)
    assert slow.for_task(trolley(rate=2.0)).rates == {"u": 1.0}
    assert simulate(slow, trolley(), start={"x": 5.0}, steps=2).actions[0, :, 0].tolist() == [-0.5, -1.0]
    with pytest.raises(ClearloopError, match=r"rates\.u: the time between two steps is not known"):
        slow.model_copy(update={"dt": None}).act({"x": 1.0}, slow.reset())
