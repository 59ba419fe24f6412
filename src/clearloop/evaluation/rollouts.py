"""Rollouts give the penalty of a controller: minus the mean discounted return over starts (Eqs. 6 and 7)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats, Ints
from clearloop.controllers import Controller, encode
from clearloop.controllers.controller import check_names
from clearloop.controllers.memory import Derivation
from clearloop.data import Batch
from clearloop.data.log import first_rows, first_windows, last_rows
from clearloop.errors import ClearloopError
from clearloop.evaluation.planning import ModelPilot, pilot_of, with_model
from clearloop.kernels.engine import Rollout, System, roll_out
from clearloop.kernels.layout import Job
from clearloop.numbers import estimate, percent
from clearloop.plants.gym import make_environment, run_episode, settings_of
from clearloop.plants.plant import fixed_actions, lower_plant, task_window
from clearloop.plants.scenarios import Scenarios, setpoint_table
from clearloop.showing import Shown
from clearloop.surrogate import Surrogate
from clearloop.surrogate.steps import Steps
from clearloop.task import Task

if TYPE_CHECKING:
    import polars as pl

LARGEST_PENALTY = 1e100  # its square, which an error needs, is still a number
_Progress = Callable[[float], None]  # is told the share of the work that is done


def standard_error_of(values: Floats) -> float:
    """Return the standard error of the mean of `values` [n]; NaN for a single value."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("nan")


