"""The base class of all controllers: the fields of their files, limits, setpoints and one step of control."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, Strict, model_validator

from clearloop.controllers.memory import Derivation, Memory
from clearloop.controllers.routine import Scope
from clearloop.controllers.views import DrawnRule, FeedbackLoop, Note, Part, Recursion, Summand
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
from clearloop.showing import Shown
from clearloop.task import Task
from clearloop.task.tables import (
    MOST_STEPS_BACK,
    Action,
    Check,
    Formula,
    Limits,
    Positive,
    Table,
    expecting,
    largest_change,
    to_level,
    whole,
)

Known = tuple[str, ...] | None
"""The names that a task defines; None if there is no task yet."""

# A controller in plain Python reads its formulas at every step, so parsed ones are kept.
_parse = lru_cache(maxsize=4096)(parse)


def read_formula(text: str, place: str = "", known: Known = None) -> Expression:
    """Parse a formula of a controller file.

    Args:
        text: The formula.
        place: Where it stands in the file, for the error message.
        known: The names that it may use.

    Returns:
        The formula as a tree.

    Raises:
        ClearloopError: If it is no formula, or uses another name.
    """
    try:
        return _parse(text, known)
    except FormulaError as error:
        raise ClearloopError(f"{place}: {error}") from error


def read_variable(text: str, place: str = "", known: Known = None) -> Variable:
    """Parse a name, perhaps with a lag, as it stands in gains, premises and inputs; see `read_formula`."""
    variable = read_formula(text, place, known)
    if not isinstance(variable, Variable):
        raise ClearloopError(f"{place}: expected a name such as theta or theta[t-2], found {quoted(text)}")
    return variable


def check_names(place: str, names: Collection[str], what: str, known: Collection[str]) -> None:
    """Raise a `ClearloopError` for names that a task does not define.

    Args:
        place: Where the names stand in the file.
        names: The names.
        what: What they should name, such as "an action".
        known: The names that the task defines for it.
    """
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"; the task has {', '.join(known) or 'none'}"
            raise ClearloopError(f"{place}: {quoted(name)} is not {what} of the task{hint}")


def needed_formulas(task: Task, read_names: set[str]) -> dict[str, str]:
    """Return the formulas of the derived states that are read, directly or by other derived states."""
    needed = set(read_names)
    for name in reversed(task.derived):
        if name in needed:
            needed |= {variable.name for variable in variables(task.derived[name])}
    return {name: to_text(formula) for name, formula in task.derived.items() if name in needed}


class Range(NamedTuple):
    """The values that a controller may choose for an action.

    Attributes:
        low: The lower limit.
        high: The upper limit.
        step: The distance between neighbouring values; None: every value between the limits is allowed.
    """

    low: float
    high: float
    step: float | None

    @property
    def parts(self) -> int:
        """The number of steps from limit to limit (`task/tables.py`); 0: every value is allowed."""
        return (self.step and whole(self.high - self.low, self.step)) or 0

    def limited(self, value: float) -> float:
        """Return the allowed value that is nearest to `value`."""
        value = min(max(value, self.low), self.high)
        return to_level(value, self.low, self.high, self.parts) if self.step else value

    def checked(self, name: str) -> "Range":
        """Return this range, or raise a `ClearloopError` if it is not a whole number of steps wide."""
        if self.step and not self.parts:
            what = f"expected limits that are a whole number of steps apart, not {self.low:g} … {self.high:g}"
            raise ClearloopError(f"steps.{name}: {what}")
        return self

    def words(self, unit: str) -> str:
        """Return the range in words; `unit` begins with a space."""
        if self.parts == 1:
            return f"{self.low:g} or {self.high:g}{unit}"
        step = f" in steps of {self.step:g}" if self.step else ""
        return f"limited to {self.low:g} … {self.high:g}{unit}{step}"


def common(name: str, limits: tuple[float, float] | None, step: float | None, action: Action) -> Range:
    """Return the range that both a controller file and a task allow for an action.

    Args:
        name: The action.
        limits: The limits of the file; None leaves them to the task.
        step: The step of the file; None leaves it to the task.
        action: The action of the task.

    Raises:
        ClearloopError: If the two do not fit together.
    """
    low, high = action.limits
    least, most = limits or action.limits
    if not max(low, least) < min(high, most):
        raise ClearloopError(f"limits.{name}: {least:g} … {most:g} is outside the task's {low:g} … {high:g}")
    found = Range(max(low, least), min(high, most), step or action.step).checked(name)
    if action.step:
        for place, distance in (("steps", found.step), ("limits", found.low - low)):
            if distance and not whole(distance, action.step):
                raise ClearloopError(
                    f"{place}.{name}: expected a whole multiple of the task's step {action.step:g}"
                )
    return found


LINE = r"^[^\p{Cc}\p{Zl}\p{Zp}]*$"  # one line without control characters, which a terminal would execute

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
# Coefficients have the limits of what is read: no product of the two, and no sum of such products, overflows.
Coefficient = Annotated[
    float,
    Strict(),
    Field(ge=-READ_LIMIT, le=READ_LIMIT, allow_inf_nan=False),
    expecting(f"a number from {-READ_LIMIT:g} to {READ_LIMIT:g}"),
]


class Controller(Shown, Table):
    """A controller as its file describes it. A subclass is a kind of controller; `kinds.py` lists them.

    A kind defines how actions follow from observations. Everything that the rest of the package asks of a
    controller is a method here, with a default for kinds that have no formula, no terms or no rules. A kind
    whose actions are formulas inherits all of it from `FormulaController` in `equation.py`.

    Attributes:
        clearloop: The version of the file format.
        kind: The name of the kind, such as "equation" or "pid".
        name: A title for people.
        task: The name of the task that the controller was made for.
        setpoint: Constant setpoints of states.
        follows: States whose setpoint comes with every observation, with the name of its column in the log.
        limits: The lower and upper limit of each action.
        steps: For actions that take only some values, the distance between these, from the lower limit on.
        rates: The most that an action may change in a second.
        starts: The value of an action before the start of an episode; 0 where it is not named.
        safe: What a guard gives for an action when inputs have been invalid for too long.
        checks: What a guard takes for a valid value of a state: range, gradient, frozen.
        derived: The formulas of states that the controller computes itself where an observation lacks them.
        units: The units of states and actions.
        dt: The time between two steps, in seconds.
    """

    clearloop: Literal[1] = 1
    kind: str
    name: Line | None = None
    task: Line | None = None
    setpoint: dict[str, Coefficient] = Field({})
    follows: dict[str, Line] = Field({})
    limits: dict[str, Limits] = Field({})
    steps: dict[str, Positive] = Field({})
    rates: dict[str, Positive] = Field({})
    starts: dict[str, Coefficient] = Field({})
    safe: dict[str, Coefficient] = Field({})
    checks: dict[str, Check] = Field({})
    derived: dict[str, Formula] = Field({})
    units: dict[str, Unit] = Field({})
    dt: Positive | None = None

    chosen_in: ClassVar[str] = "outputs"
    """The table of the file whose keys are actions."""
    readable: ClassVar[bool] = True
    """Whether a person can read and understand it."""
    policy: ClassVar[int | None] = None
    """The constant of `kernels/layout.py` by which the engine runs it; None: the engine cannot run it."""
    plans: ClassVar[bool] = False
    """Whether it plans on a model at every step, which is too slow for much of what other kinds can do."""
    windowed: ClassVar[bool] = True
    """Whether its action follows from the engine's window alone. If not, `respond` must accept arrays."""
    exact: ClassVar[bool] = False
    """Whether its file defines the arithmetic to the last bit, as a formula does by its printed order."""
    names_mean_errors: ClassVar[bool] = True
    """Whether the bare name of a state with a setpoint means the value minus the setpoint."""

    # Its contents.

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the actions that it chooses, in the order of its file."""
        return tuple(getattr(self, self.chosen_in))

    @abstractmethod
    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        """Yield everything that it reads, each with its place in the file.

        Args:
            known: The names of a task. Others raise a `ClearloopError` that names the place.
        """

    @property
    @abstractmethod
    def complexity(self) -> int:
        """A measure of how hard it is to read: roughly, the count of its numbers, names and operations."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The whole controller in one line, or a description of it."""

    @abstractmethod
    def words(self) -> Iterator[str]:
        """Yield the lines of an explanation of the controller."""

    @property
    def history(self) -> int:
        """The number of observations that the engine must keep for it, the present one included."""
        return 1 + max((variable.lag or 0 for _, variable in self.variables()), default=0)

    # Its behaviour: in plain Python, in the engine, and in exports.

    @abstractmethod
    def respond(self, memory: Memory) -> dict[str, float]:
        """Return the actions before they are limited."""

    @property
    def depth(self) -> int:
        """The number of observations that `respond` looks at, the present one included."""
        return self.history

    def reset(self) -> Memory:
        """Return the memory of a new episode."""
        return Memory(self.depth, self.actions, self.starts)

    @property
    def endless(self) -> bool:
        """Whether it keeps something from the start of an episode on, such as an integral."""
        return False

    def recursions(
        self,
        values: Mapping[str, float],  # noqa: ARG002
        aims: Mapping[str, float],  # noqa: ARG002
    ) -> dict[str, tuple[Recursion, float | None]]:
        """Return exact linear laws of its actions about a steady state, for kinds that have them.

        Args:
            values: The steady state, by the names of the states.
            aims: The setpoints there.

        Returns:
            For each action its law, and if it integrates, the change that each step at this state would make.
        """
        return {}

    def numbers(self, features: Features) -> list[float]:  # noqa: ARG002
        """Return the numbers that may differ within a population, in the order of `kernels/policies.py`."""
        return []

    def sizes(self, features: Features) -> list[int]:  # noqa: ARG002
        """Return the counts that all controllers of a population must share."""
        return []

    def programs(self, features: Features) -> list[Program]:  # noqa: ARG002
        """Return a program for each action of `features`, for kinds that the engine runs as programs."""
        return []

    def lower(self, scope: Scope) -> dict[str, Expression]:  # noqa: ARG002
        """Return the actions before they are limited, as formulas of a routine.

        Args:
            scope: Collects the statements, inputs and past values that the formulas need.
        """
        raise ClearloopError(f"a controller of kind '{self.kind}' cannot be exported")

    # Its appearance.

    def equations(self) -> tuple[Pieces, ...]:
        """Return an equation for each action, and those that they share; none if no formula can show it."""
        return ()

    def latex_rows(self) -> Iterator[str]:
        """Yield the body of its LaTeX export: by default its equations, one below the other."""
        rows = [(left.latex.removesuffix(" ="), right) for left, *right in self.equations()]
        if rows:
            yield aligned((left, " ".join(piece.latex for piece in right)) for left, right in rows)

    def parts(self, action: str) -> Iterator[Part]:  # noqa: ARG002
        """Yield the parts that add up to an action or decide about it."""
        yield Note("", self.summary)

    def summands(self) -> Iterator[Summand]:
        """Yield the terms that add up to the actions before these are limited, for kinds that are sums."""
        return iter(())

    def loops(self) -> Iterator[FeedbackLoop]:
        """Yield the loops of a PID."""
        return iter(())

    def rules(self) -> Iterator[DrawnRule]:
        """Yield the rules of a rule base."""
        return iter(())

    # Simpler versions of it.

    def with_constants(self, change: Callable[[float], float]) -> Self:
        """Return the same controller with each constant changed; names, windows and limits stay."""
        table = self.model_dump(mode="python", by_alias=True)
        table[self.chosen_in] = changed(table[self.chosen_in], change)
        return self.model_validate(table)

    def simpler(self) -> Iterator[tuple[Self, str]]:
        """Yield controllers with one part less, each with a description of what was left out."""
        return iter(())

    def _with_output(self, action: str, output: Any) -> Self:
        """Return the same controller with another entry for one action."""
        outputs = {**getattr(self, self.chosen_in), action: output}
        return self.model_copy(update={self.chosen_in: outputs})

    def beside(self, file: str | Path) -> Self:  # noqa: ARG002
        """Return the same controller, which finds the files that it refers to from the folder of `file`."""
        return self

    @model_validator(mode="after")
    def _has_valid_names_and_steps(self) -> Self:
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
                raise ClearloopError(
                    f"{place}: '{variable}' is being chosen; read a past value, such as {variable.name}[t-1]"
                )
        for place, values in (("safe", self.safe), ("starts", self.starts)):
            for name, value in values.items():
                if name in self.limits and not self.limits[name][0] <= value <= self.limits[name][1]:
                    raise ClearloopError(f"{place}.{name}: {value:g} is outside limits.{name}")
        for name in self.steps:
            if name not in self.limits:
                raise ClearloopError(f"steps.{name}: give limits.{name}, too: steps begin at the lower limit")
            self.range_of(name).checked(name)
        return self

    def act(
        self, observation: Mapping[str, float], memory: Memory, setpoint: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Choose the actions for one step, in plain Python; the engine does the same for whole populations.

        Args:
            observation: The values of the states, in their units.
            memory: The memory of this episode, from `reset()`; it is changed.
            setpoint: The setpoints of this step, by state; others are those of the file.

        Returns:
            The actions by name, within their limits.

        Raises:
            ClearloopError: If a state or a setpoint is missing, or is not a number.
        """
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
        answer = self.respond(memory)
        action = {name: self._limited(name, value, memory) for name, value in answer.items()}
        memory.acted(action)
        return action

    def _derivation(self) -> Derivation:
        formulas = {name: read_formula(text) for name, text in self.derived.items()}
        return Derivation(formulas, self.actions, self.starts)

    def _limited(self, name: str, value: float, memory: Memory) -> float:
        if (most := self.change_of(name)) is not None:
            before = memory.value(name, 1)
            value = min(max(value, before - most), before + most)
        return self.range_of(name).limited(value) if name in self.limits else value

    def change_of(self, name: str) -> float | None:
        """Return the most that an action may change in one step; None if its rate is not limited."""
        if name not in self.rates:
            return None
        if self.dt is None:
            raise ClearloopError(f"rates.{name}: the time between two steps is not known: give --task, or dt")
        most = largest_change(self.rates[name], self.dt, self.steps.get(name))
        if not most:
            raise ClearloopError(f"rates.{name}: this is less than one of its steps in {self.dt:g} s")
        return most

    def keeps_rate(self, name: str) -> bool:  # noqa: ARG002
        """Tell whether what `respond` gives for an action keeps its rate already."""
        return False

    def range_of(self, name: str) -> Range:
        """Return the range of an action that has limits."""
        return Range(*self.limits[name], self.steps.get(name))

    def check_of(self, variable: Variable) -> Check:
        """Return what a guard takes for a valid value of an input; a setpoint need only be a number."""
        return self.checks.get(variable.name, Check()) if variable.part == "value" else Check()

    def for_task(self, task: Task) -> Self:
        """Return the same controller with what its file leaves to the task: limits, units, setpoints, dt.

        Raises:
            ClearloopError: If the controller does not suit the task.
        """
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
            "rates": {name: min(values) for name, values in self._rates(task).items() if values},
            "starts": self.starts
            | {name: action.start for name, action in task.actions.items() if action.start is not None},
            "safe": {name: ranges[name].limited(value) for name, value in self._safe(task).items()},
            "checks": {**self._checks_of(task), **self.checks},
            "units": {**units, **self.units},
            "dt": self.dt or task.dt,
            "derived": needed_formulas(task, self._reads(task)),
            "follows": {
                name: column for name, column in task.logged_setpoints.items() if name not in self.setpoint
            },
        }
        return self.model_copy(update=changes)

    def _safe(self, task: Task) -> dict[str, float]:
        """Return the safe values of its actions: those of its file, then those of a task."""
        given = {name: task.actions[name].safe for name in self.actions}
        return {name: value for name, value in given.items() if value is not None} | self.safe

    def _rates(self, task: Task) -> dict[str, list[float]]:
        """Return the rates that its file and a task allow for each action."""
        given = {name: (self.rates.get(name), task.actions[name].rate) for name in self.actions}
        return {name: [rate for rate in rates if rate is not None] for name, rates in given.items()}

    def _checks_of(self, task: Task) -> dict[str, Check]:
        """Return what a task takes for valid values of the states that the controller measures."""
        read = self._reads(task)
        for name in reversed(task.derived):
            if name in read:
                read |= {variable.name for variable in variables(task.derived[name])}
        checks = {name: state.check for name, state in task.states.items() if name in read}
        return {name: check for name, check in checks.items() if not check.empty}

    def _reads(self, task: Task) -> set[str]:  # noqa: ARG002
        """Return the names of the states and actions that it looks at."""
        return {variable.name for _, variable in self.variables()}

    def _check(self, task: Task) -> None:
        names = (*task.state_names, *task.action_names)
        check_names(self.chosen_in, self.actions, "an action", task.action_names)
        for table in ("limits", "steps", "rates", "starts", "safe"):
            check_names(table, getattr(self, table), "an action", task.action_names)
        check_names("checks", self.checks, "a measured state", [*{*task.state_names} - {*task.derived}])
        check_names("units", self.units, "a state or an action", names)
        check_names("follows", self.follows, "a state with a setpoint", tuple(task.setpoints))
        check_names("setpoint", self.setpoint, "a state with a setpoint", tuple(task.setpoints))
        check_names("derived", self.derived, "a derived state", tuple(task.derived))
        for name, text in self.derived.items():
            if read_formula(text, f"derived.{name}") != task.derived[name]:
                raise ClearloopError(
                    f"derived.{name}: task '{task.name}' has another formula: {to_text(task.derived[name])}"
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
        """Return the unit after a space, such as ` N`, or nothing if it is not known."""
        return f" {self.units[name]}" if self.units.get(name) else ""

    def limit_words(self) -> Iterator[str]:
        """Yield sentences about the limits of actions and the formulas of derived states."""
        for name in self.actions:
            if name in self.limits:
                yield f"{name} is {self.range_of(name).words(self.unit(name))}."
            if name in self.rates:
                yield f"{name} changes by at most {self.rates[name]:g}{self.unit(name)} in a second."
            if self.starts.get(name):
                yield f"{name} is {self.starts[name]:g}{self.unit(name)} before the start."
        for name, text in self.derived.items():
            yield f"{name} is computed as {text}."

    def setpoint_words(self) -> Iterator[str]:
        """Yield sentences about setpoints, for kinds in which a bare name means value − setpoint."""
        read = {variable.name for _, variable in self.variables() if variable.part != "setpoint"}
        for name, aim in self.setpoint.items():
            if name in read:
                yield f"{name} stands for {name} - setpoint; the setpoint is {aim:g}{self.unit(name)}."
        for name, column in self.follows.items():
            if name in read:
                yield f"{name} stands for {name} - setpoint; the setpoint is {quoted(column)} in the log."


def changed(value: Any, change: Callable[[float], float]) -> Any:
    """Change every float in tables and lists; whole numbers are counts and stay."""
    if isinstance(value, dict):
        return {key: changed(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(changed(item, change) for item in value)
    return change(value) if isinstance(value, float) else value
