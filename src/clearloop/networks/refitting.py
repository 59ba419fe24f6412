"""Networks that are fitted to one set of targets after the other, each time from where they are, in JAX.

Targets are shares, from 0 to 1, and so are the answers: the output is a sigmoid, its loss the cross-entropy.
With squared errors a small share weighs next to nothing, and over many fits its errors add up.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .descent import ACTIVATIONS, Layers, first_layers, forward, minibatches
from .scaling import Array, Scaling
from .settings import Training


class Refitting:
    """M networks with one output, for data at `points` [n, columns], asked at `asked` [m, columns].

    `reads`: [M, columns] 0 for the columns that a network does not see, 1 for the others. Of the settings,
    `epochs` are those of one fit, and the step size does not fall.
    """

    def __init__(
        self, points: Array, asked: Array, *, reads: Array, settings: Training, rng: np.random.Generator
    ) -> None:
        self.scaling = Scaling.of(points)
        self.points, self.asked = self._inputs(points), self._inputs(asked)
        self.reads = jnp.asarray(reads[:, None, None, :], jnp.float32)
        self.ensemble = len(reads), 1
        self.layers = first_layers(rng, self.ensemble, (points.shape[1], *settings.hidden, 1))
        self.memory = optax.adam(settings.learning_rate).init(self.layers)
        self.settings, self.rng = settings, rng

    def __call__(self, targets: Array) -> Array:
        """Answers [M, m], after fitting the targets [n]."""
        y, n = jnp.asarray(targets, jnp.float32), len(targets)
        for _ in range(self.settings.epochs):
            order = minibatches(self.rng, self.ensemble, n, min(n, self.settings.batch_size))[:, :, 0]
            self.layers, self.memory = _sweep(
                self.layers, self.memory, order, self.points, y, self.reads, self.settings
            )
        return np.asarray(_answers(self.layers, self.asked, self.reads, self.settings), np.float64)

    def features(self, rows: Array) -> Array:
        """[m, M · units] what the last hidden layers make of rows [m, columns], as they are now."""
        found = _features(self.layers, self._inputs(rows), self.reads, self.settings)
        return np.asarray(found, np.float64)

    def _inputs(self, rows: Array) -> jax.Array:
        return jnp.asarray(self.scaling.standardise(rows).T, jnp.float32)


@partial(jax.jit, static_argnames="settings")
def _sweep(
    layers: Layers,
    memory: Any,
    order: jax.Array,
    points: jax.Array,
    targets: jax.Array,
    reads: jax.Array,
    settings: Training,
) -> tuple[Layers, Any]:
    """One pass over the minibatches `order` [steps, M, size]."""
    optimiser = optax.adam(settings.learning_rate)

    def loss(layers: Layers, rows: jax.Array) -> jax.Array:
        logits = forward(layers, points[:, rows], settings.activation)[0]
        return (jax.nn.softplus(logits) - targets[rows] * logits).mean()

    def total(layers: Layers, rows: jax.Array) -> jax.Array:
        return jax.vmap(loss)(_seeing(layers, reads), rows).sum()  # the gradient of each network is its own

    def step(carry: tuple[Layers, Any], rows: jax.Array) -> tuple[tuple[Layers, Any], None]:
        layers, memory = carry
        change, memory = optimiser.update(jax.grad(total)(layers, rows), memory)
        return (optax.apply_updates(layers, change), memory), None

    carry, _ = jax.lax.scan(step, (layers, memory), order)
    return carry


@partial(jax.jit, static_argnames="settings")
def _answers(layers: Layers, asked: jax.Array, reads: jax.Array, settings: Training) -> jax.Array:
    """[M, m]"""

    def answer(layers: Layers) -> jax.Array:
        return jax.nn.sigmoid(forward(layers, asked, settings.activation)[0])

    return jax.vmap(answer)(_seeing(layers, reads))


@partial(jax.jit, static_argnames="settings")
def _features(layers: Layers, rows: jax.Array, reads: jax.Array, settings: Training) -> jax.Array:
    """[m, M · units]"""

    def hidden(layers: Layers) -> jax.Array:
        x = rows
        for w, b in layers[:-1]:
            x = ACTIVATIONS[settings.activation](w @ x + b[:, None])
        return x

    return jnp.concatenate(jax.vmap(hidden)(_seeing(layers, reads))).T


def _seeing(layers: Layers, reads: jax.Array) -> Layers:
    """[M] networks, without weights from columns that they do not see."""
    (w, b), *rest = ((w[:, 0], b[:, 0]) for w, b in layers)
    return ((w * reads[:, 0], b), *rest)
