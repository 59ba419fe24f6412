"""A model must repeat the log in closed loop before controllers are searched or judged on it.

Logged stretches are replayed on every member from the log's own starts, with its setpoints and external
states. The logged actions are repeated, and the law of the log, if one is known, answers where the model
leaves the logged course: u = u_log + law(model) - law(log). Both laws begin with an empty memory, so whatever
the controller remembered at the start of a stretch cancels for linear laws. Without a law, the actions are
repeated as they are. A replay then costs what the log cost, up to the error of the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.controllers import Controller
from clearloop.controllers.memory import Memory
from clearloop.data import Batch
from clearloop.data.log import last_rows, setpoint_rows
from clearloop.surrogate import Surrogate
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Repetition
from clearloop.task import Task

MOST = 32  # stretches that are replayed
LONGEST = 200  # steps of a stretch
FEWEST = 4  # stretches without which nothing can be said
_SEED = 0  # of the noise that models add
OFF = 1.0  # a member that runs off costs so much more than the log, as a share of the log's cost
_ALIKE = 3.0  # … and is so many times further off than the better members


@dataclass(frozen=True, eq=False)
class Replays:
    """Replays of N logged stretches of T steps on M members."""

    task: Task
    law: str
    """the law that answered where a model left the log, in one line; empty: actions were only repeated"""
    rows: Ints
    """[N] rows of the log in which the stretches begin"""
    logged: Floats
    """[N, T + 1, S] the course of the log"""
    aims: Floats
    """[N, T + 1, S] the setpoints"""
    states: Floats
    """[M, N, T + 1, S] the courses of the members"""
    costs: Floats
    """[N] discounted cost of each stretch in the log"""
    penalties: Floats
    """[M, N] discounted cost of each replay"""

    @property
    def bias(self) -> Floats:
        """[M] extra cost of a member's replays, as a share of what the log cost."""
        extra: Floats = (self.penalties - self.costs).mean(axis=1) / self._size
        return extra

    @property
    def bias_se(self) -> Floats:
        """[M] standard error of the bias over stretches."""
        deviation: Floats = (self.penalties - self.costs).std(axis=1, ddof=1) / self._size
        return np.asarray(deviation / np.sqrt(len(self.costs)))

    @property
    def _size(self) -> float:
        return max(float(np.abs(self.costs).mean()), 1e-12)

    @property
    def repeats(self) -> Flags:
        """[M] whether a member repeats the log; a member that runs off does not."""
        off = np.abs(self.bias)
        limit = max(OFF, _ALIKE * float(np.quantile(off, 0.25, method="lower")))
        return np.asarray(np.isfinite(self.bias) & (off <= limit))

    @property
    def summary(self) -> Repetition:
        """What a surrogate keeps of its replays."""
        stretches, rows = self.logged.shape[:2]
        limit = 1e9  # a member that runs off may be further off than any number tells
        return Repetition(
            law=self.law,
            stretches=stretches,
            steps=rows - 1,
            bias=tuple(np.nan_to_num(self.bias, nan=limit).clip(-limit, limit).tolist()),
            bias_se=tuple(np.nan_to_num(self.bias_se, nan=limit).clip(0, limit).tolist()),
            repeats=tuple(self.repeats.tolist()),
        )


def replay_log(
    task: Task, batch: Batch, surrogate: Surrogate, law: Controller | None = None
) -> Replays | None:
    """Replay evenly spaced stretches of a log on all members of a surrogate.

    Args:
        task: The task.
        batch: The log that the surrogate was learned from.
        surrogate: The model.
        law: The law that the logged actions follow, if one is known.

    Returns:
        The replays, or None if the log shows too few stretches that do not fail.
    """
    stretches = _Stretches(task, batch)
    if len(stretches.rows) < FEWEST:
        return None
    answer = _Answer(law, task, stretches) if law is not None else None
    found = [stretches.replay(surrogate, member, answer) for member in range(surrogate.members)]
    states, penalties = zip(*found, strict=True)
    return Replays(
        task=task,
        law=law.summary if law is not None else "",
        rows=stretches.rows,
        logged=stretches.states,
        aims=stretches.aims,
        states=np.stack(states),
        costs=stretches.costs,
        penalties=np.stack(penalties),
    )


