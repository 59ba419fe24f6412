"""Routines: what a controller does at every step, in the few statements that all export targets have.

A routine reads inputs, computes named values one after the other, and stores some of them. Formulas are
trees of `clearloop.expression`, whose leaves are numbers and names: `theta` is a local value (an input is
limited to ±1e12 when it is read), `rho.setpoint` is a setpoint, and `theta[t-3]` is element 3 of the array
`theta`. An array is either a ring in the memory, in which element k is the value k steps ago, or a local one
that `Fill` or `Layer` makes. A guard may read element 0 of a ring of its law, once the law has run.

In each step, every ring moves on first (element k becomes element k + 1); then the body runs. Before the
first step all elements of all rings are 0.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
        words: What it is for, in a comment beside it.
        low: Its lower limit when it is read.
        flag: Whether it is true or false. A formula asks a flag with `flag != 0`.
        role: What a guard uses it for, such as "manual", or "valid theta"; a name may have been taken.
    """

    variable: Variable
    unit: str = ""
    default: float | None = None
    words: str = ""
    low: float = -READ_LIMIT
    flag: bool = False
    role: str = ""


@dataclass(frozen=True, kw_only=True)
class State:
    """A single value that a routine keeps from one step to the next, until `Set` gives it another.

    Attributes:
        variable: Its name.
        start: Its value before the first step.
        size: Its largest magnitude, which the statements keep; None: any finite number.
        flag: Whether it is true or false.
        words: What it is, in a comment beside it.
        restarts: Whether a restart of the block sets it back to its start.
    """

    variable: Variable
    start: float = 0.0
    size: float | None = None
    flag: bool = False
    words: str = ""
    restarts: bool = False


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A constant factor of the law that has a name, so that it can be tuned on the target.

    Attributes:
        variable: Its name.
        value: The factor that was learned.
        words: What it is, in a comment beside it.
    """

    variable: Variable
    value: float
    words: str = ""


@dataclass(frozen=True, slots=True)
class Tunable(Number):
    """A constant of a law that gets a name where a target can change it; elsewhere it is a number.

    Attributes:
        name: The name that it gets.
        words: What it is, in a comment beside it.
    """

    name: str = ""
    words: str = ""


class Fixed(Number):
    """A constant of a law that stays a number on every target, because a guard relies on it."""


@dataclass(frozen=True, kw_only=True)
class Integral:
    """What is known about a ring that integrates a control error.

    Attributes:
        action: The action that it is added to; None if it reaches the actions on another way.
        gain: How much the action rises with it.
    """

    action: Variable | None = None
    gain: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Ring:
    """Past values of one quantity; `name[t-k]` in a formula is element k, the value k steps ago.

    Attributes:
        name: The name of the ring.
        holds: The value that `Store` puts into element 0.
        depth: The largest k.
        repeat: Whether `Store` puts the value into all elements at the first step; otherwise they stay 0.
        integral: What it integrates, if it is the integral of a control error.
    """

    name: Variable
    holds: Expression
    depth: int
    repeat: bool
    integral: Integral | None = None


@dataclass(frozen=True)
class Let:
    """The statement that gives a value a name; a condition becomes a flag."""

    target: Variable
    value: Expression


@dataclass(frozen=True)
class Set:
    """The statement that gives a state of the routine a new value."""

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


@dataclass(frozen=True)
class Correct:
    """The statement that replaces the latest stored value of a ring, which the next step finds at t-1."""

    ring: Ring
    value: Expression


@dataclass(frozen=True, kw_only=True)
class Act:
    """The statement that runs a law inside a routine that guards it.

    Where the condition does not hold, the law does not run and its rings stay as they are. When it runs
    again, it takes the present observation for the past ones, as in a first step.

    Attributes:
        law: What the law does.
        when: The condition.
        actions: The names that its actions get, in the order of its outputs; 0 where it does not run.
    """

    law: "Routine"
    when: Expression
    actions: tuple[Variable, ...]


@dataclass(frozen=True)
class Report:
    """The statement that gives the caller a whole number, such as a status.

    Attributes:
        target: Its name.
        value: The number.
        words: What it means, in a comment.
    """

    target: Variable
    value: Expression
    words: str = ""


@dataclass(frozen=True)
class Status:
    """The statement that gives the caller a word of bits.

    Attributes:
        target: Its name.
        bits: For each bit its number (1, 2, 4 …), what it means, and the condition that sets it.
        words: What the word is, in a comment.
    """

    target: Variable
    bits: tuple[tuple[int, str, Expression], ...]
    words: str = ""


@dataclass(frozen=True)
class Remark:
    """A comment on the statements that follow."""

    words: str


Statement = (
    Let | Set | Store | Correct | Sum | Fill | Mean | Layer | Best | Output | Act | Report | Status | Remark
)


@dataclass(frozen=True, kw_only=True)
class Routine:
    """A routine is what a controller does at every step.

    Attributes:
        inputs: The states that it reads, then the setpoints.
        rings: The past values that it stores.
        body: The statements of a step.
        states: The single values that it keeps.
        gains: The constant factors that have names.
    """

    inputs: tuple[Input, ...]
    rings: tuple[Ring, ...]
    body: tuple[Statement, ...]
    states: tuple[State, ...] = ()
    gains: tuple[Gain, ...] = ()

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
    def law(self) -> "Routine":
        """The law that this routine guards; a routine without a guard is its own law."""
        return next((one.law for one in self.body if isinstance(one, Act)), self)

    @property
    def reports(self) -> tuple[Report | Status, ...]:
        """The statements that give the caller whole numbers."""
        return tuple(one for one in self.body if isinstance(one, Report | Status))

    @property
    def names(self) -> set[str]:
        """All names that are taken: of values, inputs, states, rings and gains."""
        trees = [tree for one in self.body for tree in formulas(one)]
        found = {variable.name for tree in trees for variable in variables(tree)}
        found |= {variable.name for one in self.body for variable in targets(one)}
        found |= {one.variable.name for one in self.inputs} | {one.variable.name for one in self.states}
        return found | {one.variable.name for one in self.gains} | {ring.name.name for ring in self.rings}

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
        case Act(actions=actions):
            yield from actions


def formulas(statement: Statement) -> Iterator[Expression]:
    """Yield the formulas that a statement evaluates."""
    match statement:
        case Let(value=value) | Output(value=value) | Set(value=value):
            yield value
        case Correct(value=value) | Report(value=value) | Act(when=value):
            yield value
        case Fill(values=values):
            yield from values
        case Status(bits=bits):
            yield from (condition for _, _, condition in bits)
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
    """Return the negated tree; a product with a constant keeps its form: -3*x, not -(3*x).

    A constant with a name keeps its value, so that its words stay true.
    """
    match tree:
        case Call(arguments=(Number() as first, other)) if tree.operation.name == "mul":
            if not isinstance(first, Tunable):
                return call("mul", replace(first, value=-first.value), other)
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
    def starts(self) -> Mapping[str, float]: ...
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

    def value(self, name: str, lag: int | None) -> Expression:
        """Return the value of a state now or `lag` steps ago, or of an action `lag` steps ago.

        Rings begin with 0, so that of an action keeps its difference from the value before the start.
        """
        if name not in {*self.controller.actions, *self.controller.derived}:
            self._input(Variable(name))
        if not lag:
            return Variable(name)
        self._depths[name] = max(lag, self._depths.get(name, 0))
        start = self.controller.starts.get(name, 0.0) if name in self.controller.actions else 0.0
        return difference(Variable(name, lag=lag), -start)

    def aim(self, name: str) -> Expression:
        """Return the setpoint of a state, or 0 if it has none."""
        if name not in self.controller.setpoint and name not in self.controller.follows:
            return Number(0.0)
        self._input(Variable(name, "setpoint"), self.controller.setpoint.get(name))
        return Variable(name, "setpoint")

    def error(self, name: str, lag: int | None, *, limit: bool) -> Expression:
        """Return value − setpoint under a name of its own, or an action; `limit` limits it to ±1e12."""
        value, aim = self.value(name, lag), self.aim(name)
        if isinstance(aim, Number) or name in self.controller.actions:
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
        holds: Expression = Variable(name) if small else limited(Variable(name))
        holds = difference(holds, self.controller.starts.get(name, 0.0))
        return Ring(name=Variable(name), holds=holds, depth=depth, repeat=False)

    @property
    def past(self) -> set[str]:
        """The names of the states and actions whose past is read."""
        return set(self._depths)


def stores(rings: list[Ring]) -> list[Statement]:
    """Return a `Store` for each ring."""
    return [Store(ring) for ring in rings]
