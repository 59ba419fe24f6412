"""An ensemble as a few named arrays, as safetensors files hold them: the networks stacked, layer by layer."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ClearloopError
from .network import Activation, Network
from .scaling import Array

Ensemble = tuple[tuple[Network, ...], ...]
"""[members][targets]: networks of equal sizes"""


def lower(weights: Sequence[ArrayLike], biases: Sequence[ArrayLike], activation: Activation) -> Ensemble:
    """The networks of stacked layers: weights [members, targets, outputs, inputs], biases without inputs."""
    weights, biases = ([np.asarray(a, dtype=np.float64) for a in layers] for layers in (weights, biases))
    members, targets = weights[0].shape[:2]
    return tuple(
        tuple(
            Network(tuple(w[m, t] for w in weights), tuple(b[m, t] for b in biases), activation)
            for t in range(targets)
        )
        for m in range(members)
    )


def pack(networks: Ensemble, name: str) -> dict[str, Array]:
    """Arrays `name.weights.0` [members, targets, outputs, inputs], `name.biases.0`, and so on by layer."""
    shapes = {network.sizes for member in networks for network in member}
    if len(shapes) != 1:
        raise ValueError(f"only networks of equal sizes can be stacked, not {sorted(shapes)}")
    arrays = {}
    for layer in range(len(shapes.pop()) - 1):
        arrays[f"{name}.weights.{layer}"] = np.array([[n.weights[layer] for n in m] for m in networks])
        arrays[f"{name}.biases.{layer}"] = np.array([[n.biases[layer] for n in m] for m in networks])
    return arrays


def unpack(arrays: Mapping[str, Array], name: str, activation: Activation) -> Ensemble:
    """The networks that `pack` stored under this name."""
    weights = _layers(arrays, f"{name}.weights", dimensions=4)
    biases = _layers(arrays, f"{name}.biases", dimensions=3)
    if len({array.shape[:2] for array in weights + biases}) != 1:
        raise ClearloopError(
            f"the layers of {name!r} hold different numbers of networks: train and save anew"
        )
    return lower(weights, biases, activation)


def _layers(arrays: Mapping[str, Array], name: str, dimensions: int) -> list[Array]:
    layers: list[Array] = []
    while (array := arrays.get(f"{name}.{len(layers)}")) is not None and array.ndim == dimensions:
        layers.append(array)
    if not layers:
        raise ClearloopError(
            f"no array {name}.0 with {dimensions} dimensions: not a file of networks, or damaged"
        )
    return layers
