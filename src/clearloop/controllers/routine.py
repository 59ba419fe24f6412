"""Routines: what a controller does at every step, in the few statements that all export targets have.

A routine reads inputs, computes named values one after the other, and stores some of them. Formulas are
trees of `clearloop.expression`, whose leaves are numbers and names: `theta` is a local value (an input is
limited to ±1e12 when it is read), `rho.setpoint` is a setpoint, and `theta[t-3]` is element 3 of the array
`theta`. An array is either a ring in the memory, in which element k is the value k steps ago, or a local one
that `Fill` or `Layer` makes.

In each step, every ring moves on first (element k becomes element k + 1); then the body runs. Before the
first step all elements of all rings are 0.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from clearloop.expression import OPERATIONS, Call, Expression, Number, Variable, substitute, variables
from clearloop.expression.nodes import READ_LIMIT


@dataclass(frozen=True, kw_only=True)
class Input:
    """An input of a routine.

    Attributes:
        variable: A state, such as `theta`, or a setpoint, such as `rho.setpoint`.
        unit: Its unit.
        default: The value of a setpoint until somebody changes it; None: it comes with every observation.
    """

    variable: Variable
    unit: str = ""
    default: float | None = None


@dataclass(frozen=True, kw_only=True)
class Ring:
    """Past values of one quantity; `name[t-k]` in a formula is element k, the value k steps ago.

    Attributes:
        name: The name of the ring.
        holds: The value that `Store` puts into element 0.
        depth: The largest k.
        repeat: Whether `Store` puts the value into all elements at the first step; otherwise they stay 0.
    """

    name: Variable
    holds: Expression
    depth: int
    repeat: bool


@dataclass(frozen=True)
class Let:
    """The statement that gives a value a name."""

    target: Variable
    value: Expression


@dataclass(frozen=True)
class Store:
    """The statement that stores the present value in a ring."""

    ring: Ring


@dataclass(frozen=True)
class Sum:
    """The statement that adds elements 0 … count − 1 of a ring, in this order."""

    target: Variable
    ring: Ring
    count: int


@dataclass(frozen=True)
class Fill:
    """The statement that makes a local array of values."""

    target: Variable
    values: tuple[Expression, ...]


@dataclass(frozen=True)
class Mean:
    """The statement that computes Σ exp(xᵢ − x) outputᵢ / Σ exp(xᵢ − x), where x is the largest xᵢ."""

    target: Variable
    source: Variable
    outputs: tuple[float, ...]


Activation = Literal["identity", "relu", "tanh", "sigmoid"]


@dataclass(frozen=True)
class Layer:
    """The statement that computes a layer, yᵢ = activation(Σⱼ weightᵢⱼ xⱼ + biasᵢ).

    The activation function sigmoid is 0.5 + 0.5 tanh(x/2).
    """

    target: Variable
    source: Variable
    weights: tuple[tuple[float, ...], ...]
    bias: tuple[float, ...]
    activation: Activation


@dataclass(frozen=True)
class Best:
    """The statement that chooses the first of those rows for which a network's only output is largest.

    For each row, the last elements of the array `source` become the row, and the layers run.
    """

    targets: tuple[Variable, ...]
    source: Variable
    rows: tuple[tuple[float, ...], ...]
    layers: tuple[Layer, ...]


@dataclass(frozen=True, kw_only=True)
class Output:
    """The statement that gives an action its value.

    Attributes:
        action: The action.
        value: Its value before it is limited.
        unit: Its unit.
        limits: The limits: the action is min(max(value, low), high).
        parts: The number of equal steps from limit to limit, to which the action is rounded (see
            `task/tables.py`); 0: every value is allowed.
    """

    action: Variable
    value: Expression
    unit: str = ""
    limits: tuple[float, float] | None = None
    parts: int = 0


Statement = Let | Store | Sum | Fill | Mean | Layer | Best | Output


@dataclass(frozen=True, kw_only=True)
class Routine:
    """A routine is what a controller does at every step.

    Attributes:
        inputs: The states that it reads, then the setpoints.
        rings: The past values that it stores.
        body: The statements of a step.
    """

    inputs: tuple[Input, ...]
    rings: tuple[Ring, ...]
    body: tuple[Statement, ...]

    @property
    def observed(self) -> tuple[Input, ...]:
        """The inputs that come with every observation."""
        return tuple(one for one in self.inputs if one.default is None)

    @property
    def parameters(self) -> tuple[Input, ...]:
        """The setpoints that stay until somebody changes them."""
        return tuple(one for one in self.inputs if one.default is not None)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The statements that give the actions."""
        return tuple(one for one in self.body if isinstance(one, Output))

    @property
    def remembers_the_start(self) -> bool:
        """True if the first step differs from the others."""
        return any(ring.repeat for ring in self.rings)


