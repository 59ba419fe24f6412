"""Learning how states change: a network for each state of each member (sec. 4.2 of the paper)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data.log import first_rows
from clearloop.kernels.layout import (
    ACTIVATIONS,
    CLASSES,
    IDENTITY,
    NETWORKS,
    VALUE,
    Dynamics,
    LoweredReward,
    Networks,
)
from clearloop.kernels.network import flatten
from clearloop.networks import Ensemble, Network, Progress, train
from clearloop.plants.plant import lower_reward
from clearloop.programs import lower_ways
from clearloop.surrogate.steps import Lesson, Steps, judge_frame, portion
from clearloop.task import Task

# Past states as differences, while networks learn.
#
# From one row to the next a state hardly changes, so that neighbouring lags of it say nearly the same, and
# what tells its speed is a small difference of large inputs. Descent takes very long to find that. So each
# past state is shown as its difference to the row after it; the networks that are kept see the states
# themselves.


def difference_lags(task: Task) -> Floats:
    """[H (S + A), H (S + A)] D: a window x is shown as D x. Actions stay as they are."""
    n_states, width = len(task.states), len(task.scope.names)
    matrix = np.eye(task.history * width)
    for lag in range(1, task.history):
        past = lag * width + np.arange(n_states)
        matrix[past, past - width] = -1.0
    return matrix


def of_states(network: Network, matrix: Floats) -> Network:
    """The network that sees x, from the one that sees D x."""
    return replace(network, weights=(network.weights[0] @ matrix, *network.weights[1:]))


# States that never leave a sheet: the sine and cosine of one angle, two sensors of one thing.
#
# Networks have seen nothing beside the sheet, and nothing there leads back: the small errors of single
# steps add up, until a rollout is where no plant can be. So steps are shown a second time, from beside the
# sheet, with the same states after them. That is what denoising autoencoders learn: the way back to the
# data.
#
# A direction is thin if states hardly differ in it from their nearest neighbours. States that follow each
# other are no neighbours, or every slow course would be taken for a sheet.

THIN = 0.15  # of the spread among neighbours in the widest direction
NEIGHBOURS = 4  # for each state
_APART = 0.5  # standard deviations, between states that may be neighbours of each other though of one episode
MOST_SHEETS = 5_000  # states among which neighbours are looked for
BESIDE = 0.1  # standard deviations: how far steps are displaced
_SHOWN = 20_000  # steps that are shown again, at most
AT_ONCE = 1_000  # neighbourhoods, for the sake of memory


def steps_beside(task: Task, steps: Steps, rng: np.random.Generator) -> Steps | None:
    """Steps once more, from beside the sheet; None if states fill their space, or too few are known to tell.

    Also None if states are derived from others: they would tell the networks what was displaced.
    """
    places = _places(task, steps)
    if task.derived or len(places) < 2:
        return None
    present = steps.window[:, places]
    scale = _scale(present)
    scattered = _scattered(_dithered(present / scale, rng), steps.episode)
    if len(scattered) < 10 * NEIGHBOURS * len(places):
        return None
    tree = KDTree(scattered[rng.permutation(len(scattered))[:MOST_SHEETS]])
    if np.median([is_thin[-1] for is_thin, _ in _surroundings(tree, tree.data)]) == 0:
        return None
    shown = steps[np.sort(rng.permutation(len(steps))[:_SHOWN])]
    displacements = [
        (BESIDE * rng.standard_normal(len(places)) * is_thin) @ directions
        for is_thin, directions in _surroundings(tree, shown.window[:, places] / scale)
    ]
    for lag in range(task.history):  # all alike, because an error that a rollout carries along lasts
        shown.window[:, lag * len(task.scope.names) + places] += np.array(displacements) * scale
    return shown


def _surroundings(tree: KDTree, points: Floats) -> Iterator[tuple[Flags, Floats]]:
    """Of each of n points [n, K]: which directions are thin [K], and all of them [K, K], the widest first."""
    for some in np.array_split(points, -(-len(points) // AT_ONCE)):
        _, rows = tree.query(some, k=NEIGHBOURS * points.shape[1])
        near = tree.data[rows]
        near -= near.mean(axis=1, keepdims=True)
        variances, columns = np.linalg.eigh(near.transpose(0, 2, 1) @ near)  # the narrowest first
        thin = variances < THIN**2 * variances[:, -1:]
        yield from zip(thin[:, ::-1], columns.transpose(0, 2, 1)[:, ::-1], strict=True)


def _places(task: Task, steps: Steps) -> Ints:
    """[K] where the window has the states that are predicted, and that vary at all."""
    places = [place for place, name in enumerate(task.state_names) if name in task.predicted]
    return np.array([place for place in places if np.ptp(steps.window[:, place]) > 0], dtype=np.intp)


def _scale(states: Floats) -> Floats:
    """[K] standard deviations, but that a few wild values do not count."""
    low, high = np.quantile(states, [0.05, 0.95], axis=0)
    scale: Floats = np.where(high > low, (high - low) / 3.29, states.std(axis=0))
    return scale


def _dithered(states: Floats, rng: np.random.Generator) -> Floats:
    """By the resolution of each: what a coarse sensor shows lies on sheets that mean nothing."""
    resolutions = [np.median(np.diff(np.unique(column.round(5)))) for column in states.T]
    return states + np.array(resolutions) * rng.uniform(-0.5, 0.5, states.shape)


def _scattered(states: Floats, episodes: Ints) -> Floats:
    """Some of them, so that none is near another only because it comes shortly after it."""
    age = np.arange(len(states)) - first_rows(episodes)
    lag = 1
    while (later := np.flatnonzero(age >= lag)).size:
        moved = np.sqrt(np.mean((states[later] - states[later - lag]) ** 2, axis=1))
        if np.median(moved) >= _APART:
            break
        lag *= 2
    scattered: Floats = states[age % lag == 0]
    return scattered


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


# From trained networks to the flat arrays that the engine runs.


def lower_networks(networks: Sequence[Network], dtype: Any) -> Networks:
    """Networks of one shape, in this order."""
    first = networks[0]
    hidden = ACTIVATIONS[first.activation]
    return Networks(
        numbers=np.concatenate([flatten(list(n.weights), list(n.biases)) for n in networks]).astype(dtype),
        total=len(networks),
        sizes=np.array(first.sizes),
        activations=np.array([hidden] * (len(first.weights) - 1) + [IDENTITY]),
    )


def lower_dynamics(
    networks: Networks, task: Task, *, history: int, bounds: Floats, absorbing: bool, on_failure: Floats
) -> Dynamics:
    """Networks for each state of each member that is predicted, member by member."""
    predicted = dict.fromkeys(task.predicted)
    return Dynamics(
        kind=NETWORKS,
        **lower_ways(task, predicted, task.derived, networks.numbers.dtype, history),
        networks=networks,
        substeps=1,
        dt=task.dt,
        bounds=bounds.astype(networks.numbers.dtype),
        absorbing=absorbing,
        on_failure=on_failure.astype(networks.numbers.dtype),
    )


# The reward of a surrogate: the task's own formula, or networks that learned it from the log.


@dataclass(frozen=True, eq=False)
class KnownReward:
    """What the task file says, failure included; the same for every member."""

    task: Task

    def judge(self, frame: Floats, member: int) -> tuple[Floats, Flags]:  # noqa: ARG002 - the same for all
        """Reward and failure [n] of steps [n, columns of the frame]."""
        return judge_frame(self.task, frame)

    @property
    def tells_failure(self) -> bool:
        return self.task.failure_condition is not None

    def failed(self, steps: Steps) -> Flags:
        """[n] which logged steps failed."""
        return judge_frame(self.task, steps.frame)[1]

    def lower(self, members: Sequence[int], history: int, dtype: Any) -> LoweredReward:  # noqa: ARG002
        return lower_reward(self.task, dtype, history)

    def fits(self, members: int) -> bool:  # noqa: ARG002
        return self.task.reward_expression is not None

    def __str__(self) -> str:
        return "the task's own reward"


@dataclass(frozen=True, eq=False)
class LearnedReward:
    """A network for each member, which sees the next state only, or the whole frame."""

    task: Task
    networks: tuple[Network, ...]
    levels: Floats
    """[classes] the rewards that there are, the best first; none where a value is learned"""
    failing: Flags
    """[classes] whether a step with this reward fails"""

    def judge(self, frame: Floats, member: int) -> tuple[Floats, Flags]:
        """Reward and failure [n] of steps [n, columns of the frame]: those of the most probable class."""
        network, n_states = self.networks[member], len(self.task.states)
        later = n_states + self.task.history * len(self.task.scope.names)
        seen = np.hstack([frame[:, :later], frame[:, -n_states:]])
        outputs = network(seen[:, : network.sizes[0]])
        if not self.levels.size:
            return outputs[:, 0], np.zeros(len(frame), np.bool_)
        best = outputs.argmax(axis=1)
        return self.levels[best], self.failing[best]

    @property
    def tells_failure(self) -> bool:
        return bool(self.failing.any())

    def failed(self, steps: Steps) -> Flags:
        """[n] which logged steps failed."""
        return np.isin(steps.reward, self.levels[self.failing])

    def lower(self, members: Sequence[int], history: int, dtype: Any) -> LoweredReward:
        networks = [self._look_back(self.networks[member], history) for member in members]
        return LoweredReward(
            kind=CLASSES if self.levels.size else VALUE,
            code=np.zeros(0, np.int32),
            operand=np.zeros(0, dtype),
            spans=np.zeros(3, np.int64),
            networks=lower_networks(networks, dtype),
            levels=self.levels.astype(dtype),
            failing=self.failing,
        )

    def _look_back(self, network: Network, history: int) -> Network:
        """In a frame with more history, the setpoints stand further back: what is before them is ignored."""
        n_states, width = len(self.task.states), len(self.task.scope.names)
        if network.sizes[0] == n_states or history == self.task.history:
            return network
        setpoints = n_states + self.task.history * width
        more = [setpoints] * (history - self.task.history) * width
        first = np.insert(network.weights[0], more, 0.0, axis=1)
        return Network((first, *network.weights[1:]), network.biases, network.activation)

    def fits(self, members: int) -> bool:
        """Whether there are as many networks, inputs and outputs as there must be."""
        n_states = len(self.task.states)
        frame = 2 * n_states + self.task.history * len(self.task.scope.names)
        shapes = {(network.sizes[0], network.sizes[-1]) for network in self.networks}
        possible = {(inputs, self.levels.size or 1) for inputs in (n_states, frame)}
        return len(self.networks) == members and shapes <= possible and len(self.failing) == self.levels.size

    def __str__(self) -> str:
        return f"reward learned as {f'{self.levels.size} classes' if self.levels.size else 'a value'}"


# Learning the reward: few distinct ones as classes by one-hot (sec. 4.2 of the paper), many as a value.

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


# What networks cannot predict: noisy sensors, disturbances. Rollouts without it promise too much.
#
# A controller that answers every flicker of a sensor looks good on a model whose sensors do not flicker,
# and one that does not answer a leak looks good on a model that has none. So what was left unexplained in
# the part of the log that was held out is kept, and replayed in rollouts: stretches of it, because what
# lasts in the plant lasts there.

MOST_NOISE = 20_000  # steps that are kept


class Noise(NamedTuple):
    """R steps of K states in the order of the log."""

    residuals: Floats
    """[R, K] 0 for states that are explained well enough; R is 0 if all are"""
    last: Flags
    """[R] whether what follows is of another episode"""

    @classmethod
    def none(cls) -> "Noise":
        return cls(np.zeros((0, 0)), np.zeros(0, np.bool_))

    def draw(self, count: int, steps: int, seed: int) -> Floats:
        """[count, steps, K] stretches from random places on; nothing if there is none."""
        rows = len(self.residuals)
        if not rows:
            return np.zeros((0, 0, 0))
        anywhere: Ints = np.random.default_rng(seed).integers(rows, size=(steps, count))
        drawn = np.empty((count, steps, self.residuals.shape[1]))
        at = anywhere[0]
        for step in range(steps):
            drawn[:, step] = self.residuals[at]
            at = np.where(self.last[at] | (at == rows - 1), anywhere[step], np.minimum(at + 1, rows - 1))
        return drawn


def find_noise(steps: Steps, predicted: Floats, states: list[int], share: float) -> Noise:
    """In held-out steps. `predicted`: next states [n, S], by all members together; K `states` of them.

    `share`: of the variance of a state's change that may be left.
    """
    ordinary = ~steps.failing
    residuals = (steps.next - predicted)[ordinary][:, states]
    change = steps.change[ordinary][:, states]
    left = np.mean(residuals**2, axis=0) > share * change.var(axis=0)
    if not len(residuals) or not left.any():
        return Noise.none()
    others = np.diff(steps.episode[ordinary], append=-1) != 0
    kept = np.where(left, residuals - residuals.mean(axis=0), 0.0)
    return Noise(kept[:MOST_NOISE], others[:MOST_NOISE])
