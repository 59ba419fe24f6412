"""The tables of a task file, key by key: which there are, and what each may hold.

What they mean together (names, formulas, columns) is judged in `task`.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from clearloop.errors import did_you_mean, quoted
from clearloop.expression import is_name

# Actions that take only some values: level k of n is low + k (high − low)/n, k = 0 … n.
#
# What is asked for is limited to [low, high], then rounded to the nearest level; of two that are equally
# near, to the higher one. `to_level` says it for a number, `to_levels` for arrays; the engine
# (`kernels/policies.py`) does the same operations in the same order, so that all three agree to the bit.

MOST_LEVELS = 1_000_000
WHOLE = 1e-9  # what a quotient may differ from a whole number by: 0.3/0.1 is 2.9999999999999996


def whole(distance: float, step: float) -> int | None:
    """How many steps make up a distance; None if it is not a whole number of them."""
    quotient = distance / step
    if not (quotient <= MOST_LEVELS and distance * quotient < math.inf):
        return None
    return round(quotient) if abs(quotient - round(quotient)) <= WHOLE * max(1.0, quotient) else None


def to_level(value: float, low: float, high: float, count: int) -> float:
    """A number from low to high as the nearest level; `count`: n."""
    k = math.floor((value - low) * count / (high - low) + 0.5)
    return min(low + k * (high - low) / count, high)


def to_levels(values: NDArray[Any], limits: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """[…, A] limited and, where `counts` [A] says so (0: any value will do), as levels. `limits`: [A, 2]."""
    low, high = limits.T
    limited = np.clip(values, low, high)
    n = np.maximum(counts, 1)
    k = np.floor((limited - low) * n / (high - low) + 0.5)
    rounded: NDArray[Any] = np.where(counts > 0, np.minimum(low + k * (high - low) / n, high), limited)
    return rounded


def draw_levels(
    limits: NDArray[np.float64], counts: NDArray[np.float64], shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.float64]:
    """[*shape, A] uniform: in the limits, or over the levels."""
    low, high = limits.T
    drawn = rng.uniform(low, high, size=(*shape, len(low)))
    n = np.maximum(counts, 1)
    k = np.minimum(np.floor((drawn - low) * (n + 1) / (high - low)), n)
    chosen: NDArray[np.float64] = np.where(counts > 0, np.minimum(low + k * (high - low) / n, high), drawn)
    return chosen


# No real task comes near these; a hostile one fails at once instead of filling the memory.
MOST_NAMES = 256
LONGEST_FORMULA = 10_000


def expecting(what: str) -> WrapValidator:
    """Says what was expected, in place of whatever pydantic says about the part that failed."""

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise PydanticCustomError("expected", "expected {what}", {"what": what}) from None

    return WrapValidator(validate)


def _ordered(limits: tuple[float, float]) -> tuple[float, float]:
    if not 0 < limits[1] - limits[0] < math.inf:
        raise ValueError
    return limits


def _ordered_or_equal(start: tuple[float, float] | str) -> tuple[float, float] | str:
    if not isinstance(start, str) and not 0 <= start[1] - start[0] < math.inf:
        raise ValueError
    return start


_Finite = Annotated[float, Strict(), Field(allow_inf_nan=False)]
_Text = Annotated[str, Strict(), Field(min_length=1, max_length=200)]
_FormulaText = Annotated[str, Strict(), Field(min_length=1, max_length=LONGEST_FORMULA)]
_Whole = Annotated[int, Strict()]

FiniteNumber = Annotated[_Finite, expecting("a number")]
NotNegative = Annotated[_Finite, Field(ge=0), expecting("a number, not negative")]
Positive = Annotated[_Finite, Field(gt=0), expecting("a number greater than 0")]
Discount = Annotated[_Finite, Field(gt=0, le=1), expecting("a number greater than 0 and at most 1")]
Horizon = Annotated[_Whole, Field(ge=1, le=1_000_000), expecting("a whole number from 1 to 1,000,000")]
History = Annotated[_Whole, Field(ge=1, le=1_000), expecting("a whole number from 1 to 1,000")]
Substeps = Annotated[_Whole, Field(ge=1, le=10_000), expecting("a whole number from 1 to 10,000")]
Flag = Annotated[bool, Strict(), expecting("true or false")]
_Unit = Annotated[str, Strict(), Field(max_length=40), expecting("text of at most 40 characters")]
Text = Annotated[_Text, expecting("text of 1 to 200 characters")]
Formula = Annotated[
    _FormulaText, expecting(f"a formula in quotes, of at most {LONGEST_FORMULA:,} characters")
]
Limits = Annotated[
    tuple[_Finite, _Finite], AfterValidator(_ordered), expecting("two numbers, the smaller first")
]
Start = Annotated[
    tuple[_Finite, _Finite] | Literal["batch"],
    AfterValidator(_ordered_or_equal),
    expecting('two numbers, the smaller first; or only from = "batch"'),
]
Spell = Annotated[
    tuple[Annotated[_Whole, Field(ge=1)], Annotated[_Whole, Field(le=1_000_000)]],
    AfterValidator(_ordered_or_equal),
    expecting("two whole numbers of control intervals, the smaller first"),
]
Setpoint = Annotated[_Finite | _Text, expecting("a number, or the name of a log column")]
Definition = Annotated[_Finite | _FormulaText, expecting("a number, or a formula in quotes")]


class Table(BaseModel):
    """A TOML table that knows its keys, and answers an unknown one with a suggestion."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in value if isinstance(value, Mapping) else ():
            if key not in known:
                context = {"key": quoted(str(key)), "hint": did_you_mean(str(key), known)}
                raise PydanticCustomError("unknown_key", "unknown key {key}{hint}", context)
        return value


