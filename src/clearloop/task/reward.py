"""The reward as one expression: cases become nested `if`, the first that holds; terms a sum of costs."""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator
from pydantic_core import PydanticCustomError

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import OPERATIONS, Call, Expression, parse, simplify, variables
from clearloop.expression import Number as Constant
from clearloop.expression.nodes import Kind
from clearloop.task import tables
from clearloop.task.tables import (
    MOST_STEPS_BACK,
    Fault,
    FiniteNumber,
    Flag,
    Formula,
    NotNegative,
    Positive,
    Table,
    TaskScope,
    Text,
    expecting,
)

# Ready terms of a reward: what engineers want of a loop, each a cost that is never negative.
#
# A term writes its cost as a formula of the language. What it costs in a step is `weight` times that.

_Shape = Annotated[Literal["absolute", "square"], expecting('"absolute" or "square"')]
Complaint = tuple[str, str]
"""Of a key, what is wrong with it."""


class RewardTerm(Table):
    """The key that says what a term is about comes first, and gives it its kind."""

    weight: NotNegative = 1.0

    kind: ClassVar[str]

    @abstractmethod
    def cost(self, scope: TaskScope) -> str:
        """A formula: 0 where all is well, never negative."""

    @abstractmethod
    def complaints(self, scope: TaskScope) -> Iterator[Complaint]:
        """What the task does not have; formulas are judged elsewhere."""


class TrackTerm(RewardTerm):
    """Distance from the setpoint, as far as it exceeds what is tolerated."""

    kind: ClassVar[str] = "track"
    track: Text
    tolerance: NotNegative = 0.0
    scale: Positive = 1.0
    """the distance that counts 1"""
    shape: _Shape = "absolute"

    def cost(self, scope: TaskScope) -> str:  # noqa: ARG002
        if not self.tolerance:
            return _shaped(f"{self.track}.error", self.scale, self.shape)
        return _shaped(f"max(abs({self.track}.error) - {_text(self.tolerance)}, 0)", self.scale, self.shape)

    def complaints(self, scope: TaskScope) -> Iterator[Complaint]:
        yield from _aimless("track", self.track, scope)


class Settle(RewardTerm):
    """1 in every step in which a state is not where it should be, or not yet at rest: the time to settle."""

    kind: ClassVar[str] = "settle"
    settle: Text
    within: NotNegative
    """distance from the setpoint"""
    slower_than: NotNegative | None = None
    """in its unit per second"""

    def cost(self, scope: TaskScope) -> str:
        away = f"abs({self.settle}.error) > {_text(self.within)}"
        if self.slower_than is None:
            return f"if({away}, 1, 0)"
        moved = f"abs({self.settle} - {self.settle}[t]) > {_text(self.slower_than * scope.dt)}"
        return f"if({away} or {moved}, 1, 0)"

    def complaints(self, scope: TaskScope) -> Iterator[Complaint]:
        yield from _aimless("settle", self.settle, scope)


class Limit(RewardTerm):
    """How far a state is outside of what it should stay in."""

    kind: ClassVar[str] = "limit"
    limit: Text
    min: FiniteNumber | None = None
    max: FiniteNumber | None = None
    scale: Positive = 1.0
    """the distance that counts 1"""
    shape: _Shape = "absolute"

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.min is None and self.max is None:
            raise PydanticCustomError("limit", "expected min, max or both")
        if self.min is not None and self.max is not None and not self.min <= self.max:
            raise PydanticCustomError("limit", "expected min not greater than max")
        return self

    def cost(self, scope: TaskScope) -> str:  # noqa: ARG002
        below = f"{_text(self.min)} - {self.limit}" if self.min is not None else ""
        above = f"{self.limit} - {_text(self.max)}" if self.max is not None else ""
        distance = f"max({below}, {above})" if below and above else below or above
        return _shaped(f"max({distance}, 0)", self.scale, self.shape)

    def complaints(self, scope: TaskScope) -> Iterator[Complaint]:
        yield from _unknown("limit", self.limit, "state", scope.states)


class When(RewardTerm):
    """1 in every step in which a condition holds."""

    kind: ClassVar[str] = "when"
    when: Formula

    def cost(self, scope: TaskScope) -> str:  # noqa: ARG002
        return f"if({self.when}, 1, 0)"

    def complaints(self, scope: TaskScope) -> Iterator[Complaint]:  # noqa: ARG002
        return iter(())


