"""The tables of a task file, key by key: which keys there are, and what each may hold.

`task` checks what the tables mean together: names, formulas, columns.
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

# Levels: some actions take only the values low + k (high − low)/n, k = 0 … n.
#
# An action is first limited to [low, high], then rounded to the nearest level; of two levels that are equally
# near, to the higher one. `to_level` does this for a number, `to_levels` for arrays; the engine
# (`kernels/policies.py`) does the same operations in the same order, so that all three agree to the bit.

MOST_LEVELS = 1_000_000
WHOLE = 1e-9  # how far a quotient may be from a whole number: 0.3/0.1 is 2.9999999999999996


def whole(distance: float, step: float) -> int | None:
    """Return how many steps make up a distance; None if it is not a whole number of them."""
    quotient = distance / step
    if not (quotient <= MOST_LEVELS and distance * quotient < math.inf):
        return None
    return round(quotient) if abs(quotient - round(quotient)) <= WHOLE * max(1.0, quotient) else None


def to_level(value: float, low: float, high: float, count: int) -> float:
    """Round a number between low and high to the nearest of the levels 0 … count."""
    k = math.floor((value - low) * count / (high - low) + 0.5)
    return min(low + k * (high - low) / count, high)


def to_levels(values: NDArray[Any], limits: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """Limit actions and round them to their levels.

    Args:
        values: Actions [..., A].
        limits: The lowest and the highest value of each action [A, 2].
        counts: Steps from limit to limit of each action [A]; 0 if it may take any value.

    Returns:
        The actions that are applied [..., A].
    """
    low, high = limits.T
    limited = np.clip(values, low, high)
    n = np.maximum(counts, 1)
    k = np.floor((limited - low) * n / (high - low) + 0.5)
    rounded: NDArray[Any] = np.where(counts > 0, np.minimum(low + k * (high - low) / n, high), limited)
    return rounded


JUMP = 1e13
"""The change in a step of an action whose rate is not limited: more than any change can be."""


def largest_change(rate: float, dt: float, step: float | None) -> float:
    """Return the most that an action may change in one step, a whole number of its own steps if it has some.

    Args:
        rate: The most that it may change in a second.
        dt: Seconds of a step.
        step: The distance between the values that it may take; None: any value.
    """
    most = rate * dt
    return most if step is None else math.floor(most / step + WHOLE) * step


def draw_levels(
    limits: NDArray[np.float64], counts: NDArray[np.float64], shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw actions [*shape, A] uniformly between their limits, or over their levels.

    Args:
        limits: The lowest and the highest value of each action [A, 2].
        counts: Steps from limit to limit of each action [A]; 0 if it may take any value.
        shape: How many actions to draw.
        rng: The source of randomness.
    """
    low, high = limits.T
    drawn = rng.uniform(low, high, size=(*shape, len(low)))
    n = np.maximum(counts, 1)
    k = np.minimum(np.floor((drawn - low) * (n + 1) / (high - low)), n)
    chosen: NDArray[np.float64] = np.where(counts > 0, np.minimum(low + k * (high - low) / n, high), drawn)
    return chosen


# The types of the values. No real task comes near these limits; a hostile one is refused at once.
MOST_NAMES = 256
LONGEST_FORMULA = 10_000


def expecting(what: str) -> WrapValidator:
    """Make a validator whose error says what was expected, in place of pydantic's own message."""

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
Memory = Annotated[
    tuple[Literal["integral", "filter", "setpoint"], ...],
    expecting('a list of "integral", "filter" and "setpoint"'),
]
Substeps = Annotated[_Whole, Field(ge=1, le=10_000), expecting("a whole number from 1 to 10,000")]
Flag = Annotated[bool, Strict(), expecting("true or false")]
_Unit = Annotated[str, Strict(), Field(max_length=40), expecting("text of at most 40 characters")]
Text = Annotated[_Text, expecting("text of 1 to 200 characters")]
Place = Annotated[str, Strict(), Field(min_length=1, max_length=4096), expecting("the path of a file")]
Formula = Annotated[
    _FormulaText, expecting(f"a formula in quotes, of at most {LONGEST_FORMULA:,} characters")
]
Limits = Annotated[
    tuple[_Finite, _Finite], AfterValidator(_ordered), expecting("two numbers, the smaller first")
]
Start = Annotated[
    tuple[_Finite, _Finite] | Literal["batch", "episodes"],
    AfterValidator(_ordered_or_equal),
    expecting('two numbers, the smaller first; or only from = "batch" or from = "episodes"'),
]
Spell = Annotated[
    tuple[Annotated[_Whole, Field(ge=1)], Annotated[_Whole, Field(le=1_000_000)]],
    AfterValidator(_ordered_or_equal),
    expecting("two whole numbers of control intervals, the smaller first"),
]
Setpoint = Annotated[_Finite | _Text, expecting("a number, or the name of a log column")]
Definition = Annotated[_Finite | _FormulaText, expecting("a number, or a formula in quotes")]
Package = Annotated[Literal["industrial-benchmark"], expecting('"industrial-benchmark"')]
Turns = Annotated[tuple[_Finite, ...], Field(min_length=1, max_length=1_000), expecting("a list of numbers")]


