"""Batches from a simulated plant: episodes from uniform starts under random actions, or those of a law."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.expression import OPERATIONS, Call, Expression, Variable, evaluate, variables
from clearloop.kernels.engine import System, roll_out
from clearloop.kernels.layout import PROGRAM, Job, Policies
from clearloop.plants.gym import GymEpisode, make_environment, run_episode, settings_of
from clearloop.plants.plant import fixed_actions, lower_judgements, lower_plant, task_window
from clearloop.plants.scenarios import Scenarios, setpoint_table
from clearloop.programs import Features, derive_rows, lower_programs
from clearloop.task import Task
from clearloop.task.plant import draw_signal, make_box, signal_names, uniform_starts
from clearloop.task.tables import Exploration, draw_levels, to_levels


class _Episodes(NamedTuple):
    """The results of n episodes, one after the other: R rows, one for each observation."""

    states: NDArray[np.float64]  # [R, S]
    actions: NDArray[np.float64]  # [R, A]; on the last row of an episode those of the row before
    rewards: NDArray[np.float64]  # [R]
    setpoints: NDArray[np.float64]  # [R, P], of the P states whose setpoint is a log column
    ended: NDArray[np.bool_]  # [n], by failure or by success
    steps: NDArray[np.int64]  # [n], the number of steps until then, or until the end


def make_batch(task: Task, *, rng: np.random.Generator, size: int | None = None) -> Batch:
    """Make a batch by simulating a task's plant, as its [exploration] says.

    Transitions that fail or succeed are kept, and end an episode; the last episode may be cut short.

    Args:
        task: A task with a plant of equations, or of a package.
        rng: The source of random starts, actions and signals.
        size: The number of transitions; by default that of the task.

    Returns:
        A batch of exactly `size` transitions.

    Raises:
        ClearloopError: If the task has no such plant or no starts, or if `size` is below 1.
    """
    if not task.explorable:
        raise ClearloopError(
            f"task '{task.name}' has no [plant] of equations to draw a batch from: learn from a log (--data)"
        )
    plan = task.exploration or Exploration(steps=task.horizon)
    wanted = plan.size if size is None else size
    if wanted < 1:
        raise ClearloopError(f"expected a batch of at least one transition, not {wanted}")
    parts: list[_Episodes] = []
    while (missing := wanted - sum(int(part.steps.sum()) for part in parts)) > 0:
        least = 2 ** (len(parts) // 16)  # episodes that fail at once must not be drawn one by one
        count, drawn = max(1 + missing // plan.steps, least), sum(len(part.steps) for part in parts)
        parts.append(
            _draw(task, plan, count, rng) if task.simulated else _draw_apart(task, plan, count, drawn, rng)
        )
    return _batch(task, _Episodes(*map(np.concatenate, zip(*parts, strict=True))), wanted)


def _draw(task: Task, plan: Exploration, count: int, rng: np.random.Generator) -> _Episodes:
    full = task.unveiled
    box = make_box(plan.starts or task.starts, full.state_names)
    if box is None:
        raise ClearloopError(f"task '{task.name}': give [exploration] starts, to draw a batch from")
    history = max(task_window(task), law_window(task))
    policies = _explorers(task, count, plan.steps, history, rng)
    scenarios = Scenarios.explored(task, uniform_starts(box, count, rng), rng, plan.steps)
    job, system = scenarios.job(task, history), lower_plant(task, history=history)
    steps, ended = _count_steps(task, policies, system, job)
    rollout = roll_out(policies, system, job._replace(steps=int(steps.max())), trajectories=True)
    aims = [task.state_names.index(name) for name in task.logged_setpoints]
    setpoints = np.broadcast_to(scenarios.setpoints, (count, *scenarios.setpoints.shape[1:]))
    episode, row = _rows(steps)
    acting = np.minimum(row, steps[episode] - 1)
    return _Episodes(
        np.asarray(rollout.states)[0, 0, episode, row, : len(task.states)],
        np.asarray(rollout.actions)[0, 0, episode, acting],
        np.asarray(rollout.rewards)[0, 0, episode, acting],
        setpoints[episode, acting][:, aims],
        ended,
        steps,
    )


def _draw_apart(task: Task, plan: Exploration, count: int, first: int, rng: np.random.Generator) -> _Episodes:
    """Draw episodes from a package, which begins each with the next of its settings, and a new seed."""
    table, environment = setpoint_table(task, plan.steps), make_environment(task, plan.steps)
    try:
        episodes = [
            run_episode(
                environment,
                _Explorer(task, plan.steps, rng),
                task,
                table,
                int(rng.integers(2**32)),
                start=settings_of(task, number),
            )
            for number in range(first, first + count)
        ]
    finally:
        environment.close()
    steps = np.array([episode.steps for episode in episodes])
    return _Episodes(
        np.concatenate([_completed(task, episode, table)[: episode.steps + 1] for episode in episodes]),
        np.concatenate([_and_last(episode.actions, episode.steps) for episode in episodes]),
        np.concatenate([_and_last(episode.rewards, episode.steps) for episode in episodes]),
        np.zeros((int((steps + 1).sum()), 0)),
        np.array([episode.ended for episode in episodes]),
        steps,
    )


def _completed(task: Task, episode: GymEpisode, setpoints: Floats) -> Floats:
    """Return the states of an episode with those that the task computes."""
    if not task.derived:
        return episode.states
    acted, aims = _and_last(episode.actions, len(episode.actions)), _and_last(setpoints, len(setpoints))
    return derive_rows(
        task, task.derived, episode.states, acted, aims, np.zeros(len(acted), np.int64), task_window(task)
    )


def _and_last(rows: Floats, count: int) -> Floats:
    return np.concatenate([rows[:count], rows[count - 1 : count]])


class _Explorer:
    """What chooses the actions of an episode that the engine does not run: the task's law, or chance."""

    def __init__(self, task: Task, steps: int, rng: np.random.Generator) -> None:
        self._task, self._law = task, dict(zip(task.actions, task.exploration_law, strict=False))
        self._random = draw_levels(task.action_limits, task.action_counts, (steps,), rng)
        names = signal_names(task.plant, task.signals, task.scope) if task.plant else ()
        self._signals = {name: draw_signal(task.signals[name], 1, steps, rng)[0] for name in names}
        self._rows: deque[Mapping[str, float]] = deque(maxlen=law_window(task))

    def reset(self) -> None:
        self._step, self._chosen = 0, self._task.action_starts

    def act(
        self, observation: Mapping[str, float], _: None, setpoint: Mapping[str, float]
    ) -> dict[str, float]:
        drawn = {name: float(course[self._step]) for name, course in self._signals.items()}
        row = {**observation, **drawn}
        if not self._step:
            self._rows.extend([row | self._task.past_actions] * (law_window(self._task) - 1))
        self._rows.appendleft(row)
        wanted = self._random[self._step]
        if self._law:
            wanted = np.array([evaluate(law, self._values(law, setpoint)) for law in self._law.values()])
        if (most := self._task.action_changes).size:
            wanted = np.clip(wanted, self._chosen - most, self._chosen + most)
        self._chosen = to_levels(wanted, self._task.action_limits, self._task.action_counts)
        self._step += 1
        chosen = dict(zip(self._task.actions, self._chosen.tolist(), strict=True))
        self._rows[0] = row | chosen
        return chosen

    def _values(self, law: Expression, setpoint: Mapping[str, float]) -> dict[Variable, float]:
        """Return the values of a law's variables, which are read as in a controller file."""

        def read(variable: Variable) -> float:
            aim = setpoint.get(variable.name, 0.0)
            if variable.part == "setpoint":
                return aim
            return self._rows[variable.lag or 0][variable.name] - aim

        return {variable: read(variable) for variable in variables(law)}


