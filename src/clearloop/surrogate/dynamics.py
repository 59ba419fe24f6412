"""Learning how states change: a network for each state of each member (sec. 4.2 of the paper)."""

import numpy as np

from clearloop.data.cells import Flags, Floats, Ints
from clearloop.networks import Ensemble, Network, Progress, train
from clearloop.surrogate.lags import difference_lags, of_states
from clearloop.surrogate.lesson import Lesson
from clearloop.surrogate.progress import portion
from clearloop.surrogate.sheets import steps_beside
from clearloop.surrogate.steps import Steps


def fit_dynamics(lesson: Lesson, *, rng: np.random.Generator, progress: Progress | None) -> Ensemble:
    """[members][K], for the states that are predicted.

    Those that failure alters are learned without failing steps, the others from all.
    """
    altered, training = lesson.failure.altered, lesson.training
    if lesson.track.sheets and (beside := steps_beside(lesson.task, training, rng.spawn(1)[0])) is not None:
        training += beside
    order: list[int] = []
    columns: list[tuple[Network, ...]] = []  # of the ensemble: a state's networks, one for each member
    lags = difference_lags(lesson.task)
    predicted = np.array([name in lesson.task.predicted for name in lesson.task.state_names])
    for states in (np.flatnonzero(predicted & ~altered), np.flatnonzero(predicted & altered)):
        if states.size:
            windows, changes = choose_examples(training, states, altered)
            judges, judged = choose_examples(lesson.held_out, states, altered)
            trained = train(
                *lesson.mirrored(windows @ lags.T, changes, sign=-1.0),
                held_out=(judges @ lags.T, judged),
                settings=lesson.track.training,
                rng=rng,
                members=lesson.track.members,
                progress=portion(progress, len(order) / predicted.sum(), states.size / predicted.sum()),
            )
            members = [[of_states(network, lags) for network in member] for member in trained.networks]
            columns += zip(*members, strict=True)
            order += states.tolist()
    return tuple(zip(*(columns[i] for i in np.argsort(order)), strict=True))


def choose_examples(steps: Steps, states: Ints, altered: Flags) -> tuple[Floats, Floats]:
    """What the networks see [n, columns], and the changes that they should predict [states, n, 1]."""
    kept = steps[~steps.failing] if altered[states].any() else steps
    return kept.window, kept.change[:, states].T[:, :, None]
