"""A surrogate learns from logged steps, whose columns are those of the engine's frame (`kernels/layout.py`).

This file also holds the two tracks, which are the ways to learn a surrogate, and the effect of failure on
states.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data import Batch
from clearloop.data.log import last_rows, setpoint_rows
from clearloop.errors import ClearloopError
from clearloop.kernels.interpreter import run
from clearloop.networks import Progress, Training
from clearloop.plants.plant import lower_reward, task_window
from clearloop.task import Task

_MOSTLY = 0.5  # share of the steps
STEPS = 4096  # judged at a time, so that a long formula over a long log does not fill the memory


def judge_frame(task: Task, frame: Floats) -> tuple[Floats, Flags]:
    """Return the reward and failure [n] of steps [n, columns] by the task's formulas, in double precision."""
    reward, ends = judge_ends(task, frame)
    return reward, ends > 0


def judge_ends(task: Task, frame: Floats) -> tuple[Floats, Ints]:
    """Return the reward and the end [n] of steps [n, columns]: 1 failed, -1 succeeded, 0 it goes on."""
    history = (frame.shape[1] - 2 * len(task.states)) // len(task.scope.names)
    formulas = lower_reward(task, np.float64, history)
    parts = [_judge(formulas, frame[at : at + STEPS]) for at in range(0, len(frame), STEPS)]
    reward, ends = np.concatenate([np.zeros((2, 0)), *parts], axis=1)
    return reward, ends.astype(np.int64)


def _judge(formulas: Any, frame: Floats) -> Floats:
    """[2, n]"""
    n, columns = frame.shape
    code, operand, spans = formulas.code, formulas.operand, formulas.spans
    rows = np.empty((columns + int(np.diff(spans).max()), n))
    rows[:columns] = frame.T
    results = np.zeros((2, n))
    for result, start, stop in zip(results, spans[:-1], spans[1:], strict=True):
        if stop > start:
            run(code, operand, start, stop, rows, 0, columns, 0, n)
            result[:] = rows[columns]
    return results


@dataclass(frozen=True, eq=False)
class Steps:
    """Logged steps: n steps with S states, A actions and H rows of history."""

    next: Floats
    """[n, S] states after the step"""
    window: Floats
    """[n, H (S + A)] states and actions of each lag, the present first: what networks see"""
    before: Floats
    """[n, …] older lags that the task's formulas read"""
    setpoints: Floats
    """[n, S] setpoints during the step; 0 for states without one"""
    aims: Floats
    """[n, S] setpoints after the step"""
    reward: Floats
    """[n] reward by the task's formula, or as logged if the task has none"""
    failing: Flags
    """[n] whether the log marks the step as terminal or the task's condition says that it fails; a step that
    succeeds does not fail"""
    episode: Ints
    """[n] number of the episode"""
    succeeding: Flags
    """[n] whether the step ends its episode by success"""

    @classmethod
    def of(cls, task: Task, batch: Batch) -> Self:
        """Return the steps of a batch.

        Raises:
            ClearloopError: The reward is neither in the task nor in the batch.
        """
        transitions = batch.transitions(task_window(task), task.action_starts)
        acting = np.flatnonzero(~last_rows(batch.episodes))
        aims = setpoint_rows(task, batch.setpoints, len(batch.states))
        setpoints = aims[acting]
        reward, failing = transitions.reward, transitions.terminal
        succeeding = np.zeros(len(failing), np.bool_)
        if task.reward_expression is not None:
            reward, ends = judge_ends(task, np.hstack([transitions.next, transitions.window, setpoints]))
            failing, succeeding = (failing & (ends >= 0)) | (ends > 0), ends < 0
        if reward is None:
            raise ClearloopError(
                f"task {task.name}: the reward is unknown, because the task has no formula and the batch has "
                "no column of it: add one of them"
            )
        window, before = np.hsplit(transitions.window, [task.history * len(task.scope.names)])
        return cls(
            transitions.next,
            window,
            before,
            setpoints,
            aims[acting + 1],
            reward,
            failing,
            transitions.episode,
            succeeding,
        )

    @property
    def ending(self) -> Flags:
        """[n] whether the step ends its episode, by failure or by success."""
        return self.failing | self.succeeding

    @property
    def change(self) -> Floats:
        """[n, S] the change Δs of each state (sec. 4.2 of the paper), which the networks learn."""
        return self.next - self.window[:, : self.next.shape[1]]

    @property
    def frame(self) -> Floats:
        """[n, columns] the frame with as much history as the task's formulas read."""
        return np.hstack([self.next, self.window, self.before, self.setpoints])

    @property
    def seen(self) -> Floats:
        """[n, S + H (S + A) + S] the frame as networks may see it."""
        return np.hstack([self.next, self.window, self.setpoints])

    def remembered(self, history: int) -> "Steps":
        """Return the steps whose whole window was logged, if these are most of the steps; else all.

        Before an episode, the window repeats the first observation with actions 0. Where a task starts its
        episodes so, that is right; in a log that was cut into episodes, it is made up.
        """
        age = np.arange(len(self)) - np.searchsorted(self.episode, self.episode)
        whole = age >= history - 1
        return self[whole] if whole.mean() > _MOSTLY else self

    def __getitem__(self, rows: Flags) -> "Steps":
        return Steps(*(array[rows] for array in vars(self).values()))

    def __add__(self, others: "Steps") -> "Steps":
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return Steps(*(np.concatenate(pair) for pair in pairs))

    def __len__(self) -> int:
        return len(self.next)


