"""What stands in a task file, and what can be read off it without a formula."""

from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from clearloop.task.reward import Reward
from clearloop.task.sampling import Sampling
from clearloop.task.scope import Scope
from clearloop.task.tables import (
    MOST_NAMES,
    Action,
    Discount,
    Exploration,
    Flag,
    History,
    Horizon,
    Plant,
    Positive,
    Signal,
    Start,
    State,
    Table,
    Text,
)


class Fields(Table):
    """Of a task. What they mean together is not checked here."""

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

    @property
    def state_names(self) -> tuple[str, ...]:
        return tuple(self.states)

    @property
    def action_names(self) -> tuple[str, ...]:
        return tuple(self.actions)

    @cached_property
    def action_limits(self) -> NDArray[np.float64]:
        """[A, 2], the lowest and the highest value of each action."""
        limits = np.array([action.limits for action in self.actions.values()])
        limits.flags.writeable = False
        return limits

    @cached_property
    def action_counts(self) -> NDArray[np.float64]:
        """[A], the steps from limit to limit of actions that take only some values (`levels.py`); 0: any."""
        counts = np.array([float(action.count) for action in self.actions.values()])
        counts.flags.writeable = False
        return counts

    @property
    def setpoints(self) -> dict[str, float | str]:
        """Of the states that have one: a number, or the name of a log column."""
        return {name: state.setpoint for name, state in self.states.items() if state.setpoint is not None}

    @property
    def scope(self) -> Scope:
        """What the task's formulas may refer to."""
        derived = tuple(name for name, state in self.states.items() if state.formula is not None)
        external = tuple(name for name, state in self.states.items() if state.external)
        limits = {name: action.limits for name, action in self.actions.items()}
        return Scope(
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
        """The values that the cases can give, best first: the classes of a reward that is learned."""
        if self.reward.otherwise is None:
            return None
        return tuple(
            sorted({*(case.value for case in self.reward.cases), self.reward.otherwise}, reverse=True)
        )

    @property
    def failure_level(self) -> float | None:
        failing = (case.value for case in self.reward.cases if case.failure)
        return next(failing, self.reward.failure_value)

    @property
    def predicted(self) -> tuple[str, ...]:
        """The states that a model must predict: neither computed from others, nor from outside."""
        return tuple(
            name for name, state in self.states.items() if state.formula is None and not state.external
        )

    @property
    def simulated(self) -> bool:
        """Whether the engine can run the plant."""
        return self.plant is not None and self.plant.gymnasium is None

    @property
    def substeps(self) -> int:
        """Of the integration, in one control interval."""
        return self.plant.substeps if self.plant else 1

    @property
    def on_failure(self) -> dict[str, float]:
        """What failure sets states to, before they stay as they are."""
        return dict(self.plant.on_failure) if self.plant else {}

    @property
    def gymnasium(self) -> str | None:
        """The id of the environment that is the plant."""
        return self.plant.gymnasium if self.plant else None

    @property
    def exploration_box(self) -> dict[str, Start]:
        """The starts of episodes that explore; nothing where none are given."""
        return self.exploration.starts if self.exploration else {}
