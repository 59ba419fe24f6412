"""PSONN finds the weights of a network by particle swarms on the model (sec. 3.5 of the paper).

If the task is symmetric, the network has no biases: with tanh in every layer it is then symmetric too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import NetworkController
from clearloop.errors import check_range
from clearloop.kernels.layout import NETWORK, TANH, Policies
from clearloop.methods.method import Column, Method, Problem
from clearloop.methods.swarm import Form, Stages, Swarming, short_decimals

_WEIGHTS = 5.0  # the largest size of a weight, for features in their typical sizes


@dataclass(frozen=True, kw_only=True)
class PSONN(Method):
    """A neural network whose weights are found by particle swarms (sec. 3.5 of the paper).

    Attributes:
        hidden: Neurons of each hidden layer.
        stages: Samples and shares of the budget for the swarm and the descents that follow it.
    """

    name: ClassVar[str] = "psonn"
    title: ClassVar[str] = "PSONN"
    gives: ClassVar[str] = "network"
    section: ClassVar[str] = "3.5"
    columns: ClassVar[tuple[Column, ...]] = (Column("psonn", "PSONN", 6, "1.833 ± 0.002", "2.831 ± 0.003"),)
    effort: ClassVar[float] = 3.5

    hidden: tuple[int, ...] = (10,)
    stages: Stages = Stages()

    def __post_init__(self) -> None:
        check_range(self, "hidden", 1, 1_000)

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> Swarming:
        return Swarming(problem, [NetworkForm(problem, self.hidden)], self.stages, rng=rng)


class NetworkForm(Form):
    """Networks as vectors: layer by layer, the weights [inputs, outputs] and then the biases, if any."""

    def __init__(self, problem: Problem, hidden: tuple[int, ...]) -> None:
        super().__init__(problem)
        self.widths = (len(self.slots), *hidden, len(self.reach))
        self.biased = not problem.task.symmetric
        count = sum((n_in + self.biased) * n_out for n_in, n_out in pairwise(self.widths))
        self.bounds = np.tile([-_WEIGHTS, _WEIGHTS], (count, 1))

    def layers(self, vectors: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield weights [P, inputs, outputs] and biases [P, outputs] of vectors [P, d], rounded."""
        rest, sizes = vectors, self.scales
        for n_in, n_out in pairwise(self.widths):
            flat, biases, rest = np.split(rest, [n_in * n_out, (n_in + self.biased) * n_out], axis=1)
            weights = flat.reshape(-1, n_in, n_out) / sizes[:, None]
            yield (
                short_decimals(weights),
                short_decimals(biases) if self.biased else np.zeros((len(vectors), n_out)),
            )
            sizes = np.ones(n_out)

    def encode(self, vectors: Floats) -> Policies:
        """Return the numbers that `NetworkController.numbers` gives, for all vectors at once."""
        parts = [array.reshape(len(vectors), -1) for layer in self.layers(vectors) for array in layer]
        numbers = np.concatenate([*parts, np.tile(self.reach, (len(vectors), 1))], axis=1)
        layers = len(self.widths) - 1
        return self.population(NETWORK, numbers, [layers, *self.widths, *[TANH] * layers, *self.slots])

    def controller(self, vector: Floats) -> NetworkController:
        layers = [
            {"weights": weights[0].T.tolist(), "bias": biases[0].tolist(), "activation": "tanh"}
            for weights, biases in self.layers(vector[None])
        ]
        scales = zip(self.task.action_names, self.reach.tolist(), strict=True)
        outputs = {name: {"scale": scale} for name, scale in scales}
        file = {"inputs": self.names, "layers": layers, "outputs": outputs}
        return NetworkController.model_validate(file).for_task(self.task)
