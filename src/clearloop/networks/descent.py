"""Gradient descent trains many networks at once, in JAX; an epoch is one compiled function.

Activations are [features, rows] with the rows contiguous, so that a layer is `w @ x`. On a CPU that is
three times faster for networks of ten units than the customary [rows, features] and `x @ w.T`.
"""

from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from clearloop.arrays import Floats, Ints
from clearloop.errors import ClearloopError
from clearloop.networks.network import Activation, Loss, Progress, Scaling, Training

Layers = tuple[tuple[jax.Array, jax.Array], ...]
"""Weights [outputs, inputs] and biases [outputs] of each layer; in an ensemble after the axes [M, T]."""

_ACTIVATIONS: Final = {"relu": jax.nn.relu, "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid}


class TrainingRows(NamedTuple):
    """Standardised data for T targets."""

    inputs: jax.Array
    """[features, rows]"""
    targets: jax.Array
    """[T, outputs, rows]"""


class TrainingState(NamedTuple):
    """The training of an ensemble under way: M members for each of T targets."""

    layers: Layers
    memory: Any
    """state of the optimiser"""
    best: Layers
    """layers as they were when the held-out loss was smallest"""
    best_loss: jax.Array
    """[M, T] smallest held-out loss of each network"""


def descend(
    data: tuple[Floats, Floats],
    held_out: tuple[Floats, Floats],
    *,
    members: int,
    loss: Loss,
    settings: Training,
    rng: np.random.Generator,
    draws: Ints | None = None,
    units: Ints | None = None,
    progress: Progress | None,
) -> tuple[Layers, Floats]:
    """Train M networks for each of T targets.

    Args:
        data: Standardised inputs [features, rows] and targets [T, outputs, rows] to train on.
        held_out: The same of the data that tells which epoch is best.
        members: M, the number of networks for each target.
        loss: The loss to minimise.
        settings: The sizes of the networks and the settings of the descent.
        rng: The source of first weights and of the order of rows.
        draws: [T, m] the rows that the networks of each target learn from; None takes all.
        units: [T] the number of units that they use in every hidden layer; None takes all.
        progress: A function that is told of each epoch, if any.

    Returns:
        The layers that were best on the held-out data; and training and held-out losses [epochs, 2, M, T].

    Raises:
        ClearloopError: The training diverged.
    """
    rows, judges = _rows(*data), _rows(*held_out)
    targets, outputs, n = rows.targets.shape
    ensemble = (members, targets)
    layers = first_layers(rng, ensemble, (len(rows.inputs), *settings.hidden, outputs))
    state = _begin(layers if units is None else _narrowed(layers, units), ensemble, settings)
    drawn = np.arange(n)[None] if draws is None else draws
    shuffle = partial(minibatches, rng, ensemble, drawn, min(drawn.shape[1], settings.batch_size))
    losses = np.empty((settings.epochs, 2, *ensemble))
    order = shuffle()
    for epoch in range(settings.epochs):
        state, of_epoch = _epoch(state, order, rows, judges, loss, settings)
        order = shuffle()  # JAX returns at once: the next order is drawn while the epoch runs
        losses[epoch] = of_epoch
        if progress:
            progress((epoch + 1) / settings.epochs, float(np.mean(np.asarray(state.best_loss))))
    if not np.isfinite(np.asarray(state.best_loss)).all():
        raise ClearloopError(
            f"the training of networks diverged: lower the learning rate, which is {settings.learning_rate}"
        )
    return state.best, losses


def _rows(inputs: Floats, targets: Floats) -> TrainingRows:
    return TrainingRows(jnp.asarray(inputs, dtype=jnp.float32), jnp.asarray(targets, dtype=jnp.float32))


def _begin(layers: Layers, ensemble: tuple[int, int], settings: Training) -> TrainingState:
    memory = _optimiser(settings, steps=1).init(layers)
    return TrainingState(
        layers, memory, best=layers, best_loss=jnp.full(ensemble, jnp.inf, dtype=jnp.float32)
    )


def first_layers(rng: np.random.Generator, ensemble: tuple[int, int], sizes: tuple[int, ...]) -> Layers:
    """Draw weights and biases uniformly in ±1/√inputs.

    From He's larger weights without biases, cart-pole networks end with three to five times the error.
    """

    def uniform(n_in: int, *shape: int) -> jax.Array:
        return jnp.asarray(rng.uniform(-1, 1, (*ensemble, *shape)) / np.sqrt(n_in), dtype=jnp.float32)

    return tuple((uniform(n_in, n_out, n_in), uniform(n_in, n_out)) for n_in, n_out in pairwise(sizes))


def _narrowed(layers: Layers, units: Ints) -> Layers:
    """Return the networks of T targets with only `units` [T] units in each hidden layer.

    The other units have no weights, so no gradient ever reaches them, and they stay without.
    """
    narrowed = []
    for number, (w, b) in enumerate(layers):
        used = units[:, None] > np.arange(w.shape[2]) if number < len(layers) - 1 else np.ones((1, 1))
        fed = units[:, None] > np.arange(w.shape[3]) if number else np.ones((1, 1))
        both = jnp.asarray(used[:, :, None] * fed[:, None, :], jnp.float32)
        narrowed.append((w * both, b * jnp.asarray(used, jnp.float32)))
    return tuple(narrowed)


def minibatches(
    rng: np.random.Generator, ensemble: tuple[int, int], drawn: Ints, size: int
) -> NDArray[np.int32]:
    """Return the rows `drawn` [T or 1, n] in a random order for each network [steps, M, T, size].

    An incomplete batch is left out. NumPy draws the order, because JAX shuffles by sorting, which on a CPU
    takes longer than the descent itself.
    """
    n = drawn.shape[1]
    steps = n // size
    rows = np.broadcast_to(drawn.astype(np.int32), (*ensemble, n))
    order = rng.permuted(rows, axis=-1)[..., : steps * size]
    return np.moveaxis(order.reshape(*ensemble, steps, size), 2, 0)


def _optimiser(settings: Training, steps: int) -> Any:
    return optax.adam(optax.cosine_decay_schedule(settings.learning_rate, settings.epochs * steps))


@partial(jax.jit, static_argnames=("loss", "settings"))
def _epoch(
    state: TrainingState,
    order: jax.Array,
    rows: TrainingRows,
    judges: TrainingRows,
    loss: Loss,
    settings: Training,
) -> tuple[TrainingState, jax.Array]:
    """Return the state after one pass over the minibatches, and training and held-out losses [2, M, T]."""
    of_network = partial(_loss, loss=loss, settings=settings)
    optimiser = _optimiser(settings, steps=len(order))

    def total(layers: Layers, minibatch: jax.Array) -> tuple[jax.Array, jax.Array]:
        inputs = jnp.moveaxis(rows.inputs[:, minibatch], 0, 2)
        targets = jnp.take_along_axis(rows.targets[None], minibatch[:, :, None], axis=3)
        losses = jax.vmap(jax.vmap(of_network))(layers, inputs, targets)
        return losses.sum(), losses  # no loss depends on another network, so each gradient is its own

    def step(carry: tuple[Layers, Any], minibatch: jax.Array) -> tuple[tuple[Layers, Any], jax.Array]:
        layers, memory = carry
        gradient, losses = jax.grad(total, has_aux=True)(layers, minibatch)
        change, memory = optimiser.update(gradient, memory)
        return (optax.apply_updates(layers, change), memory), losses

    (layers, memory), losses = jax.lax.scan(step, (state.layers, state.memory), order)
    of_targets = jax.vmap(of_network, in_axes=(0, None, 0))
    judged = jax.vmap(of_targets, in_axes=(0, None, None))(layers, judges.inputs, judges.targets)
    return _judge(state, layers, memory, judged), jnp.stack([losses.mean(axis=0), judged])


def _loss(layers: Layers, inputs: jax.Array, targets: jax.Array, loss: Loss, settings: Training) -> jax.Array:
    """Return the mean loss of one network over inputs [features, rows] and targets [outputs, rows]."""
    outputs = network_outputs(layers, inputs, settings.activation)
    if loss == "classes":
        return -(targets * jax.nn.log_softmax(outputs, axis=0)).sum(axis=0).mean()
    return jnp.square(outputs - targets).mean()


def network_outputs(layers: Layers, x: jax.Array, activation: Activation) -> jax.Array:
    """Return the outputs [outputs, rows] of one network for inputs [features, rows]."""
    *hidden, (w_last, b_last) = layers
    for w, b in hidden:
        x = _ACTIVATIONS[activation](w @ x + b[:, None])
    return w_last @ x + b_last[:, None]


def _judge(state: TrainingState, layers: Layers, memory: Any, judged: jax.Array) -> TrainingState:
    """Keep the new layers of the networks whose held-out loss fell."""
    better = judged < state.best_loss  # false where training diverged to NaN

    def choose(old: jax.Array, new: jax.Array) -> jax.Array:
        return jnp.where(jnp.expand_dims(better, range(2, new.ndim)), new, old)

    best = cast(Layers, jax.tree.map(choose, state.best, layers))
    return TrainingState(layers, memory, best, jnp.where(better, judged, state.best_loss))


class Refitting:
    """Networks that are fitted to one set of targets after another, each time from their present weights.

    Targets are shares, from 0 to 1, and so are the predictions: the output is a sigmoid and the loss the
    cross-entropy. With squared errors a small share would have hardly any weight, and over many fits its
    errors would add up.
    """

    def __init__(
        self, points: Floats, asked: Floats, *, reads: Floats, settings: Training, rng: np.random.Generator
    ) -> None:
        """Draw M networks with one output.

        Args:
            points: [n, columns] inputs to which the targets belong.
            asked: [m, columns] inputs for which predictions are wanted.
            reads: [M, columns] 1 for the columns that a network sees, 0 for the others.
            settings: The sizes of the networks; `epochs` are those of one fit, and the step size is constant.
            rng: The source of first weights and of the order of rows.
        """
        self.scaling = Scaling.of(points)
        self.points, self.asked = self._inputs(points), self._inputs(asked)
        self.reads = jnp.asarray(reads[:, None, None, :], jnp.float32)
        self.ensemble = len(reads), 1
        self.layers = first_layers(rng, self.ensemble, (points.shape[1], *settings.hidden, 1))
        self.memory = optax.adam(settings.learning_rate).init(self.layers)
        self.settings, self.rng = settings, rng

    def __call__(self, targets: Floats) -> Floats:
        """Fit the targets [n], and return the predictions [M, m] at the inputs that are asked."""
        y, n = jnp.asarray(targets, jnp.float32), len(targets)
        for _ in range(self.settings.epochs):
            order = minibatches(
                self.rng, self.ensemble, np.arange(n)[None], min(n, self.settings.batch_size)
            )[:, :, 0]
            self.layers, self.memory = _sweep(
                self.layers, self.memory, order, self.points, y, self.reads, self.settings
            )
        return np.asarray(_answers(self.layers, self.asked, self.reads, self.settings), np.float64)

    def features(self, rows: Floats) -> Floats:
        """Return the outputs [m, M · units] of the last hidden layers for rows [m, columns]."""
        found = _features(self.layers, self._inputs(rows), self.reads, self.settings)
        return np.asarray(found, np.float64)

    def _inputs(self, rows: Floats) -> jax.Array:
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
    """Make one pass over the minibatches `order` [steps, M, size]."""
    optimiser = optax.adam(settings.learning_rate)

    def loss(layers: Layers, rows: jax.Array) -> jax.Array:
        logits = network_outputs(layers, points[:, rows], settings.activation)[0]
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
        return jax.nn.sigmoid(network_outputs(layers, asked, settings.activation)[0])

    return jax.vmap(answer)(_seeing(layers, reads))


@partial(jax.jit, static_argnames="settings")
def _features(layers: Layers, rows: jax.Array, reads: jax.Array, settings: Training) -> jax.Array:
    """[m, M · units]"""

    def hidden(layers: Layers) -> jax.Array:
        x = rows
        for w, b in layers[:-1]:
            x = _ACTIVATIONS[settings.activation](w @ x + b[:, None])
        return x

    return jnp.concatenate(jax.vmap(hidden)(_seeing(layers, reads))).T


def _seeing(layers: Layers, reads: jax.Array) -> Layers:
    """Return the M networks with zero weights for the columns that they do not see."""
    (w, b), *rest = ((w[:, 0], b[:, 0]) for w, b in layers)
    return ((w * reads[:, 0], b), *rest)
