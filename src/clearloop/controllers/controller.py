"""What all controllers have in common: the fields of their files, limits, setpoints and memory."""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field

from clearloop.errors import ClearloopError
from clearloop.expression import Expression, Variable, parse
from clearloop.expression.meanings import READ_LIMIT
from clearloop.task import Task
from clearloop.task.suggest import did_you_mean, quoted
from clearloop.task.tables import Limits, Number, Positive, Table, Text, Unit


@dataclass
class Memory:
    """What a controller remembers of an episode, the latest first. Starts empty: `controller.reset()`."""

    depth: int
    observations: deque[dict[str, float]] = field(default_factory=deque)
    actions: deque[dict[str, float]] = field(default_factory=deque)

    def observe(self, observation: Mapping[str, float]) -> None:
        """Keep what was seen; a controller reads numbers limited as formulas do."""
        read = {name: min(max(float(value), -READ_LIMIT), READ_LIMIT) for name, value in observation.items()}
        self.observations.appendleft(read)
        while len(self.observations) > self.depth:
            self.observations.pop()

    def acted(self, action: dict[str, float]) -> None:
        self.actions.appendleft(action)
        while len(self.actions) > self.depth:
            self.actions.pop()

    def value(self, variable: Variable) -> float:
        """Before the start: the first observation repeated, past actions 0."""
        lag = variable.lag or 0
        if variable.name in self.observations[0]:
            return self.observations[min(lag, len(self.observations) - 1)][variable.name]
        if 1 <= lag <= len(self.actions):
            return self.actions[lag - 1].get(variable.name, 0.0)
        return 0.0


class Controller(Table):
    """A controller file. Subclasses say what is between observation and action."""

    clearloop: Literal[1] = Field(1)
    kind: str
    name: Text | None = None
    task: Text | None = None
    setpoint: dict[str, Number] = Field({})
    limits: dict[str, Limits] = Field({})
    units: dict[str, Unit] = Field({})
    dt: Positive | None = None

    @property
    @abstractmethod
    def actions(self) -> tuple[str, ...]:
        """The actions that it chooses, in the order of its file."""

    @abstractmethod
    def variables(self) -> Iterator[tuple[str, Variable]]:
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
    def respond(self, memory: Memory, setpoint: Mapping[str, float]) -> dict[str, float]:
        """The actions before they are limited."""

    @abstractmethod
    def numbers(self, features: "Features") -> list[float]:
        """What distinguishes it in a population of its kind, in the engine's order."""

    def sizes(self, features: "Features") -> list[int]:  # noqa: ARG002
        """Counts that a population of its kind must share."""
        return []

    def programs(self) -> tuple[Expression, ...]:
        """For each action a formula, if that is what it is."""
        return ()

    @property
    def history(self) -> int:
        """Observations that it needs, the present one included."""
        return 1 + max((variable.lag or 0 for _, variable in self.variables()), default=0)

    def reset(self) -> Memory:
        """A memory for a new episode."""
        return Memory(depth=self.history)

    def act(
        self, observation: Mapping[str, float], memory: Memory, setpoint: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """One step in plain Python: what the engine does for whole populations."""
        memory.observe(observation)
        action = self.respond(memory, {**self.setpoint, **(setpoint or {})})
        action = {name: float(np.clip(value, *self.limits.get(name, (-np.inf, np.inf)))) for name, value in action.items()}
        memory.acted(action)
        return action

    def error(self, memory: Memory, variable: Variable, setpoint: Mapping[str, float]) -> float:
        """What a name in a controller means: value − setpoint; `rho.setpoint` is the setpoint itself."""
        aim = setpoint.get(variable.name, 0.0)
        return aim if variable.part == "setpoint" else memory.value(variable) - aim

    def for_task(self, task: Task) -> Self:
        """The same controller with what its file leaves to the task: limits, units, setpoints, dt."""
        self._check(task)
        units = {name: row.unit for name, row in (*task.states.items(), *task.actions.items()) if row.unit}
        aims = {name: aim for name, aim in task.setpoints.items() if isinstance(aim, float)}
        changes: dict[str, Any] = {
            "task": self.task or task.name,
            "setpoint": {**aims, **self.setpoint},
            "limits": {**{name: task.actions[name].limits for name in self.actions}, **self.limits},
            "units": {**units, **self.units},
            "dt": self.dt or task.dt,
        }
        return self.model_copy(update=changes)

    def _check(self, task: Task) -> None:
        _known("an action", "outputs", self.actions, task.action_names)
        _known("an action", "limits", self.limits, task.action_names)
        _known("a state with a setpoint", "setpoint", self.setpoint, tuple(task.setpoints))
        missing = [name for name in task.action_names if name not in self.actions]
        if missing:
            raise ClearloopError(f"the controller gives no action {quoted(missing[0])}, which task '{task.name}' needs")
        for place, variable in self.variables():
            if variable.name in task.action_names and not variable.lag:
                raise ClearloopError(f"{place}: '{variable}' is being chosen; a controller sees it from [t-1] on")
            _known("a state or a past action", place, [variable.name], (*task.state_names, *task.action_names))

    def unit(self, name: str) -> str:
        """` N`, or nothing if the unit is not known."""
        return f" {self.units[name]}" if self.units.get(name) else ""

    def limit_words(self) -> Iterator[str]:
        for name in self.actions:
            if name in self.limits:
                low, high = self.limits[name]
                yield f"{name} is limited to {low:g} … {high:g}{self.unit(name)}."
        for name, aim in self.setpoint.items():
            yield f"{name} stands for its distance from the setpoint {aim:g}{self.unit(name)}."


def _known(what: str, place: str, names: Any, known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there is {', '.join(known) or 'none'}"
            raise ClearloopError(f"{place}: {quoted(name)} is not {what} of the task{hint}")


@dataclass(frozen=True)
class Features:
    """Where what a controller reads stands among the engine's features (`kernels/layout.py`)."""

    states: tuple[str, ...]
    actions: tuple[str, ...]
    history: int

    @property
    def count(self) -> int:
        return len(self.states) + self.history * (len(self.states) + len(self.actions))

    def slot(self, variable: Variable) -> int:
        if variable.part == "setpoint":
            return self.count - len(self.states) + self.states.index(variable.name)
        names = (*self.states, *self.actions)
        return (variable.lag or 0) * len(names) + names.index(variable.name)


def parse_variable(text: str) -> Variable:
    """A name with an optional lag, as it stands in gains, premises and inputs."""
    variable = parse(text)
    if not isinstance(variable, Variable):
        raise ClearloopError(f"expected a name such as theta or theta[t-2], found {quoted(text)}")
    return variable
