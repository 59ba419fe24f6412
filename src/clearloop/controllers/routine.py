"""What a controller does at every step, in the few words that all targets have.

A routine reads inputs, computes named values one after the other, and remembers some of them. Formulas are
trees of `clearloop.expression`. Their leaves are names: `theta` is a local value (an input is read limited to
±1e12 first), `rho.setpoint` a setpoint, and `theta[t-3]` is element 3 of the array `theta`. An array is a
ring in the memory, in which element k is the value of k steps ago, or one that `Fill` or `Layer` makes.

One step, in this order: every ring moves on (element k becomes element k + 1); the body runs. Before the
first step all elements of all rings are 0.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from clearloop.expression import OPERATIONS, Call, Expression, Number, Variable, substitute, variables
from clearloop.expression.nodes import READ_LIMIT


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
    """An action. With limits: min(max(value, low), high); in `parts` equal steps, see `task/tables.py`."""

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


# Trees for what is not written as a formula in a controller file: sums of products, squares, limits.

LONGEST_SUM = 60  # terms; a tree may have only so many levels


def call(name: str, *arguments: Expression) -> Call:
    return Call(OPERATIONS[name], arguments)


def limited(tree: Expression) -> Expression:
    """As formulas read a value."""
    return call("clip", tree, Number(-READ_LIMIT), Number(READ_LIMIT))


def times(factor: float, tree: Expression) -> Expression:
    """A product, without a factor of 1."""
    if isinstance(tree, Number):
        return Number(factor * tree.value)
    return tree if factor == 1 else call("neg", tree) if factor == -1 else call("mul", Number(factor), tree)


def difference(tree: Expression, constant: float) -> Expression:
    """A tree minus a constant, written without needless signs."""
    if not constant:
        return tree
    return call("sub" if constant > 0 else "add", tree, Number(abs(constant)))


def weighted(terms: Iterable[tuple[float, Expression]]) -> Iterator[tuple[bool, Expression]]:
    """Products with their signs (whether negative), those with 0 left out."""
    for factor, tree in terms:
        if factor:
            yield factor < 0, times(abs(factor), tree)


def total(
    terms: Iterable[tuple[bool, Expression]], fresh: Callable[[], Variable]
) -> tuple[Sequence[Statement], Expression]:
    """The sum from left to right; a long one is cut into parts, each with a name from `fresh`."""
    before: list[Statement] = []
    tree: Expression | None = None
    for number, (negative, term) in enumerate(terms):
        if tree is None:
            tree = _negated(term) if negative else term
            continue
        if number % LONGEST_SUM == 0:
            part = fresh()
            before.append(Let(part, tree))
            tree = part
        tree = call("sub" if negative else "add", tree, term)
    return before, Number(0.0) if tree is None else tree


def _negated(tree: Expression) -> Expression:
    """A product with a constant keeps its form: -3*x, not -(3*x)."""
    match tree:
        case Call(arguments=(Number(value=value), other)) if tree.operation.name == "mul":
            return call("mul", Number(-value), other)
    return call("neg", tree)


# The names that a routine needs: what a controller reads, and what must be remembered for it.


class Lowered(Protocol):
    """What a scope has to know about the controller that is lowered."""

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


class Scope:
    """Collects statements, inputs and rings while a controller is lowered.

    A kind's `lower` asks it for what it reads (`read`, `formula`), names intermediate values (`let`, `fresh`)
    and appends statements to `body`.
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
        """A name that stands for nothing else."""
        unique, number = name, 2
        while unique in self._taken:
            unique, number = f"{name}_{number}", number + 1
        self._taken.add(unique)
        return Variable(unique)

    def let(self, name: str, value: Expression) -> Variable:
        """A value with a name of its own."""
        target = self.fresh(name)
        self.body.append(Let(target, value))
        return target

    def formula(self, formula: Expression) -> Expression:
        """A formula of the controller file over what the routine knows: a bare name is value − setpoint."""
        return substitute(formula, {v: self.read(v, limit=True) for v in variables(formula)})

    def read(self, variable: Variable, *, limit: bool = False) -> Expression:
        """What a name means in all kinds but PID: value − setpoint. `limit`: as formulas read it."""
        if variable.part == "setpoint":
            return self.aim(variable.name)
        return self.error(variable.name, variable.lag, limit=limit)

    def total(self, name: str, terms: Iterable[tuple[bool, Expression]]) -> Expression:
        """The sum of terms with their signs; a long one is computed in parts that are called after `name`."""
        before, tree = total(terms, lambda: self.fresh(f"{name}_part"))
        self.body += before
        return tree

    def value(self, name: str, lag: int | None) -> Variable:
        """Of a state now or some steps ago, or of an action some steps ago, as formulas read it."""
        if name not in {*self.controller.actions, *self.controller.derived}:
            self._input(Variable(name))
        if not lag:
            return Variable(name)
        self._depths[name] = max(lag, self._depths.get(name, 0))
        return Variable(name, lag=lag)

    def aim(self, name: str) -> Expression:
        """The setpoint; 0 where there is none."""
        if name not in self.controller.setpoint and name not in self.controller.follows:
            return Number(0.0)
        self._input(Variable(name, "setpoint"), self.controller.setpoint.get(name))
        return Variable(name, "setpoint")

    def error(self, name: str, lag: int | None, *, limit: bool) -> Expression:
        """Value − setpoint, with a name of its own. `limit`: read like a variable of a formula."""
        value, aim = self.value(name, lag), self.aim(name)
        if isinstance(aim, Number):
            return value
        key = name, lag or 0, limit
        if key not in self._errors:
            tree = call("sub", value, aim)
            name_of_it = f"{name}_error{f'_{lag}' if lag else ''}"
            self._errors[key] = self.let(name_of_it, limited(tree) if limit else tree)
        return self._errors[key]

    def _input(self, variable: Variable, default: float | None = None) -> None:
        unit = self.controller.units.get(variable.name, "")
        self._inputs.setdefault(variable, Input(variable=variable, unit=unit, default=default))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """States, then setpoints."""
        return tuple(sorted(self._inputs.values(), key=lambda one: one.variable.part == "setpoint"))

    def rings(self, names: set[str]) -> list[Ring]:
        """Of those of these states or actions whose past is read."""
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
        """The states and actions whose past is read."""
        return set(self._depths)


def stores(rings: list[Ring]) -> list[Statement]:
    return [Store(ring) for ring in rings]
