"""The [reward] table, and the one expression that it becomes.

Cases become nested `if`, of which the first that holds counts; terms become minus a sum of costs.
"""

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

# Terms: what engineers want of a closed loop, each as a cost that is never negative.
#
# A term writes its cost as a formula of the language. A step costs `weight` times its value.

_Shape = Annotated[Literal["absolute", "square"], expecting('"absolute" or "square"')]
Complaint = tuple[str, str]
"""A key of a term, and what is wrong with it."""


class RewardTerm(Table):
    """One entry of `terms`. The key that names its state, action or condition gives the term its kind."""

    weight: NotNegative = 1.0

    kind: ClassVar[str]

    @abstractmethod
    def cost(self, scope: TaskScope) -> str:
        """Write the cost of a step as a formula: 0 where all is well, never negative."""

    @abstractmethod
    def complaints(self, scope: TaskScope) -> Iterator[Complaint]:
        """Yield what is wrong with the term in this task, apart from the syntax of its formulas."""


class TrackTerm(RewardTerm):
    """A cost for the distance of a state from its setpoint, beyond the tolerance."""

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
    """A cost of 1 for every step until a state has settled near its setpoint: the settling time."""

    kind: ClassVar[str] = "settle"
    settle: Text
    within: NotNegative
    """the distance from the setpoint within which the state has settled"""
    slower_than: NotNegative | None = None
    """the speed, in the state's unit per second, below which it has settled; None: any speed"""

    def cost(self, scope: TaskScope) -> str:
        away = f"abs({self.settle}.error) > {_text(self.within)}"
        if self.slower_than is None:
            return f"if({away}, 1, 0)"
        moved = f"abs({self.settle} - {self.settle}[t]) > {_text(self.slower_than * scope.dt)}"
        return f"if({away} or {moved}, 1, 0)"

    def complaints(self, scope: TaskScope) -> Iterator[Complaint]:
        yield from _aimless("settle", self.settle, scope)


class Limit(RewardTerm):
    """A cost for the distance of a state outside the limits that it should stay in."""

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
    """A cost of 1 for every step in which a condition holds."""

    kind: ClassVar[str] = "when"
    when: Formula

    def cost(self, scope: TaskScope) -> str:  # noqa: ARG002
        return f"if({self.when}, 1, 0)"

    def complaints(self, scope: TaskScope) -> Iterator[Complaint]:  # noqa: ARG002
        return iter(())


class Effort(RewardTerm):
    """A cost for the distance of an action from its resting value, as a share of its range."""

    kind: ClassVar[str] = "effort"
    effort: Text
    around: FiniteNumber | None = None
    """the resting value; None: 0, or the limit that is nearest to 0"""
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
    """A cost for the change of an action since the last step, as a share of its range."""

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
                "this term compares with the last action, which controllers must see too: set history = 2",
            )


KINDS: dict[str, type[RewardTerm]] = {
    kind.kind: kind for kind in (TrackTerm, Settle, Limit, When, Effort, Rate)
}


def _of_its_kind(value: Any) -> Any:
    """Validate a term as the kind that one of its keys names."""
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
    """Write |x| or x² as a formula, where x is the deviation divided by the scale."""
    if shape == "square":  # a product: powers are slow
        part = f"({deviation}/{_text(scale)})"
        return f"{part}*{part}"
    size = deviation if deviation.startswith("max(") else f"abs({deviation})"
    return f"{size}/{_text(scale)}"


# The table itself.

MOST_CASES = 64  # no real task comes near


class Case(Table):
    """One entry of `cases`: the reward of a step in which a condition holds."""

    when: Formula
    value: tables.FiniteNumber
    failure: Flag = False
    success: Flag = False
    """whether the episode ends well after such a step, and pays nothing more"""


class Reward(Table):
    """The [reward] table: cases, terms, an expression, or a log column that the reward is learned from."""

    cases: Annotated[tuple[Case, ...], Field(max_length=MOST_CASES)] = ()
    otherwise: tables.FiniteNumber | None = None
    terms: _Terms = ()
    expression: Formula | None = None
    column: Text | None = None
    failure: Formula | None = None
    """the condition of failure, beside terms or an expression; where it holds, `failure_value` counts"""
    failure_value: tables.FiniteNumber | None = None
    success: Formula | None = None
    """the condition of success, beside terms or an expression; where it holds, the episode ends well"""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [bool(self.cases), bool(self.terms), self.expression is not None, self.column is not None]
        if sum(kinds) != 1 or bool(self.cases) != (self.otherwise is not None):
            message = "expected exactly one of: cases with otherwise, terms, expression, column"
            raise PydanticCustomError("reward_kind", message)
        for end in ("failure", "success"):
            if sum(getattr(case, end) for case in self.cases) > 1:
                message = "expected one case with {end} = true; join the conditions with 'or'"
                raise PydanticCustomError("ends", message, {"end": end})
            if getattr(self, end) is not None and not (self.terms or self.expression):
                message = (
                    "{end} is allowed only with terms or an expression; in cases, give one case {end} = true"
                )
                raise PydanticCustomError("ends", message, {"end": end})
        if any(case.failure and case.success for case in self.cases):
            raise PydanticCustomError("ends", "a case is either a failure or a success, not both")
        if (self.failure is None) != (self.failure_value is None):
            missing = "failure" if self.failure is None else "failure_value"
            raise PydanticCustomError("failure", "missing key '{key}'", {"key": missing})
        return self


def reward_formula(reward: Reward, scope: TaskScope) -> Expression | None:
    """Return the reward as one expression; None if it is learned from a column."""
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
    """Return minus the sum of weights times costs."""
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


def lower_end(reward: Reward, scope: TaskScope, end: Literal["failure", "success"]) -> Expression | None:
    """Return the condition under which an episode ends by failure or by success; None without such an end.

    A case counts where it holds and none before it; beside terms or an expression, failure goes first.
    """
    given = reward.failure if end == "failure" else reward.success
    ends = None if given is None else _parse(given, scope, "condition")
    if ends is not None and end == "success" and reward.failure is not None:
        ends = _and_not(_parse(reward.failure, scope, "condition"), ends)
    for case in reversed(reward.cases):
        condition = _parse(case.when, scope, "condition")
        if getattr(case, end):
            ends = condition
        elif ends is not None:
            ends = _and_not(condition, ends)
    return ends


def _and_not(first: Expression, then: Expression) -> Expression:
    return Call(OPERATIONS["and"], (Call(OPERATIONS["not"], (first,)), then))


def mark_ends(failure: Expression | None, success: Expression | None) -> Expression | None:
    """Return the number that tells how a step ends an episode: 1 failed, -1 succeeded, 0 it goes on."""
    if success is None:
        return failure
    good = Call(OPERATIONS["if"], (success, Constant(-1.0), Constant(0.0)))
    return good if failure is None else Call(OPERATIONS["if"], (failure, Constant(1.0), good))


def reward_faults(reward: Reward, scope: TaskScope) -> Iterator[Fault]:
    """Check the formulas and the terms of a reward, each by itself and then all together."""
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
    if reward.success is not None:
        texts.append((("success",), reward.success, "condition"))
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
    """Check the whole expression, which may be too deep or too large though its parts are not."""
    try:
        reward_formula(reward, scope)
        mark_ends(lower_end(reward, scope, "failure"), lower_end(reward, scope, "success"))
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
