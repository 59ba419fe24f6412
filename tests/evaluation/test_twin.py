"""The engine and its plain twin agree, for every kind of controller."""

import numpy as np
import pytest
from numpy.typing import NDArray

from clearloop.controllers import Controller, encode
from clearloop.evaluation import evaluate
from clearloop.evaluation.rollouts import make_system, window
from clearloop.kernels.engine import Rollout, roll_out
from clearloop.kernels.layout import CALM, Disturbances, Job
from clearloop.plants.scenarios import Disturbance, Scenarios
from clearloop.task import Task
from tests import twin
from tests.controllers.kinds import CARTPOLE, KINDS

STARTS = np.array([
    [0.1, 0.0, 0.2, 0.0],
    [-0.35, 0.0, 0.9, 0.0],
    [0.2, -1.0, -1.2, 0.7],
    [0.69, 1.5, 0.0, 0.0],  # falls
    [-0.1, 0.0, 2.35, 1.0],  # runs off the track
    [0.0, 0.0, 0.0, 0.0],
])  # fmt: skip


UPSET = Disturbances(  # on time, one and two steps late; other gains, offsets and noise from each start
    late=np.array([0, 1, 2, 0, 1, 1]),
    gain=np.array([[1.0], [0.8], [1.2], [1.2], [1.0], [0.5]]),
    offset=np.array([[0.0], [0.0], [-0.5], [0.3], [0.0], [1.0]]),
    noise=np.random.default_rng(0).normal(0, 0.01, (100, 4, 6)),
)


def run(
    controller: Controller,
    setpoints: NDArray[np.float64],
    task: Task = CARTPOLE,
    upset: Disturbances = CALM,
    workers: int | None = None,
) -> Rollout:
    table = np.zeros((len(setpoints), 4))
    table[:, 2] = setpoints
    history = window(task, [controller])
    job = Job(STARTS, table, task.discount, history, disturbances=upset)
    policies = encode([controller], task, history=history)
    return roll_out(policies, make_system(task, None, history), job, trajectories=True, workers=workers)


SETPOINTS = {
    "at zero": np.zeros(100),
    "elsewhere": np.full(100, 0.7),
    "changing": np.repeat([0.0, 0.8, -0.3], [30, 30, 40]),
}


