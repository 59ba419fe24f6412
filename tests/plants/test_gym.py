"""Plants that are Gymnasium environments."""

import numpy as np
import pytest

from clearloop.controllers import Equation, Linear
from clearloop.errors import ClearloopError
from clearloop.evaluation import SetpointChange, evaluate, simulate
from clearloop.plants.environment import PlantEnvironment
from clearloop.task import Task
from tests import twin
from tests.controllers.kinds import CARTPOLE, KINDS

PENDULUM = """
name = "pendulum"
dt = 0.05
discount = 0.98
horizon = 40
[states]
cosine = {}
sine = {}
theta_dot = {}
[actions]
torque = { limits = [-2.0, 2.0] }
[reward]
REWARD
[plant]
gymnasium = "Pendulum-v1"
"""
OWN = 'column = "reward"'
BY_FORMULA = 'expression = "-atan2(sine[t], cosine[t])**2 - 0.1*theta_dot[t]**2 - 0.001*torque**2"'


def pendulum(reward: str) -> Task:
    return Task.from_toml(PENDULUM.replace("REWARD", reward))


def as_environment(task: Task) -> Task:
    """The same task, with the plant behind Gymnasium's interface."""
    table = task.model_dump(mode="json", exclude_none=True)
    table["plant"] = {"gymnasium": f"clearloop/{task.name}-v0"}
    return Task.from_dict(table)


SWING = Equation(outputs={"torque": "2*theta_dot - sine"})


def test_an_environments_own_reward_and_the_same_by_formula() -> None:
    own = evaluate(SWING, pendulum(OWN), starts=3)
    ours = evaluate(SWING, pendulum(BY_FORMULA), starts=3)
    np.testing.assert_allclose(own.penalties, ours.penalties, rtol=1e-4)  # its observations are float32
    assert own.failures == ours.failures == 0
    assert len(set(own.penalties[0])) == 3
    np.testing.assert_array_equal(evaluate(SWING, pendulum(OWN), starts=3).penalties, own.penalties)


@pytest.mark.parametrize("kind", ["lagging equation", "pid", "network"])
def test_our_own_plant_scores_the_same_through_gymnasium(kind: str) -> None:
    environment = PlantEnvironment()
    starts = np.array([environment.reset(seed=seed)[0] for seed in range(6)])
    inside = evaluate(KINDS[kind], CARTPOLE, starts=starts)
    outside = evaluate(KINDS[kind], as_environment(CARTPOLE), starts=6)
    np.testing.assert_allclose(outside.penalties, inside.penalties, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(outside.failed, inside.failed)
    assert inside.on == outside.on == "system"


def test_failure_is_paid_to_the_end() -> None:
    nothing = Equation(outputs={"force": "0"})
    result = evaluate(nothing, as_environment(CARTPOLE), starts=5)
    environment = PlantEnvironment()
    starts = np.array([environment.reset(seed=seed)[0] for seed in range(5)])
    expected = twin.roll_out(nothing.for_task(CARTPOLE), starts, [0.0] * 100)
    assert expected.failed.all()
    np.testing.assert_allclose(result.penalties[0], expected.penalties, rtol=0, atol=1e-9)


def test_what_terminates_without_failing_stays_where_it_is() -> None:
    table = as_environment(CARTPOLE).model_dump(mode="json", exclude_none=True)
    table["reward"]["cases"][0]["when"] = "abs(theta) > 2"  # the environment gives up at 0.7
    task = Task.from_dict(table)
    nothing = Equation(outputs={"force": "0"})
    assert evaluate(nothing, task, starts=3).failures == 0
    angles = simulate(nothing, task).states[0, :, 0]
    assert 0.7 < abs(angles[-1]) < 1
    assert angles[-1] == angles[-2]


def test_one_trajectory_with_a_setpoint_that_changes() -> None:
    environment = PlantEnvironment()
    start, _ = environment.reset(seed=0)
    setpoints = [SetpointChange("rho", 0.8, 20)]
    outside = simulate(KINDS["pid"], as_environment(CARTPOLE), setpoints=setpoints, steps=140)
    inside = simulate(
        KINDS["pid"],
        CARTPOLE,
        start=dict(zip(twin.STATES, start, strict=True)),
        setpoints=setpoints,
        steps=140,
    )
    np.testing.assert_allclose(outside.states, inside.states, rtol=0, atol=1e-9)
    np.testing.assert_allclose(outside.actions, inside.actions, rtol=0, atol=1e-9)
    np.testing.assert_allclose(outside.rewards, inside.rewards, rtol=0, atol=1e-9)


def test_it_chooses_its_own_starts() -> None:
    task = pendulum(OWN)
    with pytest.raises(ClearloopError, match="its environment chooses the starts: give only their number"):
        evaluate(SWING, task, starts=np.zeros((2, 3)))
    with pytest.raises(ClearloopError, match="its environment chooses the start, so none can be given"):
        simulate(SWING, task, start={"sine": 1.0})


def environment(name: str) -> str:
    return PENDULUM.replace("REWARD", OWN).replace("Pendulum-v1", name)


WRONG = {
    "gymnasium 'Pendulm-v1': Environment `Pendulm` doesn't exist": environment("Pendulm-v1"),
    "gymnasium 'no_such:Foo-v0': No module named 'no_such'": environment("no_such:Foo-v0"),
    r"Pendulum-v1 has an observation of shape \(3,\), but \[states\] has 2":
        environment("Pendulum-v1").replace("\nsine = {}", ""),
    r"CartPole-v1 has an action of shape \(\), but \[actions\] has 1":
        environment("CartPole-v1").replace("\nsine = {}", "\nsine = {}\nmore = {}"),
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_an_environment_that_does_not_fit_is_explained(message: str) -> None:
    linear = Linear(gains={"torque": {"cosine": 1.0, "theta_dot": 1.0}})
    with pytest.raises(ClearloopError, match=f"task 'pendulum': {message}"):
        evaluate(linear, Task.from_toml(WRONG[message]), starts=1)
