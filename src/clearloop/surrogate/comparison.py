"""Whether a model is worth its trouble: its replays beside "nothing changes", and beside a linear model."""

from dataclasses import dataclass

import numpy as np

from clearloop.data import Batch
from clearloop.data.cells import Floats
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.surrogate.open_loop import Predictor, errors_of, segments
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Surrogate
from clearloop.task import Task

AHEAD = (1, 3, 10, 30, 100)  # steps; no more than the horizon, and than logged episodes last
FEWEST = 5  # replays that must last as long


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
    """Median absolute errors of replays, in the states' units."""

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
    begins, lengths = segments(held_out.transitions().episode, steps, task.horizon)
    longest = int(np.sort(lengths)[-min(FEWEST, len(lengths))]) if len(lengths) else 0
    ahead = tuple(k for k in AHEAD if k <= min(longest, task.horizon))
    horizon = max(ahead, default=0)

    def medians(predictor: Predictor, member: int) -> Floats:
        found = errors_of(predictor, member, task, steps, begins, horizon)
        rows = [np.median(found[lengths >= k, k - 1], axis=0) for k in ahead]
        return np.array(rows).reshape(len(ahead), len(task.states))

    members = np.stack([medians(surrogate, member) for member in range(surrogate.members)])
    return Comparison(
        ahead=ahead,
        model=np.median(members, axis=0),
        still=medians(Linear(task, np.zeros((steps.window.shape[1] + 1, len(task.states)))), 0),
        linear=medians(Linear.fit(task, Steps.of(task, training)), 0),
    )


def better(task: Task, found: Comparison) -> list[float]:
    """Of each state: the smallest share of "nothing changes" that the model's error is, at any distance."""
    if not found.ahead:
        return [0.0] * len(task.states)
    shares = found.model / np.where(found.still > 0, found.still, np.inf)
    return [float(share) for share in shares.min(axis=0)]
