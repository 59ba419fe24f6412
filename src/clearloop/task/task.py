"""The task itself: what is to be controlled, and everything that follows from its file."""

from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError, model_validator

from clearloop.errors import ClearloopError
from clearloop.expression import Expression
from clearloop.task.columns import Columns, data_faults, map_columns
from clearloop.task.derived import derive_states, derived_faults
from clearloop.task.exploration import Law, read_law
from clearloop.task.faults import Fault, faults_of, first_of
from clearloop.task.fields import Fields
from clearloop.task.file import parse_toml, read_task
from clearloop.task.plant import NOTHING, Inlined, hidden_names, inline, signal_names
from clearloop.task.reward import lower_failure, lower_reward, reward_faults
from clearloop.task.scope import name_faults
from clearloop.task.signals import signal_faults
from clearloop.task.starts import box_faults, make_box, sobol_starts, start_faults, uniform_starts
from clearloop.task.tables import State


class Task(Fields):
    """A task file, checked. `model_dump(mode="json")` and `from_dict` give an equal one."""

    @classmethod
    def load(cls, name_or_path: str | Path) -> Self:
        """A built-in task by its name, or a .toml file."""
        text, source = read_task(name_or_path)
        return cls.from_toml(text, source=source)

    @classmethod
    def from_toml(cls, text: str, *, source: str = "task") -> Self:
        """`source` is what errors call it."""
        return cls.from_dict(parse_toml(text, source), source=source)

    @classmethod
    def from_dict(cls, tables: dict[str, Any], *, source: str = "task") -> Self:
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
        """The formulas of the states that have one: their values from what is seen and was before."""
        return derive_states(self.states, self.scope)

    @cached_property
    def reward_expression(self) -> Expression | None:
        """A bare state is the next one, `theta[t]` the one before the step. None: learned from a column."""
        return lower_reward(self.reward, self.scope)

    @cached_property
    def failure_condition(self) -> Expression | None:
        return lower_failure(self.reward, self.scope)

    @cached_property
    def _inlined(self) -> Inlined:
        return inline(self.plant, self.signals, self.scope) if self.plant else NOTHING

    @property
    def plant_derivatives(self) -> dict[str, Expression]:
        """Of the plant's states that are integrated, hidden ones included."""
        return self._inlined.derivatives

    @property
    def plant_next(self) -> dict[str, Expression]:
        """Of the plant's states with difference equations: their values from what was before."""
        return self._inlined.next

    @property
    def plant_observed(self) -> dict[str, Expression]:
        """Of the states that sensors show."""
        return self._inlined.observed

    @property
    def unveiled(self) -> "Task":
        """The task as the plant sees it: what no sensor shows, and what comes from outside, are states too.

        They stand after the others.
        """
        return self._unveiled or self

    @cached_property
    def _unveiled(self) -> "Task | None":
        if self.plant is None:
            return None
        more = {name: State() for name in hidden_names(self.plant, self.state_names)}
        more |= {name: State(external=True) for name in signal_names(self.plant, self.signals, self.scope)}
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_construct(**fields | {"states": {**self.states, **more}}) if more else None

    @cached_property
    def start_box(self) -> NDArray[np.float64] | None:
        """[S, 2], 0 where no box is given; None if starts come from the batch."""
        return make_box(self.starts, self.state_names)

    @property
    def scorable(self) -> bool:
        """Whether its plant can be run without a log: it has starts, a reward, and setpoints of its own."""
        if any(isinstance(aim, str) and aim not in self.signals for aim in self.setpoints.values()):
            return False
        boxed = self.start_box is not None and self.reward_expression is not None
        return self.gymnasium is not None or (self.simulated and boxed)

    @cached_property
    def _law(self) -> Law:
        return read_law(self.exploration, self.unveiled.state_names, self.action_names)

    @property
    def exploration_law(self) -> tuple[Expression, ...]:
        """Of each action; nothing if they are random."""
        return self._law.actions

    def scoring_starts(self, n: int = 1024) -> NDArray[np.float64]:
        """[n, S]: the same for everybody, and never seen by a search."""
        return sobol_starts(self._box(n), n)

    def random_starts(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """[n, S], uniform in the start box."""
        return uniform_starts(self._box(n), n, rng)

    def even_starts(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """[n, S], random, but spread evenly over the start box: means over them vary far less."""
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
        """The names that a log has for all this."""
        columns = map_columns(
            self.data, self.state_names, self.action_names, self.setpoints, self.reward.column, self.derived
        )
        return columns._replace(time_unit=self.sampling.seconds) if self.sampling else columns
