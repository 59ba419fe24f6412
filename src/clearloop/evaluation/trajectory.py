"""One trajectory of one controller, to look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers import Controller, encode
from clearloop.controllers.reading import check_names
from clearloop.errors import ClearloopError
from clearloop.evaluation.planning import pilot_of, with_model
from clearloop.evaluation.setup import find_scenarios, make_system, window
from clearloop.evaluation.stepping import step_through
from clearloop.kernels.engine import roll_out
from clearloop.plants.gym import make_environment, run_episode
from clearloop.plants.scenarios import Scenarios
from clearloop.plants.setpoints import setpoint_table
from clearloop.surrogate import Surrogate
from clearloop.task import Task

if TYPE_CHECKING:
    import polars as pl


class SetpointChange(NamedTuple):
    """From `step` on, the state's setpoint is `value`."""

    name: str
    value: float
    step: int


@dataclass(frozen=True, eq=False)
class Trajectory:
    """T steps on M members; M is 1 on the plant."""

    task: Task
    controller: Controller
    states: NDArray[np.float64]
    """[M, T + 1, S]"""
    actions: NDArray[np.float64]
    """[M, T, A]"""
    rewards: NDArray[np.float64]
    """[M, T]"""
    setpoints: NDArray[np.float64]
    """[T, S]"""

    def to_frame(self) -> "pl.DataFrame":
        """A row for each step of each member; the last has no action and no reward."""
        import polars as pl

        members, rows, _ = self.states.shape
        steps = np.arange(rows)
        columns: dict[str, object] = {}
        if members > 1:
            columns["member"] = np.repeat(np.arange(members), rows)
        columns["step"] = np.tile(steps, members)
        columns["time"] = np.tile([float(f"{step * self.task.dt:.12g}") for step in steps], members)
        for j, name in enumerate(self.task.state_names):
            columns[name] = self.states[:, :, j].ravel()
        for name in self.task.setpoints:
            aims = self.setpoints[:, self.task.state_names.index(name)]
            columns[f"{name}.setpoint"] = np.tile(np.append(aims, aims[-1]), members)
        for a, name in enumerate(self.task.action_names):
            columns[name] = pl.Series(self._padded(self.actions[:, :, a])).fill_nan(None)
        columns["reward"] = pl.Series(self._padded(self.rewards)).fill_nan(None)
        return pl.DataFrame(columns)

    def _padded(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.pad(values, ((0, 0), (0, 1)), constant_values=np.nan).ravel()


def simulate(
    controller: Controller,
    task: Task,
    *,
    surrogate: Surrogate | None = None,
    start: Mapping[str, float] | None = None,
    setpoints: Sequence[SetpointChange] = (),
    steps: int | None = None,
    scenario: Scenarios | None = None,
) -> Trajectory:
    """Run a controller from one start, 0 where not named, with setpoints that may change on the way.

    Or in a `scenario`, the first of them, in place of the start.
    """
    check_names("start", start or {}, "a state", task.unveiled.state_names)
    check_names("setpoint", {change.name for change in setpoints}, "a state with a setpoint", task.setpoints)
    controller = with_model(controller.for_task(task), task)
    if surrogate is None and task.gymnasium is not None:
        table = setpoint_table(task, steps or task.horizon, controller.setpoint)
        return _simulate_environment(controller, task, _changed(table, task, setpoints), start)
    history, view = window(task, [controller]), task.unveiled if surrogate is None else task
    if scenario is None:
        point = np.array([[(start or {}).get(name, 0.0) for name in task.unveiled.state_names]])
        rng = np.random.default_rng(0)
        scenario = Scenarios.explored(task, point, rng, steps or task.horizon, controller.setpoint)
    scenario = find_scenarios(task, controller, scenario[:1], surrogate is None)
    table = _changed(scenario.setpoints[0], task, setpoints)
    job = replace(scenario, setpoints=table[None]).job(task, history)
    if (pilot := pilot_of(controller)) is not None:
        rollout = step_through(pilot, job, surrogate)
    else:
        system = make_system(task, surrogate, history)
        rollout = roll_out(encode([controller], view, history=history), system, job, trajectories=True)
    parts = (rollout.states, rollout.actions, rollout.rewards)
    states, actions, rewards = (np.asarray(part)[:, 0, 0] for part in parts)
    n_states = len(task.states)
    return Trajectory(task, controller, states[:, :, :n_states], actions, rewards, table[:, :n_states])


def _changed(
    table: NDArray[np.float64], task: Task, changes: Sequence[SetpointChange]
) -> NDArray[np.float64]:
    table = table.copy()
    for name, value, step in sorted(changes, key=lambda change: change.step):
        table[step:, task.state_names.index(name)] = value
    return table


def _simulate_environment(
    controller: Controller, task: Task, setpoints: NDArray[np.float64], start: Mapping[str, float] | None
) -> Trajectory:
    """From where the environment resets to with seed 0."""
    if start:
        raise ClearloopError(f"task '{task.name}': its environment chooses the start: give none")
    environment = make_environment(task, len(setpoints))
    try:
        states, actions, rewards, _ = run_episode(environment, controller, task, setpoints, seed=0)
    finally:
        environment.close()
    return Trajectory(task, controller, states[None], actions[None], rewards[None], setpoints)