def _rows(steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each observation of episodes with `steps` [n] its episode and its number in it."""
    episode = np.repeat(np.arange(len(steps)), steps + 1)
    return episode, np.arange(len(episode)) - np.repeat(np.cumsum(steps + 1) - steps - 1, steps + 1)


def law_window(task: Task) -> int:
    """Return the number of observations that the law of the exploration needs, the present one included."""
    return 1 + max((v.lag or 0 for law in task.exploration_law for v in variables(law)), default=0)


def _explorers(task: Task, count: int, steps: int, history: int, rng: np.random.Generator) -> Policies:
    """Return the policies that choose the actions: the task's law, or random actions."""
    if not task.exploration_law:
        actions = draw_levels(task.action_limits, task.action_counts, (count, steps), rng)
        return fixed_actions(actions, task)
    features = Features(task.unveiled.state_names, task.action_names, history)
    code, operand, spans = lower_programs(task.exploration_law, features.slot, np.float64)
    return Policies(
        kind=PROGRAM,
        numbers=np.zeros((1, 0)),
        sizes=np.zeros(0, np.int64),
        code=code,
        operand=operand,
        spans=spans[None],
        limits=task.action_limits,
        counts=task.action_counts,
        rates=task.action_changes,
    )


def _count_steps(
    task: Task, policies: Policies, system: System, job: Job
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the number of steps [n] until an episode ends, and whether it ends before time is up [n].

    With a reward of 1 for an end, which is paid as for a failure, a return counts the remaining steps.
    """
    horizon = job.setpoints.shape[1]
    over = [end for end in (task.failure_condition, task.success_condition) if end is not None]
    if not over:
        return np.full(len(job.starts), horizon), np.zeros(len(job.starts), np.bool_)
    ends = over[0] if len(over) == 1 else Call(OPERATIONS["or"], tuple(over))
    ending = lower_judgements([ends] * 2, task.unveiled, np.float64, job.history)
    rollout = roll_out(policies, system._replace(reward=ending), job._replace(discount=1.0))
    after = np.maximum(rollout.returns[0, 0] - 1, 0)
    return np.asarray(horizon - after, np.int64), rollout.failed[0, 0]


def _batch(task: Task, drawn: _Episodes, wanted: int) -> Batch:
    """Return a batch with one row for each observation; the last one of an episode has no action."""
    before = np.cumsum(drawn.steps) - drawn.steps
    steps = np.minimum(drawn.steps, wanted - before)[before < wanted]
    ended = (drawn.ended & (drawn.steps <= wanted - before))[: len(steps)]
    episode, row = _rows(steps)  # only the last episode may be shorter than it was drawn
    last = row == steps[episode]
    states, actions, rewards, setpoints = (part[: len(episode)] for part in drawn[:4])
    return Batch(
        columns=task.columns,
        states=states,
        actions=np.where(last[:, None], np.nan, actions),
        episodes=episode,
        terminal=last & ended[episode],
        rewards=np.where(last, np.nan, rewards),
        times=(row * task.dt).astype(np.float64),
        setpoints=setpoints[np.arange(len(episode)) - last] if task.columns.setpoints else None,
    )
