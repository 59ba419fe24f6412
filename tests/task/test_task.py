"""What a task means: the built-in one is the paper's plant."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.errors import ClearloopError
from clearloop.expression import Expression, Variable, evaluate, to_text
from clearloop.task import Task, builtin_tasks
from tests.task.texts import CARTPOLE, GYMNASIUM, LEARNED, SMALL, edited


def at(expression: Expression | None, **values: float) -> float:
    assert expression is not None
    return evaluate(expression, {Variable(name): value for name, value in values.items()})


def test_cartpole_is_built_in() -> None:
    assert "cartpole" in builtin_tasks()
    task = Task.load("cartpole")
    assert (task.name, task.dt, task.discount, task.horizon, task.history) == (
        "cartpole",
        0.025,
        0.97,
        100,
        1,
    )
    assert task.state_names == ("theta", "theta_dot", "rho", "rho_dot")
    assert task.action_names == ("force",)
    assert task.action_limits.tolist() == [[-10.0, 10.0]]
    assert task.setpoints == {"rho": 0.0}
    assert (task.symmetric, task.substeps, task.gymnasium) == (True, 10, None)
    assert task.on_failure == {"theta_dot": 0.0, "rho_dot": 0.0}


@given(st.floats(-3, 3), st.floats(-9, 9), st.floats(-10, 10))
@settings(max_examples=50)
def test_cartpole_moves_as_the_facts_say(theta: float, theta_dot: float, force: float) -> None:
    mass, half, total = 0.1, 0.5, 1.1
    h = force + mass * half * theta_dot**2 * math.sin(theta)
    denominator = 4 / 3 * total * half - mass * half * math.cos(theta) ** 2
    turning = (total * 9.81 * math.sin(theta) - h * math.cos(theta)) / denominator
    expected = [theta_dot, turning, 0.5, (h - mass * half * turning * math.cos(theta)) / total]
    state = {"theta": theta, "theta_dot": theta_dot, "rho": 1.0, "rho_dot": 0.5, "force": force}
    assert [at(rate, **state) for rate in Task.load("cartpole").plant_derivatives.values()] == pytest.approx(
        expected, rel=1e-13
    )


@pytest.mark.parametrize(
    ("theta", "rho", "reward"),
    [(0, 0, 0.0), (0.3, 0, -0.1), (0, 0.6, -0.1), (0.71, 0, -1.0), (0, -2.5, -1.0)],
)
def test_cartpole_rewards_the_next_state(theta: float, rho: float, reward: float) -> None:
    task = Task.load("cartpole")
    expression = task.reward_expression
    assert expression is not None
    values = {Variable("theta"): theta, Variable("rho"): rho, Variable("rho", "error"): rho}
    assert evaluate(expression, values) == reward
    assert at(task.failure_condition, theta=theta, rho=rho) == (reward == -1.0)


def test_reward_levels_are_best_first() -> None:
    task = Task.load("cartpole")
    assert task.reward_levels == (0.0, -0.1, -1.0)
    assert task.failure_level == -1.0
    assert Task.from_toml(SMALL).reward_levels is None


def test_failure_gives_way_to_earlier_cases() -> None:
    task = Task.from_toml(
        edited(
            ("cases = [", 'cases = [ { when = "rho > 5", value = 1.0 },'),
        )
    )
    assert at(task.failure_condition, theta=0.0, rho=3.0) == 1
    assert at(task.failure_condition, theta=0.0, rho=6.0) == 0


def test_scoring_starts_are_the_sobol_points_of_the_facts() -> None:
    from scipy.stats.qmc import Sobol

    task = Task.load("cartpole")
    unit = Sobol(2, scramble=False).random_base2(10)
    starts = task.scoring_starts()
    assert starts.shape == (1024, 4)
    np.testing.assert_allclose(starts[:, 0], -0.6 + 1.2 * unit[:, 0], atol=1e-15)
    np.testing.assert_allclose(starts[:, 2], -1.5 + 3.0 * unit[:, 1], atol=1e-15)
    assert not starts[:, [1, 3]].any()


@pytest.mark.parametrize("n", [1, 2, 3, 100, 1025])
def test_fewer_scoring_starts_are_the_first_of_more(n: int) -> None:
    task = Task.load("cartpole")
    np.testing.assert_array_equal(task.scoring_starts(n), task.scoring_starts(2048)[:n])


def test_random_starts_fill_the_box() -> None:
    task = Task.load("cartpole")
    starts = task.random_starts(2000, np.random.default_rng(0))
    assert task.start_box is not None
    assert (starts >= task.start_box[:, 0]).all()
    assert (starts <= task.start_box[:, 1]).all()
    np.testing.assert_allclose(starts.max(axis=0), task.start_box[:, 1], atol=0.01)


def test_a_start_may_be_a_point() -> None:
    task = Task.from_toml(edited(("theta = [-0.6, 0.6]", "theta = [0.2, 0.2]")))
    assert (task.scoring_starts(8)[:, 0] == 0.2).all()
    assert (task.random_starts(8, np.random.default_rng(0))[:, 0] == 0.2).all()


def test_starts_from_the_batch_cannot_be_drawn() -> None:
    task = Task.from_toml(SMALL)
    assert task.start_box is None
    with pytest.raises(ClearloopError, match="starts come from the batch"):
        task.scoring_starts()
    with pytest.raises(ClearloopError, match="at least one start"):
        Task.load("cartpole").scoring_starts(0)


@pytest.mark.parametrize("text", [CARTPOLE, SMALL, GYMNASIUM, LEARNED])
def test_json_gives_an_equal_task(text: str) -> None:
    task = Task.from_toml(text)
    task.columns, task.start_box, task.reward_expression  # what is cached must not matter  # noqa: B018
    assert Task.from_dict(json.loads(json.dumps(task.model_dump(mode="json")))) == task


def test_the_contract_of_a_file_with_a_plant_elsewhere() -> None:
    assert Task.from_toml(GYMNASIUM).gymnasium == "Tank-v0"
    assert Task.from_toml(GYMNASIUM).plant_derivatives == {}
    assert Task.from_toml(LEARNED).reward_expression is None
    assert Task.from_toml(SMALL).failure_condition is None


def test_where_may_use_what_stands_before() -> None:
    derivative = (
        '[plant.where]\na = 2\nb = "a*level"\n[plant.derivative]\nlevel = "b - valve"\nflow = "b/a"\n'
    )
    first, second = Task.from_toml(SMALL + derivative).plant_derivatives.values()
    assert to_text(first) == "2*level - valve"
    assert to_text(second) == "2*level/2"


def test_columns_follow_the_data_table() -> None:
    columns = Task.from_toml(LEARNED + '[data]\nflow = "FT 101"\ntime = "t"\n').columns
    assert columns.states == ("level", "FT 101")
    assert columns.actions == ("valve",)
    assert columns.setpoints == ("target",)
    assert (columns.time, columns.episode, columns.reward, columns.terminal) == (
        "t",
        "episode",
        "r",
        "terminal",
    )
    assert set(columns.needed) == {"level", "FT 101", "valve", "target", "t", "r"}


def test_even_starts_are_random_and_spread_evenly() -> None:
    task = Task.load("cartpole")
    first, again, other = (task.even_starts(256, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, task.scoring_starts(256))
    # Of 256 points in 16 columns of the box, each has its share.
    counts, _ = np.histogram(first[:, 0], bins=16, range=(-0.6, 0.6))
    assert set(counts.tolist()) == {16}
    assert (first[:, 1] == 0).all()


def test_a_plant_is_scored_if_it_needs_no_log() -> None:
    assert Task.load("cartpole").scorable
    assert not Task.from_toml(GYMNASIUM).scorable  # its setpoint is a column of the log
    assert Task.from_toml(GYMNASIUM.replace('setpoint = "target"', "setpoint = 0.5")).scorable
    for lacking in ("plant", "starts"):
        tables = Task.load("cartpole").model_dump(mode="json", exclude_none=True)
        del tables[lacking]
        assert not Task.from_dict(tables).scorable, lacking
