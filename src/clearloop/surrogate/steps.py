"""Logged transitions as the engine sees a step: columns are the rows of its frame (`kernels/layout.py`)."""

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

# The task's own reward and failure, over many logged or predicted steps at once.

STEPS = 4096  # at a time, so that a long formula over a long log does not fill the memory


def judge_frame(task: Task, frame: Floats) -> tuple[Floats, Flags]:
    """Reward [n] and failure [n] of the steps of a frame [n, columns], in double precision."""
    history = (frame.shape[1] - 2 * len(task.states)) // len(task.scope.names)
    formulas = lower_reward(task, np.float64, history)
    parts = [_judge(formulas, frame[at : at + STEPS]) for at in range(0, len(frame), STEPS)]
    reward, fails = np.concatenate([np.zeros((2, 0)), *parts], axis=1)
    return reward, fails != 0


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
    """n steps. S states, A actions, H rows of history."""

    next: Floats
    """[n, S] the states after the step"""
    window: Floats
    """[n, H (S + A)] states and actions of each lag, the present first: what networks see"""
    before: Floats
    """[n, …] the lags before the window that the task's formulas look back on"""
    setpoints: Floats
    """[n, S] during the step; 0 for states without one"""
    aims: Floats
    """[n, S] setpoints after the step"""
    reward: Floats
    """[n] by the task's formula, or as logged where it gives none"""
    failing: Flags
    """[n] marked terminal in the log, or a failure by the task's condition"""
    episode: Ints
    """[n]"""

    @classmethod
    def of(cls, task: Task, batch: Batch) -> Self:
        transitions = batch.transitions(task_window(task))
        acting = np.flatnonzero(~last_rows(batch.episodes))
        aims = setpoint_rows(task, batch.setpoints, len(batch.states))
        setpoints = aims[acting]
        reward, failing = transitions.reward, transitions.terminal
        if task.reward_expression is not None:
            reward, fails = judge_frame(task, np.hstack([transitions.next, transitions.window, setpoints]))
            failing = failing | fails
        if reward is None:
            raise ClearloopError(
                f"task {task.name}: the reward is to be learned, but the batch has no column of it"
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
        )

    @property
    def change(self) -> Floats:
        """[n, S] of each state: the Δs of sec. 4.2, which the networks learn."""
        return self.next - self.window[:, : self.next.shape[1]]

    @property
    def frame(self) -> Floats:
        """[n, columns] with as much history as the task's formulas look back on"""
        return np.hstack([self.next, self.window, self.before, self.setpoints])

    @property
    def seen(self) -> Floats:
        """[n, S + H (S + A) + S] the frame as networks may see it"""
        return np.hstack([self.next, self.window, self.setpoints])

    def __getitem__(self, rows: Flags) -> "Steps":
        return Steps(*(array[rows] for array in vars(self).values()))

    def __add__(self, others: "Steps") -> "Steps":
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return Steps(*(np.concatenate(pair) for pair in pairs))

    def __len__(self) -> int:
        return len(self.next)


# Which states failure alters: found in the data, without knowing the plant.
#
# When the cart-pole fails, its velocities become 0 whatever they were. Networks that learn this from
# failing steps predict all others badly; and a reward network that sees it learns "velocity 0" instead of
# "outside the limits", which no model ever predicts: hence most of the optimism of models that are learned
# as published.

FEWEST_FAILURES = 10  # failing steps from which to learn anything
_USUAL = 0.99  # of the other steps differ from a linear model by no more than some error; …
SURPRISING = 3.0  # … a failing step that differs by so many times that error is odd; …
TOLERATED = 0.1  # … a state of which more of the failing steps are odd is altered (cart-pole: 0.00 or 1.00)


class FailureEffect(NamedTuple):
    """What it does to the S states."""

    altered: Flags
    """[S] whether it sets them to something that the step does not explain"""
    values: Floats
    """[S] what they then are, if always the same; otherwise NaN"""

    @classmethod
    def of_all_states(cls, n_states: int, altered: bool) -> "FailureEffect":
        return cls(np.full(n_states, altered), np.full(n_states, np.nan))

    def to_dict(self, names: Sequence[str]) -> dict[str, float | None]:
        """Of the altered states: what they then are; None where that differs."""
        found = zip(names, self.altered, self.values.tolist(), strict=True)
        return {name: None if math.isnan(value) else value for name, altered, value in found if altered}

    @classmethod
    def from_dict(cls, values: Mapping[str, float | None], names: Sequence[str]) -> "FailureEffect":
        known = [values.get(name) for name in names]
        return cls(
            np.array([name in values for name in names]),
            np.array([np.nan if value is None else value for value in known]),
        )


def find_alterations(steps: Steps) -> FailureEffect:
    """From what failing steps do that others do not."""
    if not steps.failing.any() or steps.failing.all():
        return FailureEffect.of_all_states(steps.next.shape[1], altered=bool(steps.failing.any()))
    after = steps[steps.failing].next
    constant = (after == after[0]).all(axis=0) & (steps.next != after[0]).any(axis=0)
    return FailureEffect(constant | _surprises(steps), np.where(constant, after[0], np.nan))