class Table(BaseModel):
    """A TOML table that knows its keys, and suggests one for a key that it does not know."""

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


class Check(Table):
    """What a guard takes for a valid value of a measured state."""

    range: Limits | None = None
    """the least and the largest value that the sensor gives"""
    gradient: Positive | None = None
    """the most that the value changes in a second"""
    frozen: Positive | None = None
    """the most seconds in which the value does not change at all"""

    @property
    def empty(self) -> bool:
        """True if it asks for nothing."""
        return self.range is None and self.gradient is None and self.frozen is None


class State(Check):
    """A state of the plant, as the task and the log know it."""

    unit: _Unit = ""
    setpoint: Setpoint | None = None
    formula: Formula | None = None
    """computes the state from other states and from the past; then it is neither read nor predicted"""
    external: Flag = False
    """true if the state comes from outside: controllers see it, models do not predict it"""

    @property
    def check(self) -> Check:
        """What a guard takes for a valid value."""
        return Check(range=self.range, gradient=self.gradient, frozen=self.frozen)

    @model_validator(mode="after")
    def _only_sensors_are_checked(self) -> Self:
        if self.formula is not None and not self.check.empty:
            message = "a state with a formula is computed, not measured: give range, gradient and frozen "
            raise PydanticCustomError("check", message + "to the states that it is computed from")
        return self


class Action(Table):
    """An action: what a controller sets."""

    unit: _Unit = ""
    limits: Limits
    step: Positive | None = None
    """the distance between the values that the action may take, from the lower limit on; None: any value"""
    rate: Positive | None = None
    """the most that it may change in a second; None: it may jump"""
    start: FiniteNumber | None = None
    """its value before the start of an episode; None: 0"""
    safe: FiniteNumber | None = None
    """what a guard gives when the inputs have been invalid for too long; None: the action at rest"""

    @model_validator(mode="after")
    def _values_within_limits(self) -> Self:
        low, high = self.limits
        for key, value in (("safe", self.safe), ("start", self.start)):
            if value is not None and not low <= value <= high:
                message = "{key}: expected a value within the limits, {low} … {high}"
                context = {"key": key, "low": f"{low:g}", "high": f"{high:g}"}
                raise PydanticCustomError("within", message, context)
        return self

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        low, high = self.limits
        if self.step is not None and not whole(high - low, self.step):
            message = "step: expected limits that are a whole number of steps apart, at most {most}"
            raise PydanticCustomError("step", message, {"most": f"{MOST_LEVELS:,}"})
        return self

    @model_validator(mode="after")
    def _starts_on_a_step(self) -> Self:
        if self.step and self.start is not None and whole(self.start - self.limits[0], self.step) is None:
            raise PydanticCustomError("start", "start: expected one of the values that the steps allow")
        return self

    @property
    def count(self) -> int:
        """The number of steps from limit to limit; 0 if the action may take any value."""
        return (self.step and whole(self.limits[1] - self.limits[0], self.step)) or 0


class Exploration(Table):
    """The [exploration] table: a batch is drawn from the plant with random actions, or by a law."""

    size: Annotated[_Whole, Field(ge=1, le=100_000_000), expecting("a whole number of transitions")] = 10_000
    steps: Horizon = 20
    starts: Annotated[dict[str, Start], Field(max_length=MOST_NAMES)] = Field({})
    law: Annotated[dict[str, Formula], Field(max_length=MOST_NAMES)] = Field({})
    """the formula of each action, as in a controller file; it may read signals, too"""
    where: Annotated[dict[str, Definition], Field(max_length=MOST_NAMES)] = Field({})
    """names for parts of the law"""


class Signal(Table):
    """The course of a setpoint, an external state or a disturbance in simulations: steps, or noise."""

    steps: Limits | None = None
    """the range of a piecewise constant signal, whose values are uniform between the two"""
    every: Spell = (100, 100)
    """the least and the largest number of control intervals between two steps"""
    noise: Positive | None = None
    """the standard deviation of normal noise, with a new value in every control interval"""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.steps is None) == (self.noise is None):
            raise PydanticCustomError("signal_kind", "expected either steps = [low, high], or noise")
        return self


