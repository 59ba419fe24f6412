"""A feed-forward network is a few plain arrays, which training returns, files hold, and kernels run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from clearloop.arrays import Floats
from clearloop.errors import ClearloopError


@dataclass(frozen=True, eq=False)
class Scaling:
    """The mean and the standard deviation of each column.

    Networks learn best from standardised columns, which have mean 0 and standard deviation 1.
    """

    mean: Floats
    scale: Floats
    """standard deviations; 0 marks a constant column: an input is ignored, an output is always its mean"""

    @classmethod
    def of(cls, rows: Floats) -> Self:
        """Return the scaling of rows [n, columns]."""
        mean, scale = rows.mean(axis=0), rows.std(axis=0)
        # The mean of equal numbers is off by rounding, so that their deviation is tiny but not 0.
        rounding = 1e-12 * np.abs(rows).max(axis=0)
        return cls(mean, np.where(scale > rounding, scale, 0.0))

    @classmethod
    def none(cls, columns: int) -> Self:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(columns), np.ones(columns))

    @property
    def inverse(self) -> Floats:
        """1 / scale; 0 for a constant column."""
        return np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)

    def __getitem__(self, columns: slice) -> "Scaling":
        return Scaling(self.mean[columns], self.scale[columns])

    def standardise(self, rows: Floats) -> Floats:
        """Return rows [n, columns] with mean 0 and standard deviation 1; constant columns become 0."""
        return (rows - self.mean) * self.inverse


Activation = Literal["relu", "tanh", "sigmoid"]

ACTIVATION_FUNCTIONS: Final[dict[str, Callable[[Floats], Floats]]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 0.5 + 0.5 * np.tanh(0.5 * x),  # 1 / (1 + exp(−x)) without its overflow
}


@dataclass(frozen=True, eq=False)
class Network:
    """A network of dense layers, with the activation after each hidden layer and none after the last."""

    weights: tuple[Floats, ...]
    """[outputs, inputs] of each layer"""
    biases: tuple[Floats, ...]
    """[outputs] of each layer"""
    activation: Activation = "relu"
    linear: Floats | None = None
    """[outputs, inputs] gains of a linear part, which is added to the output; None if there is none"""

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATION_FUNCTIONS:
            raise ClearloopError(
                f"unknown activation {self.activation!r}: expected one of {', '.join(get_args(Activation))}"
            )
        if not self._layers_fit():
            shapes = ", ".join(str(w.shape) for w in self.weights)
            raise ClearloopError(
                f"network layers do not fit together: weights [outputs, inputs] are {shapes or 'missing'};"
                " each layer needs as many inputs as the one before has outputs, and a bias for each output"
            )
        if not all(np.isfinite(array).all() for array in (*self.weights, *self.biases)):
            raise ClearloopError("network weights or biases hold NaN or infinity: train or enter them again")

    def _layers_fit(self) -> bool:
        dense = all(w.ndim == 2 and min(w.shape) > 0 for w in self.weights)
        biased = [w.shape[:1] for w in self.weights] == [b.shape for b in self.biases]
        beside = self.linear is None or self.linear.shape == (len(self.weights[-1]), self.weights[0].shape[1])
        return bool(self.weights) and dense and biased and self._layers_chain() and beside

    def _layers_chain(self) -> bool:
        return all(after.shape[1] == before.shape[0] for before, after in pairwise(self.weights))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of inputs, of units in each hidden layer, and of outputs."""
        return (self.weights[0].shape[1], *(len(b) for b in self.biases))

    @property
    def linear_gains(self) -> Floats:
        """[outputs, inputs] the gains of the linear part, which are 0 if there is none."""
        inputs, *_, outputs = self.sizes
        return np.zeros((outputs, inputs)) if self.linear is None else self.linear

    def __call__(self, inputs: ArrayLike) -> Floats:
        """Return outputs [n, outputs] for inputs [n, inputs], in double precision."""
        given = x = np.asarray(inputs, dtype=np.float64)
        activate = ACTIVATION_FUNCTIONS[self.activation]
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = activate(x @ w.T + b)
        outputs: Floats = x @ self.weights[-1].T + self.biases[-1]
        return outputs if self.linear is None else outputs + given @ self.linear.T

    def seeing(self, matrix: Floats) -> "Network":
        """Return the network of inputs x that gives what this one gives for `matrix` @ x."""
        linear = None if self.linear is None else self.linear @ matrix
        return replace(self, weights=(self.weights[0] @ matrix, *self.weights[1:]), linear=linear)

    def with_scaling(self, inputs: Scaling, outputs: Scaling) -> "Network":
        """Return the network for quantities in their own units, if this one is for standardised ones."""
        weights, biases = list(self.weights), list(self.biases)
        weights[0] = weights[0] * inputs.inverse
        biases[0] = biases[0] - weights[0] @ inputs.mean
        weights[-1] = weights[-1] * outputs.scale[:, None]
        biases[-1] = biases[-1] * outputs.scale + outputs.mean
        return Network(tuple(weights), tuple(biases), self.activation)

    def __repr__(self) -> str:
        return f"Network({'-'.join(map(str, self.sizes))}, {self.activation})"