def targets(statement: Statement) -> Iterator[Variable]:
    """Yield the names that a statement gives a value."""
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
    """Yield the formulas that a statement evaluates."""
    match statement:
        case Let(value=value) | Output(value=value):
            yield value
        case Fill(values=values):
            yield from values
        case Store(ring=ring):
            yield ring.holds


# Formulas that are not written in a controller file: sums of products, squares, limits.

_LONGEST_SUM = 60  # terms; the depth of a tree is limited


def call(name: str, *arguments: Expression) -> Call:
    """Return the call of an operation."""
    return Call(OPERATIONS[name], arguments)


def limited(tree: Expression) -> Expression:
    """Return a value limited to ±1e12, as formulas read it."""
    return call("clip", tree, Number(-READ_LIMIT), Number(READ_LIMIT))


def times(factor: float, tree: Expression) -> Expression:
    """Return a product, without a factor of 1."""
    if isinstance(tree, Number):
        return Number(factor * tree.value)
    return tree if factor == 1 else call("neg", tree) if factor == -1 else call("mul", Number(factor), tree)


def difference(tree: Expression, constant: float) -> Expression:
    """Return a tree minus a constant, without double signs."""
    if not constant:
        return tree
    return call("sub" if constant > 0 else "add", tree, Number(abs(constant)))


def weighted(terms: Iterable[tuple[float, Expression]]) -> Iterator[tuple[bool, Expression]]:
    """Yield products that are not 0, each as a pair: whether it is negative, and its magnitude."""
    for factor, tree in terms:
        if factor:
            yield factor < 0, times(abs(factor), tree)


def total(
    terms: Iterable[tuple[bool, Expression]], fresh: Callable[[], Variable]
) -> tuple[Sequence[Statement], Expression]:
    """Return a sum, computed from left to right.

    Args:
        terms: The terms, each with a flag that says whether it is subtracted.
        fresh: A function that gives a new name; a long sum is computed in named parts.

    Returns:
        The statements for the parts, and the sum.
    """
    before: list[Statement] = []
    tree: Expression | None = None
    for number, (negative, term) in enumerate(terms):
        if tree is None:
            tree = _negated(term) if negative else term
            continue
        if number % _LONGEST_SUM == 0:
            part = fresh()
            before.append(Let(part, tree))
            tree = part
        tree = call("sub" if negative else "add", tree, term)
    return before, Number(0.0) if tree is None else tree


def _negated(tree: Expression) -> Expression:
    """Return the negated tree; a product with a constant keeps its form: -3*x, not -(3*x)."""
    match tree:
        case Call(arguments=(Number(value=value), other)) if tree.operation.name == "mul":
            return call("mul", Number(-value), other)
    return call("neg", tree)


class Lowered(Protocol):
    """The fields of a controller that a scope uses."""

    @property
    def actions(self) -> tuple[str, ...]: ...
    @property
    def derived(self) -> Collection[str]: ...
    @property
    def setpoint(self) -> Mapping[str, float]: ...
    @property
    def follows(self) -> Collection[str]: ...
    @property
    def limits(self) -> Mapping[str, tuple[float, float]]: ...
    @property
    def units(self) -> Mapping[str, str]: ...
    def variables(self) -> Iterator[tuple[str, Variable]]: ...


def fresh_variable(name: str, taken: set[str]) -> Variable:
    """Return a variable named like this, or with a number if that is taken, and add its name to `taken`."""
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    taken.add(unique)
    return Variable(unique)


