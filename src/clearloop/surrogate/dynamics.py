"""Each member predicts the change of a state by a linear part and a small network for the rest (sec. 4.2).

The linear part is fitted by least squares, so that a plant at rest stays at rest and predictions far from the
data are sane. The network learns what the linear part leaves, and is kept only if it predicts held-out
stretches better. Computed states are no inputs, because physics does not depend on them. Each member has a
linear part of other rows, drawn with replacement; the networks of members that judge learn from these rows,
too, and every second of them is smaller, so that members can disagree where the log does not decide. The
published track has networks alone, which all learn from all rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.expression import variables
from clearloop.networks import Ensemble, Network, Progress, train
from clearloop.surrogate.fitting import steps_beside
from clearloop.surrogate.steps import Lesson, Steps, portion
from clearloop.task import Task

_CERTAIN = 2.0  # standard errors by which a network must lower the squared errors of held-out steps
_PARTS = 20  # of the held-out steps, whose means give this standard error
_BLOCKS = 20  # fewest blocks to draw from; if there are fewer episodes, the steps are cut into so many
AHEAD = 20  # steps of a stretch
FEWEST = 10  # stretches without which models cannot be compared
_FAR = 20.0  # standard deviations at which a simulation that runs off is stopped
_SINGULAR = 1e-10  # the smallest singular value of the standardised inputs, as a share of the largest


# The linear part, and stretches of the log in which a model runs on its own predictions.


def linear_parts(inputs: Floats, changes: Floats, constant: bool) -> Floats:
    """Fit changes [T, n] by linear functions of inputs [n, C].

    Returns:
        [T, C + 1] the gains and, last, the constants, which are 0 unless `constant` is true. If inputs depend
        on each other, the gains are the smallest ones for standardised inputs.
    """
    middle, aim = inputs.mean(axis=0) * constant, changes.mean(axis=1) * constant
    x, y = inputs - middle, changes.T - aim
    sizes = np.sqrt(np.mean(x**2, axis=0))
    scale = np.where(sizes > 1e-12 * np.abs(inputs).max(axis=0, initial=0.0), sizes, np.inf)
    gains = (np.linalg.lstsq(x / scale, y, rcond=_SINGULAR)[0] / scale[:, None]).T
    return np.column_stack([gains, aim - gains @ middle])


Change = Callable[[Floats], Floats]
"""A function from windows [N, H (S + A)] to the changes [N, K] of the predicted states."""


class Stretches(NamedTuple):
    """N stretches of the log, each of L steps, for a model of K predicted states."""

    windows: Floats
    """[L, N, H (S + A)] logged windows"""
    after: Floats
    """[L, N, K] predicted states as logged after each step"""
    places: Ints
    """[H, K] columns of the window with the predicted states of each lag"""
    spread: Floats
    """[K] standard deviation of the states in the log"""

    @classmethod
    def of(cls, steps: Steps, first: Ints, length: int, predicted: Ints, width: int) -> "Stretches":
        """Return the stretches that begin at the steps `first`."""
        at = first + np.arange(length)[:, None]
        lags = steps.window.shape[1] // width
        places = np.arange(lags)[:, None] * width + predicted
        spread = steps.window[:, predicted].std(axis=0)
        return cls(
            steps.window[at], steps.next[at][:, :, predicted], places, np.where(spread > 0, spread, 1.0)
        )

    def errors(self, change: Change) -> Floats:
        """Return the errors [L, N, K] of a model that runs on its own predictions, in standard deviations."""
        states = [self.windows[0][:, lag] for lag in self.places]
        low, high = (bound - side * _FAR * self.spread for bound, side in self._range())
        errors = np.empty_like(self.after)
        for step, logged in enumerate(self.windows):
            window = logged.copy()
            for lag, values in zip(self.places, states, strict=True):
                window[:, lag] = values
            ahead = np.clip(states[0] + change(window), low, high)
            errors[step] = (ahead - self.after[step]) / self.spread
            states = [ahead, *states[:-1]]
        return errors

    def _range(self) -> list[tuple[Floats, float]]:
        return [(self.after.min(axis=(0, 1)), 1.0), (self.after.max(axis=(0, 1)), -1.0)]


def first_steps(steps: Steps, length: int, every: int) -> Ints:
    """Return evenly spaced steps from which the log goes on for `length` steps without failing."""
    n = len(steps)
    first = np.arange(0, max(n - length + 1, 0), every)
    last = first + length - 1
    failures = np.append(0, np.cumsum(steps.failing))
    calm = failures[last + 1] == failures[first]
    return np.asarray(first[(steps.episode[first] == steps.episode[last]) & calm])


# The networks beside it.


class Examples(NamedTuple):
    """Steps that the networks of T states learn from, with C inputs."""

    inputs: Floats
    """[n, C]"""
    changes: Floats
    """[T, n, 1] the change of each state"""
    episode: Ints
    """[n] number of the episode"""


class Part(NamedTuple):
    """The model of one state by one member: the sum of a network and a linear function of the C inputs."""

    network: Network
    gains: Floats
    """[C + 1] the gains and, last, the constant; none if there is no linear part"""

    @property
    def whole(self) -> Network:
        """The sum as one network."""
        biases = (*self.network.biases[:-1], self.network.biases[-1] + self.gains[-1])
        return replace(self.network, biases=biases, linear=self.gains[None, :-1])

    @property
    def silenced(self) -> "Part":
        """The linear function alone."""
        layers = self.network.weights, self.network.biases
        weights, biases = (tuple(map(np.zeros_like, arrays)) for arrays in layers)
        return self._replace(network=Network(weights, biases, self.network.activation))


def fit_dynamics(lesson: Lesson, *, rng: np.random.Generator, progress: Progress | None) -> Ensemble:
    """Learn networks [members][K] for the changes of the K predicted states.

    States that failure alters are learned without failing steps, the others from all steps.
    """
    task, altered, training = lesson.task, lesson.failure.altered, lesson.training
    if lesson.track.sheets and (beside := steps_beside(task, training, rng.spawn(1)[0])) is not None:
        training += beside
    order: list[int] = []
    columns: list[tuple[Part, ...]] = []  # a state's parts, one for each member
    lags, shown = difference_lags(task), physical_columns(task)
    linear = lesson.track.linear
    predicted = np.array([name in task.predicted for name in task.state_names])
    for states in (np.flatnonzero(predicted & ~altered), np.flatnonzero(predicted & altered)):
        if states.size:
            fit = _fit_parts if linear else _fit_networks
            parts = fit(
                lesson,
                _shown(choose_examples(training, states, altered), lags, shown),
                _shown(choose_examples(lesson.held_out, states, altered), lags, shown),
                rng=rng,
                progress=portion(progress, len(order) / predicted.sum(), states.size / predicted.sum()),
            )
            columns += zip(*parts, strict=True)
            order += states.tolist()
    found = list(zip(*(columns[i] for i in np.argsort(order)), strict=True))
    members = _choose_members(lesson, found, lags[shown]) if linear else _networks(found)
    return tuple(tuple(network.seeing(lags[shown]) for network in member) for member in members)


def choose_examples(steps: Steps, states: Ints, altered: Flags) -> Examples:
    """Return what the networks of some states learn from: windows [n, H (S + A)] and changes."""
    kept = steps[~steps.failing] if altered[states].any() else steps
    return Examples(kept.window, kept.change[:, states].T[:, :, None], kept.episode)


def _shown(examples: Examples, lags: Floats, columns: Ints) -> Examples:
    """Return the examples with past states as differences, and only with some columns."""
    return examples._replace(inputs=(examples.inputs @ lags.T)[:, columns])


def _networks(members: Sequence[tuple[Part, ...]]) -> list[tuple[Network, ...]]:
    return [tuple(part.network for part in member) for member in members]


def _fit_networks(
    lesson: Lesson,
    examples: Examples,
    held_out: Examples,
    *,
    rng: np.random.Generator,
    progress: Progress | None,
) -> list[tuple[Part, ...]]:
    """Learn networks [members][T] of the inputs that are shown, without a linear part."""
    trained = train(
        *lesson.mirrored(examples.inputs, examples.changes, sign=-1.0),
        held_out=(held_out.inputs, held_out.changes),
        settings=lesson.track.training,
        rng=rng,
        members=lesson.track.members,
        progress=progress,
    )
    return [tuple(Part(network, np.zeros(0)) for network in member) for member in trained.networks]


def _fit_parts(
    lesson: Lesson,
    examples: Examples,
    held_out: Examples,
    *,
    rng: np.random.Generator,
    progress: Progress | None,
) -> list[tuple[Part, ...]]:
    """Learn a linear part by least squares, and networks for what it leaves [members][T]."""
    track = lesson.track
    members, targets = track.members, len(examples.changes)
    inputs, changes = lesson.mirrored(examples.inputs, examples.changes, sign=-1.0)
    drawn = draw_rows(examples.episode, members, rng)
    if len(inputs) > len(examples.inputs):
        drawn = np.hstack([drawn, drawn + len(examples.inputs)])  # with their mirror images
    constant = not lesson.task.symmetric
    gains = np.concatenate([linear_parts(inputs[rows], changes[:, rows, 0], constant) for rows in drawn])
    rests = [
        np.tile(wanted, (members, 1, 1)) - (gains[:, :-1] @ seen.T + gains[:, -1:])[:, :, None]
        for seen, wanted in ((inputs, changes), (held_out.inputs, held_out.changes))
    ]
    learned = np.where((np.arange(members) < track.search)[:, None], np.arange(len(inputs)), drawn)
    trained = train(
        inputs,
        rests[0],
        held_out=(held_out.inputs, rests[1]),
        settings=track.training,
        rng=rng,
        draws=np.repeat(learned, targets, axis=0),
        units=np.repeat(_units(members, track.search, max(track.training.hidden)), targets),
        progress=progress,
    )
    parts = list(map(Part, trained.networks[0], gains))
    return [tuple(parts[m * targets : (m + 1) * targets]) for m in range(members)]


# A network is kept if it clearly predicts held-out steps better than the linear part alone, and if the member
# then also predicts held-out stretches of the log better, in which it runs on its own predictions.


def _choose_members(
    lesson: Lesson, members: Sequence[tuple[Part, ...]], shown: Floats
) -> list[tuple[Network, ...]]:
    """Return the networks [members][K] of the inputs that are shown.

    Args:
        lesson: The data.
        members: [members][K] what was learned from single steps.
        shown: [C, H (S + A)] the matrix that gives the inputs of a window.
    """
    task, held_out = lesson.task, lesson.held_out
    predicted = np.array([task.state_names.index(name) for name in task.predicted])
    length = min(AHEAD, task.horizon)
    first = first_steps(held_out, length, max(1, length // 4))
    stretches = Stretches.of(held_out, first, length, predicted, len(task.scope.names))
    ordinary = held_out[~held_out.failing]
    inputs, changes = ordinary.window @ shown.T, ordinary.change[:, predicted]
    chosen = []
    for parts in members:
        better = [
            part if helps(part, inputs, change) else part.silenced
            for part, change in zip(parts, changes.T, strict=True)
        ]
        plain = [part.silenced for part in parts]
        if len(first) >= FEWEST and _error(better, stretches, shown) > _error(plain, stretches, shown):
            better = plain
        chosen.append(tuple(part.whole for part in better))
    return chosen


def helps(part: Part, inputs: Floats, changes: Floats) -> bool:
    """Tell whether a network clearly lowers the squared errors of the linear part.

    Args:
        part: The network and its linear part.
        inputs: [n, C] the inputs of held-out steps, in the order of the log.
        changes: [n] the changes of the state.
    """
    left = changes - inputs @ part.gains[:-1] - part.gains[-1]
    gain = left**2 - (left - part.network(inputs)[:, 0]) ** 2
    means = np.array([some.mean() for some in np.array_split(gain, min(_PARTS, len(gain)))])
    return bool(len(means) > 1 and means.mean() > _CERTAIN * means.std(ddof=1) / np.sqrt(len(means)))


def _error(parts: Sequence[Part], stretches: Stretches, shown: Floats) -> float:
    """Return the mean squared error of the stretches, in variances of the states."""
    networks = [part.whole for part in parts]

    def change(window: Floats) -> Floats:
        inputs = window @ shown.T
        return np.column_stack([network(inputs)[:, 0] for network in networks])

    return float(np.square(stretches.errors(change)).mean())


# Members must be able to disagree.


def draw_rows(episode: Ints, members: int, rng: np.random.Generator) -> Ints:
    """Return the rows [members, n] that each member learns from: all rows for the first member.

    For the others, blocks are drawn with replacement. A block is an episode, or a part of one if there are
    few, because neighbouring rows say nearly the same.
    """
    n = len(episode)
    edges = np.flatnonzero(np.diff(episode, prepend=-1))
    if len(edges) < _BLOCKS:
        edges = np.unique(np.append(edges, np.linspace(0, n, _BLOCKS, endpoint=False).astype(np.intp)))
    blocks = np.split(np.arange(n), edges[1:])
    drawn = [np.arange(n)]
    for _ in range(members - 1):
        some = np.concatenate([blocks[i] for i in rng.integers(len(blocks), size=2 * len(blocks))])
        drawn.append(np.resize(some, n))
    return np.stack(drawn)


def _units(members: int, search: int, most: int) -> Ints:
    """Return the number of units [members] of each hidden layer: every second judge has half of them."""
    judging = np.arange(members) - search
    return np.where((judging >= 0) & (judging % 2 == 1), -(-most // 2), most)


# Inputs that physics does not depend on.


def physical_columns(task: Task) -> Ints:
    """Return the columns of the window that the plant may depend on: those of measured states and actions.

    Computed states are left out, because they are functions of the others. Only if the window has a single
    row, a computed state may tell what happened before, such as a speed; then those stay that do not depend
    on setpoints, directly or through their own past, except the ready features of the task's `memory`.
    """
    left_out = set(task.derived) if task.history > 1 else _of_setpoints(task) | set(task.remembered)
    kept = [name not in left_out for name in task.scope.names]
    return np.flatnonzero(np.tile(kept, task.history))


def _of_setpoints(task: Task) -> set[str]:
    found: set[str] = set()
    for name, formula in task.derived.items():  # each reads only states before it, and its own past
        if any(v.part in ("setpoint", "error") or v.name in found for v in variables(formula)):
            found.add(name)
    return found


# While networks learn, past states are shown as differences. From one row to the next a state hardly changes,
# so its lags are nearly equal, and its speed is a small difference of large inputs, which descent takes very
# long to find. So each past state is shown as its difference to the row after it. The networks that are kept
# see the states themselves.


def difference_lags(task: Task) -> Floats:
    """Return the matrix D [H (S + A), H (S + A)] such that D x has differences where the window x has lags.

    Actions stay as they are.
    """
    n_states, width = len(task.states), len(task.scope.names)
    matrix = np.eye(task.history * width)
    for lag in range(1, task.history):
        past = lag * width + np.arange(n_states)
        matrix[past, past - width] = -1.0
    return matrix
