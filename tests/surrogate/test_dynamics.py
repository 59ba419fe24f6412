"""Members have a linear part, a network where it helps, and rows of their own."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.networks import Network
from clearloop.surrogate import BEST, Surrogate
from clearloop.surrogate.dynamics import (
    Part,
    Stretches,
    draw_rows,
    first_steps,
    helps,
    linear_parts,
    physical_columns,
)
from clearloop.surrogate.steps import Steps
from clearloop.task import Task

from .models import BRIEF, PUSHED, SLIDER, slider_log

FEW = replace(BEST, search=2, judge=2, training=BRIEF)


def test_a_linear_plant_is_learned_exactly_and_stays_at_rest() -> None:
    model = Surrogate.fit(SLIDER, slider_log(), track=FEW, rng=np.random.default_rng(0))
    windows = np.random.default_rng(1).uniform(-20, 20, (50, 3))  # far outside of the log
    for member in range(model.members):
        changes = np.stack([network(windows)[:, 0] for network in model.dynamics[member]], axis=1)
        np.testing.assert_allclose(changes, windows @ PUSHED.T, atol=1e-6)
        np.testing.assert_allclose(model.predict(np.zeros((1, 3)), member), 0.0, atol=1e-8)


def test_a_network_that_only_fits_noise_is_left_out() -> None:
    log = slider_log()
    noise = np.random.default_rng(3).normal(0, 0.2, log.states.shape)
    model = Surrogate.fit(
        SLIDER, replace(log, states=log.states + noise), track=FEW, rng=np.random.default_rng(0)
    )
    networks = [network for member in model.dynamics for network in member]
    silent = [network for network in networks if not network.weights[-1].any()]
    assert len(silent) >= len(networks) - 1


def test_a_network_that_explains_the_rest_helps() -> None:
    inputs = np.random.default_rng(0).uniform(-1, 1, (400, 1))
    bend = Network((np.array([[1.0], [-1.0]]), np.array([[1.0, 1.0]])), (np.zeros(2), np.zeros(1)))  # |x|
    changes = 2 * inputs[:, 0] + np.abs(inputs[:, 0])
    assert helps(Part(bend, np.array([2.0, 0.0])), inputs, changes)
    assert not helps(Part(bend, np.array([2.0, 0.0])), inputs, changes - np.abs(inputs[:, 0]))


def test_linear_parts_are_least_squares() -> None:
    rng = np.random.default_rng(0)
    inputs = np.column_stack([rng.normal(5, 2, 200), rng.normal(-1, 0.01, 200), np.full(200, 3.0)])
    changes = np.stack([inputs @ [0.5, -7.0, 0.0] + 2.0, inputs @ [0.0, 1.0, 0.0]])
    found = linear_parts(inputs, changes, constant=True)
    np.testing.assert_allclose(found[:, :2], [[0.5, -7.0], [0.0, 1.0]], atol=1e-9)
    np.testing.assert_allclose(inputs @ found[:, :3].T + found[:, 3], changes.T, atol=1e-9)
    assert not linear_parts(inputs, changes, constant=False)[:, 3].any()


def test_the_first_member_learns_from_all_rows_and_the_others_from_whole_blocks() -> None:
    episode = np.repeat(np.arange(30), 10)
    drawn = draw_rows(episode, 4, np.random.default_rng(0))
    assert drawn.shape == (4, 300)
    assert drawn[0].tolist() == list(range(300))
    for rows in drawn[1:]:
        assert rows.tolist() != drawn[0].tolist()
        blocks = rows.reshape(30, 10)
        assert (blocks == blocks[:, :1] + np.arange(10)).all()
        assert (blocks[:, 0] % 10 == 0).all()


@pytest.mark.parametrize("history", [1, 2])
def test_computed_states_are_no_inputs(history: int) -> None:
    task = Task.from_toml(f"""
    name = "cart"
    dt = 0.1
    discount = 0.9
    horizon = 5
    history = {history}
    [states]
    place = {{ setpoint = 1.0 }}
    speed = {{ formula = "(place - place[t-1])/dt" }}
    owed = {{ formula = "owed[t-1] + dt*place.error" }}
    [actions]
    push = {{ limits = [-1, 1] }}
    [reward]
    expression = "-abs(place.error)"
    """)
    # With one row, only the speed tells what was before.
    assert physical_columns(task).tolist() == ([0, 1, 3] if history == 1 else [0, 3, 4, 7])


def test_stretches_run_on_their_own_predictions() -> None:
    steps = Steps.of(SLIDER, slider_log())
    first = first_steps(steps, 10, 5)
    assert (steps.episode[first] == steps.episode[first + 9]).all()
    stretches = Stretches.of(steps, first, 10, np.array([0, 1]), 3)
    np.testing.assert_allclose(stretches.errors(lambda window: window @ PUSHED.T), 0.0, atol=1e-9)
    still = stretches.errors(lambda window: np.zeros((len(window), 2)))
    moved = (steps.window[first, :2] - steps.next[first + 9][:, :2]) / steps.window[:, :2].std(axis=0)
    np.testing.assert_allclose(still[-1], moved)
