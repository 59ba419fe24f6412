"""What a controller does at every step, in the few words that all targets have.

A routine reads inputs, computes named values one after the other, and remembers some of them. Formulas are
trees of `clearloop.expression`. Their leaves are names: `theta` is a local value (an input is read limited to
±1e12 first), `rho.setpoint` a setpoint, and `theta[t-3]` is element 3 of the array `theta`. An array is a
ring in the memory, in which element k is the value of k steps ago, or one that `Fill` or `Layer` makes.

One step, in this order: every ring moves on (element k becomes element k + 1); the body runs. Before the
first step all elements of all rings are 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from clearloop.expression import Expression, Variable


@dataclass(frozen=True, kw_only=True)
class Input:
    variable: Variable
    """A state, `theta`, or a setpoint, `rho.setpoint`."""
    unit: str = ""
    default: float | None = None
    """Of a setpoint that stays as it is until somebody changes it; None: it comes with every observation."""


@dataclass(frozen=True, kw_only=True)
class Ring:
    """Past values. `name[t-k]` in a formula is element k: the value of k steps ago."""

    name: Variable
    holds: Expression
    """What `Store` puts into element 0."""
    depth: int
    """The largest k."""
    repeat: bool
    """At the first step `Store` puts the value into all elements; otherwise the others stay 0."""


@dataclass(frozen=True)
class Let:
    """A named value."""

    target: Variable
    value: Expression


@dataclass(frozen=True)
class Store:
    """Keep the present value."""

    ring: Ring


@dataclass(frozen=True)
class Sum:
    """Elements 0 … count − 1 of a ring, added in this order."""

    target: Variable
    ring: Ring
    count: int


@dataclass(frozen=True)
class Fill:
    """A local array of values."""

    target: Variable
    values: tuple[Expression, ...]


@dataclass(frozen=True)
class Mean:
    """Σ exp(xᵢ − x) outputᵢ / Σ exp(xᵢ − x), where x is the largest xᵢ of an array."""

    target: Variable
    source: Variable
    outputs: tuple[float, ...]


Activation = Literal["identity", "relu", "tanh", "sigmoid"]


@dataclass(frozen=True)
class Layer:
    """yᵢ = activation(Σⱼ weightᵢⱼ xⱼ + biasᵢ); sigmoid is 0.5 + 0.5 tanh(x/2)."""

    target: Variable
    source: Variable
    weights: tuple[tuple[float, ...], ...]
    bias: tuple[float, ...]
    activation: Activation


@dataclass(frozen=True)
class Best:
    """Of some rows, the first of those for which the network's only output is largest.

    For each row: the last elements of the array `source` become the row, and the layers run.
    """

    targets: tuple[Variable, ...]
    source: Variable
    rows: tuple[tuple[float, ...], ...]
    layers: tuple[Layer, ...]


@dataclass(frozen=True, kw_only=True)
class Output:
    """An action. With limits: min(max(value, low), high); in `parts` equal steps, see `task/levels.py`."""

    action: Variable
    value: Expression
    unit: str = ""
    limits: tuple[float, float] | None = None
    parts: int = 0
    """Steps from limit to limit; 0: any value will do."""


Statement = Let | Store | Sum | Fill | Mean | Layer | Best | Output


@dataclass(frozen=True, kw_only=True)
class Routine:
    inputs: tuple[Input, ...]
    """States, then setpoints."""
    rings: tuple[Ring, ...]
    body: tuple[Statement, ...]

    @property
    def observed(self) -> tuple[Input, ...]:
        """What comes with every observation."""
        return tuple(one for one in self.inputs if one.default is None)

    @property
    def parameters(self) -> tuple[Input, ...]:
        """Setpoints that stay until somebody changes them."""
        return tuple(one for one in self.inputs if one.default is not None)

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(one for one in self.body if isinstance(one, Output))

    @property
    def remembers_the_start(self) -> bool:
        """Whether the first step differs from the others."""
        return any(ring.repeat for ring in self.rings)


def targets(statement: Statement) -> Iterator[Variable]:
    """The names that a statement gives a value."""
    match statement:
        case Let(target=target) | Sum(target=target) | Fill(target=target) | Mean(target=target):
            yield target
        case Layer(target=target):
            yield target
        case Best():
            yield from statement.targets
            yield from (layer.target for layer in statement.layers)
        case Output(action=action):
            yield action


def formulas(statement: Statement) -> Iterator[Expression]:
    """The trees that a statement evaluates."""
    match statement:
        case Let(value=value) | Output(value=value):
            yield value
        case Fill(values=values):
            yield from values
        case Store(ring=ring):
            yield ring.holds
