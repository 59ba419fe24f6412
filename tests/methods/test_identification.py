"""Linear models of planted plants: static gains, time constants, dead times and what is said of them."""

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.methods.identification import damped_step
from clearloop.methods.linear_model import LinearModel, identify
from clearloop.methods.plant_answers import Answer, find_answers
from clearloop.plants.exploration import make_batch
from clearloop.task import Task

from .linear_plants import make_task
from .planted import PLANTS, Planted


def modelled(plant: Planted, under: str = "pi", noise: float = 0.01, size: int = 1500) -> LinearModel:
    task = plant.task()
    return identify(task, plant.log(task, under=under, noise=noise, size=size))


def answers_of(model: LinearModel) -> dict[tuple[str, str], Answer]:
    return {(answer.state, answer.action): answer for answer in find_answers(model)}


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize(
    ("name", "under"),
    [
        ("first_late", "pi"),
        ("first_late", "hand"),
        ("second_late", "pi"),
        ("oscillating", "pi"),
        ("slow", "pi"),
    ],
)
def test_static_gains_and_dead_times_are_those_of_the_plant(name: str, under: str, noise: float) -> None:
    plant = PLANTS[name]
    (answer,) = find_answers(modelled(plant, under, noise))
    assert answer.kind == "settles"
    assert answer.gain == pytest.approx(plant.static_gain()[0, 0], rel=0.02)
    assert answer.dead_time == pytest.approx(plant.channels[0][0].late, abs=2)
    assert answer.known


@pytest.mark.parametrize(("name", "seconds"), [("first", 20.0), ("first_late", 20.0), ("slow", 400.0)])
def test_the_time_constant_of_a_first_order_plant_is_its_own(name: str, seconds: float) -> None:
    (answer,) = find_answers(modelled(PLANTS[name]))
    assert answer.time_constant == pytest.approx(seconds, rel=0.03)


def test_noise_does_not_make_the_plant_faster_as_it_does_in_plain_least_squares() -> None:
    """With noise of 5 %, y[t+1] = a y[t] + b u[t] + c by least squares finds less than 300 of the 400 s."""
    plant = PLANTS["slow"]
    task = plant.task()
    log = plant.log(task, noise=0.05, size=1500)
    (answer,) = find_answers(identify(task, log))
    assert answer.gain == pytest.approx(1.7, rel=0.15)
    assert answer.time_constant == pytest.approx(400.0, rel=0.15)
    y, u = log.states[:, 0], log.actions[:, 0]
    a, *_ = np.linalg.lstsq(np.stack([y[:-1], u[:-1], np.ones(len(y) - 1)], axis=1), y[1:])[0]
    assert -1 / np.log(a) < 300


def test_two_inputs_and_two_outputs_have_four_answers() -> None:
    plant = PLANTS["two"]
    found = answers_of(modelled(plant))
    for k, j in np.ndindex(2, 2):
        answer = found[f"y{k}", f"u{j}"]
        assert answer.gain == pytest.approx(plant.static_gain()[k, j], rel=0.1)
        assert answer.dead_time == pytest.approx(plant.channels[k][j].late, abs=1)


def test_a_plant_that_integrates_has_a_slope_and_no_static_gain() -> None:
    (answer,) = find_answers(modelled(PLANTS["integrating_late"]))
    assert answer.kind == "integrates"
    assert answer.gain == pytest.approx(0.02, rel=0.05)
    assert answer.time_constant is None
    assert answer.words.startswith("y integrates u after a dead time of 5 s: 0.0")
    assert "degC/s per %" in answer.words


def test_a_plant_that_runs_away_is_said_to() -> None:
    (answer,) = find_answers(modelled(PLANTS["unstable"]))
    assert answer.kind == "runs away"
    assert answer.words == "y runs away by itself; there is no static gain from u to y."


def test_the_words_are_an_engineers() -> None:
    (answer,) = find_answers(modelled(PLANTS["first_late"]))
    assert answer.words.startswith("y answers u with a static gain of 1.70")
    assert "degC per %, a time constant of " in answer.words
    assert answer.words.endswith(" s and a dead time of 6 s.")
    assert answer.to_dict()["words"] == answer.words


