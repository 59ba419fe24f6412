"""Past states are shown as differences while networks learn, and nobody notices afterwards."""

import numpy as np

from clearloop.networks import Network
from clearloop.surrogate.dynamics import difference_lags
from clearloop.task import Task

TASK = Task.from_toml("""
name = "two"
dt = 1.0
discount = 0.9
horizon = 5
history = 3
[states]
x = {}
y = {}
[actions]
u = { limits = [-1, 1] }
[reward]
expression = "-abs(x)"
""")


def test_past_states_become_differences_and_actions_stay() -> None:
    window = np.array([10.0, 20.0, 1.0, 9.0, 17.0, 2.0, 7.0, 13.0, 3.0])  # x, y, u of three rows
    shown = difference_lags(TASK) @ window
    assert shown.tolist() == [10.0, 20.0, 1.0, -1.0, -3.0, 2.0, -2.0, -4.0, 3.0]


def test_a_history_of_one_stays_as_it_is() -> None:
    one = TASK.model_copy(update={"history": 1})
    np.testing.assert_array_equal(difference_lags(one), np.eye(3))


def test_the_network_that_is_kept_sees_the_states() -> None:
    rng = np.random.default_rng(0)
    network = Network((rng.normal(size=(4, 9)), rng.normal(size=(1, 4))), (rng.normal(size=4), np.zeros(1)))
    windows, lags = rng.normal(size=(20, 9)), difference_lags(TASK)
    np.testing.assert_allclose(network.seeing(lags)(windows), network(windows @ lags.T), atol=1e-12)