def place_name(on: str) -> str:
    """Return the word for people of what a controller ran on: files call the plant `system`."""
    return "plant" if on == "system" else on


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of one controller from N starts, on the plant or on M members of a surrogate."""

    task: str
    """name of the task"""
    on: str
    """what it ran on: `system`, which is the plant's name in files, `model`, or `batch`"""
    penalties: NDArray[np.float64]
    """[M, N] minus the discounted return"""
    failed: NDArray[np.bool_]
    """[M, N] whether failure was reached"""

    def __post_init__(self) -> None:
        if not (np.abs(self.penalties) <= LARGEST_PENALTY).all():
            raise ClearloopError(
                f"task '{self.task}': rewards add up to more than {LARGEST_PENALTY:g}, too much to compare:"
                " scale the reward down"
            )

    @property
    def place(self) -> str:
        """The name in texts of what it ran on: plant, model or batch."""
        return place_name(self.on)

    @property
    def penalty(self) -> float:
        """The mean penalty."""
        return float(self.penalties.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the penalty over starts, after the mean over members."""
        return standard_error_of(self.penalties.mean(axis=0))

    @property
    def failures(self) -> float:
        """The share of rollouts that reach failure."""
        return float(self.failed.mean())

    def first(self, starts: int) -> Self:
        """Return the scores from the first starts alone."""
        return replace(self, penalties=self.penalties[:, :starts], failed=self.failed[:, :starts])

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as JSON values."""
        error = self.standard_error
        return {
            "task": self.task,
            "on": self.on,
            "starts": self.penalties.shape[1],
            "penalty": {"mean": self.penalty, "se": error if np.isfinite(error) else None},
            "failures": self.failures,
        }

    def __repr__(self) -> str:
        starts = self.penalties.shape[1]
        return (
            f"penalty {estimate(self.penalty, self.standard_error)}, {percent(self.failures)} failures "
            f"({self.task}, on the {self.place}, {starts:,} starts)"
        )


def evaluate(
    controller: Controller,
    task: Task,
    *,
    surrogate: Surrogate | None = None,
    members: Sequence[int] | None = None,
    starts: Scenarios | NDArray[np.float64] | int = 1024,
    workers: int | None = None,
    progress: _Progress | None = None,
) -> Evaluation:
    """Score a controller on the plant or on a surrogate, in double precision.

    Args:
        controller: The controller.
        task: The task, whose plant the controller runs on if there is no surrogate.
        surrogate: The model to run on; None runs on the plant.
        members: The members of the surrogate to run on; None takes all.
        starts: The number of points of the task's scoring set, or states [N, S], or scenarios, which may be
            disturbed; planners know no disturbances.
        workers: The number of threads; None takes as many as there are cores.
        progress: A function that is told the share of the work that is done, for planners, which take long.

    Returns:
        The penalty of each start on each member, and whether it failed.

    Raises:
        ClearloopError: The controller does not suit the task, or the starts cannot be given.
    """
    controller = with_model(controller.for_task(task), task)
    if surrogate is None and task.foreign:
        return _evaluate_environment(controller, task, starts)
    history = window(task, [controller])
    view = task.unveiled if surrogate is None else task
    job = make_job(task, controller, starts, surrogate, history)
    if (pilot := pilot_of(controller)) is not None:
        rollout = step_through(pilot, job, surrogate, members, workers=workers, progress=progress)
    else:
        system = make_system(task, surrogate, history, members)
        rollout = roll_out(encode([controller], view, history=history), system, job, workers=workers)
    on = "system" if surrogate is None else "model"
    return Evaluation(task.name, on, -rollout.returns[:, 0], rollout.failed[:, 0])


def _evaluate_environment(
    controller: Controller, task: Task, starts: Scenarios | NDArray[np.float64] | int
) -> Evaluation:
    """Score a controller in a Gymnasium environment, where start n is the reset with seed n, or apart."""
    setpoints = setpoint_table(task, task.horizon, controller.setpoint)
    points = _environment_starts(task, starts)
    environment = make_environment(task, task.horizon)
    try:
        episodes = [
            run_episode(
                environment, controller, task, setpoints, seed, start=start, completion=_completion(task)
            )
            for seed, start in enumerate(points)
        ]
    finally:
        environment.close()
    discounts = task.discount ** np.arange(task.horizon)
    penalties = np.array([-(episode.rewards @ discounts) for episode in episodes])
    if not np.isfinite(penalties).all():
        raise ClearloopError(f"task '{task.name}': its plant gives no reward: give cases or an expression")
    return Evaluation(task.name, "system", penalties[None], np.array([[e.failed for e in episodes]]))


def _completion(task: Task) -> Derivation | None:
    """Return what computes the derived states of an FMU or a package; an environment shows all states."""
    known = task.apart and task.derived
    return Derivation(task.derived, task.action_names, task.past_actions) if known else None


def _environment_starts(
    task: Task, starts: Scenarios | NDArray[np.float64] | int
) -> list[dict[str, float] | None]:
    """Return the first values of states for each episode; None where the environment chooses them.

    An FMU starts in the task's box of starts; without one, it has a single start, its own. A package takes
    its settings in turn, or those among the given states.
    """
    if not task.apart:
        if isinstance(starts, int):
            return [None] * starts
        raise ClearloopError(
            f"task '{task.name}': its environment chooses the starts: give only their number"
        )
    names = list(task.state_names)
    if task.plant is not None and task.plant.package is not None:
        if isinstance(starts, int):
            return [settings_of(task, number) for number in range(starts)]
        names = [name for name in names if name in task.plant.settings]
    elif isinstance(starts, int):
        if task.start_box is None:
            return [None]
        names = [name for name in names if name in task.starts]
        starts = task.scoring_starts(starts)
    if isinstance(starts, Scenarios):
        raise ClearloopError(f"task '{task.name}': give a number of starts, or a table of states")
    places = [task.state_names.index(name) for name in names]
    return [dict(zip(names, point[places].tolist(), strict=True)) for point in starts]


class SetpointChange(NamedTuple):
    """A change of a setpoint: from `step` on, the setpoint of the state `name` is `value`."""

    name: str
    value: float
    step: int


@dataclass(frozen=True, eq=False)
class Trajectory(Shown):
    """The course of T steps on M members of a surrogate; on the plant M is 1."""

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
        """Return a table with a row for each step of each member; the last has no action and no reward."""
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
    """Run a controller once, with setpoints that may change on the way.

    Args:
        controller: The controller.
        task: The task, whose plant the controller runs on if there is no surrogate.
        surrogate: The model to run on, with all of its members; None runs on the plant.
        start: The first value of each state; states that are not named start at 0.
        setpoints: Changes of setpoints during the run.
        steps: The number of steps; None takes the horizon of the task.
        scenario: Scenarios of which the first replaces start and steps.

    Returns:
        The trajectory.

    Raises:
        ClearloopError: The controller does not suit the task, or a name is not one of the task's.
    """
    check_names("start", start or {}, "a state", task.unveiled.state_names)
    check_names("setpoint", {change.name for change in setpoints}, "a state with a setpoint", task.setpoints)
    controller = with_model(controller.for_task(task), task)
    if surrogate is None and task.foreign:
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
    """Run a controller in a Gymnasium environment, from its reset with seed 0, or apart."""
    if start and not task.apart:
        raise ClearloopError(f"task '{task.name}': its environment chooses the start, so none can be given")
    environment = make_environment(task, len(setpoints))
    try:
        episode = run_episode(
            environment,
            controller,
            task,
            setpoints,
            seed=0,
            start=start or None,
            completion=_completion(task),
        )
    finally:
        environment.close()
    states, actions, rewards = (part[None] for part in episode[:3])
    return Trajectory(task, controller, states, actions, rewards, setpoints)


# A rollout needs, besides a controller, the system, the scenarios, and the length of the window.


def window(task: Task, controllers: Sequence[Controller]) -> int:
    """Return the number of rows that the engine must keep for the task, its reward and the controllers."""
    needed = (max(controller.history, 2 if controller.rates else 1) for controller in controllers)
    return max(task_window(task), *needed)


def make_system(
    task: Task,
    surrogate: Surrogate | None,
    history: int,
    members: Sequence[int] | None = None,
) -> System:
    """Return the task's plant; or, if a surrogate is given, all or some of its members."""
    if surrogate is None:
        return lower_plant(task, np.float64, history)
    return surrogate.system(np.float64, members, history)


def make_job(
    task: Task,
    controller: Controller,
    starts: Scenarios | Floats | int,
    surrogate: Surrogate | None,
    history: int,
) -> Job:
    """Return the scenarios as the engine needs them, for the plant or, with noise, for a model of it."""
    scenarios = find_scenarios(task, controller, starts, surrogate is None)
    noise = None if surrogate is None else surrogate.draw_noise(scenarios)
    return scenarios.job(task, history, noise=noise)


def find_scenarios(
    task: Task, controller: Controller, starts: Scenarios | Floats | int, on_plant: bool
) -> Scenarios:
    """Return scenarios with the setpoints of the controller, if it has any.

    Args:
        task: The task.
        controller: The controller.
        starts: Scenarios, states [N, S], or the number of points of the task's scoring set.
        on_plant: Whether they are for the plant of the task, and not for a model.

    Raises:
        ClearloopError: The plant has states that `starts` does not give.
    """
    if isinstance(starts, Scenarios):
        found = starts.aiming(task, controller.setpoint)
    elif isinstance(starts, int):
        found = Scenarios.scoring(task, starts, controller.setpoint)
    else:
        found = Scenarios.at(task, starts, controller.setpoint)
    if not on_plant:
        return found.veiled(task)
    if found.setpoints.shape[2] != len(task.unveiled.states):
        hidden = task.unveiled.state_names[len(task.states) :]
        raise ClearloopError(
            f"task '{task.name}': its plant has states that no sensor shows ({', '.join(hidden)}), so starts"
            " cannot be given: give only their number"
        )
    return found


# Planners decide step by step, for all starts together, so that one call of the engine serves all of them.


def step_through(
    pilot: ModelPilot,
    job: Job,
    surrogate: Surrogate | None,
    members: Sequence[int] | None = None,
    *,
    workers: int | None = None,
    progress: _Progress | None = None,
) -> Rollout:
    """Roll out a planner, and return what the engine would return for one controller, with trajectories.

    Args:
        pilot: The pilot of the planner.
        job: The scenarios.
        surrogate: The model to run on; None runs on the plant.
        members: The members of the surrogate, which run one after the other; None takes all.
        workers: The number of threads; None takes as many as there are cores.
        progress: A function that is told the share of the work that is done, if any.
    """
    chosen = [0] if surrogate is None else range(surrogate.members) if members is None else members
    rollouts = []
    for number, member in enumerate(chosen):
        system = make_system(pilot.task, surrogate, pilot.history, [member])
        rollouts.append(_run(pilot, system, job, workers, _part(progress, number, len(chosen))))
    return Rollout(*(np.stack(parts)[:, None] for parts in zip(*rollouts, strict=True)))


def _run(
    pilot: ModelPilot, system: System, job: Job, workers: int | None, progress: _Progress
) -> tuple[Any, ...]:
    """Return returns, failures, states, actions, rewards and successes, with a row for each start.

    If failure is absorbing, a plant that failed is not planned for any more: its states, its reward and its
    action stay the same. So it is with one that succeeded, but its reward is 0 from then on.
    """
    task, steps, n_states = pilot.task, job.setpoints.shape[1], job.setpoints.shape[2]
    setpoints = np.broadcast_to(job.setpoints, (len(job.starts), steps, n_states))
    windows, seen = _windows(job, n_states, task, pilot.history), _seen(pilot, n_states)
    starts = windows[:, :n_states]
    states = np.repeat(starts[:, None], steps + 1, axis=1)
    actions = np.zeros((len(starts), steps, len(task.actions)))
    rewards = np.zeros((len(starts), steps))
    failed, succeeded = np.zeros((2, len(starts)), np.bool_)
    running, plans = np.arange(len(starts)), None
    for step in range(steps):
        aims, outside = setpoints[running, step : step + 2], job.script[:, step : step + 2]
        plans = pilot.decide(windows[:, seen], aims[:, 0, : len(task.states)], plans, workers=workers)
        chosen = pilot.first(plans)
        present = Job(
            windows,
            aims,
            job.discount,
            pilot.history,
            outside if len(outside) <= 1 else outside[running],
            job.noise[running, step : step + 1] if len(job.noise) else job.noise,
            steps=1,
        )
        moved = roll_out(fixed_actions(chosen[:, None], task), system, present, trajectories=True)
        after, failing = np.asarray(moved.states)[0, 0, :, 1], moved.failed[0, 0]
        good = np.asarray(moved.succeeded)[0, 0]
        if task.action_changes.size:
            chosen = np.asarray(moved.actions)[0, 0, :, 0]
        states[running, step + 1 :] = after[:, None]
        actions[running, step:] = chosen[:, None]
        rewards[running, step:] = np.asarray(moved.rewards)[0, 0]
        rewards[running[good], step + 1 :] = 0.0
        failed[running] |= failing
        succeeded[running] |= good
        progress((step + 1) / steps)
        going = ~((failing | good) & system.dynamics.absorbing)
        if not going.any():
            break
        windows = _moved_on(windows, chosen, after)[going]
        running, plans = running[going], plans.of(going)
    return rewards @ job.discount ** np.arange(steps), failed, states, actions, rewards, succeeded


def _windows(job: Job, n_states: int, task: Task, history: int) -> Floats:
    """Return the windows [N, H (S + A)] that are given, or those that episodes begin with."""
    starts: Floats = job.starts
    if starts.shape[1] > n_states:
        return starts
    return first_windows(starts, len(task.actions), history, task.action_starts)


def _seen(pilot: ModelPilot, n_states: int) -> Ints:
    """Return the columns of the plant's window that the pilot sees: all but states that no sensor shows."""
    width = n_states + len(pilot.task.actions)
    each = np.delete(np.arange(width), np.s_[len(pilot.task.states) : n_states])
    return np.concatenate([lag * width + each for lag in range(pilot.history)])


def _moved_on(windows: Floats, actions: Floats, states: Floats) -> Floats:
    """Return the windows [N, H (S + A)] of the next step."""
    n_states, width = states.shape[1], states.shape[1] + actions.shape[1]
    present = np.hstack([windows[:, :n_states], actions])
    return np.hstack([states, np.zeros_like(actions), present, windows[:, width:]])[:, : windows.shape[1]]


def _part(progress: _Progress | None, number: int, parts: int) -> _Progress:
    """Return the progress function of one of several parts."""

    def tell(share: float) -> None:
        if progress is not None:
            progress((number + share) / parts)

    return tell


class LoggedCost:
    """The penalties of the log: its own rewards over the next horizon, from rows that have one."""

    def __init__(self, task: Task, batch: Batch) -> None:
        """Find the rewards of the batch, and the rows from which it shows a whole horizon."""
        self.task = task
        steps = Steps.of(task, batch)
        self._reward = steps.reward
        acting = np.flatnonzero(~last_rows(batch.episodes))
        episode = batch.episodes[acting]
        ends = np.flatnonzero(last_rows(batch.episodes))[episode] - episode - 1  # of the steps: one less
        ending = np.flatnonzero(steps.ending)
        first = np.arange(len(acting))
        last = np.append(ending, len(acting))[np.searchsorted(ending, first)]
        ended = last <= ends
        self._stops = np.where(ended, last, ends)
        """[steps] last logged step of the same episode, or the step that fails or succeeds"""
        self._held = np.where(steps.succeeding, 0.0, self._reward)
        """[steps] what is paid again and again after a step that ends an episode"""
        age = acting - first_rows(batch.episodes)[acting]
        shown = (ended | (first + task.horizon - 1 <= ends)) & (age + task.horizon <= age.max() + 1)
        self._first = first[shown]
        self.rows: Ints = acting[shown]
        """rows from which the log shows a whole horizon, or an end before. Rows later in their episode
        than any row with a whole horizon are left out, because the log would show only their failures"""

    def penalties(self, chosen: Ints) -> Floats:
        """Return the penalties [n] from `rows[chosen]` on.

        A plant that failed repeats its last reward, and one that succeeded gets none.
        """
        first = self._first[chosen]
        penalties = np.zeros(len(first))
        for step in range(self.task.horizon):  # not a table of [n, horizon], which may be large
            stops = self._stops[first]
            logged = self._reward[np.minimum(first + step, stops)]
            paid = np.where(first + step > stops, self._held[stops], logged)
            penalties -= self.task.discount**step * paid
        return penalties