# Failure alters some states, which are found in the data, without knowing the plant. When the cart-pole
# fails, its velocities become 0 whatever they were. Networks that learn this from failing steps predict all
# others badly; and a reward network that sees it learns "velocity 0" instead of "outside the limits", which
# no model ever predicts. This causes most of the optimism of models that are learned as published.

FEWEST_FAILURES = 10  # failing steps that are needed to learn anything from them
_USUAL = 0.99  # quantile of the errors of a linear model in ordinary steps, its usual error
SURPRISING = 3.0  # a failing step is odd if its error is larger than so many usual errors
TOLERATED = 0.1  # share of odd failing steps above which a state is altered (cart-pole: 0.00 or 1.00)


class FailureEffect(NamedTuple):
    """The effect of failure on the S states."""

    altered: Flags
    """[S] whether failure sets the state to something that the step does not explain"""
    values: Floats
    """[S] the value that it is set to, if always the same; otherwise NaN"""

    @classmethod
    def of_all_states(cls, n_states: int, altered: bool) -> "FailureEffect":
        """Return the effect that alters all states, or none, to unknown values."""
        return cls(np.full(n_states, altered), np.full(n_states, np.nan))

    def to_dict(self, names: Sequence[str]) -> dict[str, float | None]:
        """Return the altered states and the values that they are set to; None if the values differ."""
        found = zip(names, self.altered, self.values.tolist(), strict=True)
        return {name: None if math.isnan(value) else value for name, altered, value in found if altered}

    @classmethod
    def from_dict(cls, values: Mapping[str, float | None], names: Sequence[str]) -> "FailureEffect":
        """Return the effect that `to_dict` wrote."""
        known = [values.get(name) for name in names]
        return cls(
            np.array([name in values for name in names]),
            np.array([np.nan if value is None else value for value in known]),
        )


def find_alterations(steps: Steps) -> FailureEffect:
    """Find the effect of failure by comparing failing steps with the others."""
    if not steps.failing.any() or steps.failing.all():
        return FailureEffect.of_all_states(steps.next.shape[1], altered=bool(steps.failing.any()))
    after = steps[steps.failing].next
    constant = (after == after[0]).all(axis=0) & (steps.next != after[0]).any(axis=0)
    return FailureEffect(constant | _surprises(steps), np.where(constant, after[0], np.nan))


def _surprises(steps: Steps) -> Flags:
    """Return the states [S] that a linear model of ordinary steps predicts very badly in failing steps."""
    inputs = np.column_stack([steps.window, np.ones(len(steps))])
    ordinary = ~steps.failing
    gains, *_ = np.linalg.lstsq(inputs[ordinary], steps.change[ordinary])
    errors = np.abs(steps.change - inputs @ gains)
    odd = errors[steps.failing] > SURPRISING * np.quantile(errors[ordinary], _USUAL, axis=0)
    return np.asarray(odd.mean(axis=0) > TOLERATED)


# The two tracks are the ways to learn a model: the best that we know, and as published.


