"""The tables of a task file, key by key: which there are, and what each may hold.

What they mean together (names, formulas, columns) is judged in `task`.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

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
from pydantic_core import PydanticCustomError

from clearloop.errors import did_you_mean, quoted
from clearloop.task.levels import MOST_LEVELS, whole

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

Number = Annotated[_Finite, expecting("a number")]
NotNegative = Annotated[_Finite, Field(ge=0), expecting("a number, not negative")]
Positive = Annotated[_Finite, Field(gt=0), expecting("a number greater than 0")]
Discount = Annotated[_Finite, Field(gt=0, le=1), expecting("a number greater than 0 and at most 1")]
Horizon = Annotated[_Whole, Field(ge=1, le=1_000_000), expecting("a whole number from 1 to 1,000,000")]
History = Annotated[_Whole, Field(ge=1, le=1_000), expecting("a whole number from 1 to 1,000")]
Substeps = Annotated[_Whole, Field(ge=1, le=10_000), expecting("a whole number from 1 to 10,000")]
Flag = Annotated[bool, Strict(), expecting("true or false")]
Unit = Annotated[str, Strict(), Field(max_length=40), expecting("text of at most 40 characters")]
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
    unit: Unit = ""
    setpoint: Setpoint | None = None
    formula: Formula | None = None
    """computed from other states and from the past, not read and not predicted"""
    external: Flag = False
    """comes from outside: seen, not predicted"""


class Action(Table):
    unit: Unit = ""
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
    on_failure: dict[str, Number] = Field({})
    gymnasium: Text | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.gymnasium is None and not self.derivative and not self.next:
            raise PydanticCustomError("plant_kind", "expected derivative, next, or gymnasium")
        if self.gymnasium is not None and self != Plant.model_construct(gymnasium=self.gymnasium):
            raise PydanticCustomError("plant_kind", "gymnasium stands alone: remove the other keys")
        return self
