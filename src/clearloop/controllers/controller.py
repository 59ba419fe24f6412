"""What all controllers have in common: the fields of their files, limits, setpoints and memory."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, Strict, model_validator

from clearloop.controllers.memory import Derivation, Memory
from clearloop.controllers.routine import Scope
from clearloop.controllers.views import DrawnRule, FeedbackLoop, Note, Part, Summand
from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import (
    Expression,
    FormulaError,
    Program,
    Variable,
    is_name,
    parse,
    to_text,
    variables,
)
from clearloop.expression.nodes import READ_LIMIT
from clearloop.expression.pieces import Pieces, aligned
from clearloop.programs import Features
from clearloop.task import Task
from clearloop.task.tables import (
    MOST_STEPS_BACK,
    Action,
    Formula,
    Limits,
    Positive,
    Table,
    expecting,
    to_level,
    whole,
)

# The formulas and names that stand in a controller file, and what is said about those that make no sense.

Known = tuple[str, ...] | None
"""The names that there are; None where no task has said so yet."""

# A controller in plain Python reads its formulas at every step.
_parse = lru_cache(maxsize=4096)(parse)


def read_formula(text: str, place: str = "", known: Known = None) -> Expression:
    """`place`: where it stands in the file."""
    try:
        return _parse(text, known)
    except FormulaError as error:
        raise ClearloopError(f"{place}: {error}") from error


def read_variable(text: str, place: str = "", known: Known = None) -> Variable:
    """A name, perhaps with a lag, as it stands in gains, premises and inputs."""
    variable = read_formula(text, place, known)
    if not isinstance(variable, Variable):
        raise ClearloopError(f"{place}: expected a name such as theta or theta[t-2], found {quoted(text)}")
    return variable


def check_names(place: str, names: Collection[str], what: str, known: Collection[str]) -> None:
    """Refuse names that a task does not have as `what`."""
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there is {', '.join(known) or 'none'}"
            raise ClearloopError(f"{place}: {quoted(name)} is not {what} of the task{hint}")


def needed_formulas(task: Task, read_names: set[str]) -> dict[str, str]:
    """Of the derived states that are read, and of those that these are derived from; in their order."""
    needed = set(read_names)
    for name in reversed(task.derived):
        if name in needed:
            needed |= {variable.name for variable in variables(task.derived[name])}
    return {name: to_text(formula) for name, formula in task.derived.items() if name in needed}


# What a controller may choose for an action: limits, and for some actions only whole steps between them.


class Range(NamedTuple):
    low: float
    high: float
    step: float | None
    """None: any value will do"""

    @property
    def parts(self) -> int:
        """Steps from limit to limit (`task/tables.py`); 0: any value will do."""
        return (self.step and whole(self.high - self.low, self.step)) or 0

    def limited(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        return to_level(value, self.low, self.high, self.parts) if self.step else value

    def checked(self, name: str) -> "Range":
        """Itself, if it is a whole number of steps."""
        if self.step and not self.parts:
            what = f"expected limits that are a whole number of steps apart, not {self.low:g} … {self.high:g}"
            raise ClearloopError(f"steps.{name}: {what}")
        return self

    def words(self, unit: str) -> str:
        if self.parts == 1:
            return f"{self.low:g} or {self.high:g}{unit}"
        step = f" in steps of {self.step:g}" if self.step else ""
        return f"limited to {self.low:g} … {self.high:g}{unit}{step}"


def common(name: str, limits: tuple[float, float] | None, step: float | None, action: Action) -> Range:
    """What a controller wants to choose of what the plant can do; it may leave that to the plant."""
    low, high = action.limits
    least, most = limits or action.limits
    if not max(low, least) < min(high, most):
        raise ClearloopError(f"limits.{name}: {least:g} … {most:g} is outside the task's {low:g} … {high:g}")
    found = Range(max(low, least), min(high, most), step or action.step).checked(name)
    if action.step:
        for place, distance in (("steps", found.step), ("limits", found.low - low)):
            if distance and not whole(distance, action.step):
                raise ClearloopError(f"{place}.{name}: expected whole steps of the task's {action.step:g}")
    return found


LINE = r"^[^\p{Cc}\p{Zl}\p{Zp}]*$"  # text without control characters, which a terminal would obey

Line = Annotated[
    str,
    Strict(),
    Field(min_length=1, max_length=200, pattern=LINE),
    expecting("one line of text, of 1 to 200 characters"),
]
Unit = Annotated[
    str,
    Strict(),
    Field(max_length=40, pattern=LINE),
    expecting("one line of text, of at most 40 characters"),
]
# As large as what is read may be: no product of the two, and no sum of such products, overflows.
Coefficient = Annotated[
    float,
    Strict(),
    Field(ge=-READ_LIMIT, le=READ_LIMIT, allow_inf_nan=False),
    expecting(f"a number from {-READ_LIMIT:g} to {READ_LIMIT:g}"),
]


class Controller(Table):
    """A controller file. A subclass is a kind of controller; `kinds.py` lists them.

    A kind says what is between observation and action. What the rest of the package asks of a controller is
    a method here, with a default for kinds that have nothing to say: no formula, no terms, no rules. A kind
    whose actions are formulas gets all of it from `FormulaController` in `equation.py`.
    """

    clearloop: Literal[1] = 1
    kind: str
    name: Line | None = None
    task: Line | None = None
    setpoint: dict[str, Coefficient] = Field({})
    follows: dict[str, Line] = Field({})
    """States whose setpoint comes with every observation, and what the log called it."""
    limits: dict[str, Limits] = Field({})
    steps: dict[str, Positive] = Field({})
    """Of actions that take only some values, so far apart, from the lower limit on."""
    derived: dict[str, Formula] = Field({})
    """Formulas of states that it computes itself, where an observation does not show them."""
    units: dict[str, Unit] = Field({})
    dt: Positive | None = None

    chosen_in: ClassVar[str] = "outputs"
    """The table of the file whose keys are actions."""
    readable: ClassVar[bool] = True
    """Whether a person can take it in."""
    policy: ClassVar[int | None] = None
    """How the engine runs it: a constant of `kernels/layout.py`; None: it cannot be one of a population."""
    plans: ClassVar[bool] = False
    """Whether it searches anew at every step, on a model; that is too slow for much of what others do."""
    windowed: ClassVar[bool] = True
    """Whether its action follows from the engine's window alone. If not, `respond` must take arrays, too."""
    exact: ClassVar[bool] = False
    """Whether its arithmetic is given to the last bit: that of formulas is, in printed order."""
    names_mean_errors: ClassVar[bool] = True
    """Whether the bare name of a state with a setpoint means its distance from that."""

    # What it is.

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that it chooses, in the order of its file."""
        return tuple(getattr(self, self.chosen_in))

    @abstractmethod
    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        """Everything that it reads, with the place in the file where it does.

        Args:
            known: The names of a task. Others are refused, with a `ClearloopError` that names the place.
        """

    @property
    @abstractmethod
    def complexity(self) -> int:
        """How hard it is to read: by and large, the numbers, names and operations."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The whole controller in one line, or what it is."""

    @abstractmethod
    def words(self) -> Iterator[str]:
        """The controller explained, line by line."""

    @property
    def history(self) -> int:
        """Observations that the engine must keep for it, the present one included."""
        return 1 + max((variable.lag or 0 for _, variable in self.variables()), default=0)

    # How it acts: in plain Python, in the engine, and in the languages of controllers.

    @abstractmethod
    def respond(self, memory: Memory) -> dict[str, float]:
        """The actions before they are limited."""

    @property
    def depth(self) -> int:
        """Observations that `respond` looks at, the present one included."""
        return self.history

    def reset(self) -> Memory:
        """A memory for a new episode."""
        return Memory(self.depth, self.actions)

    def numbers(self, features: Features) -> list[float]:  # noqa: ARG002
        """What distinguishes it in a population of its kind, in the order of `kernels/policies.py`."""
        return []

    def sizes(self, features: Features) -> list[int]:  # noqa: ARG002
        """Counts that a population of its kind must share."""
        return []

    def programs(self, features: Features) -> list[Program]:  # noqa: ARG002
        """One for each action of `features`, for kinds that the engine runs as programs."""
        return []

    def lower(self, scope: Scope) -> dict[str, Expression]:  # noqa: ARG002
        """The actions before they are limited, as a routine computes them; the scope takes what they need."""
        raise ClearloopError(f"a controller of kind '{self.kind}' cannot be lowered")

    # How it looks.

    def equations(self) -> tuple[Pieces, ...]:
        """One for each action, and what is common to them; none for kinds that no formula can show."""
        return ()

    def latex_rows(self) -> Iterator[str]:
        """The body of its LaTeX export: by default its equations, one below the other."""
        rows = [(left.latex.removesuffix(" ="), right) for left, *right in self.equations()]
        if rows:
            yield aligned((left, " ".join(piece.latex for piece in right)) for left, right in rows)

    def parts(self, action: str) -> Iterator[Part]:  # noqa: ARG002
        """What adds up to an action, or what decides about it, part by part."""
        yield Note("", self.summary)

    def summands(self) -> Iterator[Summand]:
        """What adds up to the actions before they are limited; nothing for kinds that are no sums."""
        return iter(())

    def loops(self) -> Iterator[FeedbackLoop]:
        """Those of a PID."""
        return iter(())

    def rules(self) -> Iterator[DrawnRule]:
        """Those of a rule base."""
        return iter(())

    # How it becomes simpler.

    def with_constants(self, change: Callable[[float], float]) -> Self:
        """The same controller with each constant changed; names, windows and limits stay."""
        table = self.model_dump(mode="python", by_alias=True)
        table[self.chosen_in] = _changed(table[self.chosen_in], change)
        return self.model_validate(table)

    def simpler(self) -> Iterator[tuple[Self, str]]:
        """Controllers with one part less, and in words what was left out."""
        return iter(())

    def _with_output(self, action: str, output: Any) -> Self:
        """With something else for one action."""
        changed = {**getattr(self, self.chosen_in), action: output}
        return self.model_copy(update={self.chosen_in: changed})

    def beside(self, file: str | Path) -> Self:  # noqa: ARG002
        """The same controller, which finds what its file refers to from the folder of that file."""
        return self

    @model_validator(mode="after")
    def _reads_what_is_there(self) -> Self:
        for name in self.actions:
            if not is_name(name):
                raise ClearloopError(f"{self.chosen_in}: {quoted(name)} cannot be the name of an action")
        for name, text in self.derived.items():
            if not is_name(name):
                raise ClearloopError(f"derived: {quoted(name)} cannot be the name of a state")
            read_formula(text, f"derived.{name}")
        for place, variable in self.variables():
            if (variable.lag or 0) > MOST_STEPS_BACK:
                raise ClearloopError(
                    f"{place}: '{variable}' looks back too far: at most {MOST_STEPS_BACK:,} steps"
                )
            if variable.name in self.actions and not variable.lag:
                raise ClearloopError(f"{place}: '{variable}' is being chosen; it can be read from [t-1] on")
        for name in self.steps:
            if name not in self.limits:
                raise ClearloopError(f"steps.{name}: give limits.{name}, too: steps begin at the lower one")
            self.range_of(name).checked(name)
        return self

    def act(
        self, observation: Mapping[str, float], memory: Memory, setpoint: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """One step in plain Python: what the engine does for whole populations."""
        aims = {**self.setpoint, **(setpoint or {})}
        for name in self.follows:
            if name not in aims:
                raise ClearloopError(
                    f"the setpoint of {quoted(name)} is missing: give it with the observation"
                )
        if self.derived:
            memory.derivation = memory.derivation or self._derivation()
            observation = memory.derivation.complete(observation, aims)
        memory.observe(observation, aims)
        action = {name: self._limited(name, value) for name, value in self.respond(memory).items()}
        memory.acted(action)
        return action

    def _derivation(self) -> Derivation:
        return Derivation({name: read_formula(text) for name, text in self.derived.items()}, self.actions)

    def _limited(self, name: str, value: float) -> float:
        return self.range_of(name).limited(value) if name in self.limits else value

    def range_of(self, name: str) -> Range:
        """Of an action with limits."""
        return Range(*self.limits[name], self.steps.get(name))

    def for_task(self, task: Task) -> Self:
        """The same controller with what its file leaves to the task: limits, units, setpoints, dt."""
        self._check(task)
        units = {name: state.unit for name, state in task.states.items() if state.unit}
        units |= {name: action.unit for name, action in task.actions.items() if action.unit}
        aims = {name: aim for name, aim in task.setpoints.items() if isinstance(aim, float)}
        ranges = {
            name: common(name, self.limits.get(name), self.steps.get(name), task.actions[name])
            for name in self.actions
        }
        changes: dict[str, Any] = {
            "task": self.task or task.name,
            "setpoint": {**aims, **self.setpoint},
            "limits": {name: (low, high) for name, (low, high, _) in ranges.items()},
            "steps": {name: step for name, (_, _, step) in ranges.items() if step},
            "units": {**units, **self.units},
            "dt": self.dt or task.dt,
            "derived": needed_formulas(task, self._reads(task)),
            "follows": {
                name: aim
                for name, aim in task.setpoints.items()
                if isinstance(aim, str) and name not in self.setpoint
            },
        }
        return self.model_copy(update=changes)

    def _reads(self, task: Task) -> set[str]:  # noqa: ARG002
        """The names of what it looks at."""
        return {variable.name for _, variable in self.variables()}

    def _check(self, task: Task) -> None:
        names = (*task.state_names, *task.action_names)
        check_names(self.chosen_in, self.actions, "an action", task.action_names)
        check_names("limits", self.limits, "an action", task.action_names)
        check_names("steps", self.steps, "an action", task.action_names)
        check_names("units", self.units, "a state or an action", names)
        check_names("follows", self.follows, "a state with a setpoint", tuple(task.setpoints))
        check_names("setpoint", self.setpoint, "a state with a setpoint", tuple(task.setpoints))
        check_names("derived", self.derived, "a derived state", tuple(task.derived))
        for name, text in self.derived.items():
            if read_formula(text, f"derived.{name}") != task.derived[name]:
                raise ClearloopError(
                    f"derived.{name}: task '{task.name}' derives it otherwise: {to_text(task.derived[name])}"
                )
        for name in task.action_names:
            if name not in self.actions:
                raise ClearloopError(f"{self.chosen_in}: missing action '{name}' of task '{task.name}'")
        for place, variable in self.variables(names):
            if variable.part != "value" and variable.name not in task.setpoints:
                raise ClearloopError(
                    f"{place}: '{variable}': {variable.name} has no setpoint in task '{task.name}'"
                )

    def unit(self, name: str) -> str:
        """` N`, or nothing if the unit is not known."""
        return f" {self.units[name]}" if self.units.get(name) else ""

    def limit_words(self) -> Iterator[str]:
        """Of actions; and what it computes before it chooses them."""
        for name in self.actions:
            if name in self.limits:
                yield f"{name} is {self.range_of(name).words(self.unit(name))}."
        for name, text in self.derived.items():
            yield f"{name} is computed as {text}."

    def setpoint_words(self) -> Iterator[str]:
        """For kinds in which a bare name means value − setpoint."""
        read = {variable.name for _, variable in self.variables() if variable.part != "setpoint"}
        for name, aim in self.setpoint.items():
            if name in read:
                yield f"{name} stands for its distance from the setpoint {aim:g}{self.unit(name)}."
        for name, column in self.follows.items():
            if name in read:
                yield f"{name} stands for its distance from the setpoint, in the log {quoted(column)}."


def _changed(value: Any, change: Callable[[float], float]) -> Any:
    """Of tables and lists: every float; whole numbers count something."""
    if isinstance(value, dict):
        return {key: _changed(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_changed(item, change) for item in value)
    return change(value) if isinstance(value, float) else value
