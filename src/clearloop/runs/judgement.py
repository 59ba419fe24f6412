"""How a run judged its front, for whoever judges another controller in the same way."""

import numpy as np

from clearloop.data import Batch
from clearloop.methods.learning import streams
from clearloop.methods.result import JUDGED_STARTS
from clearloop.plants.scenarios import Scenarios
from clearloop.runs.directory import RunDirectory
from clearloop.task import Task


def method_rng(seed: int) -> np.random.Generator:
    """Of every method of a run: [seed] drew the batch, [seed, 1] the model."""
    return np.random.default_rng([seed, 2])


def judging_starts(run: RunDirectory, task: Task, batch: Batch, n: int = JUDGED_STARTS) -> Scenarios:
    """The starts that the front of a run was chosen by, which no search saw; or so many like them."""
    seed = run.describe()["asked"].get("seed", 0)
    return Scenarios.drawn(task, batch, n, streams(method_rng(seed)).judge)