class Effort(RewardTerm):
    """Distance of an action from where it costs nothing, as a share of its range."""

    kind: ClassVar[str] = "effort"
    effort: Text
    around: FiniteNumber | None = None
    """none given: 0, or the limit that is nearest to it"""
    shape: _Shape = "absolute"

    def cost(self, scope: TaskScope) -> str:
        low, high = scope.limits[self.effort]
        rest = min(max(0.0, low), high) if self.around is None else self.around
        return _shaped(f"({self.effort} - {_text(rest)})", high - low, self.shape)

    def complaints(self, scope: TaskScope) -> Iterator[Complaint]:
        yield from _unknown("effort", self.effort, "action", scope.actions)
        low, high = scope.limits.get(self.effort, (-float("inf"), float("inf")))
        if self.around is not None and not low <= self.around <= high:
            yield "around", f"expected a number within the limits {low:g} … {high:g}"


class Rate(RewardTerm):
    """Change of an action since the last step, as a share of its range."""

    kind: ClassVar[str] = "rate"
    rate: Text
    shape: _Shape = "absolute"

    def cost(self, scope: TaskScope) -> str:
        low, high = scope.limits[self.rate]
        return _shaped(f"({self.rate} - {self.rate}[t-1])", high - low, self.shape)

    def complaints(self, scope: TaskScope) -> Iterator[Complaint]:
        yield from _unknown("rate", self.rate, "action", scope.actions)
        if scope.history < 2:
            yield (
                "rate",
                "compares with the last action, which controllers must see, too: set history = 2",
            )


KINDS: dict[str, type[RewardTerm]] = {
    kind.kind: kind for kind in (TrackTerm, Settle, Limit, When, Effort, Rate)
}


def _of_its_kind(value: Any) -> Any:
    """The table whose kind is among the keys."""
    if not isinstance(value, Mapping):
        return value
    kinds = [str(key) for key in value if key in KINDS]
    if len(kinds) == 1:
        return KINDS[kinds[0]].model_validate(value)
    wrong = [hint for key in value if key not in KINDS and (hint := did_you_mean(str(key), KINDS))]
    found = f", not {' and '.join(kinds)}" if kinds else wrong[0] if wrong else ""
    what = {"kinds": ", ".join(KINDS), "found": found}
    raise PydanticCustomError("term_kind", "expected exactly one of: {kinds}{found}", what)


AnyTerm = Annotated[SerializeAsAny[RewardTerm], BeforeValidator(_of_its_kind)]
_Terms = Annotated[tuple[AnyTerm, ...], Field(max_length=64)]


def _aimless(key: str, state: str, scope: TaskScope) -> Iterator[Complaint]:
    if state in scope.states and state not in scope.setpoints:
        yield key, f"{state} has no setpoint: give it one in [states], as in {state} = {{ setpoint = 0.0 }}"
    yield from _unknown(key, state, "state", scope.states)


def _unknown(key: str, name: str, what: str, names: Collection[str]) -> Iterator[Complaint]:
    if name not in names:
        hint = did_you_mean(name, names) or f"; expected one of: {', '.join(names)}"
        yield key, f"unknown {what} {quoted(name)}{hint}"


def _text(number: float) -> str:
    return f"({Constant(number)})"


def _shaped(deviation: str, scale: float, shape: str) -> str:
    """|x| or x², x being a deviation in parts of the scale."""
    if shape == "square":  # a product: powers are slow
        part = f"({deviation}/{_text(scale)})"
        return f"{part}*{part}"
    size = deviation if deviation.startswith("max(") else f"abs({deviation})"
    return f"{size}/{_text(scale)}"


MOST_CASES = 64  # no real task comes near


class Case(Table):
    when: Formula
    value: tables.FiniteNumber
    failure: Flag = False


