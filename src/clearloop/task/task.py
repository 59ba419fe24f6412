"""A task says what is to be controlled: its file, checked, and everything that follows from it."""

import re
import tomllib
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import Expression
from clearloop.files import read_text
from clearloop.showing import Shown
from clearloop.task.plant import (
    NOTHING,
    ExplorationLaw,
    Inlined,
    box_faults,
    derive_states,
    derived_faults,
    hidden_names,
    inline,
    make_box,
    memory_features,
    read_law,
    signal_faults,
    signal_names,
    sobol_starts,
    start_faults,
    uniform_starts,
)
from clearloop.task.reward import Reward, lower_end, mark_ends, reward_faults, reward_formula
from clearloop.task.tables import (
    JUMP,
    MOST_NAMES,
    Action,
    Columns,
    Discount,
    Exploration,
    Fault,
    Flag,
    History,
    Horizon,
    Memory,
    Plant,
    Positive,
    Robust,
    Sampling,
    Signal,
    Start,
    State,
    Table,
    TaskScope,
    Text,
    data_faults,
    faults_of,
    first_of,
    largest_change,
    map_columns,
    name_faults,
    rate_faults,
)


class Fields(Table):
    """The keys of a task file, and what can be read off them without parsing a formula.

    Each key is checked by itself here; `Task` checks what they mean together.
    """

    name: Text
    dt: Positive
    discount: Discount
    horizon: Horizon
    history: History = 1
    symmetric: Flag = False
    states: Annotated[dict[str, State], Field(min_length=1, max_length=MOST_NAMES)]
    actions: Annotated[dict[str, Action], Field(min_length=1, max_length=MOST_NAMES)]
    reward: Reward
    starts: Annotated[dict[str, Start], Field(max_length=MOST_NAMES)] = Field({"from": "batch"})
    plant: Plant | None = None
    signals: Annotated[dict[str, Signal], Field(max_length=MOST_NAMES)] = Field({})
    exploration: Exploration | None = None
    data: Annotated[dict[str, Text], Field(max_length=2 * MOST_NAMES)] = Field({})
    sampling: Sampling | None = None
    opcua: Annotated[dict[str, Text], Field(max_length=3 * MOST_NAMES)] | None = None
    memory: Memory | None = None
    robust: Robust = Robust()

    @model_validator(mode="after")
    def _remember(self) -> Self:
        """Add the states that `memory` asks for; the fields of a checked task are frozen."""
        object.__setattr__(self, "states", self.states | (self._features | self.states))
        return self

    @property
    def _features(self) -> dict[str, State]:
        return memory_features(self.memory or (), self.states, self.actions, self.horizon)

    @property
    def remembered(self) -> tuple[str, ...]:
        """The computed states that `memory` added."""
        return tuple(name for name, state in self._features.items() if self.states.get(name) == state)

    @property
    def state_names(self) -> tuple[str, ...]:
        return tuple(self.states)

    @property
    def action_names(self) -> tuple[str, ...]:
        return tuple(self.actions)

    @cached_property
    def action_limits(self) -> NDArray[np.float64]:
        """The lowest and the highest value of each action [A, 2]."""
        limits = np.array([action.limits for action in self.actions.values()])
        limits.flags.writeable = False
        return limits

    @cached_property
    def action_counts(self) -> NDArray[np.float64]:
        """The number of steps from limit to limit of each action [A]; 0 if it may take any value."""
        counts = np.array([float(action.count) for action in self.actions.values()])
        counts.flags.writeable = False
        return counts

    @cached_property
    def action_changes(self) -> NDArray[np.float64]:
        """The most that each action may change in a step [A], `JUMP` if it may jump; empty if all may."""
        rates = [
            JUMP if action.rate is None else largest_change(action.rate, self.dt, action.step)
            for action in self.actions.values()
        ]
        changes = np.array(rates if min(rates) < JUMP else [])
        changes.flags.writeable = False
        return changes

    @property
    def past_actions(self) -> dict[str, float]:
        """The value of each action before the start of an episode."""
        return {name: action.start or 0.0 for name, action in self.actions.items()}

    @property
    def action_starts(self) -> NDArray[np.float64]:
        """The values of the actions before the start of an episode [A]."""
        return np.array(list(self.past_actions.values()))

    @property
    def setpoints(self) -> dict[str, float | str]:
        """The setpoint of each state that has one: a number, or the name of a log column."""
        return {name: state.setpoint for name, state in self.states.items() if state.setpoint is not None}

    @property
    def logged_setpoints(self) -> dict[str, str]:
        """The setpoints that are columns of the log: the name of the column by state."""
        return {name: aim for name, aim in self.setpoints.items() if isinstance(aim, str)}

    @property
    def scope(self) -> TaskScope:
        """The names that the task's formulas may refer to."""
        derived = tuple(name for name, state in self.states.items() if state.formula is not None)
        external = tuple(name for name, state in self.states.items() if state.external)
        limits = {name: action.limits for name, action in self.actions.items()}
        return TaskScope(
            self.state_names,
            self.action_names,
            self.setpoints,
            limits,
            self.dt,
            self.history,
            derived,
            external,
        )

    @property
    def reward_levels(self) -> tuple[float, ...] | None:
        """The values that the reward's cases can give, best first; None if the reward has no cases."""
        if self.reward.otherwise is None:
            return None
        return tuple(
            sorted({*(case.value for case in self.reward.cases), self.reward.otherwise}, reverse=True)
        )

    @property
    def failure_level(self) -> float | None:
        """The reward of a failed step; None if the reward knows no failure."""
        failing = (case.value for case in self.reward.cases if case.failure)
        return next(failing, self.reward.failure_value)

    @property
    def predicted(self) -> tuple[str, ...]:
        """The states that a model must predict: neither computed from others nor external."""
        return tuple(
            name for name, state in self.states.items() if state.formula is None and not state.external
        )

    @property
    def simulated(self) -> bool:
        """True if the engine can run the plant."""
        return self.plant is not None and not self.plant.foreign

    @property
    def substeps(self) -> int:
        """The number of integration steps in one control interval."""
        return self.plant.substeps if self.plant else 1

    @property
    def on_failure(self) -> dict[str, float]:
        """The values that failure sets states to, before all states stay as they are."""
        return dict(self.plant.on_failure) if self.plant else {}

    @property
    def gymnasium(self) -> str | None:
        """The id of the Gymnasium environment that is the plant; None if the plant is not one."""
        return self.plant.gymnasium if self.plant else None

    @property
    def foreign(self) -> bool:
        """True if the plant is a program of others: a Gymnasium environment, an FMU or a package."""
        return self.plant is not None and self.plant.foreign

    @property
    def apart(self) -> bool:
        """True if the plant runs in a process of its own: an FMU or a package."""
        return self.plant is not None and self.plant.apart

    @property
    def explorable(self) -> bool:
        """True if a batch can be drawn from the plant: it has equations, or it is a package."""
        return self.simulated or (self.plant is not None and self.plant.package is not None)

    @property
    def fmu(self) -> str | None:
        """The file of the FMU that is the plant; None if the plant is not one."""
        return self.plant.fmu if self.plant else None

    @property
    def exploration_box(self) -> dict[str, Start]:
        """The box of states in which exploring episodes start; empty if the task gives none."""
        return self.exploration.starts if self.exploration else {}


