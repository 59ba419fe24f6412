"""`train` fits an ensemble to standardised data and returns networks in the units of the data."""

from dataclasses import dataclass

import numpy as np

from clearloop.arrays import Floats, Ints
from clearloop.errors import ClearloopError
from clearloop.networks.network import Ensemble, Loss, Progress, Scaling, Training, lower_layers


@dataclass(frozen=True, eq=False)
class Trained:
    """Trained networks and the course of their losses.

    Squared errors are relative to the variance of the target in the training data, so the loss is 1 − R².
    """

    networks: Ensemble
    """[members][T] in the units of the data, with the weights that were best on the held-out data"""
    training_loss: Floats
    """[epochs, members, T] mean over the epoch's minibatches"""
    held_out_loss: Floats
    """[epochs, members, T] after the epoch"""

    def __repr__(self) -> str:
        best = np.nanmin(self.held_out_loss, axis=0)
        return (
            f"Trained({best.shape[0]} x {best.shape[1]} networks, {len(self.held_out_loss)} epochs,"
            f" held-out loss {best.min():.2g} to {best.max():.2g})"
        )


def train(
    inputs: Floats,
    targets: Floats,
    *,
    held_out: tuple[Floats, Floats],
    settings: Training,
    rng: np.random.Generator,
    members: int = 1,
    loss: Loss = "squared",
    draws: Ints | None = None,
    units: Ints | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train networks for each of T targets, all at once; each has its own first weights and order of rows.

    Args:
        inputs: [n, features] inputs.
        targets: [T, n, outputs] targets; for classes they are one-hot, and the largest output tells the
            class.
        held_out: Inputs and targets of the data that tells which epoch is best.
        settings: The sizes of the networks and the settings of the descent.
        rng: The source of first weights and of the order of rows.
        members: The number of networks for each target.
        loss: The loss to minimise.
        draws: [T, m] the rows that the networks of each target learn from, which may be repeated; None takes
            all rows for all targets.
        units: [T] the number of units that the networks of each target use in every hidden layer; None takes
            all units.
        progress: A function that is told of each epoch, if any.

    Raises:
        ClearloopError: There are no rows, they are not finite, or the training diverged.
    """
    from clearloop.networks.descent import descend  # imports JAX, which takes half a second

    _check("training", inputs, targets, loss)
    _check("held-out", *held_out, loss)
    of_inputs = Scaling.of(inputs)
    of_targets = [Scaling.of(t) if loss == "squared" else Scaling.none(t.shape[1]) for t in targets]
    layers, losses = descend(
        _standardised(inputs, targets, of_inputs, of_targets),
        _standardised(*held_out, of_inputs, of_targets),
        members=members,
        loss=loss,
        settings=settings,
        rng=rng,
        draws=draws,
        units=units,
        progress=progress,
    )
    weights, biases = zip(*layers, strict=True)
    networks = tuple(
        tuple(
            network.with_scaling(of_inputs, scaling)
            for network, scaling in zip(member, of_targets, strict=True)
        )
        for member in lower_layers(weights, biases, settings.activation)
    )
    return Trained(networks, training_loss=losses[:, 0], held_out_loss=losses[:, 1])


def _standardised(
    inputs: Floats, targets: Floats, of_inputs: Scaling, of_targets: list[Scaling]
) -> tuple[Floats, Floats]:
    """Return standardised inputs [features, n] and targets [T, outputs, n]."""
    y = [scaling.standardise(t).T for scaling, t in zip(of_targets, targets, strict=True)]
    return of_inputs.standardise(inputs).T, np.stack(y)


def _check(name: str, inputs: Floats, targets: Floats, loss: Loss) -> None:
    if inputs.ndim != 2 or targets.ndim != 3 or len(inputs) != targets.shape[1]:
        raise ValueError(
            f"{name} inputs {inputs.shape} must be [n, features], targets {targets.shape} [T, n, outputs]"
        )
    if len(inputs) == 0:
        raise ClearloopError(f"there are no {name} rows: log more episodes")
    finite = np.isfinite(inputs).all(axis=1) & np.isfinite(targets).all(axis=(0, 2))
    if not finite.all():
        bad = np.flatnonzero(~finite)
        raise ClearloopError(
            f"{bad.size} {name} rows hold NaN or infinity, the first of them is row {bad[0]}: leave them out"
        )
    if loss == "classes" and not np.allclose(targets.sum(axis=2), 1.0):
        raise ValueError(f"the {name} targets of classes are not one-hot")