class Plant(Table):
    """The true system: equations, a Gymnasium environment's id, an FMU's file, or a package's name."""

    substeps: Substeps = 1
    where: Annotated[dict[str, Definition], Field(max_length=MOST_NAMES)] = Field({})
    derivative: Annotated[dict[str, Formula], Field(max_length=MOST_NAMES)] = Field({})
    next: Annotated[dict[str, Formula], Field(max_length=MOST_NAMES)] = Field({})
    """the next value of a state, from the present ones"""
    observed: Annotated[dict[str, Formula], Field(max_length=MOST_NAMES)] = Field({})
    """what a sensor shows of states that the task does not have"""
    on_failure: dict[str, FiniteNumber] = Field({})
    gymnasium: Text | None = None
    fmu: Place | None = None
    """the file of an FMU; relative to the task file"""
    variables: Annotated[dict[str, Text], Field(max_length=2 * MOST_NAMES)] = Field({})
    """the FMU's variables for states, actions, and starts such as `level.start`, where the names differ"""
    package: Package | None = None
    """a plant of a Python package, which runs in an interpreter of its own; a task cannot name a program"""
    settings: Annotated[dict[str, Turns], Field(max_length=MOST_NAMES)] = Field({})
    """what the package is begun with: start number n takes the values in turn"""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.variables and self.fmu is None:
            raise PydanticCustomError("plant_kind", "variables name those of an FMU: give fmu, too")
        if self.settings and self.package is None:
            raise PydanticCustomError("plant_kind", "settings are those of a package: give package, too")
        for kind, more in (("fmu", "variables"), ("package", "settings"), ("gymnasium", "")):
            kept = {key: getattr(self, key) for key in (kind, more) if key}
            if kept[kind] is not None:
                if self != Plant.model_construct(**kept):
                    context = {"kind": kind, "more": more and f" but {more}"}
                    message = "{kind} allows no other keys{more}: remove them"
                    raise PydanticCustomError("plant_kind", message, context)
                return self
        if not self.derivative and not self.next:
            raise PydanticCustomError("plant_kind", "expected derivative, next, gymnasium, fmu, or package")
        return self

    @property
    def foreign(self) -> bool:
        """True if the plant is a program of others, which runs one episode after the other."""
        return self.gymnasium is not None or self.apart

    @property
    def apart(self) -> bool:
        """True if the plant runs in a process of its own."""
        return self.fmu is not None or self.package is not None


# Faults in a task file, each as one line for a person: where it is, in TOML terms, and what is wrong.

TABLES = ("states", "actions", "reward", "starts", "plant", "exploration", "data", "sampling")


class Fault(NamedTuple):
    """Something that is wrong in a task file."""

    where: tuple[str | int, ...]
    """the keys and indices that lead to it"""
    what: str
    """what is wrong, and what was expected"""


def first_of(faults: Sequence[Fault]) -> str:
    """Write the first fault in one line, with the number of the others."""
    where, what = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return (f"{toml_path(where)}: {what}" if where else what) + more


def toml_path(where: Sequence[str | int]) -> str:
    """Write where a key stands: `[reward] cases[1].when` for ("reward", "cases", 1, "when")."""
    table = f"[{where[0]}]" if where[0] in TABLES else str(where[0])
    keys = ""
    for part in where[1:]:
        keys += f"[{part}]" if isinstance(part, int) else f".{part if part.isidentifier() else quoted(part)}"
    return f"{table} {keys.removeprefix('.')}".rstrip()


def faults_of(error: ValidationError) -> list[Fault]:
    """Translate pydantic's errors into faults."""
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


# The [data] table: a state or an action is read from the column of its name, unless [data] names another.

ROLES = ("time", "episode", "reward", "terminal")


class Columns(NamedTuple):
    """The names of the log columns that a task reads."""

    states: tuple[str, ...]
    actions: tuple[str, ...]
    setpoints: tuple[str, ...]
    """The setpoints of the states whose setpoint is logged, in state order."""
    time: str
    episode: str
    reward: str
    terminal: str
    needed: tuple[str, ...]
    """The columns that a log must have; the others are read if the log has them."""
    time_unit: float = 1.0
    """Seconds in one unit of the time column."""
    ends: str = "failing"
    """What a terminal row is taken for: where a task knows success, too, only an end."""


def map_columns(
    data: Mapping[str, str],
    states: Sequence[str],
    actions: Sequence[str],
    setpoints: Mapping[str, float | str],
    reward: str | None,
    derived: Collection[str] = (),
) -> Columns:
    """Find the log column of everything that a task reads.

    Args:
        data: The [data] table: a column for each name whose column is called otherwise.
        states: The names of the states.
        actions: The names of the actions.
        setpoints: The setpoint of each state that has one: a number, or a column.
        reward: The column that the reward is learned from; None if the task computes the reward.
        derived: States that are computed from others, which a log need not have.
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
    """Check the [data] table against the names of states and actions, and the reward's column."""
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
"""The seconds in each unit that a numeric time column may have."""


