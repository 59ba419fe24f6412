"""Scores of controllers on plants: starts, setpoints, other tasks."""

import numpy as np
import pytest
from numpy.typing import NDArray

from clearloop.controllers import Controller, Equation, Linear
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.task import Task
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.plants.mixer import MIXER, TEXT, course

MIXING = Equation(
    outputs={"burner": "1 - heat[t-2] + 0.3*inlet[t-1]", "inlet": "0.4*level[t-1] - burner[t-2] + 0.2"},
    setpoint={"level": 0.75},
)
GAINS = Linear(
    gains={"burner": {"heat": -0.5, "level": 0.7}, "inlet": {"level[t-2]": -0.4, "burner[t-1]": 0.1}}
)


def act_out(controller: Controller, start: tuple[float, float]) -> tuple[float, bool]:
    """The penalty by plain Python, and whether it failed."""
    controller = controller.for_task(MIXER)
    setpoint = controller.setpoint["level"]
    memory, steps = controller.reset(), list[tuple[float, float]]()
    for _ in range(MIXER.horizon):
        level, heat = course(start, steps, setpoint)[0][-1]
        action = controller.act({"level": level, "heat": heat}, memory)
        steps.append((action["inlet"], action["burner"]))
    _, rewards, failed = course(start, steps, setpoint)
    return -sum(reward * MIXER.discount**k for k, reward in enumerate(rewards)), failed


@pytest.mark.parametrize("controller", [MIXING, GAINS], ids=["equation", "linear"])
def test_another_task_with_two_actions_and_a_reward_that_looks_back(controller: Controller) -> None:
    starts = MIXER.scoring_starts(40)
    result = evaluate(controller, MIXER, starts=40)
    expected = [act_out(controller, (start[0], start[1])) for start in starts]
    np.testing.assert_allclose(result.penalties[0], [penalty for penalty, _ in expected], rtol=0, atol=1e-12)
    assert result.failed[0].tolist() == [failed for _, failed in expected]
    assert result.task == "mixer"
    assert len(np.unique(result.penalties)) > 3


def test_a_reward_may_look_back_further_than_controllers_see() -> None:
    shorter = Task.from_toml(TEXT.replace("history = 3", "history = 1"))
    short, long = evaluate(GAINS, shorter, starts=40), evaluate(GAINS, MIXER, starts=40)
    np.testing.assert_array_equal(short.penalties, long.penalties)


def test_starts_are_the_scoring_set_the_first_of_it_or_given() -> None:
    pid = KINDS["pid"]
    some = evaluate(pid, CARTPOLE, starts=16)
    given = evaluate(pid, CARTPOLE, starts=CARTPOLE.scoring_starts(1024)[:16])
    np.testing.assert_array_equal(some.penalties, given.penalties)
    alone = [evaluate(pid, CARTPOLE, starts=start[None]).penalty for start in CARTPOLE.scoring_starts(3)]
    assert alone == some.penalties[0, :3].tolist()


@pytest.mark.parametrize(
    "starts",
    [np.zeros((2, 3)), np.zeros(4), np.zeros((0, 4)), np.full((1, 4), np.nan), np.full((3, 4), 1e13)],
    ids=lambda starts: str(starts.shape),
)
def test_starts_that_are_none_are_refused(starts: NDArray[np.float64]) -> None:
    with pytest.raises(ClearloopError, match="starts: expected"):
        evaluate(KINDS["pid"], CARTPOLE, starts=starts)


def test_setpoints_the_controllers_then_the_tasks() -> None:
    near, far = (
        Equation(outputs={"force": "70*theta + 20*theta_dot + 10*rho + 9*rho_dot"}, setpoint={"rho": aim})
        for aim in (0.0, 1.4)
    )
    start = np.array([[0.0, 0.0, 1.4, 0.0]])
    assert evaluate(far, CARTPOLE, starts=start).penalty == 0.0
    assert evaluate(near, CARTPOLE, starts=start).penalty > 0.5


def test_a_setpoint_that_is_a_log_column_needs_a_number() -> None:
    task = Task.from_toml(TEXT.replace("setpoint = 1.0", 'setpoint = "aim"'))
    with pytest.raises(ClearloopError, match="the setpoint of 'level' is the log column 'aim'"):
        evaluate(GAINS, task, starts=1)
    assert evaluate(MIXING, task, starts=40).penalty == evaluate(MIXING, MIXER, starts=40).penalty


def test_a_summary_for_programs_and_one_for_people() -> None:
    result = evaluate(KINDS["pid"], CARTPOLE, starts=64)
    document = result.to_dict()
    assert list(document) == ["task", "on", "starts", "penalty", "failures"]
    assert document["penalty"] == {"mean": result.penalty, "se": result.standard_error}
    assert result.standard_error == pytest.approx(result.penalties.std(ddof=1) / 8)
    assert repr(result).startswith(f"penalty {result.penalty:.3f} ± {result.standard_error:.3f}, ")
    alone = evaluate(KINDS["pid"], CARTPOLE, starts=1)
    assert alone.to_dict()["penalty"]["se"] is None
    assert "nan" not in repr(alone)


@pytest.mark.parametrize("reward", [1e99, -1e99, 1e308])
def test_rewards_that_add_up_to_more_than_can_be_compared_are_refused(reward: float) -> None:
    document = CARTPOLE.model_dump(mode="json", exclude_none=True)
    document["reward"] = {"expression": f"{reward}*(1 + theta)"}
    with pytest.raises(ClearloopError, match=r"task 'cartpole': rewards add up to more than 1e\+100"):
        evaluate(KINDS["linear"], Task.from_dict(document), starts=2)


def test_a_task_without_a_plant_has_nothing_to_evaluate_on() -> None:
    task = Task.from_toml(TEXT[: TEXT.index("[plant]")])
    with pytest.raises(ClearloopError, match=r"task 'mixer' has no \[plant\] with equations"):
        evaluate(GAINS, task, starts=1)