@pytest.mark.parametrize("setpoints", SETPOINTS.values(), ids=SETPOINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_steps_on_the_plant_equal_the_twins(kind: str, setpoints: NDArray[np.float64]) -> None:
    controller = KINDS[kind].for_task(CARTPOLE)
    engine = run(controller, setpoints)
    expected = twin.roll_out(controller, STARTS, setpoints.tolist())
    assert engine.states is not None
    assert engine.actions is not None
    assert engine.rewards is not None
    np.testing.assert_array_equal(engine.failed[0, 0], expected.failed)
    np.testing.assert_array_equal(engine.rewards[0, 0], expected.rewards)
    np.testing.assert_allclose(engine.states[0, 0], expected.states, rtol=0, atol=1e-9)
    np.testing.assert_allclose(engine.actions[0, 0, :, :, 0], expected.actions, rtol=0, atol=1e-9)
    np.testing.assert_allclose(-engine.returns[0, 0], expected.penalties, rtol=0, atol=1e-9)
    assert expected.failed.any()
    assert not expected.failed.all()


@pytest.mark.parametrize("setpoints", [SETPOINTS["at zero"], SETPOINTS["changing"]], ids=["zero", "moved"])
@pytest.mark.parametrize("kind", KINDS)
def test_disturbed_steps_on_the_plant_equal_the_twins(kind: str, setpoints: NDArray[np.float64]) -> None:
    """Until rounding, which bang-bang laws turn into other actions, makes another course: 40 steps."""
    controller, some = KINDS[kind].for_task(CARTPOLE), setpoints[20:60]
    engine = run(controller, some, upset=UPSET)
    expected = twin.roll_out(controller, STARTS, some.tolist(), UPSET)
    assert engine.states is not None
    assert engine.actions is not None
    np.testing.assert_allclose(engine.states[0, 0], expected.states, rtol=0, atol=1e-9)
    np.testing.assert_allclose(engine.actions[0, 0, :, :, 0], expected.actions, rtol=0, atol=1e-9)
    np.testing.assert_allclose(-engine.returns[0, 0], expected.penalties, rtol=0, atol=1e-9)
    calm = run(controller, some)
    apart = np.abs(np.asarray(calm.actions)[0, 0] - engine.actions[0, 0]).max(axis=(1, 2))
    assert (apart[[0, 1, 2, 4, 5]] > 0.1).all()


def test_threads_and_neighbours_do_not_change_a_disturbed_bit() -> None:
    task = CARTPOLE.model_copy(update={"horizon": 20})
    cases = [Disturbance(late=k % 3, gain=1 + 0.1 * (k % 5 - 2), noise=0.01 * (k % 2)) for k in range(700)]
    drawn = np.random.default_rng(0).standard_normal((20, 4, 700))
    whole = Scenarios.scoring(task, 700).disturbed(task, cases, spread=np.ones(4), drawn=drawn)
    for kind in ("lagging equation", "pid"):
        one, seven = (evaluate(KINDS[kind], task, starts=whole, workers=n) for n in (1, 7))
        np.testing.assert_array_equal(one.penalties, seven.penalties)
        part = evaluate(KINDS[kind], task, starts=whole[250:310])
        np.testing.assert_array_equal(one.penalties[:, 250:310], part.penalties)
    calm = evaluate(KINDS["pid"], task, starts=Scenarios.scoring(task, 700))
    assert (calm.penalties != one.penalties).any()


@pytest.mark.parametrize("step", [20.0, 2.5, 0.1], ids=lambda step: f"step {step:g}")
@pytest.mark.parametrize("kind", KINDS)
def test_actions_in_whole_steps_equal_the_twins(kind: str, step: float) -> None:
    tables = CARTPOLE.model_dump(mode="json")
    tables["actions"]["force"]["step"] = step
    task = Task.from_dict(tables)
    setpoints = SETPOINTS["changing"]
    engine = run(KINDS[kind], setpoints, task)
    expected = twin.roll_out(KINDS[kind].for_task(task), STARTS, setpoints.tolist())
    assert engine.actions is not None
    np.testing.assert_array_equal(engine.actions[0, 0, :, :, 0], expected.actions)
    steps = (expected.actions + 10) / step
    np.testing.assert_allclose(steps, np.round(steps), rtol=0, atol=1e-9)
    assert len(np.unique(expected.actions)) > 1
    rounded = run(KINDS[kind], setpoints)
    assert (np.asarray(rounded.actions)[0, 0, :, :, 0] != expected.actions).any() or kind == "greedy-q"


@pytest.mark.parametrize("kind", ["lagging equation", "linear", "pid"])
def test_penalties_are_those_of_the_twin(kind: str) -> None:
    controller = KINDS[kind].for_task(CARTPOLE)
    result = evaluate(controller, CARTPOLE, starts=STARTS)
    aim = controller.setpoint["rho"]
    expected = twin.roll_out(controller, STARTS, [aim] * CARTPOLE.horizon)
    np.testing.assert_allclose(result.penalties[0], expected.penalties, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(result.failed[0], expected.failed)


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_threads_does_not_change_a_bit(kind: str) -> None:
    task = CARTPOLE.model_copy(update={"horizon": 8})
    one, two, seven = (evaluate(KINDS[kind], task, starts=3_000, workers=workers) for workers in (1, 2, 7))
    np.testing.assert_array_equal(one.penalties, two.penalties)
    np.testing.assert_array_equal(one.penalties, seven.penalties)
    np.testing.assert_array_equal(one.failed, seven.failed)
    assert len(np.unique(one.penalties)) > 10
