"""How the error grows with the horizon: logged actions are replayed on the model, from logged states on."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from clearloop.data import Batch
from clearloop.data.cells import Floats, Ints
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Surrogate
from clearloop.task import Task

LONGEST = 200  # steps
FEWEST = 10  # replays, or half of them, that must still run for an error to mean something


@dataclass(frozen=True, eq=False)
class OpenLoop:
    """Absolute errors in the state's unit after 1 … K steps, over replays and members."""

    median: Floats
    """[K, S]"""
    ninety: Floats
    """[K, S] nine of ten are smaller"""
    replays: Ints
    """[K] that last as long"""
    spread: Floats
    """[S] standard deviation of the states in the log, to compare with"""

    @property
    def drift(self) -> Floats:
        """[K, S] median in standard deviations of the state; NaN where that is 0."""
        spread = np.broadcast_to(self.spread, self.median.shape)
        return np.divide(self.median, spread, out=np.full_like(self.median, np.nan), where=spread > 0)


def replay(surrogate: Surrogate, batch: Batch, steps: Steps) -> OpenLoop:
    """`steps`: those of the batch. A replay begins with each episode, and anew when the horizon is over."""
    begins, lengths = segments(batch.transitions().episode, steps, min(surrogate.task.horizon, LONGEST))
    running = np.sum(lengths[:, None] > np.arange(lengths.max(initial=0)), axis=0)
    horizon = int(np.count_nonzero(running >= min(FEWEST, -(-len(begins) // 2))))
    errors = np.stack(
        [errors_of(surrogate, m, surrogate.task, steps, begins, horizon) for m in range(surrogate.members)]
    )
    of_step = [errors[:, lengths > k, k].reshape(-1, errors.shape[-1]) for k in range(horizon)]
    quantiles = np.array([np.quantile(step, [0.5, 0.9], axis=0) for step in of_step])
    quantiles = quantiles.reshape(horizon, 2, errors.shape[-1])
    return OpenLoop(quantiles[:, 0], quantiles[:, 1], running[:horizon], batch.states.std(axis=0))


def segments(episode: Ints, steps: Steps, horizon: int) -> tuple[Ints, Ints]:
    """Where replays begin, and how many steps they have before the next one begins or a step fails."""
    n = len(steps)
    first = np.searchsorted(episode, episode)
    begins = np.flatnonzero((np.arange(n) - first) % horizon == 0)
    failing = np.append(np.flatnonzero(steps.failing), n)
    ends = np.minimum(np.append(begins[1:], n), failing[np.searchsorted(failing, begins)])
    lengths = ends - begins
    return begins[lengths > 0], lengths[lengths > 0]


class Predictor(Protocol):
    """What a replay steps with."""

    def predict(
        self, window: Floats, member: int, *, after: Floats | None, setpoints: Floats | None
    ) -> Floats: ...


def errors_of(
    predictor: Predictor, member: int, task: Task, steps: Steps, begins: Ints, horizon: int
) -> Floats:
    """[replays, horizon, S]; of no meaning where a replay is over."""
    n_states = steps.next.shape[1]
    width = n_states + len(task.actions)
    window = steps.window[begins]
    errors = np.empty((len(begins), horizon, n_states))
    for k in range(horizon):
        at = np.minimum(begins + k, len(steps) - 1)
        window[:, n_states:width] = steps.window[at, n_states:width]
        predicted = predictor.predict(window, member, after=steps.next[at], setpoints=steps.aims[at])
        errors[:, k] = np.abs(predicted - steps.next[at])
        window = np.hstack([predicted, window[:, n_states:width], window[:, :-width]])
    return errors
