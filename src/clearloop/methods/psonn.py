"""Particle swarm optimisation of a neural network (sec. 3.5 of the paper)."""

from itertools import pairwise

import numpy as np

from clearloop.controllers.network import NetworkController
from clearloop.kernels.layout import ACTIVATIONS, NETWORK, Policies
from clearloop.methods.problem import Problem
from clearloop.methods.swarm import Floats, Form, readable, rounded

WEIGHTS = 3.0

class NetworkForm(Form):
    """A vector holds, layer by layer, the weights [inputs, outputs] and, unless the task is symmetric, the biases."""

    def __init__(self, problem: Problem, hidden: tuple[int, ...], bounds=(5.0,5.0,5.0)) -> None:
        task = problem.task
        self.task = task
        self.features = readable(task)
        self.slots = [problem.features.slot(feature) for feature in self.features]
        self.scales = problem.scales[self.slots]
        self.limits = problem.limits
        self.reach = np.abs(task.action_limits).max(axis=1)
        self.sizes = (len(self.features), *hidden, len(task.actions))
        b = []
        for k, (i, o) in enumerate(pairwise(self.sizes)):
            b += [bounds[k]] * (i * o + (0 if task.symmetric else o))
        self.bounds = np.array(b)[:, None] * [-1.0, 1.0]

    def layers(self, vectors: Floats):
        at, found = 0, []
        for k, (i, o) in enumerate(pairwise(self.sizes)):
            w = vectors[:, at : at + i * o].reshape(-1, i, o)
            at += i * o
            if k == 0:
                w = w / self.scales[:, None]
            bias = np.zeros((len(vectors), o))
            if not self.task.symmetric:
                bias = vectors[:, at : at + o]
                at += o
            found.append((rounded(w), rounded(bias)))
        return found

    def policies(self, vectors: Floats) -> Policies:
        layers = self.layers(vectors)
        n = len(vectors)
        numbers = np.concatenate([a.reshape(n, -1) for layer in layers for a in layer] + [np.tile(self.reach, (n, 1))], axis=1)
        sizes = [len(layers), *self.sizes, *[ACTIVATIONS["tanh"]] * len(layers), *self.slots]
        none = np.zeros(0, np.int64)
        return Policies(NETWORK, numbers.astype(np.float32), np.array(sizes), none, none.astype(np.float32), np.zeros((n, 0), np.int64), self.limits)

    def controller(self, vector: Floats) -> NetworkController:
        layers = [{"weights": w[0].T.tolist(), "bias": b[0].tolist(), "activation": "tanh"} for w, b in self.layers(vector[None])]
        return NetworkController.model_validate({"inputs": [str(f) for f in self.features], "layers": layers, "outputs": {a: {"scale": float(s)} for a, s in zip(self.task.action_names, self.reach)}})
