import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.data.checks import MOST_CLASSES
from clearloop.expression import Variable, evaluate
from clearloop.surrogate import Surrogate
from clearloop.surrogate.fitting import find_failing, find_levels
from clearloop.surrogate.steps import STEPS, Steps, judge_frame

from .models import CARTPOLE, CARTPOLE_BY_COLUMN, TANK, tank_log


def test_the_tasks_own_reward_over_many_steps_is_that_of_its_formula() -> None:
    rng = np.random.default_rng(0)
    frame = rng.uniform(-1, 1, (STEPS + 40, 13)) * [1, 2, 3, 2, 1, 2, 3, 2, 10, 0, 0, 0, 0]
    frame[:, 11] = 0.3
    reward, fails = judge_frame(CARTPOLE, frame)
    formula, condition = CARTPOLE.reward_expression, CARTPOLE.failure_condition
    assert formula is not None
    assert condition is not None
    for row in (*range(20), *range(STEPS, STEPS + 20)):
        values = {
            Variable("theta"): frame[row, 0],
            Variable("rho"): frame[row, 2],
            Variable("rho", "error"): frame[row, 2] - 0.3,
        }
        assert reward[row] == evaluate(formula, values)
        assert fails[row] == evaluate(condition, values)
    assert set(reward) == {0.0, -0.1, -1.0}
    assert judge_frame(CARTPOLE, frame[:0])[0].shape == (0,)


def test_steps_hold_the_logged_setpoint_of_the_row_in_which_they_begin() -> None:
    batch = tank_log()
    steps = Steps.of(TANK, batch)
    assert steps.frame.shape == (760, 2 + 9 + 2)
    assert batch.setpoints is not None
    assert np.array_equal(steps.setpoints[:, 0], np.delete(batch.setpoints[:, 0], np.arange(19, 800, 20)))
    assert not steps.setpoints[:, 1].any()


def test_classes_are_learned(by_column: Surrogate, cartpole_batch: Batch) -> None:
    steps = Steps.of(CARTPOLE_BY_COLUMN, cartpole_batch)
    for member in range(by_column.members):
        rewards, fails = by_column.judge(steps.frame, member)
        assert np.mean(rewards == steps.reward) > 0.93  # always −0.1 would be right in 0.84
        assert np.mean(fails[steps.failing]) > 0.3
        # Zero velocity is not what tells a failure: a step that fails with velocity is found as well.
        moving = steps.frame[steps.failing]
        moving[:, [1, 3]] = 1.5
        assert np.array_equal(by_column.judge(moving, member)[1], fails[steps.failing])


@pytest.mark.parametrize(
    ("distinct", "classes"), [(1, 0), (2, 2), (MOST_CLASSES, MOST_CLASSES), (MOST_CLASSES + 1, 0)]
)
def test_few_distinct_rewards_are_classes_the_best_first(distinct: int, classes: int) -> None:
    rewards = -0.5 * (np.arange(100.0) % distinct)
    assert find_levels(rewards).tolist() == [-0.5 * k for k in range(classes)]


@pytest.mark.parametrize(
    ("of_failing", "of_others", "told"),
    [
        ([-1.0, -1.0], [0.0, -0.1], [False, False, True]),
        ([-1.0, -1.0], [0.0, -0.1, -1.0], [False, False, False]),  # others have it, too
        ([-1.0, -0.1], [0.0, -0.1], [False, False, True]),  # a terminal row may be one that went well
        ([], [0.0, -0.1, -1.0], [False, False, False]),
    ],
)
def test_a_reward_that_only_failing_steps_have_tells_failure(
    of_failing: list[float], of_others: list[float], told: list[bool]
) -> None:
    rewards = np.array([*of_failing, *of_others])
    nothing = np.zeros((len(rewards), 1))
    steps = Steps(
        nothing,
        nothing,
        nothing[:, :0],
        nothing,
        nothing,
        rewards,
        np.arange(len(rewards)) < len(of_failing),
        np.zeros(len(rewards), np.int64),
        np.zeros(len(rewards), np.bool_),
    )
    assert find_failing(steps, np.array([0.0, -0.1, -1.0])).tolist() == told


def test_logged_failures(
    published: Surrogate, best: Surrogate, tank: Surrogate, cartpole_batch: Batch
) -> None:
    steps = Steps.of(CARTPOLE, cartpole_batch)
    for surrogate in (published, best):
        assert surrogate.reward.tells_failure
        assert np.array_equal(surrogate.reward.failed(steps), steps.failing)
    assert not tank.reward.tells_failure
    assert not tank.reward.failed(Steps.of(TANK, tank_log())).any()
