"""What all controllers have in common: the fields of their files, limits, setpoints and memory."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, Strict, model_validator

from clearloop.controllers.derivation import Derivation, needed_formulas
from clearloop.controllers.memory import Memory
from clearloop.controllers.range import Range, common
from clearloop.controllers.reading import Known, check_names, read_formula
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Variable, is_name, to_text
from clearloop.expression.meanings import READ_LIMIT
from clearloop.programs.features import Features
from clearloop.task import Task
from clearloop.task.scope import MOST_STEPS_BACK
from clearloop.task.tables import Formula, Limits, Positive, Table, expecting

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
    """A controller file. Subclasses say what is between observation and action."""

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

    readable: ClassVar[bool] = True
    """whether a person can take it in"""
    chosen_in: ClassVar[str] = "outputs"
    """The table of the file whose keys are actions."""

    @property
    @abstractmethod
    def actions(self) -> tuple[str, ...]:
        """The actions that it chooses, in the order of its file."""

    @abstractmethod
    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        """Everything that it reads, with the place in the file where it does."""

    @property
    @abstractmethod
    def complexity(self) -> int:
        """How hard it is to read."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The whole controller in one line, or what it is."""

    @abstractmethod
    def words(self) -> Iterator[str]:
        """The controller explained, line by line."""

    @abstractmethod
    def respond(self, memory: Memory) -> dict[str, float]:
        """The actions before they are limited."""

    @abstractmethod
    def numbers(self, features: Features) -> list[float]:
        """What distinguishes it in a population of its kind, in the engine's order."""

    @abstractmethod
    def sizes(self, features: Features) -> list[int]:
        """Counts that a population of its kind must share."""

    @abstractmethod
    def reset(self) -> Memory:
        """A memory for a new episode."""

    @property
    def history(self) -> int:
        """Observations that the engine must keep for it, the present one included."""
        return 1 + max((variable.lag or 0 for _, variable in self.variables()), default=0)

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
            memory.derivation = memory.derivation or Derivation(self.derived, self.actions)
            observation = memory.derivation.complete(observation, aims)
        memory.observe(observation, aims)
        action = {name: self._limited(name, value) for name, value in self.respond(memory).items()}
        memory.acted(action)
        return action

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
