"""Rprop against NumPy and SciPy, and the highest of a network's answers against NumPy."""

from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares, minimize

from clearloop.networks import Network
from clearloop.networks.network import Activation
from clearloop.networks.rprop import RpropLoss, _move, first_network, highest, rprop

rng = np.random.default_rng(0)
INPUTS = rng.uniform(-1, 1, (200, 3))


def gradient(network: Network, x: Any, y: Any, loss: RpropLoss, decay: float) -> list[Any]:
    """Of the mean loss, by hand: for the weights of each layer, then for the biases."""
    kept = [x]
    for w, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
        z = kept[-1] @ w.T + b
        kept.append(np.tanh(z) if network.activation == "tanh" else 1 / (1 + np.exp(-z)))
    z = kept[-1] @ network.weights[-1].T + network.biases[-1]
    back = (2 * (z - y) if loss == "squared" else 1 / (1 + np.exp(-z)) - y) / y.size
    weights: list[Any] = []
    biases: list[Any] = []
    for w, a in zip(reversed(network.weights), reversed(kept), strict=True):
        weights.insert(0, back.T @ a + 2 * decay * w)
        biases.insert(0, back.sum(axis=0))
        back = (back @ w) * (1 - a**2 if network.activation == "tanh" else a * (1 - a))
    return [*weights, *biases]


def plain_rprop(
    network: Network, x: Any, y: Any, epochs: int, loss: RpropLoss, decay: float
) -> tuple[Network, float]:
    """Number by number, as in the iRprop- of Igel and Huesken (2000); and the smallest slope on the way."""
    layers, smallest = len(network.weights), np.inf
    parts = [part.copy() for part in (*network.weights, *network.biases)]
    before = [np.zeros_like(part) for part in parts]
    steps = [np.full_like(part, 0.01) for part in parts]
    for _ in range(epochs):
        now = Network(tuple(parts[:layers]), tuple(parts[layers:]), network.activation)
        for part, slopes, old, step in zip(
            parts, gradient(now, x, y, loss, decay), before, steps, strict=True
        ):
            smallest = min(smallest, np.abs(slopes).min())
            for i in np.ndindex(part.shape):
                slope = slopes[i]
                if slope * old[i] > 0:
                    step[i] = min(1.2 * step[i], 50.0)
                elif slope * old[i] < 0:
                    step[i] = max(0.5 * step[i], 1e-6)
                    slope = 0.0
                part[i] -= np.sign(slope) * step[i]
                old[i] = slope
    return Network(tuple(parts[:layers]), tuple(parts[layers:]), network.activation), smallest


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.sampled_from([(2, 1), (2, 3, 1), (3, 4, 2), (2, 3, 3, 1)]),
    activation=st.sampled_from(["sigmoid", "tanh"]),
    loss=st.sampled_from(["squared", "shares"]),
    epochs=st.sampled_from([1, 2, 7, 15]),
    decay=st.sampled_from([0.0, 0.03]),
)
def test_it_takes_the_steps_of_a_plain_one(
    seed: int, sizes: tuple[int, ...], activation: Activation, loss: RpropLoss, epochs: int, decay: float
) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0, 1, (30, sizes[0])), rng.uniform(0, 1, (30, sizes[-1]))
    begun = first_network(rng, sizes, activation, reach=1.5)
    expected, smallest = plain_rprop(begun, x, y, epochs, loss, decay)
    assume(smallest > 1e-5)  # of less, single precision need not know the sign
    found, _ = rprop(begun, x, y, epochs=epochs, loss=loss, decay=decay)
    for a, b in pairwise([[*found.weights, *found.biases], [*expected.weights, *expected.biases]]):
        for one, other in zip(a, b, strict=True):
            np.testing.assert_allclose(one, other, atol=2e-6, rtol=1e-5)


@pytest.mark.xfail(strict=True, reason="optax 0.2.8 applies every update one epoch late: optax/pull/1725")
def test_optax_takes_the_same_steps() -> None:
    """When this test passes, `optax.rprop` can replace `_move`."""
    theirs = optax.rprop(0.01)
    weight = before = jnp.zeros(1)
    step, position, memory = jnp.full(1, 0.01), weight, theirs.init(weight)
    for slope in map(jnp.atleast_1d, (1.0, 2.0, 1.0, -1.0, -3.0, 0.0, -1.0, 1.0)):
        weight, before, step = _move(weight, before, step, slope)
        change, memory = theirs.update(slope, memory)
        position = position + change
        np.testing.assert_allclose(position, weight)


