"""Ready terms of a reward: what engineers want of a loop, each a cost that is never negative.

A term writes its cost as a formula of the language. What it costs in a step is `weight` times that.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator
from pydantic_core import PydanticCustomError

from clearloop.errors import did_you_mean, quoted
from clearloop.expression import Number as Constant
from clearloop.task.scope import Scope
from clearloop.task.tables import Formula, NotNegative, Number, Positive, Table, Text, expecting

Shape = Annotated[Literal["absolute", "square"], expecting('"absolute" or "square"')]
Complaint = tuple[str, str]
"""Of a key, what is wrong with it."""


class Term(Table):
    """The key that says what a term is about comes first, and gives it its kind."""

    weight: NotNegative = 1.0

    kind: ClassVar[str]

    @abstractmethod
    def cost(self, scope: Scope) -> str:
        """A formula: 0 where all is well, never negative."""

    @abstractmethod
    def complaints(self, scope: Scope) -> Iterator[Complaint]:
        """What the task does not have; formulas are judged elsewhere."""


class Track(Term):
    """Distance from the setpoint, as far as it exceeds what is tolerated."""

    kind: ClassVar[str] = "track"
    track: Text
    tolerance: NotNegative = 0.0
    scale: Positive = 1.0
    """the distance that counts 1"""
    shape: Shape = "absolute"

    def cost(self, scope: Scope) -> str:  # noqa: ARG002
        if not self.tolerance:
            return _shaped(f"{self.track}.error", self.scale, self.shape)
        return _shaped(f"max(abs({self.track}.error) - {_text(self.tolerance)}, 0)", self.scale, self.shape)

    def complaints(self, scope: Scope) -> Iterator[Complaint]:
        yield from _aimless("track", self.track, scope)


class Settle(Term):
    """1 in every step in which a state is not where it should be, or not yet at rest: the time to settle."""

    kind: ClassVar[str] = "settle"
    settle: Text
    within: NotNegative
    """distance from the setpoint"""
    slower_than: NotNegative | None = None
    """in its unit per second"""

    def cost(self, scope: Scope) -> str:
        away = f"abs({self.settle}.error) > {_text(self.within)}"
        if self.slower_than is None:
            return f"if({away}, 1, 0)"
        moved = f"abs({self.settle} - {self.settle}[t]) > {_text(self.slower_than * scope.dt)}"
        return f"if({away} or {moved}, 1, 0)"

    def complaints(self, scope: Scope) -> Iterator[Complaint]:
        yield from _aimless("settle", self.settle, scope)


class Limit(Term):
    """How far a state is outside of what it should stay in."""

    kind: ClassVar[str] = "limit"
    limit: Text
    min: Number | None = None
    max: Number | None = None
    scale: Positive = 1.0
    """the distance that counts 1"""
    shape: Shape = "absolute"

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.min is None and self.max is None:
            raise PydanticCustomError("limit", "expected min, max or both")
        if self.min is not None and self.max is not None and not self.min <= self.max:
            raise PydanticCustomError("limit", "expected min not greater than max")
        return self

    def cost(self, scope: Scope) -> str:  # noqa: ARG002
        below = f"{_text(self.min)} - {self.limit}" if self.min is not None else ""
        above = f"{self.limit} - {_text(self.max)}" if self.max is not None else ""
        distance = f"max({below}, {above})" if below and above else below or above
        return _shaped(f"max({distance}, 0)", self.scale, self.shape)

    def complaints(self, scope: Scope) -> Iterator[Complaint]:
        yield from _unknown("limit", self.limit, "state", scope.states)


class When(Term):
    """1 in every step in which a condition holds."""

    kind: ClassVar[str] = "when"
    when: Formula

    def cost(self, scope: Scope) -> str:  # noqa: ARG002
        return f"if({self.when}, 1, 0)"

    def complaints(self, scope: Scope) -> Iterator[Complaint]:  # noqa: ARG002
        return iter(())


class Effort(Term):
    """Distance of an action from where it costs nothing, as a share of its range."""

    kind: ClassVar[str] = "effort"
    effort: Text
    around: Number | None = None
    """none given: 0, or the limit that is nearest to it"""
    shape: Shape = "absolute"

    def cost(self, scope: Scope) -> str:
        low, high = scope.limits[self.effort]
        rest = min(max(0.0, low), high) if self.around is None else self.around
        return _shaped(f"({self.effort} - {_text(rest)})", high - low, self.shape)

    def complaints(self, scope: Scope) -> Iterator[Complaint]:
        yield from _unknown("effort", self.effort, "action", scope.actions)
        low, high = scope.limits.get(self.effort, (-float("inf"), float("inf")))
        if self.around is not None and not low <= self.around <= high:
            yield "around", f"expected a number within the limits {low:g} … {high:g}"


class Rate(Term):
    """Change of an action since the last step, as a share of its range."""

    kind: ClassVar[str] = "rate"
    rate: Text
    shape: Shape = "absolute"

    def cost(self, scope: Scope) -> str:
        low, high = scope.limits[self.rate]
        return _shaped(f"({self.rate} - {self.rate}[t-1])", high - low, self.shape)

    def complaints(self, scope: Scope) -> Iterator[Complaint]:
        yield from _unknown("rate", self.rate, "action", scope.actions)
        if scope.history < 2:
            yield (
                "rate",
                "compares with the last action, which controllers must see, too: set history = 2",
            )


KINDS: dict[str, type[Term]] = {kind.kind: kind for kind in (Track, Settle, Limit, When, Effort, Rate)}


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


AnyTerm = Annotated[SerializeAsAny[Term], BeforeValidator(_of_its_kind)]
Terms = Annotated[tuple[AnyTerm, ...], Field(max_length=64)]


def _aimless(key: str, state: str, scope: Scope) -> Iterator[Complaint]:
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