class _Stretches:
    """Stretches of the log that show a whole horizon, or half an episode, in which nothing ends."""

    def __init__(self, task: Task, batch: Batch) -> None:
        self.task = task
        steps = Steps.of(task, batch)
        acting = np.flatnonzero(~last_rows(batch.episodes))
        episode = batch.episodes[acting]
        longest = int(np.bincount(np.unique(episode, return_inverse=True)[1]).max(initial=0))
        self.steps = max(1, min(task.horizon, LONGEST, -(-longest // 2)))
        ends = np.arange(len(acting)) + self.steps - 1
        inside = ends < len(acting)
        ends = np.minimum(ends, len(acting) - 1)
        over = np.cumsum(steps.ending)
        whole = inside & (episode[ends] == episode) & (over[ends] == over - steps.ending)
        first = np.flatnonzero(whole)
        if len(first):
            first = first[np.linspace(0, len(first) - 1, min(MOST, len(first))).astype(np.intp)]
        self.rows = acting[first]
        ahead = self.rows[:, None] + np.arange(self.steps + 1)
        aims = setpoint_rows(task, batch.setpoints, len(batch.states))
        self.states, self.aims = batch.states[ahead], np.broadcast_to(aims, batch.states.shape)[ahead]
        self.actions = np.nan_to_num(batch.actions[ahead[:, :-1]])
        self.windows = np.hstack([steps.window, steps.before])[first]
        self.discounts = task.discount ** np.arange(self.steps)
        self.costs: Floats = -(steps.reward[first[:, None] + np.arange(self.steps)] @ self.discounts)

    def replay(self, surrogate: Surrogate, member: int, answer: "_Answer | None") -> tuple[Floats, Floats]:
        """Return the course [N, T + 1, S] on a member, and its cost [N]."""
        task = self.task
        n_states, width = len(task.states), len(task.scope.names)
        seen = task.history * width
        low, high = task.action_limits.T
        noise = surrogate.noise.draw(len(self.rows), self.steps, _SEED)
        window, states = self.windows.copy(), self.states.copy()
        penalties, ended = np.zeros(len(self.rows)), np.zeros(len(self.rows), np.bool_)
        held = np.zeros(len(self.rows))
        replied = answer.begin() if answer is not None else None
        for k in range(self.steps):
            action = self.actions[:, k]
            if replied is not None:
                action = np.clip(action + replied(k, window[:, :n_states]), low, high)
            window[:, n_states:width] = action
            after = surrogate.predict(
                window[:, :seen],
                member,
                after=self.states[:, k + 1],
                setpoints=self.aims[:, k + 1],
                noise=noise[:, k] if len(noise) else 0.0,
            )
            frame = np.hstack([after, window, self.aims[:, k]])
            reward, fails = surrogate.judge(frame, member)
            good = surrogate.reward.succeeded(frame)
            reward = np.where(ended, held, reward)
            after[ended] = window[ended, :n_states]
            penalties -= self.discounts[k] * reward
            held = np.where(ended, held, np.where(good, 0.0, reward))
            ended |= (fails | good) & surrogate.track.absorbing
            states[:, k + 1] = after
            window = np.hstack([after, np.zeros_like(action), window])[:, : window.shape[1]]
        return states, penalties


class _Answer:
    """The answers of a law to the difference between a model's course and the logged one."""

    def __init__(self, law: Controller, task: Task, stretches: _Stretches) -> None:
        self.law, self.task, self.stretches = law.for_task(task), task, stretches
        memories = self._memories()
        self.logged = [self._respond(memories, k, stretches.states[:, k]) for k in range(stretches.steps)]

    def begin(self) -> "_Reply":
        return _Reply(self, self._memories())

    def _memories(self) -> list[Memory]:
        return [self.law.reset() for _ in self.stretches.rows]

    def _respond(self, memories: Sequence[Memory], k: int, states: Floats) -> Floats:
        """Return the actions [N, A] that the law asks for, before they are limited."""
        names = self.task.state_names
        aims = self.stretches.aims[:, k]
        asked = np.zeros((len(memories), len(self.task.actions)))
        for n, memory in enumerate(memories):
            memory.observe(
                dict(zip(names, states[n].tolist(), strict=True)),
                {name: float(aims[n, names.index(name)]) for name in self.task.setpoints},
            )
            chosen = self.law.respond(memory)
            memory.acted(
                dict(zip(self.task.action_names, self.stretches.actions[n, k].tolist(), strict=True))
            )
            asked[n] = [chosen[name] for name in self.task.action_names]
        return asked


@dataclass
class _Reply:
    answer: _Answer
    memories: list[Memory]

    def __call__(self, k: int, states: Floats) -> Floats:
        return self.answer._respond(self.memories, k, states) - self.answer.logged[k]