# Task files on disk: the built-in ones are TOML files of the package.

LARGEST_TASK_FILE = 256 * 1024  # bytes; the built-in tasks have about two thousand

# Sixteen parts of a dotted key. The tables here need three, and a thousand of them cost tomllib gigabytes.
_DEEP_KEY = re.compile(
    r"""(?<![\w-]) (?: (?: [\w-]++ | "(?:[^"\\\n]|\\.)*+" | '[^'\n]*+' ) [ \t]*+ \. [ \t]*+ ){16}""",
    re.VERBOSE,
)


def builtin_tasks() -> tuple[str, ...]:
    """Return the names of the tasks that `Task.load` knows without a file, in alphabetical order."""
    folder = files("clearloop") / "tasks"
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def read_task(name_or_path: str | Path) -> tuple[str, str]:
    """Return the text of a built-in task or of a .toml file, and its name for messages."""
    name = str(name_or_path)
    if not name.lower().endswith(".toml"):
        return _read_builtin(name), name
    return read_text(name, LARGEST_TASK_FILE), name


def _read_builtin(name: str) -> str:
    known = builtin_tasks()
    if name not in known:
        hint = did_you_mean(name, known) or f"; the built-in tasks are: {', '.join(known)}"
        raise ClearloopError(f"no task {quoted(name)}: neither built in nor a .toml file{hint}")
    return (files("clearloop") / "tasks" / f"{name}.toml").read_text(encoding="utf-8")


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Parse the text of a task file; errors call it `source`."""
    too_deep = f"{source}: is nested too deeply for a task file"
    if _DEEP_KEY.search(text):
        raise ClearloopError(too_deep)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ClearloopError(too_deep) from error
    except tomllib.TOMLDecodeError as error:
        raise ClearloopError(f"{source}: broken TOML: {error}") from error
    except ValueError as error:
        raise ClearloopError(f"{source}: a number in this file has thousands of digits") from error


class Task(Shown, Fields):
    """A checked task file, which says what is to be controlled and to what end.

    `Task.from_dict(task.model_dump(mode="json"))` gives an equal task.

    Attributes:
        name: What the task is called.
        dt: Seconds of a control interval: from one row to the next, and from one action to the next.
        discount: What a reward of the next step counts, compared with one of this step; at most 1.
        horizon: Control intervals that a controller is judged over.
        history: Observations that models and controllers see, the present one included.
        symmetric: True if negated states and actions make the same plant.
        states: What is measured, by name: unit, setpoint, formula, or external.
        actions: What a controller sets, by name: unit, limits, step, rate and value before the start.
        reward: What is wanted: cases, terms, an expression, or a log column to learn it from.
        starts: The box of states in which episodes start, or `{"from": "batch"}`, rows of the log, or
            `{"from": "episodes"}`, its first rows.
        plant: The true system, where there is one to test on.
        signals: How setpoints, external states and disturbances run in simulations.
        exploration: How a batch is drawn from the plant.
        data: The log's column for a state, an action or a role, where the two names differ.
        sampling: How a log becomes rows that are `dt` apart; None leaves the rows as they are.
        opcua: The node of each state, action and setpoint in an OPC UA server.
        robust: The disturbances that a controller must bear, and the margins that it must keep.
        memory: The ready features of each measured state ("integral", "filter", "setpoint"), or None.
    """

    @classmethod
    def load(cls, name_or_path: str | Path) -> Self:
        """Load a built-in task by its name, or a .toml file by its path."""
        text, source = read_task(name_or_path)
        tables = parse_toml(text, source)
        plant = tables.get("plant")
        if isinstance(plant, dict) and isinstance(plant.get("fmu"), str):
            plant["fmu"] = str(Path(name_or_path).absolute().parent / plant["fmu"])
        return cls.from_dict(tables, source=source)

    @classmethod
    def from_toml(cls, text: str, *, source: str = "task") -> Self:
        """Make a task from the text of a task file.

        Args:
            text: TOML.
            source: What errors call the text.
        """
        return cls.from_dict(parse_toml(text, source), source=source)

    @classmethod
    def from_dict(cls, tables: dict[str, Any], *, source: str = "task") -> Self:
        """Make a task from the tables of a task file.

        Args:
            tables: The keys of a task file with their values, as TOML or JSON has them.
            source: What errors call the tables.
        """
        try:
            return cls.model_validate(tables)
        except ValidationError as error:
            raise ClearloopError(f"{source}: {first_of(faults_of(error))}") from error
        except ClearloopError as error:
            raise ClearloopError(f"{source}: {error}") from error

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        faults = [
            *name_faults(("states",), self.states, ()),
            *name_faults(("actions",), self.actions, self.states),
        ]
        if faults := faults or self._faults():  # with wrong names nothing else makes sense
            raise ClearloopError(first_of(faults))
        return self

    def _faults(self) -> list[Fault]:
        return [
            *reward_faults(self.reward, self.scope),
            *rate_faults(self.actions, self.dt),
            *derived_faults(self.states, self.scope),
            *start_faults(self.starts, self.unveiled.state_names),
            *self._inlined.faults,
            *signal_faults(self.signals, self.scope, self.plant is not None),
            *box_faults(("exploration", "starts"), self.exploration_box, self.unveiled.state_names),
            *self._law.faults,
            *data_faults(self.data, self.scope.names, self.reward.column),
        ]

    @cached_property
    def derived(self) -> dict[str, Expression]:
        """The formula of each state that is computed from other states and from the past."""
        return derive_states(self.states, self.scope)

    @cached_property
    def reward_expression(self) -> Expression | None:
        """The reward of a step, or None if the reward is learned from a log column.

        A bare state name is the value after the step, `theta[t]` the value before it.
        """
        return reward_formula(self.reward, self.scope)

    @cached_property
    def failure_condition(self) -> Expression | None:
        """The condition under which a step has failed; None if the reward knows no failure."""
        return lower_end(self.reward, self.scope, "failure")

    @cached_property
    def success_condition(self) -> Expression | None:
        """The condition under which a step ends an episode well; None if the reward knows no success."""
        return lower_end(self.reward, self.scope, "success")

    @cached_property
    def end_mark(self) -> Expression | None:
        """How a step ends an episode: 1 failed, -1 succeeded, 0 it goes on; None if no step ends one."""
        return mark_ends(self.failure_condition, self.success_condition)

    @cached_property
    def _inlined(self) -> Inlined:
        return inline(self.plant, self.signals, self.scope) if self.plant else NOTHING

    @property
    def plant_derivatives(self) -> dict[str, Expression]:
        """The time derivatives of the plant's states that are integrated, hidden ones included."""
        return self._inlined.derivatives

    @property
    def plant_next(self) -> dict[str, Expression]:
        """The difference equations of the plant's states that have one."""
        return self._inlined.next

    @property
    def plant_observed(self) -> dict[str, Expression]:
        """The formulas of what sensors show of the plant's states."""
        return self._inlined.observed

    @property
    def unveiled(self) -> "Task":
        """The task as the plant sees it, with hidden states and disturbances after the task's own states."""
        return self._unveiled or self

    @cached_property
    def _unveiled(self) -> "Task | None":
        if self.plant is None:
            return None
        more = {name: State() for name in hidden_names(self.plant, self.state_names)}
        more |= {name: State(external=True) for name in signal_names(self.plant, self.signals, self.scope)}
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_construct(**fields | {"states": {**self.states, **more}}) if more else None

    @property
    def starts_with_episodes(self) -> bool:
        """True if episodes start where those of the log did, with no past."""
        return self.starts.get("from") == "episodes"

    @cached_property
    def start_box(self) -> NDArray[np.float64] | None:
        """The box [S, 2] in which episodes start, 0 for states that have none; None: from the batch."""
        return make_box(self.starts, self.state_names)

    @property
    def scorable(self) -> bool:
        """True if the plant can be run without a log: the task gives starts, a reward and setpoints."""
        if any(column not in self.signals for column in self.logged_setpoints.values()):
            return False
        boxed = self.start_box is not None and self.reward_expression is not None
        return self.foreign or (self.simulated and boxed)

    @cached_property
    def _law(self) -> ExplorationLaw:
        return read_law(self.exploration, self.unveiled.state_names, self.action_names)

    @property
    def exploration_law(self) -> tuple[Expression, ...]:
        """The formula by which exploration chooses each action; empty if actions are random."""
        return self._law.actions

    def scoring_starts(self, n: int = 1024) -> NDArray[np.float64]:
        """Return the first n starts [n, S] of the scoring set, which is fixed and never seen by a search."""
        return sobol_starts(self._box(n), n)

    def random_starts(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw n starts [n, S] uniformly from the start box.

        Args:
            n: The number of starts.
            rng: The source of randomness.
        """
        return uniform_starts(self._box(n), n, rng)

    def even_starts(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw n starts [n, S] at random but evenly over the start box, so that means vary far less.

        Args:
            n: The number of starts.
            rng: The source of randomness.
        """
        return sobol_starts(self._box(n), n, rng)

    def _box(self, n: int) -> NDArray[np.float64]:
        if self.start_box is None:
            raise ClearloopError(
                f"task {self.name}: starts come from the batch; give boxes in [starts] to draw others"
            )
        if n < 1:
            raise ClearloopError(f"task {self.name}: expected at least one start, not {n}")
        return self.start_box

    @cached_property
    def columns(self) -> Columns:
        """The names of the log columns that the task reads."""
        columns = map_columns(
            self.data, self.state_names, self.action_names, self.setpoints, self.reward.column, self.derived
        )
        columns = columns._replace(ends="ending") if self.success_condition is not None else columns
        return columns._replace(time_unit=self.sampling.seconds) if self.sampling else columns