# Files hold an ensemble as a few named arrays, in which the networks are stacked layer by layer.

Ensemble = tuple[tuple[Network, ...], ...]
"""Networks of equal sizes: [members][targets]."""


def lower_layers(
    weights: Sequence[ArrayLike], biases: Sequence[ArrayLike], activation: Activation
) -> Ensemble:
    """Return the networks of stacked layers.

    Args:
        weights: [members, targets, outputs, inputs] of each layer.
        biases: [members, targets, outputs] of each layer.
        activation: The activation of the hidden layers.
    """
    weights, biases = ([np.asarray(a, dtype=np.float64) for a in layers] for layers in (weights, biases))
    members, targets = weights[0].shape[:2]
    return tuple(
        tuple(
            Network(tuple(w[m, t] for w in weights), tuple(b[m, t] for b in biases), activation)
            for t in range(targets)
        )
        for m in range(members)
    )


def pack_networks(networks: Ensemble, name: str) -> dict[str, Floats]:
    """Stack networks as arrays `name.weights.0` [members, targets, outputs, inputs], `name.biases.0`, ….

    Raises:
        ValueError: The networks have different sizes.
    """
    shapes = {network.sizes for member in networks for network in member}
    if len(shapes) != 1:
        raise ValueError(f"only networks of equal sizes can be stacked, not {sorted(shapes)}")
    arrays = {}
    for layer in range(len(shapes.pop()) - 1):
        arrays[f"{name}.weights.{layer}"] = np.array([[n.weights[layer] for n in m] for m in networks])
        arrays[f"{name}.biases.{layer}"] = np.array([[n.biases[layer] for n in m] for m in networks])
    if any(network.linear is not None for member in networks for network in member):
        arrays[f"{name}.linear"] = np.array([[n.linear_gains for n in m] for m in networks])
    return arrays


def unpack_networks(arrays: Mapping[str, Floats], name: str, activation: Activation) -> Ensemble:
    """Return the networks that `pack_networks` stored under this name.

    Raises:
        ClearloopError: The arrays are not there, or do not fit together.
    """
    weights = _layers(arrays, f"{name}.weights", dimensions=4)
    biases = _layers(arrays, f"{name}.biases", dimensions=3)
    if len({array.shape[:2] for array in weights + biases}) != 1:
        raise ClearloopError(
            f"the layers of {name!r} hold different numbers of networks: train and save them again"
        )
    found = lower_layers(weights, biases, activation)
    linear = arrays.get(f"{name}.linear")
    if linear is None:
        return found
    if linear.shape != (*weights[0].shape[:2], weights[-1].shape[2], weights[0].shape[3]):
        raise ClearloopError(f"the linear parts of {name!r} do not fit its layers: train and save them again")
    return tuple(
        tuple(replace(network, linear=gains) for network, gains in zip(member, rows, strict=True))
        for member, rows in zip(found, linear, strict=True)
    )


def _layers(arrays: Mapping[str, Floats], name: str, dimensions: int) -> list[Floats]:
    layers: list[Floats] = []
    while (array := arrays.get(f"{name}.{len(layers)}")) is not None and array.ndim == dimensions:
        layers.append(array)
    if not layers:
        raise ClearloopError(
            f"there is no array {name}.0 with {dimensions} dimensions: the file is damaged or has no networks"
        )
    return layers


Loss = Literal["squared", "classes"]
"""The squared error, or the cross-entropy of a softmax over the outputs."""

Progress = Callable[[float, float], None]
"""A function that is told the share of the work that is done, and the mean of the best held-out losses."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The settings of a training by Adam on shuffled minibatches, whose step size falls to 0 by a cosine."""

    hidden: tuple[int, ...] = (10, 10, 10)
    """units of each hidden layer; the default, with relu, is that of the paper, sec. 4.2"""
    activation: Activation = "relu"
    """activation of the hidden layers"""
    epochs: int = 200
    """passes over the data"""
    batch_size: int = 128
    """rows in a minibatch"""
    learning_rate: float = 3e-3
    """Adam's step size at the beginning"""

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch_size, self.learning_rate, *self.hidden) <= 0:
            raise ClearloopError(f"{self}: all of its numbers must be positive")
