"""A small network (sec. 3.5 of the paper): not to be read, but to be compared with."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from clearloop.controllers.controller import Controller, Features, Memory, parse_variable
from clearloop.errors import ClearloopError
from clearloop.expression import Variable
from clearloop.kernels.layout import ACTIVATIONS
from clearloop.task.tables import Number, Table

_FUNCTIONS = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 0.5 + 0.5 * np.tanh(0.5 * x),
}

Row = Annotated[tuple[Number, ...], Field(min_length=1, max_length=10_000)]


class Layer(Table):
    weights: Annotated[tuple[Row, ...], Field(min_length=1, max_length=10_000)]
    bias: Row
    activation: Literal["identity", "relu", "tanh", "sigmoid"] = "identity"


class Scale(Table):
    scale: Number = 1.0


class NetworkController(Controller):
    kind: Literal["network"] = "network"
    inputs: Annotated[tuple[str, ...], Field(min_length=1)]
    layers: Annotated[tuple[Layer, ...], Field(min_length=1, max_length=100)]
    outputs: Annotated[dict[str, Scale], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> "NetworkController":
        try:
            list(self.variables())
        except ClearloopError as error:
            raise ValueError(f"inputs: {error}") from error
        width = len(self.inputs)
        for number, layer in enumerate(self.layers):
            if any(len(row) != width for row in layer.weights) or len(layer.bias) != len(layer.weights):
                raise ValueError(f"layers[{number}]: expected rows of {width} weights, and a bias for each row")
            width = len(layer.weights)
        if width != len(self.outputs):
            raise ValueError(f"layers[{len(self.layers) - 1}]: expected {len(self.outputs)} rows, one for each output")
        return self

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.outputs)

    def variables(self) -> Iterator[tuple[str, Variable]]:
        for name in self.inputs:
            yield "inputs", parse_variable(name)

    @property
    def complexity(self) -> int:
        """1 for each weight and bias."""
        return sum(len(layer.bias) * (1 + len(layer.weights[0])) for layer in self.layers)

    @property
    def summary(self) -> str:
        widths = [len(self.inputs), *(len(layer.bias) for layer in self.layers)]
        return f"network {'-'.join(map(str, widths))} on {', '.join(self.inputs)}"

    def words(self) -> Iterator[str]:
        yield f"{self.summary}: {self.complexity} numbers, not meant to be read"
        for number, layer in enumerate(self.layers, 1):
            yield f"  layer {number}: {len(layer.weights[0])} -> {len(layer.bias)}, {layer.activation}"
        for action, output in self.outputs.items():
            yield f"{action} = {output.scale:g} * output"
        yield from self.limit_words()

    def respond(self, memory: Memory, setpoint: Mapping[str, float]) -> dict[str, float]:
        values = np.array([self.error(memory, parse_variable(name), setpoint) for name in self.inputs])
        for layer in self.layers:
            values = _FUNCTIONS[layer.activation](np.array(layer.weights) @ values + np.array(layer.bias))
        return {name: output.scale * float(value) for (name, output), value in zip(self.outputs.items(), values, strict=True)}

    def sizes(self, features: Features) -> list[int]:
        widths = [len(self.inputs), *(len(layer.bias) for layer in self.layers)]
        kinds = [ACTIVATIONS[layer.activation] for layer in self.layers]
        slots = [features.slot(parse_variable(name)) for name in self.inputs]
        return [len(self.layers), *widths, *kinds, *slots]

    def numbers(self, features: Features) -> list[float]:
        order = [self.actions.index(name) for name in features.actions]  # the engine's outputs are in task order
        numbers: list[float] = []
        for number, layer in enumerate(self.layers):
            weights, bias = np.array(layer.weights), np.array(layer.bias)
            if number == len(self.layers) - 1:
                weights, bias = weights[order], bias[order]
            numbers += [*weights.T.ravel().tolist(), *bias.tolist()]
        return [*numbers, *(self.outputs[name].scale for name in features.actions)]
