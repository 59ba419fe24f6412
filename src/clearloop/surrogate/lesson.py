"""What a surrogate is learned from: steps to train on, steps held out, and what failure does to states."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from clearloop.data import Batch
from clearloop.data.cells import Floats
from clearloop.surrogate.failure import FEWEST, Failure, find_alterations
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.tracks import Track
from clearloop.task import Task


@dataclass(frozen=True, eq=False)
class Lesson:
    """For both kinds of networks, those of the dynamics and those of the reward."""

    task: Task
    track: Track
    training: Steps
    held_out: Steps
    failure: Failure

    @classmethod
    def of(cls, task: Task, batch: Batch, track: Track, seed: int) -> Self:
        training, held_out = (Steps.of(task, part) for part in split(batch, track, seed))
        if not track.discern:
            doubtful = Failure.of_all_states(len(task.states), altered=True)
            return cls(task, track, training, held_out, doubtful)
        if np.count_nonzero(training.failing) < FEWEST:
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