@dataclass(frozen=True, kw_only=True)
class Track:
    """The settings of a surrogate. `dataclasses.replace(BEST, search=2)` is another track."""

    name: str = "best"
    """name of the track"""
    search: int = 5
    """members that controllers are searched with"""
    judge: int = 5
    """members that only judge what the search found; 0: the members of the search judge"""
    training: Training = field(default_factory=Training)
    """settings of the training of every network"""
    linear: bool = True
    """whether members have a linear part beside their networks, and judges learn from other rows"""
    repeats: bool = True
    """whether members must repeat the log in closed loop before they may search and judge"""
    held_out: float = 0.1
    """share of the transitions, in whole episodes, that is held out to tell which epoch is best"""
    known_reward: bool = True
    """whether the task's formula is the reward, if there is one"""
    absorbing: bool = True
    """whether a plant that failed stays as it is, with the same reward in every further step"""
    discern: bool = True
    """whether to find the states that failure alters: the others are then learned from failing steps, too,
    and a learned reward sees the whole step without them. If false, no state is learned from failing steps,
    and a learned reward sees the next state"""
    noise: float = 0.01
    """share of the variance of a state's change above which the unexplained part is noise, which rollouts
    repeat; below, it is an error of the networks"""
    reach: float | None = 1.0
    """distance by which a state may leave its range in the log on either side, in ranges; None: no limit.
    Networks only guess there, and a state that runs off to infinity on one model would outweigh everything"""
    sheets: bool = True
    """whether networks learn the way back to the sheet that states never leave, if there is one"""
    mirrored: bool = True
    """whether a symmetric plant is also learned from the mirror image of every transition"""

    def __post_init__(self) -> None:
        if self.search < 1 or self.judge < 0:
            raise ClearloopError(
                "a surrogate needs at least 1 member to search with and at least 0 members to judge, "
                f"not {self.search} and {self.judge}"
            )

    @property
    def members(self) -> int:
        """The number of all members."""
        return self.search + self.judge


BEST: Final = Track()
"""The best way that we know."""

PUBLISHED: Final = Track(
    name="published",
    search=1,
    judge=0,
    linear=False,
    repeats=False,
    known_reward=False,
    absorbing=False,
    discern=False,
    noise=1.0,
    reach=None,
    sheets=False,
    mirrored=False,
)
"""The way of sec. 4.2 of the paper. It says nothing of failing steps, so the dynamics omit them."""

TRACKS: Final = {track.name: track for track in (BEST, PUBLISHED)}


@dataclass(frozen=True, eq=False)
class Lesson:
    """The data of a surrogate: steps to train on, held-out steps, and the effect of failure."""

    task: Task
    track: Track
    training: Steps
    held_out: Steps
    failure: FailureEffect

    @classmethod
    def of(cls, task: Task, batch: Batch, track: Track, seed: int) -> Self:
        """Split a batch; the seed decides which episodes are held out."""
        training, held_out = (Steps.of(task, part) for part in split(batch, track, seed))
        if track.linear and task.start_box is None and not task.starts_with_episodes:
            training, held_out = training.remembered(task.history), held_out.remembered(task.history)
        if not track.discern:
            doubtful = FailureEffect.of_all_states(len(task.states), altered=True)
            return cls(task, track, training, held_out, doubtful)
        if np.count_nonzero(training.failing) < FEWEST_FAILURES:
            training, held_out = training[~training.failing], held_out[~held_out.failing]
        return cls(task, track, training, held_out, find_alterations(training))

    def mirrored(self, inputs: Floats, targets: Floats, sign: float) -> tuple[Floats, Floats]:
        """Return inputs [n, columns] and targets [T, n, outputs], of a symmetric plant with its mirror image.

        In the mirror image all inputs change their sign, and targets are multiplied by `sign`.
        """
        if not (self.task.symmetric and self.track.mirrored):
            return inputs, targets
        return np.concatenate([inputs, -inputs]), np.concatenate([targets, sign * targets], axis=1)


def split(batch: Batch, track: Track, seed: int) -> tuple[Batch, Batch]:
    """Split a batch into training and held-out episodes; the same seed gives the same parts."""
    return batch.split(track.held_out, np.random.default_rng(seed))


def portion(progress: Progress | None, done: float, share: float) -> Progress | None:
    """Return the progress function of a part of the work.

    Args:
        progress: The progress function of the whole work, if any.
        done: The share of the work that is done before this part.
        share: The share of the work that this part is.
    """
    if progress is None:
        return None
    tell = progress
    return lambda of_part, loss: tell(done + share * of_part, loss)
