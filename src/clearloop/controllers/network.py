"""Controllers with a small network (sec. 3.3 and 3.5 of the paper), which readable ones are compared with."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from clearloop.controllers.controller import Coefficient, Controller, Known, read_variable
from clearloop.controllers.memory import Memory
from clearloop.controllers.routine import Best, Fill, Scope, times
from clearloop.controllers.routine import Layer as LayerStatement
from clearloop.errors import ClearloopError
from clearloop.expression import Expression, Number, Variable
from clearloop.kernels.layout import ACTIVATIONS, GREEDY, NETWORK
from clearloop.programs import Features
from clearloop.task.tables import Table, Text

WIDEST, DEEPEST = 10_000, 16  # with coefficients of at most 1e12, no sum exceeds the largest double

FUNCTIONS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 0.5 + 0.5 * np.tanh(0.5 * x),
}

Row = Annotated[tuple[Coefficient, ...], Field(min_length=1, max_length=WIDEST)]


class Layer(Table):
    """A layer of a network: activation(weights · x + bias), with a row of weights for each output."""

    weights: Annotated[tuple[Row, ...], Field(min_length=1, max_length=WIDEST)]
    bias: Row
    activation: Literal["identity", "relu", "tanh", "sigmoid"] = "identity"


def check_layers(layers: Sequence[Layer], width: int, outputs: int, what_for: str) -> None:
    """Raise a `ClearloopError` for layers that do not fit each other.

    Args:
        layers: The layers in their order.
        width: The number of the network's inputs.
        outputs: The number of its outputs.
        what_for: What an output stands for, in words.
    """
    for number, layer in enumerate(layers):
        if any(len(row) != width for row in layer.weights) or len(layer.bias) != len(layer.weights):
            what = f"rows of {width} weights, and a bias for each row"
            raise ClearloopError(f"layers[{number}]: expected {what}")
        width = len(layer.weights)
    if width != outputs:
        what = f"{outputs} rows, one for {what_for}"
        raise ClearloopError(f"layers[{len(layers) - 1}]: expected {what}")


class Scale(Table):
    """The factor between an output of the network and an action."""

    scale: Coefficient = 1.0


class Layered(Controller):
    """A controller with a network; `inputs` names what the network reads."""

    readable: ClassVar[bool] = False
    inputs: Annotated[tuple[Text, ...], Field(min_length=1, max_length=WIDEST)]
    layers: Annotated[tuple[Layer, ...], Field(min_length=1, max_length=DEEPEST)]

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for number, name in enumerate(self.inputs):
            yield f"inputs[{number}]", read_variable(name, f"inputs[{number}]", known)

    @property
    def complexity(self) -> int:
        """The complexity: 1 for each weight and bias."""
        return sum(len(layer.bias) * (1 + len(layer.weights[0])) for layer in self.layers)

    @property
    def widths(self) -> list[int]:
        """The number of inputs, then of the outputs of each layer."""
        return [len(self.layers[0].weights[0]), *(len(layer.bias) for layer in self.layers)]

    def sizes(self, features: Features) -> list[int]:
        kinds = [ACTIVATIONS[layer.activation] for layer in self.layers]
        slots = [features.slot(read_variable(name)) for name in self.inputs]
        return [len(self.layers), *self.widths, *kinds, *slots]

    def _inputs(self, more: int, scope: Scope) -> Variable:
        """Add an array with the network's inputs and room for so many more numbers to the routine."""
        read = [scope.read(variable) for _, variable in self.variables()]
        source = scope.fresh("read")
        scope.body.append(Fill(source, (*read, *[Number(0.0)] * more)))
        return source

    def _layers(self, source: Variable, scope: Scope) -> tuple[LayerStatement, ...]:
        layers = []
        for number, layer in enumerate(self.layers, 1):
            target = scope.fresh(f"layer_{number}")
            layers.append(LayerStatement(target, source, layer.weights, layer.bias, layer.activation))
            source = target
        return tuple(layers)