class Reward(Table):
    """The first case that holds, or ready terms, or an expression, or a logged column to learn it from."""

    cases: Annotated[tuple[Case, ...], Field(max_length=MOST_CASES)] = ()
    otherwise: tables.FiniteNumber | None = None
    terms: _Terms = ()
    expression: Formula | None = None
    column: Text | None = None
    failure: Formula | None = None
    """Beside terms or an expression: when the failing case holds, which comes before them."""
    failure_value: tables.FiniteNumber | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [bool(self.cases), bool(self.terms), self.expression is not None, self.column is not None]
        if sum(kinds) != 1 or bool(self.cases) != (self.otherwise is not None):
            message = "expected exactly one of: cases with otherwise, terms, expression, column"
            raise PydanticCustomError("reward_kind", message)
        if sum(case.failure for case in self.cases) > 1:
            message = "expected one case with failure = true; join the conditions with 'or'"
            raise PydanticCustomError("failure_cases", message)
        if (self.failure is None) != (self.failure_value is None):
            missing = "failure" if self.failure is None else "failure_value"
            raise PydanticCustomError("failure", "missing key '{key}'", {"key": missing})
        if self.failure is not None and not (self.terms or self.expression):
            message = "failure stands beside terms or an expression; a case fails with failure = true"
            raise PydanticCustomError("failure", message)
        return self


def reward_formula(reward: Reward, scope: TaskScope) -> Expression | None:
    """None where the reward is learned from a column."""
    if reward.column is not None:
        return None
    if reward.expression is not None:
        lowered = _parse(reward.expression, scope, "number")
    elif reward.terms:
        lowered = _lower_terms(reward.terms, scope)
    else:
        lowered = Constant(reward.otherwise or 0.0)
    failing = [] if reward.failure is None else [(reward.failure, reward.failure_value or 0.0)]
    for when, value in reversed([*failing, *((case.when, case.value) for case in reward.cases)]):
        lowered = Call(OPERATIONS["if"], (_parse(when, scope, "condition"), Constant(value), lowered))
    return lowered


def _lower_terms(terms: tuple[RewardTerm, ...], scope: TaskScope) -> Expression:
    """Minus the sum of weights times costs."""
    lowered: Expression | None = None
    for term in terms:
        cost = simplify(_parse(term.cost(scope), scope, "number"))
        if lowered is None:
            lowered = Call(OPERATIONS["neg"], (cost,)) if term.weight == 1 else _times(-term.weight, cost)
        else:
            cost = cost if term.weight == 1 else _times(term.weight, cost)
            lowered = Call(OPERATIONS["sub"], (lowered, cost))
    return lowered or Constant(0.0)


def _times(weight: float, cost: Expression) -> Expression:
    return Call(OPERATIONS["mul"], (Constant(weight), cost))


def lower_failure(reward: Reward, scope: TaskScope) -> Expression | None:
    """Holds where the failure case does and none before it; None if nothing is a failure."""
    failure = None if reward.failure is None else _parse(reward.failure, scope, "condition")
    for case in reversed(reward.cases):
        condition = _parse(case.when, scope, "condition")
        if case.failure:
            failure = condition
        elif failure is not None:
            failure = Call(OPERATIONS["and"], (Call(OPERATIONS["not"], (condition,)), failure))
    return failure


def reward_faults(reward: Reward, scope: TaskScope) -> Iterator[Fault]:
    texts: list[tuple[tuple[str | int, ...], str, Kind]]
    texts = [(("cases", index, "when"), case.when, "condition") for index, case in enumerate(reward.cases)]
    texts += [
        (("terms", index, "when"), term.when, "condition")
        for index, term in enumerate(reward.terms)
        if isinstance(term, When)
    ]
    if reward.expression is not None:
        texts.append((("expression",), reward.expression, "number"))
    if reward.failure is not None:
        texts.append((("failure",), reward.failure, "condition"))
    faulty = False
    for where, text, kind in texts:
        try:
            _parse(text, scope, kind)
        except ClearloopError as error:
            faulty = True
            yield Fault(("reward", *where), str(error))
    for index, term in enumerate(reward.terms):
        for key, what in term.complaints(scope):
            faulty = True
            yield Fault(("reward", "terms", index, key), what)
    if not faulty:
        yield from _together(reward, scope)


def _together(reward: Reward, scope: TaskScope) -> Iterator[Fault]:
    """What is right by itself may still be too deep, or too large, in one expression."""
    try:
        reward_formula(reward, scope)
    except ClearloopError as error:
        yield Fault(("reward",), str(error))


def _parse(text: str, scope: TaskScope, kind: Kind) -> Expression:
    expression = parse(text, scope.names, kind=kind)
    for variable in variables(expression):
        if variable.part != "value" and variable.name not in scope.setpoints:
            raise ClearloopError(f"'{variable}': {variable.name} has no setpoint; give it one in [states]")
        if variable.lag is not None and variable.lag > MOST_STEPS_BACK:
            raise ClearloopError(f"'{variable}' looks back too far: at most {MOST_STEPS_BACK} steps")
    return expression