def test_shares_without_a_hidden_layer_are_logistic_regression() -> None:
    shares = 1 / (1 + np.exp(-(INPUTS @ [2.0, -1.0, 0.5] + 0.4 + rng.normal(size=200))))

    def cost(numbers: Any) -> float:
        z = INPUTS @ numbers[:3] + numbers[3]
        return float((np.logaddexp(0, z) - shares * z).mean())

    optimum = minimize(cost, np.zeros(4), tol=1e-10)
    network, loss = rprop(
        first_network(rng, (3, 1), "sigmoid"), INPUTS, shares[:, None], epochs=300, loss="shares"
    )
    np.testing.assert_allclose(network.weights[0][0], optimum.x[:3], atol=1e-3)
    np.testing.assert_allclose(network.biases[0], optimum.x[3], atol=1e-3)
    assert loss == pytest.approx(optimum.fun, abs=1e-6)


def test_a_linear_network_becomes_the_least_squares_solution() -> None:
    targets = INPUTS @ np.array([[1.5], [-0.7], [0.2]]) + 0.3 + 0.1 * rng.normal(size=(200, 1))
    expected, *_ = np.linalg.lstsq(np.column_stack([INPUTS, np.ones(200)]), targets)
    network, loss = rprop(first_network(rng, (3, 1), "sigmoid"), INPUTS, targets, epochs=300)
    np.testing.assert_allclose(network.weights[0][0], expected[:3, 0], atol=1e-4)
    np.testing.assert_allclose(network.biases[0], expected[3], atol=1e-4)
    residuals = network(INPUTS) - targets
    assert loss == pytest.approx(float(np.square(residuals).mean()), rel=1e-3)


@pytest.mark.parametrize("activation", ["sigmoid", "tanh"])
def test_a_small_network_comes_as_low_as_scipys_optimum(activation: str) -> None:
    targets = np.sin(3 * INPUTS[:, :1]) * INPUTS[:, 1:2] + 0.05 * rng.normal(size=(200, 1))
    begun = first_network(rng, (3, 4, 1), activation)  # type: ignore[arg-type]

    def network_of(numbers: np.ndarray) -> Network:
        w1, b1, w2, b2 = np.split(numbers, [12, 16, 20])
        return Network((w1.reshape(4, 3), w2.reshape(1, 4)), (b1, b2), begun.activation)

    numbers = np.concatenate(
        [part.ravel() for pair in zip(begun.weights, begun.biases, strict=True) for part in pair]
    )
    optimum = least_squares(lambda numbers: (network_of(numbers)(INPUTS) - targets)[:, 0], numbers)
    best = float(np.square(optimum.fun).mean())
    assert best < 0.2 * targets.var()
    _, loss = rprop(begun, INPUTS, targets, epochs=6_000)
    assert loss < 1.1 * best


def test_it_goes_on_from_where_the_network_is() -> None:
    targets = np.square(INPUTS[:, :1])
    network, first = rprop(first_network(rng, (3, 6, 1), "sigmoid"), INPUTS, targets, epochs=400)
    _, again = rprop(network, INPUTS, targets, epochs=20)
    assert again < 1.2 * first
    assert first < 0.1 * targets.var()


def test_weights_begin_between_plus_and_minus_a_half() -> None:
    network = first_network(rng, (5, 20, 20, 1), "sigmoid")
    assert network.sizes == (5, 20, 20, 1)
    numbers = np.concatenate([part.ravel() for part in (*network.weights, *network.biases)])
    assert 0.48 < numbers.max() < 0.5
    assert -0.5 < numbers.min() < -0.48


def test_the_highest_answer_over_a_list_of_choices() -> None:
    network = first_network(rng, (5, 7, 1), "tanh", reach=2.0)
    choices = rng.uniform(-1, 1, (6, 2))
    every = np.stack([network(np.hstack([INPUTS, np.tile(choice, (200, 1))]))[:, 0] for choice in choices])
    found = highest(network, INPUTS, choices)
    np.testing.assert_allclose(found, every.max(axis=0), atol=1e-5)
    assert len(np.unique(every.argmax(axis=0))) > 1