class Sampling(Table):
    """The rule by which `data/resampling.py` puts the rows of a log on a grid."""

    time_unit: Annotated[
        Literal["ns", "us", "ms", "s", "min", "h"], expecting(f"one of {', '.join(SECONDS)}, in quotes")
    ] = "s"
    """the unit of a time column that holds numbers; dates need none"""
    resample: Annotated[Literal["linear", "none"], expecting('"linear" or "none"')] = "linear"
    """where rows are not `dt` apart: interpolate states linearly and hold the rest, or leave the rows"""
    gap: Positive | None = None
    """seconds without a row after which a new episode begins; five `dt` if not given"""

    @property
    def seconds(self) -> float:
        """The seconds in one unit of the time column."""
        return SECONDS[self.time_unit]


class Robust(Table):
    """What a controller must bear to be fit for the real plant; a number of 0 asks for nothing.

    The defaults are what industry accepts: a gain margin of 2, 30° to 60° of phase, Ms of 1.4 to 2.
    """

    late: Annotated[int, Strict(), Field(ge=0, le=20), expecting("a whole number of steps from 0 to 20")] = 1
    """steps that an action may come late"""
    gain: Annotated[_Finite, Field(ge=0, lt=1), expecting("a share from 0 to less than 1")] = 0.2
    """share that the gain of an actuator may be off"""
    noise: Annotated[_Finite, Field(ge=0, le=1), expecting("a share from 0 to 1")] = 0.01
    """sensor noise, as a share of each state's spread in the log"""
    phase: Annotated[_Finite, Field(ge=0, lt=180), expecting("an angle from 0 to less than 180 degrees")] = (
        30.0
    )
    """least phase margin, in degrees"""
    gain_margin: Annotated[_Finite, Field(ge=0), expecting("a factor, not negative")] = 2.0
    """least gain margin, upwards"""
    delay: Annotated[_Finite, Field(ge=0, le=20), expecting("a number of steps from 0 to 20")] = 1.5
    """least delay margin, in steps"""
    ms: Annotated[_Finite, Field(ge=0), expecting("a number, not negative")] = 2.0
    """largest sensitivity Ms that is accepted"""

    @property
    def asks_for_margins(self) -> bool:
        """Tell whether any margin is asked for."""
        return any((self.phase, self.gain_margin, self.delay, self.ms))


# Names: what may be one, and which of them formulas may refer to.

MOST_STEPS_BACK = 1_000  # of any formula
KEYS = ("time", "episode", "reward", "terminal", "from")  # they mean something else in [data] and [starts]


class TaskScope(NamedTuple):
    """The names that the formulas of a task may refer to, and what a formula needs to know of them."""

    states: tuple[str, ...]
    actions: tuple[str, ...]
    setpoints: Mapping[str, float | str]
    """The setpoint of each state that has one: a number, or a log column."""
    limits: Mapping[str, tuple[float, float]]
    """The limits of each action."""
    dt: float
    """Seconds of a control interval."""
    history: int
    """Observations that models and controllers see, the present one included."""
    derived: tuple[str, ...] = ()
    """States that are computed from others."""
    external: tuple[str, ...] = ()
    """States that come from outside and are neither predicted nor computed."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.states + self.actions


def name_faults(where: tuple[str, ...], names: Collection[str], taken: Collection[str]) -> Iterator[Fault]:
    """Check the names that a table introduces against the language's rules and those `taken` already."""
    for name in names:
        if not is_name(name) or name in KEYS:
            expected = "expected letters, digits and _, and no reserved word"
            yield Fault(where, f"{quoted(name)} cannot be a name: {expected}")
        elif name in taken:
            yield Fault(where, f"the name {quoted(name)} is taken already")


def rate_faults(actions: Mapping[str, Action], dt: float) -> Iterator[Fault]:
    """Check that actions that take only some values may change by one of their steps at a time."""
    for name, action in actions.items():
        if action.rate is not None and action.step and not largest_change(action.rate, dt, action.step):
            what = f"{action.rate:g} a second is less than one step of {action.step:g} in {dt:g} s"
            yield Fault(("actions", name, "rate"), what)


def state_faults(where: tuple[str, ...], names: Collection[str], states: Collection[str]) -> Iterator[Fault]:
    """Check that the keys of a table are names of states."""
    for name in names:
        if name not in states:
            yield Fault(where, f"unknown state {quoted(name)}{did_you_mean(name, states)}")
