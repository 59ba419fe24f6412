"""Small systems and populations, given as formulas, to run through the engine's public door."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clearloop.expression import Expression, Variable, parse, substitute
from clearloop.kernels.engine import System, roll_out
from clearloop.kernels.layout import (
    DERIVATIVE,
    FORMULA,
    MOVED,
    PROGRAM,
    Dynamics,
    Job,
    LoweredReward,
    Policies,
)
from clearloop.plants.plant import empty_networks
from clearloop.programs import lower_programs, unbounded
from clearloop.task.reward import mark_ends


def policies_of(kind: int, numbers: Any, limits: Any, dtype: Any, sizes: Sequence[int] = ()) -> Policies:
    """A population that has no programs."""
    return Policies(
        kind=kind,
        numbers=np.ascontiguousarray(numbers, dtype),
        sizes=np.array(sizes, np.int64),
        code=np.zeros(0, np.int32),
        operand=np.zeros(0, dtype),
        spans=np.zeros((len(numbers), 1), np.int64),
        limits=np.array(limits, dtype),
        counts=np.zeros(len(limits), dtype),
    )


@dataclass(frozen=True)
class Rig:
    """Names of states and actions, from which formulas know their rows (`kernels/layout.py`)."""

    states: Sequence[str]
    actions: Sequence[str] = ("u",)
    history: int = 1
    dtype: Any = field(default=np.float64)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.states, *self.actions)

    def feature(self, variable: Variable) -> int:
        if variable.part == "setpoint":
            return self.history * len(self.names) + self.states.index(variable.name)
        return (variable.lag or 0) * len(self.names) + self.names.index(variable.name)

    def frame(self, variable: Variable) -> int:
        if variable.part == "value" and variable.lag is None and variable.name in self.states:
            return self.states.index(variable.name)
        return len(self.states) + self.feature(variable)

    def programs(self, controllers: Sequence[Sequence[Expression]], limit: float | None = None) -> Policies:
        """A population of programs, each with a formula for every action."""
        formulas = [formula for controller in controllers for formula in controller]
        code, operand, ends = lower_programs(formulas, self.feature, self.dtype)
        width = len(self.actions)
        rows = np.arange(len(controllers))[:, None] * width + np.arange(width + 1)
        bound = np.finfo(self.dtype).max if limit is None else limit
        return Policies(
            kind=PROGRAM,
            numbers=np.zeros((len(controllers), 0), self.dtype),
            sizes=np.zeros(0, np.int64),
            code=code,
            operand=operand,
            spans=np.ascontiguousarray(ends[rows]),
            limits=np.array([[-bound, bound]] * width, self.dtype),
            counts=np.zeros(width, self.dtype),
        )

    def dynamics(
        self, derivatives: Sequence[str], absorbing: bool, on_failure: Mapping[str, float]
    ) -> Dynamics:
        """Runge–Kutta with one step of length 1."""
        code, operand, spans = lower_programs([parse(text) for text in derivatives], self.frame, self.dtype)
        return Dynamics(
            kind=DERIVATIVE,
            ways=np.full(len(derivatives), MOVED),
            order=np.zeros(0, np.int64),
            networks=empty_networks(self.dtype),
            code=code,
            operand=operand,
            spans=spans,
            substeps=1,
            dt=1.0,
            bounds=unbounded(len(derivatives)),
            absorbing=absorbing,
            on_failure=np.array([on_failure.get(name, np.nan) for name in self.states], self.dtype),
        )

    def reward(self, text: str, failure: str | None = None, success: str | None = None) -> LoweredReward:
        ends = [None if end is None else parse(end, kind="condition") for end in (failure, success)]
        formulas = [formula for formula in (parse(text), mark_ends(*ends)) if formula is not None]
        code, operand, spans = lower_programs(formulas, self.frame, self.dtype)
        return LoweredReward(
            kind=FORMULA,
            code=code,
            operand=operand,
            spans=np.append(spans, spans[-1:])[:3],
            networks=empty_networks(self.dtype),
            levels=np.zeros(0, self.dtype),
            failing=np.zeros(0, np.bool_),
        )

    def plant(
        self,
        derivatives: Sequence[str],
        reward: Sequence[str] = ("0",),
        absorbing: bool = True,
        on_failure: Mapping[str, float] | None = None,
    ) -> System:
        return System(
            self.dynamics(derivatives, absorbing, on_failure or {}), self.reward(*reward), members=1
        )

    def job(self, starts: Any, steps: int = 1, discount: float = 1.0, setpoints: Any = None) -> Job:
        aims = np.zeros((steps, len(self.states))) if setpoints is None else setpoints
        largest = np.finfo(self.dtype).max
        return Job(
            np.ascontiguousarray(np.clip(starts, -largest, largest), self.dtype),
            np.ascontiguousarray(aims, self.dtype),
            discount,
            self.history,
        )


def values(formulas: Sequence[Expression], variables: Sequence[Variable], inputs: Any, dtype: Any) -> Any:
    """[formulas, inputs] what the engine makes of each formula: the first action of a program.

    `inputs` [n, variables] become the starts of a plant with a state for each variable.
    """
    rig = Rig([f"s{k}" for k in range(len(variables))], dtype=dtype)
    places = {variable: Variable(state) for variable, state in zip(variables, rig.states, strict=True)}
    policies = rig.programs([[substitute(formula, places)] for formula in formulas])
    rollout = roll_out(policies, rig.plant(["0"] * len(variables)), rig.job(inputs), trajectories=True)
    assert rollout.actions is not None
    return rollout.actions[0, :, :, 0, 0]
