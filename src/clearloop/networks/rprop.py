"""Rprop (Riedmiller and Braun 1993) descends by the signs of the gradient over the whole batch, in JAX.

Every weight has a step size of its own, which grows while the sign of its gradient stays the same and shrinks
when it changes; then the weight waits for one epoch (the variant called iRprop-).

`optax.rprop` 0.2.8 is not used, because it applies each update one epoch late: its first update is 0, and
each later one belongs to the gradient before (github.com/google-deepmind/optax/pull/1725). Step sizes and
limits are the same, so that it can replace `_move` as soon as `test_optax_takes_the_same_steps` passes.
"""

from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from clearloop.arrays import Floats
from clearloop.networks.descent import Layers, network_outputs
from clearloop.networks.network import Activation, Network

RpropLoss = Literal["squared", "shares"]
"""The squared error; or, for targets from 0 to 1, the cross-entropy of the sigmoid of the outputs."""

GROWTH, SHRINKAGE = 1.2, 0.5
_SMALLEST, _LARGEST = 1e-6, 50.0


class _Course(NamedTuple):
    """The state of a descent; every field has the shape of the layers."""

    layers: Layers
    gradient: Layers
    """gradient of the last epoch; 0 where its sign had changed"""
    step: Layers
    """step size of each weight"""


def first_network(
    rng: np.random.Generator, sizes: tuple[int, ...], activation: Activation, reach: float = 0.5
) -> Network:
    """Draw a network with weights and biases uniform in ± reach (Riedmiller 2005).

    Args:
        rng: The source of the weights.
        sizes: The numbers of inputs, of units in each hidden layer, and of outputs.
        activation: The activation of the hidden layers.
        reach: The largest size of a weight.
    """
    pairs = list(pairwise(sizes))
    weights = tuple(rng.uniform(-reach, reach, (n_out, n_in)) for n_in, n_out in pairs)
    return Network(weights, tuple(rng.uniform(-reach, reach, n_out) for _, n_out in pairs), activation)


def rprop(
    network: Network,
    inputs: Floats,
    targets: Floats,
    *,
    epochs: int,
    loss: RpropLoss = "squared",
    decay: float = 0.0,
    first_step: float = 0.01,
) -> tuple[Network, float]:
    """Train a network on the whole batch, in single precision.

    Args:
        network: The network to begin with.
        inputs: [n, features] inputs.
        targets: [n, outputs] targets.
        epochs: The number of steps.
        loss: The loss to minimise.
        decay: The weight of the sum of all squared weights in the loss.
        first_step: The first step size of every weight.

    Returns:
        The trained network, and the mean loss before the last epoch.
    """
    layers = cast(
        Layers,
        tuple((_single(w), _single(b)) for w, b in zip(network.weights, network.biases, strict=True)),
    )
    fitted, lost = _descend(
        layers, _single(inputs.T), _single(targets.T), epochs, loss, decay, first_step, network.activation
    )
    weights, biases = (
        tuple(np.asarray(array, np.float64) for array in arrays) for arrays in zip(*fitted, strict=True)
    )
    return Network(weights, biases, network.activation), float(lost)


def highest(network: Network, inputs: Floats, choices: Floats) -> Floats:
    """Return the highest first output [n] for inputs [n, features] joined with any of the choices [K, A]."""
    layers = tuple((_single(w), _single(b)) for w, b in zip(network.weights, network.biases, strict=True))
    found = _highest(layers, _single(inputs.T), _single(choices), network.activation)
    return np.asarray(found, np.float64)


def _single(array: Floats) -> jax.Array:
    return jnp.asarray(array, jnp.float32)


@partial(jax.jit, static_argnames=("epochs", "loss", "activation"))
def _descend(
    layers: Layers,
    x: jax.Array,
    y: jax.Array,
    epochs: int,
    loss: RpropLoss,
    decay: float,
    first_step: float,
    activation: Activation,
) -> tuple[Layers, jax.Array]:
    def error(layers: Layers) -> jax.Array:
        z = network_outputs(layers, x, activation)
        misses = jnp.square(z - y) if loss == "squared" else jax.nn.softplus(z) - y * z
        return misses.mean() + decay * sum(jnp.square(w).sum() for w, _ in layers)

    def epoch(_: int, state: tuple[_Course, jax.Array]) -> tuple[_Course, jax.Array]:
        course = state[0]
        value, gradient = jax.value_and_grad(error)(course.layers)
        moved = [_move(*parts) for parts in zip(*map(jax.tree.leaves, (*course, gradient)), strict=True)]
        shape = jax.tree.structure(course.layers)
        return _Course(*(jax.tree.unflatten(shape, part) for part in zip(*moved, strict=True))), value

    still = jax.tree.map(jnp.zeros_like, layers)
    steps = jax.tree.map(lambda w: jnp.full_like(w, first_step), layers)
    course, value = jax.lax.fori_loop(0, epochs, epoch, (_Course(layers, still, steps), jnp.float32(0)))
    return course.layers, value


def _move(
    weight: jax.Array, before: jax.Array, step: jax.Array, gradient: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the weight, the gradient that the next epoch compares with, and the step size."""
    product = jnp.sign(before) * gradient  # the product of two small gradients could round to 0
    grown, shrunk = jnp.minimum(step * GROWTH, _LARGEST), jnp.maximum(step * SHRINKAGE, _SMALLEST)
    step = jnp.where(product > 0, grown, jnp.where(product < 0, shrunk, step))
    gradient = jnp.where(product < 0, 0.0, gradient)
    return weight - jnp.sign(gradient) * step, gradient, step


@partial(jax.jit, static_argnames="activation")
def _highest(layers: Layers, x: jax.Array, choices: jax.Array, activation: Activation) -> jax.Array:
    def values(choice: jax.Array) -> jax.Array:
        chosen = jnp.broadcast_to(choice[:, None], (len(choice), x.shape[1]))
        return network_outputs(layers, jnp.concatenate([x, chosen]), activation)[0]

    found: jax.Array = jax.lax.map(values, choices).max(axis=0)
    return found