class NetworkController(Layered):
    """A controller whose actions are the outputs of a network, each times its scale."""

    policy: ClassVar[int | None] = NETWORK
    kind: Literal["network"] = "network"
    outputs: Annotated[dict[str, Scale], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_layers(self.layers, len(self.inputs), len(self.outputs), "each output")
        return self

    @property
    def summary(self) -> str:
        return (
            f"network {'-'.join(map(str, self.widths))} on {', '.join(str(v) for _, v in self.variables())}"
        )

    def words(self) -> Iterator[str]:
        yield f"{self.summary}: {self.complexity:,} numbers, not meant to be read"
        for number, layer in enumerate(self.layers, 1):
            yield f"  layer {number}: {len(layer.weights[0])} -> {len(layer.bias)}, {layer.activation}"
        for number, (action, output) in enumerate(self.outputs.items(), 1):
            yield f"{action} = {output.scale:g} * output {number}"
        yield from self.limit_words()
        yield from self.setpoint_words()

    def respond(self, memory: Memory) -> dict[str, float]:
        values = np.array([memory.error(read_variable(name)) for name in self.inputs])
        for layer in self.layers:
            values = FUNCTIONS[layer.activation](np.array(layer.weights) @ values + np.array(layer.bias))
        outputs = zip(self.outputs.items(), values.tolist(), strict=True)
        return {name: output.scale * value for (name, output), value in outputs}

    def numbers(self, features: Features) -> list[float]:
        # The engine has the actions in the order of the task.
        order = [self.actions.index(name) for name in features.actions]
        numbers: list[float] = []
        for number, layer in enumerate(self.layers):
            weights, bias = np.array(layer.weights), np.array(layer.bias)
            if number == len(self.layers) - 1:
                weights, bias = weights[order], bias[order]
            numbers += [*weights.T.ravel().tolist(), *bias.tolist()]
        return [*numbers, *(self.outputs[name].scale for name in features.actions)]

    def lower(self, scope: Scope) -> dict[str, Expression]:
        layers = self._layers(self._inputs(0, scope), scope)
        scope.body += layers
        last = layers[-1].target.name
        return {
            name: times(output.scale, Variable(last, lag=number)) if output.scale else Number(0.0)
            for number, (name, output) in enumerate(self.outputs.items())
        }


MOST_CHOICES = 4_096

Levels = Annotated[tuple[Coefficient, ...], Field(min_length=1, max_length=MOST_CHOICES)]


class GreedyQ(Layered):
    """A controller that takes the action which its Q network values most (NFQ, sec. 3.3 of the paper).

    The network reads what `inputs` names, then the actions in the order of `outputs`; its only output is the
    value. `outputs` gives the values that each action may have; every combination is a choice.
    """

    policy: ClassVar[int | None] = GREEDY
    kind: Literal["greedy-q"] = "greedy-q"
    outputs: Annotated[dict[str, Levels], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_layers(self.layers, len(self.inputs) + len(self.outputs), 1, "the value")
        if prod(map(len, self.outputs.values())) > MOST_CHOICES:
            raise ClearloopError(f"outputs: expected at most {MOST_CHOICES:,} combinations of actions")
        return self

    @property
    def choices(self) -> list[tuple[float, ...]]:
        """Every combination of actions, in the order of `outputs`."""
        return list(product(*self.outputs.values()))

    @property
    def summary(self) -> str:
        return f"best of {len(self.choices):,} actions by a Q network {'-'.join(map(str, self.widths))}"

    def words(self) -> Iterator[str]:
        names = ", ".join(str(variable) for _, variable in self.variables())
        yield f"{self.summary} on {names}: {self.complexity:,} numbers, not meant to be read"
        for action, levels in self.outputs.items():
            span = f"{min(levels):g} … {max(levels):g}{self.unit(action)}"
            yield f"{action} is one of {len(levels)} values, {span}."
        yield from self.limit_words()
        yield from self.setpoint_words()

    def respond(self, memory: Memory) -> dict[str, float]:
        choices = np.array(self.choices)
        read = np.array([memory.error(read_variable(name)) for name in self.inputs])
        values = np.hstack([np.tile(read, (len(choices), 1)), choices])
        for layer in self.layers:
            values = FUNCTIONS[layer.activation](values @ np.array(layer.weights).T + np.array(layer.bias))
        best = choices[np.argmax(values[:, 0])]
        return dict(zip(self.actions, best.tolist(), strict=True))

    def numbers(self, features: Features) -> list[float]:
        order = [self.actions.index(name) for name in features.actions]
        columns = [*range(len(self.inputs)), *(len(self.inputs) + i for i in order)]
        numbers: list[float] = []
        for number, layer in enumerate(self.layers):
            weights = np.array(layer.weights)
            weights = weights[:, columns] if number == 0 else weights
            numbers += [*weights.T.ravel().tolist(), *layer.bias]
        return [*numbers, *np.array(self.choices)[:, order].ravel().tolist()]

    def lower(self, scope: Scope) -> dict[str, Expression]:
        source = self._inputs(len(self.actions), scope)
        chosen = tuple(scope.fresh(f"{name}_choice") for name in self.actions)
        scope.body.append(Best(chosen, source, tuple(self.choices), self._layers(source, scope)))
        return dict(zip(self.actions, chosen, strict=True))
