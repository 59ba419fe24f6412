"""What searches minimise, and fronts are chosen by, with `value="batch"`: fitted Q evaluation.

A search sees the fast one, linear in features that networks learned by evaluating a reference: LQR from the
same batch, or doing nothing where LQR finds no gains. The best of what it found are judged by the slow one,
with networks of their own for each.
"""

from collections.abc import Callable, Sequence

import numpy as np

from clearloop.controllers import Controller, Equation
from clearloop.data import Batch
from clearloop.data.cells import Floats
from clearloop.errors import ClearloopError
from clearloop.evaluation import fitted_q
from clearloop.evaluation.linear_q import NETWORKS, LinearQ
from clearloop.methods.lqr import LQR, design
from clearloop.methods.method import Candidate
from clearloop.task import Task

JUDGED = 8  # controllers, each of which takes as long as a thousand candidates of the search

Score = Callable[[Controller, Floats], Floats]
"""[N] the penalties of a controller from starts [N, S]"""


def batch_value(task: Task, batch: Batch, *, rng: np.random.Generator) -> LinearQ:
    """For the search."""
    return LinearQ.learn(task, batch, _reference(task, batch), rng=rng)


def batch_score(task: Task, batch: Batch, *, rng: np.random.Generator) -> Score:
    """For the judgement; all have the same luck."""
    seed = int(rng.integers(2**63))

    def score(controller: Controller, starts: Floats) -> Floats:
        luck = np.random.default_rng(seed)
        value = fitted_q(controller, task, batch, starts=starts, approximator=NETWORKS, rng=luck)
        return np.asarray(value.penalties.mean(axis=0))

    return score


def best_few(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that no simpler one beats, as the search saw them: the best of them."""
    front: list[Candidate] = []
    for one in sorted(candidates, key=lambda one: (one.controller.complexity, one.penalty)):
        if not front or one.penalty < front[-1].penalty:
            front.append(one)
    return front[-JUDGED:]


def _reference(task: Task, batch: Batch) -> Controller:
    try:
        return design(task, batch, LQR()).controller()
    except ClearloopError:
        return Equation(outputs=dict.fromkeys(task.action_names, "0"))
