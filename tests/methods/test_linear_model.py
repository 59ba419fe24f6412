"""Linear models of logs: what is found, and what is refused."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.methods.linear_model import identify
from clearloop.task import Task

from .linear_plants import make_log, make_task

U = np.array([[1.1, 0.2], [-0.1, 0.7]])
V = np.array([[0.0], [0.5]])


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(1, 2))
@settings(max_examples=25, deadline=None)
def test_plants_are_recovered_from_their_logs(seed: int, states: int, actions: int) -> None:
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, (states, states)) / states + np.eye(states) * 0.5
    v = rng.uniform(-1, 1, (states, actions))
    model = identify(*_logged(u, v))
    found = model.matrices
    np.testing.assert_allclose(found[0], u, atol=1e-9)
    np.testing.assert_allclose(found[1], v, atol=1e-9)
    np.testing.assert_allclose(model.constant, 0, atol=1e-9)


def _logged(u: Floats, v: Floats, noise: float = 0.0) -> tuple[Task, Batch]:
    task = make_task(*v.shape)
    return task, make_log(task, u, v, noise=noise)


def test_noise_moves_gains_no_more_than_their_standard_errors_say() -> None:
    model = identify(*_logged(U, V, noise=0.1))
    np.testing.assert_allclose(model.residual, 0.1, rtol=0.15)
    away = np.abs(model.gains - np.hstack([U, V])) / model.errors
    assert 0.1 < away.max() < 4


def test_a_plant_rests_where_its_wanted_states_are_at_their_setpoints() -> None:
    task = make_task(2, states={"x0": {"setpoint": 0.3}, "x1": {}})
    u, v, c = U, V, 0.05
    model = identify(task, make_log(task, u, v, constant=c))
    place, actions = model.rest(np.array([True, False]))
    np.testing.assert_allclose(place, u @ place + v @ actions + c, atol=1e-9)
    assert abs(place[0] - 0.3) < 1e-5
    assert abs(actions[0]) > 0.01


def test_a_symmetric_plant_rests_at_zero() -> None:
    task = make_task(2, symmetric=True)
    model = identify(task, make_log(task, U, V, noise=0.1))
    assert (model.constant == 0).all()
    place, actions = model.rest(np.array([True, False]))
    assert (place == 0).all()
    assert (actions == 0).all()


def test_failing_steps_are_left_out() -> None:
    task, batch = _logged(U, V)
    states, terminal = batch.states.copy(), batch.terminal.copy()
    states[10::22], terminal[10::22] = 1e3, True  # every second episode ends somewhere else
    broken = Batch(task.columns, states, batch.actions, batch.episodes, terminal)
    np.testing.assert_allclose(identify(task, broken).matrices[0], U, atol=1e-9)


def test_history_is_used_as_far_as_it_helps() -> None:
    task = make_task(2, history=3)
    model = identify(task, make_log(task, U, V))
    assert model.history == 1
    # Of a plant that is seen without its second state, the past tells the rest (Cayley and Hamilton).
    short, log = make_task(1, history=3), make_log(make_task(2), U, V)
    model = identify(short, Batch(short.columns, log.states[:, :1], log.actions, log.episodes, log.terminal))
    assert model.names == ("x0", "x0[t-1]", "u0[t-1]")
    expected = [np.trace(U), -np.linalg.det(U), (U @ V)[0, 0]]
    np.testing.assert_allclose(model.matrices[0][0], expected, atol=1e-9)
    np.testing.assert_array_equal(model.matrices[0][1:], [[1, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(model.matrices[1], [[0], [0], [1]], atol=1e-9)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda x, u: (x * [1, 0], u), "x1 never changes"),
        (lambda x, u: (x, u * 0 + 0.5), "u0 never changes"),
        (lambda x, _: (x, x[:, :1] * 0.5 - x[:, 1:]), "one of x0, x1, u0 is always"),
        (lambda x, u: (x[:, :1] * [1, 2], u), "one of x0, x1 is always"),
        (lambda x, u: (x, np.random.default_rng(9).uniform(-1, 1, u.shape)), "no effect of u0"),
    ],
)
def test_what_a_log_does_not_tell_is_refused(
    spoil: Callable[[Floats, Floats], tuple[Floats, Floats]], what: str
) -> None:
    task, log = _logged(U, V, noise=0.01)
    states, actions = spoil(log.states, log.actions)
    batch = Batch(task.columns, states, actions, log.episodes, log.terminal)
    with pytest.raises(ClearloopError, match=f"badly identified: .*{what}"):
        identify(task, batch)


def test_a_tiny_batch_is_refused() -> None:
    task, log = _logged(U, V)
    rows = slice(0, 6)
    few = Batch(task.columns, log.states[rows], log.actions[rows], log.episodes[rows], log.terminal[rows])
    with pytest.raises(ClearloopError, match=r"5 steps .* are too few for the 4 numbers"):
        identify(task, few)
    rows = slice(0, 7)
    enough = Batch(task.columns, log.states[rows], log.actions[rows], log.episodes[rows], log.terminal[rows])
    np.testing.assert_allclose(identify(task, enough).matrices[0], U, atol=1e-9)
