"""Scenarios that controllers are tried in: starts with their past, setpoints and external states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.data.log import first_rows, last_rows, setpoint_rows
from clearloop.errors import ClearloopError
from clearloop.kernels.layout import CALM, Disturbances, Job
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.plants.plant import task_window
from clearloop.programs import derive_rows
from clearloop.task import Task
from clearloop.task.plant import draw_signal


def setpoint_table(
    task: Task,
    steps: int,
    changed: Mapping[str, float] | None = None,
    signals: Mapping[str, Floats] | None = None,
) -> Floats:
    """Return the setpoints of a rollout, which are 0 for states without one.

    Args:
        task: The task, with its setpoints.
        steps: The number of steps.
        changed: Other setpoints by state.
        signals: [N, T] the setpoints that come from log columns, by the name of the column.

    Returns:
        [steps, S]; with `signals`, [N or 1, steps, S].

    Raises:
        ClearloopError: If a setpoint is a log column that is not among the signals.
    """
    known = signals or {}
    aims = {**task.setpoints, **(changed or {})}
    for name, aim in aims.items():
        if isinstance(aim, str) and aim not in known:
            raise ClearloopError(
                f"task '{task.name}': the setpoint of '{name}' is the log column '{aim}';"
                ' without a log it needs a number, in the task or as the "setpoint" of the controller'
            )
    wanted = [aims.get(name, 0.0) for name in task.state_names]
    columns = [known[aim] if isinstance(aim, str) else np.full((1, steps), aim) for aim in wanted]
    count = max(len(column) for column in columns)
    table = np.stack([np.broadcast_to(c[:, :steps], (count, steps)) for c in columns], axis=2)
    return table if signals is not None else table[0]


Aims = Mapping[str, float]
"""Setpoints by state."""


class Disturbance(NamedTuple):
    """One way in which the real loop may differ from the one that a controller was learned for.

    Sensor noise alters what the controller sees, not the plant. Delay, gain and offset alter the action that
    the plant gets, not the past actions that the controller remembers. Actuators keep their limits.
    """

    name: str = ""
    noise: float = 0.0
    """the standard deviation of the noise on each observed state, as a share of its spread in the log"""
    late: int = 0
    """the steps that each action comes late; before the first one comes what was chosen before the start"""
    gain: float = 1.0
    """the applied action, as a share of the chosen one"""
    offset: float = 0.0
    """what is added to each action, as a share of half its range"""


SCORING = 20  # the seed of the signals with which all controllers are scored


@dataclass(frozen=True, eq=False)
class Scenarios:
    """N scenarios of T steps, for a task of S states, of which D are external.

    Attributes:
        starts: [N, S]; with a past [N, H (S + A)], for each lag the states and actions of that time.
        setpoints: [N or 1, T, S] the setpoints of each step.
        script: [N or 1, T + 1, D] the external states of each step; empty: they stay as at the start.
        luck: The seed of the noise that a model adds.
        disturbances: What sensors and actuators do differently from each start, if anything.
    """

    starts: Floats
    setpoints: Floats
    script: Floats
    luck: int = 0
    disturbances: Disturbances = field(default=CALM)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, some: Any) -> Self:
        """Return some of the scenarios, by a slice or by numbers."""
        return replace(
            self,
            starts=self.starts[some],
            setpoints=self.setpoints if len(self.setpoints) == 1 else self.setpoints[some],
            script=self.script if len(self.script) <= 1 else self.script[some],
            disturbances=chosen_disturbances(self.disturbances, some),
        )

    def disturbed(
        self,
        task: Task,
        disturbances: Sequence[Disturbance],
        *,
        spread: Floats | None = None,
        drawn: Floats | None = None,
    ) -> Self:
        """Return the same scenarios under disturbances.

        Args:
            task: The task, whose actions are limited.
            disturbances: One for all scenarios, or one for each of them.
            spread: [S] the standard deviation of each state in the log, for sensor noise.
            drawn: [T, S, N] standard normal numbers, which sensor noise is made of.
        """
        each = list(disturbances) * (len(self) if len(disturbances) == 1 else 1)
        share, late, gain, offset = (np.array(column) for column in list(zip(*each, strict=True))[1:])
        noise = np.zeros((0, 0, 0))
        if spread is not None and drawn is not None and share.any():
            noise = share * spread[:, None] * drawn
        actions = np.ones(len(task.actions))
        found = Disturbances(
            late=late.astype(np.int64),
            gain=gain[:, None] * actions,
            offset=offset[:, None] * np.ptp(task.action_limits, axis=1) / 2,
            noise=noise,
        )
        return replace(self, disturbances=found)

    def aiming(self, task: Task, changed: Aims) -> Self:
        """Return the same scenarios with other setpoints."""
        setpoints = self.setpoints.copy()
        for name, value in changed.items():
            setpoints[:, :, task.state_names.index(name)] = value
        return replace(self, setpoints=setpoints) if changed else self

    def veiled(self, task: Task) -> Self:
        """Return the scenarios as a model of the task sees them: without the hidden states of its plant."""
        n_states, full = len(task.states), task.unveiled
        if self.setpoints.shape[2] == n_states:
            return self
        kept = [name in task.states for name in full.scope.external]
        script = self.script[:, :, kept] if self.script.size else self.script
        noise = self.disturbances.noise
        return replace(
            self,
            starts=self.starts[:, :n_states],
            setpoints=self.setpoints[:, :, :n_states],
            script=script,
            disturbances=self.disturbances._replace(noise=np.ascontiguousarray(noise[:, :n_states])),
        )

    @property
    def steps(self) -> int:
        """The number of steps of a scenario."""
        return int(self.setpoints.shape[1])

    def job(self, task: Task, history: int, dtype: Any = np.float64, noise: Floats | None = None) -> Job:
        """Return the scenarios as a job for the engine.

        Args:
            task: The task.
            history: The number of observations in the window.
            dtype: The type of the numbers.
            noise: [N, T, K] the noise that is added to the predictions of a model.

        Raises:
            ClearloopError: If a number is not finite or too large.
        """
        arrays = (self.starts, self.setpoints, self.script)
        for what, numbers in zip(("starts", "setpoints", "scripts"), arrays, strict=True):
            if not (np.abs(numbers) <= STATE_LIMIT).all():
                raise ClearloopError(f"{what}: expected numbers from {-STATE_LIMIT:g} to {STATE_LIMIT:g}")
        starts, setpoints, script = (array.astype(dtype) for array in arrays)
        chance = np.zeros((0, 0, 0)) if noise is None else noise
        before = task.action_starts
        return Job(
            starts,
            setpoints,
            task.discount,
            history,
            script,
            chance.astype(dtype),
            self.disturbances,
            before=before.astype(dtype) if before.any() else np.zeros(0, dtype),
        )

    @classmethod
    def at(cls, task: Task, points: Any, aims: Aims | None = None) -> Self:
        """Return scenarios from states [N, S] with constant setpoints: those of the task, or `aims`."""
        points = np.ascontiguousarray(points, np.float64)
        if points.ndim != 2 or points.shape[1] != len(task.states) or not len(points):
            raise ClearloopError(
                f"starts: expected {len(task.states)} numbers for each, found {points.shape}"
            )
        return cls(points, setpoint_table(task, task.horizon, aims)[None], np.zeros((0, 0, 0)))

    @classmethod
    def scoring(cls, task: Task, n: int = 1024, aims: Aims | None = None) -> Self:
        """Return the n scenarios with which all controllers are scored on the plant.

        They are the same for all controllers; `veiled` makes them scenarios for a model. `aims` are setpoints
        in place of those of the task.
        """
        points, rng = task.unveiled.scoring_starts(n), np.random.default_rng(SCORING)
        return cls.explored(task, points, rng, task.horizon, aims)

    @classmethod
    def explored(
        cls, task: Task, points: Floats, rng: np.random.Generator, steps: int, aims: Aims | None = None
    ) -> Self:
        """Return scenarios from states [N, S] of the plant, with random signals.

        Args:
            task: The task, with its signals.
            points: [N, S] the starts, states of `task.unveiled`.
            rng: The source of the signals.
            steps: The number of steps.
            aims: Setpoints in place of those of the task.
        """
        full, n, points = task.unveiled, len(points), points.copy()
        signals = {
            name: draw_signal(signal, n, steps + 1, one)
            for (name, signal), one in zip(task.signals.items(), rng.spawn(len(task.signals)), strict=True)
        }
        setpoints = setpoint_table(full, steps, aims, signals)
        script = np.zeros((0, 0, 0))
        if full.scope.external:
            held = np.repeat(points[:, None], steps + 1, axis=1)
            places = [full.state_names.index(name) for name in full.scope.external]
            runs = [
                signals.get(name, held[:, :, j]) for name, j in zip(full.scope.external, places, strict=True)
            ]
            script = np.stack(runs, axis=2)
            points[:, places] = script[:, 0]
        points = _observed(full, points, np.broadcast_to(setpoints[:, 0], points.shape))
        return cls(points, setpoints, script)

    @classmethod
    def logged(cls, task: Task, batch: Batch, rows: NDArray[np.int64], steps: int | None = None) -> Self:
        """Return scenarios that start from rows of a log, with their past.

        Setpoints and external states follow the log; beyond the end of an episode they stay as they are.
        """
        steps = steps or task.horizon
        history = task_window(task)
        begin = first_rows(batch.episodes)[rows]
        last = np.flatnonzero(last_rows(batch.episodes))[batch.episodes[rows]]
        columns, logged = [], np.nan_to_num(batch.actions)
        for lag in range(history):
            past = np.maximum(rows - lag, begin)
            known = (lag > 0) & (rows - lag >= begin)
            columns += [batch.states[past], np.where(known[:, None], logged[past], task.action_starts)]
        ahead = np.minimum(rows[:, None] + np.arange(steps + 1), last[:, None])
        aims = setpoint_rows(task, batch.setpoints, len(batch.states))
        external = [task.state_names.index(name) for name in task.scope.external]
        return cls(
            np.hstack(columns),
            aims[ahead[:, :-1]] if batch.setpoints is not None else aims[:1, None].repeat(steps, axis=1),
            batch.states[ahead][:, :, external] if external else np.zeros((0, 0, 0)),
        )

    @classmethod
    def drawn(cls, task: Task, batch: Batch, n: int, rng: np.random.Generator) -> Self:
        """Return n random scenarios for a model: from the task's start box, or from rows of the log."""
        if task.start_box is not None:
            points = task.unveiled.even_starts(n, rng)
            found = cls.explored(task, points, rng, task.horizon).veiled(task)
        else:
            rows = np.flatnonzero(~last_rows(batch.episodes))
            if task.starts_with_episodes:
                rows = rows[first_rows(batch.episodes)[rows] == rows]
            found = cls.logged(task, batch, rng.choice(rows, n, replace=len(rows) < n))
        (own,) = rng.spawn(1)
        return replace(found, luck=int(own.integers(2**32)))


def chosen_disturbances(found: Disturbances, some: Any) -> Disturbances:
    """Return the disturbances of some scenarios, by a slice or by numbers."""
    if not len(found.late):
        return found
    noise = np.ascontiguousarray(found.noise[:, :, some]) if len(found.noise) else found.noise
    return Disturbances(found.late[some], found.gain[some], found.offset[some], noise)


def _observed(task: Task, points: Floats, setpoints: Floats) -> Floats:
    """Return starts [N, S] of a plant with what its sensors show, and what the task derives from that."""
    n, history = len(points), task_window(task)
    actions = np.zeros((n, len(task.actions)))
    for formulas in (task.plant_observed, task.derived):
        if formulas:
            points = derive_rows(task, formulas, points, actions, setpoints, np.arange(n), history)
    return points