class State(Table):
    unit: _Unit = ""
    setpoint: Setpoint | None = None
    formula: Formula | None = None
    """computed from other states and from the past, not read and not predicted"""
    external: Flag = False
    """comes from outside: seen, not predicted"""


class Action(Table):
    unit: _Unit = ""
    limits: Limits
    step: Positive | None = None
    """It takes only values so far apart, counted from the lower limit; none given: any value."""

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        low, high = self.limits
        if self.step is not None and not whole(high - low, self.step):
            message = "step: expected limits that are a whole number of steps apart, at most {most}"
            raise PydanticCustomError("step", message, {"most": f"{MOST_LEVELS:,}"})
        return self

    @property
    def count(self) -> int:
        """Steps from limit to limit; 0: any value will do."""
        return (self.step and whole(self.limits[1] - self.limits[0], self.step)) or 0


class Exploration(Table):
    """How a batch is drawn from the plant: uniform starts; at every step uniform actions, or by a law."""

    size: Annotated[_Whole, Field(ge=1, le=100_000_000), expecting("a whole number of transitions")] = 10_000
    steps: Horizon = 20
    starts: Annotated[dict[str, Start], Field(max_length=MOST_NAMES)] = Field({})
    law: Annotated[dict[str, Formula], Field(max_length=MOST_NAMES)] = Field({})
    """of each action, as in a controller file; it may read signals, too"""
    where: Annotated[dict[str, Definition], Field(max_length=MOST_NAMES)] = Field({})
    """names for parts of the law"""


class Signal(Table):
    """How a setpoint, an external state or a disturbance runs in simulations: one of these."""

    steps: Limits | None = None
    """uniform between the two, and a new value now and then"""
    every: Spell = (100, 100)
    """the least and the largest number of control intervals from one value to the next"""
    noise: Positive | None = None
    """normal, a new value in every control interval; this is its standard deviation"""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.steps is None) == (self.noise is None):
            raise PydanticCustomError("signal_kind", "expected either steps = [low, high], or noise")
        return self


class Plant(Table):
    """The true system: derivatives to integrate, difference equations, or a Gymnasium environment's id."""

    substeps: Substeps = 1
    where: Annotated[dict[str, Definition], Field(max_length=MOST_NAMES)] = Field({})
    derivative: Annotated[dict[str, Formula], Field(max_length=MOST_NAMES)] = Field({})
    next: Annotated[dict[str, Formula], Field(max_length=MOST_NAMES)] = Field({})
    """the next value of a state, from the present ones"""
    observed: Annotated[dict[str, Formula], Field(max_length=MOST_NAMES)] = Field({})
    """what a sensor shows, of states that the task does not have"""
    on_failure: dict[str, FiniteNumber] = Field({})
    gymnasium: Text | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.gymnasium is None and not self.derivative and not self.next:
            raise PydanticCustomError("plant_kind", "expected derivative, next, or gymnasium")
        if self.gymnasium is not None and self != Plant.model_construct(gymnasium=self.gymnasium):
            raise PydanticCustomError("plant_kind", "gymnasium stands alone: remove the other keys")
        return self


# A fault in a task file as one line for a person: where it is, in TOML terms, and what is wrong.

TABLES = ("states", "actions", "reward", "starts", "plant", "exploration", "data", "sampling")


class Fault(NamedTuple):
    where: tuple[str | int, ...]
    what: str


def first_of(faults: Sequence[Fault]) -> str:
    """The first fault, and how many more there are."""
    where, what = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return (f"{toml_path(where)}: {what}" if where else what) + more


def toml_path(where: Sequence[str | int]) -> str:
    """`[reward] cases[1].when` for ("reward", "cases", 1, "when")."""
    table = f"[{where[0]}]" if where[0] in TABLES else str(where[0])
    keys = ""
    for part in where[1:]:
        keys += f"[{part}]" if isinstance(part, int) else f".{part if part.isidentifier() else quoted(part)}"
    return f"{table} {keys.removeprefix('.')}".rstrip()


def faults_of(error: ValidationError) -> list[Fault]:
    return [_fault(detail) for detail in error.errors(include_url=False, include_input=False)]


def _fault(detail: ErrorDetails) -> Fault:
    where = detail["loc"]
    match detail["type"]:
        case "missing" if where[-1] in TABLES:
            return Fault(where[:-1], f"missing table [{where[-1]}]")
        case "missing":
            return Fault(where[:-1], f"missing key '{where[-1]}'")
        case "dict_type" | "model_type":
            return Fault(where, "expected a table")
        case "tuple_type":
            return Fault(where, "expected a list")
        case "too_long":
            return Fault(where, f"expected at most {detail['ctx']['max_length']} entries")
        case "too_short":
            return Fault(where, "expected at least one entry")
        case _:  # our own validators speak for themselves
            return Fault(where, detail["msg"])


