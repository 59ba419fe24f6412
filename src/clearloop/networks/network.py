"""A feed-forward network as plain arrays: what training returns, what is saved, what the kernels run."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ClearloopError
from .scaling import Array, Scaling

Activation = Literal["relu", "tanh", "sigmoid"]

ACTIVATIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 0.5 + 0.5 * np.tanh(0.5 * x),  # 1 / (1 + exp(−x)) without its overflow
}


@dataclass(frozen=True, eq=False)
class Network:
    """Dense layers: the activation after each hidden one, none after the last."""

    weights: tuple[Array, ...]
    """[outputs, inputs] of each layer"""
    biases: tuple[Array, ...]
    """[outputs] of each layer"""
    activation: Activation = "relu"

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
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
            raise ClearloopError("network weights or biases hold NaN or infinity: train or enter them anew")

    def _layers_fit(self) -> bool:
        dense = all(w.ndim == 2 and min(w.shape) > 0 for w in self.weights)
        biased = [w.shape[:1] for w in self.weights] == [b.shape for b in self.biases]
        return bool(self.weights) and dense and biased and self._layers_chain()

    def _layers_chain(self) -> bool:
        return all(after.shape[1] == before.shape[0] for before, after in pairwise(self.weights))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Inputs, units of each hidden layer, outputs."""
        return (self.weights[0].shape[1], *(len(b) for b in self.biases))

    def __call__(self, inputs: ArrayLike) -> Array:
        """Outputs [n, outputs] for inputs [n, inputs], in double precision."""
        x = np.asarray(inputs, dtype=np.float64)
        activate = ACTIVATIONS[self.activation]
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = activate(x @ w.T + b)
        return x @ self.weights[-1].T + self.biases[-1]

    def with_scaling(self, inputs: Scaling, outputs: Scaling) -> "Network":
        """The network between quantities in their own units, where this one is between standardised ones."""
        weights, biases = list(self.weights), list(self.biases)
        weights[0] = weights[0] * inputs.inverse
        biases[0] = biases[0] - weights[0] @ inputs.mean
        weights[-1] = weights[-1] * outputs.scale[:, None]
        biases[-1] = biases[-1] * outputs.scale + outputs.mean
        return Network(tuple(weights), tuple(biases), self.activation)

    def __repr__(self) -> str:
        return f"Network({'-'.join(map(str, self.sizes))}, {self.activation})"
