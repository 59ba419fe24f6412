"""Learning the reward: few distinct ones as classes by one-hot (sec. 4.2 of the paper), many as a value."""

import numpy as np

from clearloop.data.cells import Flags, Floats, Ints
from clearloop.networks import Network, Progress, train
from clearloop.surrogate.lesson import Lesson
from clearloop.surrogate.reward import LearnedReward
from clearloop.surrogate.steps import Steps

MOST_CLASSES = 10  # more distinct rewards than that are learned as a value


def fit_reward(lesson: Lesson, *, rng: np.random.Generator, progress: Progress | None) -> LearnedReward:
    steps = lesson.training
    levels = find_levels(np.concatenate([steps.reward, lesson.held_out.reward]))
    columns = _visible(lesson)
    trained = train(
        *lesson.mirrored(*_examples(steps, columns, levels), sign=1.0),
        held_out=_examples(lesson.held_out, columns, levels),
        settings=lesson.track.training,
        rng=rng,
        members=lesson.track.members,
        loss="classes" if levels.size else "squared",
        progress=progress,
    )
    width = steps.seen.shape[1] if lesson.track.discern else len(lesson.task.states)
    networks = tuple(_spread(network, columns, width) for (network,) in trained.networks)
    return LearnedReward(lesson.task, networks, levels, find_failing(steps, levels))


def find_levels(rewards: Floats) -> Floats:
    """[classes] the distinct rewards, the best first; none if there are too many, or only one."""
    levels = np.unique(rewards)[::-1]
    return levels if 1 < levels.size <= MOST_CLASSES else levels[:0]


def find_failing(steps: Steps, levels: Floats) -> Flags:
    """[classes] a reward that only failing steps have tells failure."""
    of_failing, of_others = steps.reward[steps.failing], steps.reward[~steps.failing]
    return np.isin(levels, of_failing) & ~np.isin(levels, of_others)


def _visible(lesson: Lesson) -> Ints:
    """Columns of the frame: as published those of the next state; else all but what failure alters there."""
    if not lesson.track.discern:
        return np.arange(len(lesson.task.states))
    frame = np.arange(lesson.training.seen.shape[1])
    return np.setdiff1d(frame, np.flatnonzero(lesson.failure.altered))


def _examples(steps: Steps, columns: Ints, levels: Floats) -> tuple[Floats, Floats]:
    """Inputs [n, columns], targets [1, n, classes] or [1, n, 1]."""
    targets = (steps.reward[:, None] == levels).astype(float) if levels.size else steps.reward[:, None]
    return steps.seen[:, columns], targets[None]


def _spread(network: Network, columns: Ints, width: int) -> Network:
    """The network over `width` columns, blind to all but the ones that it was trained on."""
    first = np.zeros((len(network.biases[0]), width))
    first[:, columns] = network.weights[0]
    return Network((first, *network.weights[1:]), network.biases, network.activation)