def _surprises(steps: Steps) -> Flags:
    """[S] whether failing steps do what a linear model of the others finds very odd."""
    inputs = np.column_stack([steps.window, np.ones(len(steps))])
    ordinary = ~steps.failing
    gains, *_ = np.linalg.lstsq(inputs[ordinary], steps.change[ordinary])
    errors = np.abs(steps.change - inputs @ gains)
    odd = errors[steps.failing] > SURPRISING * np.quantile(errors[ordinary], _USUAL, axis=0)
    return np.asarray(odd.mean(axis=0) > TOLERATED)


# The two ways to learn a model: as we know to be better, and as published.


@dataclass(frozen=True, kw_only=True)
class Track:
    """What a surrogate is learned with. `dataclasses.replace(BEST, search=2)` is another one."""

    name: str = "best"
    """what people call it"""
    search: int = 5
    """members to search controllers with"""
    judge: int = 3
    """members that only judge what the search found; 0: those that it was found with do"""
    training: Training = field(default_factory=Training)
    """of every network"""
    held_out: float = 0.1
    """share of the transitions, in whole episodes, that tells when to stop"""
    known_reward: bool = True
    """the task's formula is the reward, where there is one"""
    absorbing: bool = True
    """what has failed stays where it is and goes on paying"""
    discern: bool = True
    """finds the states that failure alters (`failure.py`): the others are learned from failing steps, too,
    and a learned reward looks at the whole step without them. If false, no state is learned from failing
    steps, and a learned reward looks at the next state"""
    noise: float = 0.01
    """of what networks leave unexplained of a state's change, as a share of its variance: more is noise, and
    drawn in rollouts, too; less is an error of the networks"""
    reach: float | None = 1.0
    """how far a state may leave its range in the log to either side, in ranges; None: at will. Out there,
    networks only guess, and what runs off to infinity on one model would outweigh everything else"""
    sheets: bool = True
    """where states never leave a sheet (`sheets.py`), networks learn the way back to it"""
    mirrored: bool = True
    """a symmetric plant is also learned from the mirror image of every transition"""

    def __post_init__(self) -> None:
        if self.search < 1 or self.judge < 0:
            raise ClearloopError(
                f"a surrogate needs a member or more to search with, and 0 or more to judge, "
                f"not {self.search} and {self.judge}"
            )

    @property
    def members(self) -> int:
        return self.search + self.judge


BEST: Final = Track()

PUBLISHED: Final = Track(
    name="published",
    search=1,
    judge=0,
    known_reward=False,
    absorbing=False,
    discern=False,
    noise=1.0,
    reach=None,
    sheets=False,
    mirrored=False,
)
"""Sec. 4.2 of the paper, which does not say what becomes of failing steps: the dynamics do without them."""

TRACKS: Final = {track.name: track for track in (BEST, PUBLISHED)}


# What a surrogate is learned from: steps to train on, steps held out, and what failure does to states.


@dataclass(frozen=True, eq=False)
class Lesson:
    """For both kinds of networks, those of the dynamics and those of the reward."""

    task: Task
    track: Track
    training: Steps
    held_out: Steps
    failure: FailureEffect

    @classmethod
    def of(cls, task: Task, batch: Batch, track: Track, seed: int) -> Self:
        training, held_out = (Steps.of(task, part) for part in split(batch, track, seed))
        if not track.discern:
            doubtful = FailureEffect.of_all_states(len(task.states), altered=True)
            return cls(task, track, training, held_out, doubtful)
        if np.count_nonzero(training.failing) < FEWEST_FAILURES:
            training, held_out = training[~training.failing], held_out[~held_out.failing]
        return cls(task, track, training, held_out, find_alterations(training))

    def mirrored(self, inputs: Floats, targets: Floats, sign: float) -> tuple[Floats, Floats]:
        """Inputs [n, columns] and targets [T, n, outputs], and of a symmetric plant their mirror image.

        Mirrored, all inputs change their sign; a target is multiplied with `sign`.
        """
        if not (self.task.symmetric and self.track.mirrored):
            return inputs, targets
        return np.concatenate([inputs, -inputs]), np.concatenate([targets, sign * targets], axis=1)


def split(batch: Batch, track: Track, seed: int) -> tuple[Batch, Batch]:
    """To train on, and held out: the same parts for the same seed."""
    return batch.split(track.held_out, np.random.default_rng(seed))


# Telling of a part of the work as a part of the whole.


def portion(progress: Progress | None, done: float, share: float) -> Progress | None:
    """For a part that is `share` of the work and begins when `done` of it is behind."""
    if progress is None:
        return None
    tell = progress
    return lambda of_part, loss: tell(done + share * of_part, loss)
