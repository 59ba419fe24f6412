"""Whether a model is worth its trouble: its replays beside "nothing changes", and beside a linear model."""

from dataclasses import dataclass

import numpy as np

from clearloop.data import Batch
from clearloop.data.cells import Floats, Ints
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.surrogate.open_loop import Predictor, errors_of, segments
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Surrogate
from clearloop.task import Task

AHEAD = (1, 3, 10, 30, 100)  # steps; no more than the horizon, and than logged episodes last
FEWEST, MOST = 5, 2000  # replays that last as long


@dataclass(frozen=True)
class Linear:
    """Each state's change is a linear function of the window."""

    task: Task
    gains: Floats
    """[H (S + A) + 1, S]"""

    @classmethod
    def fit(cls, task: Task, steps: Steps) -> "Linear":
        kept = steps[~steps.failing] if not steps.failing.all() else steps
        columns = np.column_stack([kept.window, np.ones(len(kept))])
        return cls(task, np.asarray(np.linalg.lstsq(columns, kept.change, rcond=1e-10)[0], np.float64))

    def predict(
        self,
        window: Floats,
        member: int,  # noqa: ARG002
        *,
        after: Floats | None = None,
        setpoints: Floats | None = None,  # noqa: ARG002
    ) -> Floats:
        """Derived states are predicted like others; those from outside are as they were."""
        changes = np.column_stack([window, np.ones(len(window))]) @ self.gains
        states = np.clip(window[:, : changes.shape[1]] + changes, -STATE_LIMIT, STATE_LIMIT)
        external = [self.task.state_names.index(name) for name in self.task.scope.external]
        if after is not None:
            states[:, external] = after[:, external]
        return np.asarray(states)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Root mean square errors of replays, in the states' units: a plant at rest hardly counts."""

    ahead: tuple[int, ...]
    """steps"""
    model: Floats
    """[steps, S] the median member"""
    still: Floats
    """[steps, S] if nothing changed"""
    linear: Floats
    """[steps, S]"""


def compare(surrogate: Surrogate, training: Batch, held_out: Batch) -> Comparison:
    task = surrogate.task
    steps = Steps.of(task, held_out)
    episode = held_out.transitions().episode
    replays = {k: _replays(*segments(episode, steps, k), k) for k in AHEAD if k <= task.horizon}
    ahead = tuple(k for k, begins in replays.items() if k == 1 or len(begins) >= FEWEST)

    def sizes(predictor: Predictor, member: int) -> Floats:
        rows = [errors_of(predictor, member, task, steps, replays[k], k)[:, -1] for k in ahead]
        return np.array([np.sqrt(np.square(row).mean(axis=0)) for row in rows])

    members = np.stack([sizes(surrogate, member) for member in range(surrogate.members)])
    return Comparison(
        ahead=ahead,
        model=np.median(members, axis=0),
        still=sizes(Linear(task, np.zeros((steps.window.shape[1] + 1, len(task.states)))), 0),
        linear=sizes(Linear.fit(task, Steps.of(task, training)), 0),
    )


def _replays(begins: Ints, lengths: Ints, steps: int) -> Ints:
    """Where those begin that last so many steps; of many, some."""
    whole = begins[lengths >= steps]
    return whole[:: 1 + len(whole) // MOST]


def better(task: Task, found: Comparison) -> list[float]:
    """Of each state: the smallest share of "nothing changes" that the model's error is, at any distance."""
    if not found.ahead:
        return [0.0] * len(task.states)
    shares = found.model / np.where(found.still > 0, found.still, np.inf)
    return [float(share) for share in shares.min(axis=0)]