# How a log's columns map onto a task: each name's own column, unless [data] says otherwise.

ROLES = ("time", "episode", "reward", "terminal")


class Columns(NamedTuple):
    """The log's own names for what a task needs from it."""

    states: tuple[str, ...]
    actions: tuple[str, ...]
    setpoints: tuple[str, ...]
    """Of the states whose setpoint is logged, in state order."""
    time: str
    episode: str
    reward: str
    terminal: str
    needed: tuple[str, ...]
    """Columns that a log must have; the others are read where they are there."""
    time_unit: float = 1.0
    """Seconds that a one in the time column stands for."""


def map_columns(
    data: Mapping[str, str],
    states: Sequence[str],
    actions: Sequence[str],
    setpoints: Mapping[str, float | str],
    reward: str | None,
    derived: Collection[str] = (),
) -> Columns:
    """`reward`: the column that the reward is learned from, which then must be there.

    What is `derived` need not be there.
    """
    role = {name: data.get(name, name) for name in (*states, *actions, *ROLES)}
    if reward is not None:
        role["reward"] = reward
    logged = tuple(column for column in setpoints.values() if isinstance(column, str))
    read = [name for name in states if name not in derived]
    needed = [*read, *actions, *data] + ["reward"] * (reward is not None)
    return Columns(
        states=tuple(role[name] for name in states),
        actions=tuple(role[name] for name in actions),
        setpoints=logged,
        time=role["time"],
        episode=role["episode"],
        reward=role["reward"],
        terminal=role["terminal"],
        needed=tuple(dict.fromkeys([*(role[name] for name in needed), *logged])),
    )


def data_faults(data: Mapping[str, str], names: Sequence[str], reward: str | None) -> Iterator[Fault]:
    """`names`: of states and actions."""
    known = (*names, *ROLES)
    for key in data:
        if key not in known:
            hint = did_you_mean(key, known) or f"; expected a state, an action, {', '.join(ROLES)}"
            yield Fault(("data",), f"unknown key {quoted(key)}{hint}")
    if reward is not None and data.get("reward", reward) != reward:
        what = f"[reward] column already says {quoted(reward)}; remove one of the two"
        yield Fault(("data", "reward"), what)
    reader: dict[str, str] = {}
    for name in known:
        column = (reward if name == "reward" else None) or data.get(name, name)
        if reader.setdefault(column, name) != name:
            where = ("data", name) if name in data else ("data", reader[column])
            yield Fault(where, f"column {quoted(column)} is read as {reader[column]} and as {name}")


# The [sampling] table: how a log becomes rows that are `dt` apart.

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
"""Of each unit that a numeric time column may have."""


class Sampling(Table):
    time_unit: Annotated[
        Literal["ns", "us", "ms", "s", "min", "h"], expecting(f"one of {', '.join(SECONDS)}, in quotes")
    ] = "s"
    """Of a time column that holds numbers; dates know their own."""
    resample: Annotated[Literal["linear", "none"], expecting('"linear" or "none"')] = "linear"
    """Where rows are not `dt` apart: states by linear interpolation, all else held; or left as they are."""
    gap: Positive | None = None
    """Seconds without a row after which a new episode begins; five `dt` if not given."""

    @property
    def seconds(self) -> float:
        """In one unit of the time column."""
        return SECONDS[self.time_unit]


# The names of a task: which there may be, and what formulas may refer to.

MOST_STEPS_BACK = 1_000  # of any formula
KEYS = ("time", "episode", "reward", "terminal", "from")  # they mean something else in [data] and [starts]


class TaskScope(NamedTuple):
    states: tuple[str, ...]
    actions: tuple[str, ...]
    setpoints: Mapping[str, float | str]
    """Of the states that have one: a number, or a log column."""
    limits: Mapping[str, tuple[float, float]]
    """Of the actions."""
    dt: float
    """Seconds of a step."""
    history: int
    """Observations that models and controllers see, the present one included."""
    derived: tuple[str, ...] = ()
    """States that are computed from others."""
    external: tuple[str, ...] = ()
    """States that come from outside: neither predicted nor computed."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.states + self.actions


def name_faults(where: tuple[str, ...], names: Collection[str], taken: Collection[str]) -> Iterator[Fault]:
    """Of new names in a table."""
    for name in names:
        if not is_name(name) or name in KEYS:
            expected = "expected letters, digits and _, and no reserved word"
            yield Fault(where, f"{quoted(name)} cannot be a name: {expected}")
        elif name in taken:
            yield Fault(where, f"the name {quoted(name)} is taken already")


def state_faults(where: tuple[str, ...], names: Collection[str], states: Collection[str]) -> Iterator[Fault]:
    """Of keys that must be states."""
    for name in names:
        if name not in states:
            yield Fault(where, f"unknown state {quoted(name)}{did_you_mean(name, states)}")