class Scope:
    """The statements, inputs and rings of a routine while a controller is lowered to it.

    A kind's `lower` asks it for what it reads (`read`, `formula`), names intermediate values (`let`, `fresh`)
    and appends statements to `body`.

    Args:
        controller: The controller that is lowered.
    """

    def __init__(self, controller: Lowered) -> None:
        self.controller = controller
        self.body: list[Statement] = []
        self._taken = {variable.name for _, variable in controller.variables()}
        self._taken |= {*controller.actions, *controller.derived, *controller.setpoint, *controller.follows}
        self._inputs: dict[Variable, Input] = {}
        self._depths: dict[str, int] = {}
        self._errors: dict[tuple[str, int, bool], Variable] = {}

    def fresh(self, name: str) -> Variable:
        """Return a new variable, named like this or with a number."""
        return fresh_variable(name, self._taken)

    def let(self, name: str, value: Expression) -> Variable:
        """Give a value a new name, and return that."""
        target = self.fresh(name)
        self.body.append(Let(target, value))
        return target

    def formula(self, formula: Expression) -> Expression:
        """Return a formula of the controller file in the routine's names; a bare name is value − setpoint."""
        return substitute(formula, {v: self.read(v, limit=True) for v in variables(formula)})

    def read(self, variable: Variable, *, limit: bool = False) -> Expression:
        """Return what a name means in all kinds but PID, value − setpoint; `limit` limits it to ±1e12."""
        if variable.part == "setpoint":
            return self.aim(variable.name)
        return self.error(variable.name, variable.lag, limit=limit)

    def total(self, name: str, terms: Iterable[tuple[bool, Expression]]) -> Expression:
        """Return the sum of terms with their signs; a long one is computed in parts named after `name`."""
        before, tree = total(terms, lambda: self.fresh(f"{name}_part"))
        self.body += before
        return tree

    def value(self, name: str, lag: int | None) -> Variable:
        """Return the value of a state now or `lag` steps ago, or of an action `lag` steps ago."""
        if name not in {*self.controller.actions, *self.controller.derived}:
            self._input(Variable(name))
        if not lag:
            return Variable(name)
        self._depths[name] = max(lag, self._depths.get(name, 0))
        return Variable(name, lag=lag)

    def aim(self, name: str) -> Expression:
        """Return the setpoint of a state, or 0 if it has none."""
        if name not in self.controller.setpoint and name not in self.controller.follows:
            return Number(0.0)
        self._input(Variable(name, "setpoint"), self.controller.setpoint.get(name))
        return Variable(name, "setpoint")

    def error(self, name: str, lag: int | None, *, limit: bool) -> Expression:
        """Return value − setpoint under a name of its own; `limit` limits it to ±1e12."""
        value, aim = self.value(name, lag), self.aim(name)
        if isinstance(aim, Number):
            return value
        key = name, lag or 0, limit
        if key not in self._errors:
            tree = call("sub", value, aim)
            wish = f"{name}_error{f'_{lag}' if lag else ''}"
            self._errors[key] = self.let(wish, limited(tree) if limit else tree)
        return self._errors[key]

    def _input(self, variable: Variable, default: float | None = None) -> None:
        unit = self.controller.units.get(variable.name, "")
        self._inputs.setdefault(variable, Input(variable=variable, unit=unit, default=default))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The states that are read, then the setpoints."""
        return tuple(sorted(self._inputs.values(), key=lambda one: one.variable.part == "setpoint"))

    def rings(self, names: set[str]) -> list[Ring]:
        """Return a ring for each of these states or actions whose past is read."""
        return [self._ring(name, depth) for name, depth in self._depths.items() if name in names]

    def _ring(self, name: str, depth: int) -> Ring:
        if name not in self.controller.actions:
            return Ring(name=Variable(name), holds=Variable(name), depth=depth, repeat=True)
        limits = self.controller.limits.get(name, (-float("inf"), float("inf")))
        small = limits[0] >= -READ_LIMIT and limits[1] <= READ_LIMIT
        holds = Variable(name) if small else limited(Variable(name))
        return Ring(name=Variable(name), holds=holds, depth=depth, repeat=False)

    @property
    def past(self) -> set[str]:
        """The names of the states and actions whose past is read."""
        return set(self._depths)


def stores(rings: list[Ring]) -> list[Statement]:
    """Return a `Store` for each ring."""
    return [Store(ring) for ring in rings]