def test_one_small_move_leaves_the_static_gain_unknown() -> None:
    """The plant rests, and one move of 0.2 % is lost in the noise of the sensor."""
    task = PLANTS["slow"].task()
    rng = np.random.default_rng(1)
    u = np.where(np.arange(400) < 300, 50.0, 50.2)
    y = np.zeros(400)
    for t in range(399):
        y[t + 1] = y[t] + (1.7 * (u[t] - 50.0) - y[t]) / 400
    states = np.stack([20 + y + rng.normal(0, 0.1, 400), np.zeros(400)], axis=1)
    batch = Batch(
        task.columns,
        states,
        u[:, None],
        np.zeros(400, np.int64),
        np.zeros(400, np.bool_),
        setpoints=np.full((400, 1), 20.0),
    )
    (answer,) = find_answers(identify(task, batch))
    assert not answer.known
    assert "is unknown" in answer.words


def test_moving_setpoints_do_not_move_the_plant() -> None:
    """The static gain is the same whether the setpoints are a column that moves or a number."""
    plant = PLANTS["first"]
    moving = plant.task()
    log = plant.log(moving, noise=0.0)
    fixed = Task.from_dict(
        moving.model_dump(mode="json") | {"states": {"y": {"setpoint": 20.0, "unit": "degC"}}}
    )
    bare = Batch(fixed.columns, log.states[:, :1], log.actions, log.episodes, log.terminal)
    assert find_answers(identify(fixed, bare))[0].gain == pytest.approx(1.7, rel=1e-4)
    assert find_answers(identify(moving, log))[0].gain == pytest.approx(1.7, rel=1e-4)


def test_computed_states_follow_their_formulas() -> None:
    """The sum of the error has slopes of exactly 1 and dt, and nothing reads it."""
    model = modelled(PLANTS["first"])
    sums = model.slopes[1].sum(axis=0)
    own = model.slopes[0].sum(axis=0)
    assert sums[1] == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(sums[[0, 2]], own[[0, 2]], rtol=1e-9)  # dt is 1 s
    assert model.aims[1, 0] == pytest.approx(-1.0, abs=1e-9)
    assert not model.slopes[0, :, 1].any()
    assert (model.errors[1] == 0).all()


def test_a_constant_external_state_is_left_out_and_a_moving_one_is_an_input() -> None:
    rng = np.random.default_rng(0)
    task = make_task(2, reach=20.0, states={"x0": {}, "x1": {"external": True}})
    u, load = rng.uniform(-20, 20, 800), np.full(800, 3.0)
    for moves in (False, True):
        if moves:
            load = 3 + np.repeat(rng.uniform(-1, 1, 16), 50)
        x = np.zeros(800)
        for row in range(799):
            x[row + 1] = 0.9 * x[row] + 0.1 * u[row] + 0.2 * load[row]
        states = np.stack([x, load], axis=1)
        batch = Batch(task.columns, states, u[:, None], np.zeros(800, int), np.zeros(800, np.bool_))
        model = identify(task, batch)
        assert model.slopes[0, 0, 1] == pytest.approx(0.2 if moves else 0.0, abs=1e-6)
        assert model.constant[0] == pytest.approx(0.0 if moves else 0.6, abs=1e-6)


def test_columns_that_are_the_same_share_a_step() -> None:
    """Such as an external state that is constant in each episode, and its lag."""
    one = np.array([[1e5], [2e5], [-1e5]])
    step = damped_step(np.hstack([one, one]), -3 * one[:, 0], 0.0)
    assert step == pytest.approx([1.5, 1.5])


def test_a_weak_effect_is_found_over_all_lags_together() -> None:
    """Each lag has a t value of about 3, all of them together leave no doubt."""
    rng = np.random.default_rng(2)
    task = make_task(1, history=3)
    u, e = rng.uniform(-1, 1, 3000), rng.normal(0, 1, 3000)
    x = np.zeros(3000)
    for t in range(2999):
        x[t + 1] = 0.5 * x[t] + 0.1 * (u[t] + u[t - 1] + u[t - 2] if t > 1 else u[t]) + e[t]
    batch = Batch(task.columns, x[:, None], u[:, None], np.zeros(3000, int), np.zeros(3000, np.bool_))
    model = identify(task, batch)
    assert model.slopes[0, :, 1].sum() > 0.1


@pytest.mark.parametrize(("seed", "size"), [(0, 8000), (1, 4000)])
def test_a_slow_answer_under_large_disturbances_is_no_long_dead_time(seed: int, size: int) -> None:
    """Water reaches the lower tank slowly, while somebody opens a tap: 8 or 11 steps seemed to pass."""
    task = Task.load("tank")
    equations = identify(task, make_batch(task, rng=np.random.default_rng(seed), size=size)).equations
    assert equations.delays.max() <= 4
    assert equations.stray < 0.5
