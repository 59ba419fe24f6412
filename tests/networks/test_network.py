from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.errors import ClearloopError
from clearloop.networks import Activation, Network, Scaling

ACTIVATIONS: tuple[Activation, ...] = ("relu", "tanh", "sigmoid")


def random_network(rng: np.random.Generator, sizes: tuple[int, ...], activation: Activation) -> Network:
    weights = tuple(rng.normal(size=(o, i)) for i, o in pairwise(sizes))
    return Network(weights, tuple(rng.normal(size=o) for o in sizes[1:]), activation)


def test_a_network_computed_by_hand() -> None:
    network = Network(
        (np.array([[1.0, -2.0], [0.5, 0.0]]), np.array([[3.0, -1.0]])),
        (np.array([0.25, -1.0]), np.array([10.0])),
    )
    assert network.sizes == (2, 2, 1)
    # hidden: relu(1 − 2 + 0.25, 0.5 − 1) = (0, 0); relu(3 + 0 + 0.25, 1.5 − 1) = (3.25, 0.5)
    assert network([[1.0, 1.0], [3.0, 0.0]]).tolist() == [[10.0], [19.25]]


def test_activations() -> None:
    one = np.ones((1, 1))
    x = np.array([[-800.0], [-1.5], [0.0], [2.0], [800.0]])
    outputs = {a: Network((one, one), (np.zeros(1), np.zeros(1)), a)(x)[:, 0] for a in ACTIVATIONS}
    assert outputs["relu"].tolist() == [0.0, 0.0, 0.0, 2.0, 800.0]
    np.testing.assert_allclose(outputs["tanh"], [-1.0, -0.9051482536448664, 0.0, 0.9640275800758169, 1.0])
    np.testing.assert_allclose(
        outputs["sigmoid"], [0.0, 1 / (1 + np.exp(1.5)), 0.5, 1 / (1 + np.exp(-2)), 1.0]
    )


def test_a_layer_alone_is_linear() -> None:
    assert Network((np.array([[2.0, -1.0]]),), (np.array([0.5]),))([[-3.0, 1.0]]).tolist() == [[-6.5]]


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    activation=st.sampled_from(ACTIVATIONS),
)
def test_scaling_folds_exactly(seed: int, sizes: list[int], activation: Activation) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, tuple(sizes), activation)
    inputs = Scaling(rng.normal(size=sizes[0]), rng.uniform(0.1, 10.0, sizes[0]))
    outputs = Scaling(rng.normal(size=sizes[-1]), rng.uniform(0.1, 10.0, sizes[-1]))
    x = rng.normal(size=(20, sizes[0]))
    expected = network(inputs.standardise(x)) * outputs.scale + outputs.mean
    np.testing.assert_allclose(network.with_scaling(inputs, outputs)(x), expected, rtol=1e-9, atol=1e-9)


def test_constant_columns_fold_into_what_is_ignored_and_what_is_fixed() -> None:
    rng = np.random.default_rng(0)
    inputs = Scaling(np.array([1.0, 7.0]), np.array([2.0, 0.0]))
    outputs = Scaling(np.array([0.5, 3.0]), np.array([2.0, 0.0]))
    network = random_network(rng, (2, 4, 2), "tanh").with_scaling(inputs, outputs)
    y = network([[0.3, 7.0], [0.3, -1e6], [0.9, 7.0]])
    assert y[0, 0] == y[1, 0] != y[2, 0]
    assert y[:, 1].tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("weights", "biases"),
    [
        ([], []),
        ([(3, 2)], []),
        ([(3, 2)], [4]),
        ([(3, 2), (1, 4)], [3, 1]),
        ([(3, 2, 1)], [3]),
        ([(3, 0)], [3]),
    ],
)
def test_layers_that_do_not_fit_are_refused(weights: list[tuple[int, ...]], biases: list[int]) -> None:
    with pytest.raises(ClearloopError, match="do not fit together"):
        Network(tuple(map(np.ones, weights)), tuple(map(np.ones, biases)))


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(ClearloopError, match=r"'gelu'.*relu, tanh, sigmoid"):
        Network((np.ones((1, 1)),), (np.ones(1),), "gelu")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ClearloopError, match="NaN or infinity"):
        Network((np.array([[1.0, value]]),), (np.zeros(1),))
    with pytest.raises(ClearloopError, match="NaN or infinity"):
        Network((np.ones((1, 2)),), (np.array([value]),))
