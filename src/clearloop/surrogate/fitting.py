"""The data beside the log that networks need, their form for the engine, and a reward that is learned."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data.checks import MOST_CLASSES
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
from clearloop.networks import Network, Progress, train
from clearloop.plants.plant import lower_reward
from clearloop.programs import lower_ways
from clearloop.surrogate.steps import Lesson, Steps, judge_ends, judge_frame
from clearloop.task import Task

# Some states never leave a sheet in the space of states, such as the sine and cosine of one angle, or two
# sensors of one quantity. Networks have seen no data beside the sheet, so nothing there leads back to it: the
# small errors of single steps add up until a rollout is where no plant can be. So steps are shown a second
# time, from beside the sheet, with the same states after them. Networks then learn the way back to the data,
# as denoising autoencoders do.
#
# A direction is thin if states hardly differ in it from their nearest neighbours. States that follow each
# other do not count as neighbours; otherwise every slow trajectory would look like a sheet.

THIN = 0.15  # largest spread among neighbours in a thin direction, as a share of that in the widest direction
NEIGHBOURS = 4  # for each state
_APART = 0.5  # standard deviations between states of one episode that may be neighbours
MOST_SHEETS = 5_000  # states among which neighbours are searched
BESIDE = 0.1  # standard deviations by which steps are displaced
_SHOWN = 20_000  # steps that are shown again, at most
AT_ONCE = 1_000  # neighbourhoods at a time, to save memory


def steps_beside(task: Task, steps: Steps, rng: np.random.Generator) -> Steps | None:
    """Return steps that begin beside the sheet on which states lie.

    Returns:
        The displaced steps; None if states fill their space, if there are too few to tell, or if states are
        derived from others, which would tell the networks by how much steps were displaced.
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
    for lag in range(task.history):  # the same for all lags, because an error lasts during a rollout
        shown.window[:, lag * len(task.scope.names) + places] += np.array(displacements) * scale
    return shown


def _surroundings(tree: KDTree, points: Floats) -> Iterator[tuple[Flags, Floats]]:
    """Yield for each point [n, K] which directions are thin [K], and the directions [K, K], widest first."""
    for some in np.array_split(points, -(-len(points) // AT_ONCE)):
        _, rows = tree.query(some, k=NEIGHBOURS * points.shape[1])
        near = tree.data[rows]
        near -= near.mean(axis=1, keepdims=True)
        variances, columns = np.linalg.eigh(near.transpose(0, 2, 1) @ near)  # the narrowest first
        thin = variances < THIN**2 * variances[:, -1:]
        yield from zip(thin[:, ::-1], columns.transpose(0, 2, 1)[:, ::-1], strict=True)


def _places(task: Task, steps: Steps) -> Ints:
    """Return the columns [K] of the window with the present predicted states that vary."""
    places = [place for place, name in enumerate(task.state_names) if name in task.predicted]
    return np.array([place for place in places if np.ptp(steps.window[:, place]) > 0], dtype=np.intp)


def _scale(states: Floats) -> Floats:
    """Return standard deviations [K], estimated from quantiles so that outliers do not count."""
    low, high = np.quantile(states, [0.05, 0.95], axis=0)
    scale: Floats = np.where(high > low, (high - low) / 3.29, states.std(axis=0))
    return scale


def _dithered(states: Floats, rng: np.random.Generator) -> Floats:
    """Add noise of the size of each sensor's resolution, because coarse values lie on meaningless sheets."""
    resolutions = [np.median(np.diff(np.unique(column.round(5)))) for column in states.T]
    return states + np.array(resolutions) * rng.uniform(-0.5, 0.5, states.shape)


def _scattered(states: Floats, episodes: Ints) -> Floats:
    """Return some of the states, so that none is near another only because it comes shortly after it."""
    age = np.arange(len(states)) - first_rows(episodes)
    lag = 1
    while (later := np.flatnonzero(age >= lag)).size:
        moved = np.sqrt(np.mean((states[later] - states[later - lag]) ** 2, axis=1))
        if np.median(moved) >= _APART:
            break
        lag *= 2
    scattered: Floats = states[age % lag == 0]
    return scattered


# The engine runs flat arrays.


def lower_networks(networks: Sequence[Network], dtype: Any) -> Networks:
    """Return networks of equal sizes as flat arrays, in this order."""
    first = networks[0]
    hidden = ACTIVATIONS[first.activation]
    linear = any(network.linear is not None for network in networks)
    numbers = [
        np.append(flatten(list(n.weights), list(n.biases)), n.linear_gains if linear else ())
        for n in networks
    ]
    return Networks(
        numbers=np.concatenate(numbers).astype(dtype),
        total=len(networks),
        sizes=np.array(first.sizes),
        activations=np.array([hidden] * (len(first.weights) - 1) + [IDENTITY]),
    )


def lower_dynamics(
    networks: Networks, task: Task, *, history: int, bounds: Floats, absorbing: bool, on_failure: Floats
) -> Dynamics:
    """Return the dynamics of a surrogate for the engine.

    Args:
        networks: The networks of the predicted states, member by member.
        task: The task.
        history: Rows of the engine's window.
        bounds: [S, 2] limits of the states.
        absorbing: Whether a plant that failed stays as it is.
        on_failure: [S] values that failure sets states to; NaN for the others.
    """
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


# The reward of a surrogate is the task's own formula, or networks learn it from the log.


@dataclass(frozen=True, eq=False)
class KnownReward:
    """The reward and failure of the task's formulas, the same for every member."""

    task: Task

    def judge(self, frame: Floats, member: int) -> tuple[Floats, Flags]:  # noqa: ARG002 - the same for all
        """Return reward and failure [n] of steps [n, columns of the frame]."""
        return judge_frame(self.task, frame)

    def succeeded(self, frame: Floats) -> Flags:
        """Return which steps [n, columns of the frame] end their episode by success [n]."""
        if self.task.success_condition is None:
            return np.zeros(len(frame), np.bool_)
        return judge_ends(self.task, frame)[1] < 0

    @property
    def tells_failure(self) -> bool:
        """Tell whether steps can fail."""
        return self.task.failure_condition is not None

    def failed(self, steps: Steps) -> Flags:
        """Return which logged steps failed [n]."""
        return judge_frame(self.task, steps.frame)[1]

    def lower(self, members: Sequence[int], history: int, dtype: Any) -> LoweredReward:  # noqa: ARG002
        """Return the reward for the engine."""
        return lower_reward(self.task, dtype, history)

    def fits(self, members: int) -> bool:  # noqa: ARG002
        """Tell whether the task has a formula for the reward."""
        return self.task.reward_expression is not None

    def __str__(self) -> str:
        return "the task's own reward"


@dataclass(frozen=True, eq=False)
class LearnedReward:
    """A learned reward: a network for each member, which sees the next state only or the whole frame."""

    task: Task
    networks: tuple[Network, ...]
    levels: Floats
    """[classes] the distinct rewards, the best first; none if a value is learned"""
    failing: Flags
    """[classes] whether a step with this reward fails"""

    def judge(self, frame: Floats, member: int) -> tuple[Floats, Flags]:
        """Return reward and failure [n] of the most probable class of steps [n, columns of the frame]."""
        network, n_states = self.networks[member], len(self.task.states)
        later = n_states + self.task.history * len(self.task.scope.names)
        seen = np.hstack([frame[:, :later], frame[:, -n_states:]])
        outputs = network(seen[:, : network.sizes[0]])
        if not self.levels.size:
            return outputs[:, 0], np.zeros(len(frame), np.bool_)
        best = outputs.argmax(axis=1)
        return self.levels[best], self.failing[best]

    def succeeded(self, frame: Floats) -> Flags:
        """Return no step [n]: a learned reward does not tell success."""
        return np.zeros(len(frame), np.bool_)

    @property
    def tells_failure(self) -> bool:
        """Tell whether steps can fail."""
        return bool(self.failing.any())

    def failed(self, steps: Steps) -> Flags:
        """Return which logged steps failed [n]."""
        return np.isin(steps.reward, self.levels[self.failing])

    def lower(self, members: Sequence[int], history: int, dtype: Any) -> LoweredReward:
        """Return the reward of some members for the engine, whose window has `history` rows."""
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
        """Let a network ignore the additional rows of a frame with more history, before the setpoints."""
        n_states, width = len(self.task.states), len(self.task.scope.names)
        if network.sizes[0] == n_states or history == self.task.history:
            return network
        setpoints = n_states + self.task.history * width
        more = [setpoints] * (history - self.task.history) * width
        first = np.insert(network.weights[0], more, 0.0, axis=1)
        return Network((first, *network.weights[1:]), network.biases, network.activation)

    def fits(self, members: int) -> bool:
        """Tell whether the numbers of networks, inputs and outputs are right."""
        n_states = len(self.task.states)
        frame = 2 * n_states + self.task.history * len(self.task.scope.names)
        shapes = {(network.sizes[0], network.sizes[-1]) for network in self.networks}
        possible = {(inputs, self.levels.size or 1) for inputs in (n_states, frame)}
        return len(self.networks) == members and shapes <= possible and len(self.failing) == self.levels.size

    def __str__(self) -> str:
        return f"reward learned as {f'{self.levels.size} classes' if self.levels.size else 'a value'}"


def fit_reward(lesson: Lesson, *, rng: np.random.Generator, progress: Progress | None) -> LearnedReward:
    """Learn the reward: a few distinct rewards as one-hot classes (sec. 4.2 of the paper), or a value."""
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
    """Return the columns of the frame that the reward may depend on.

    On the published track these are the next states, otherwise all but the next states that failure alters.
    """
    if not lesson.track.discern:
        return np.arange(len(lesson.task.states))
    frame = np.arange(lesson.training.seen.shape[1])
    return np.setdiff1d(frame, np.flatnonzero(lesson.failure.altered))


def _examples(steps: Steps, columns: Ints, levels: Floats) -> tuple[Floats, Floats]:
    """Return inputs [n, columns] and targets [1, n, classes] or [1, n, 1]."""
    targets = (steps.reward[:, None] == levels).astype(float) if levels.size else steps.reward[:, None]
    return steps.seen[:, columns], targets[None]


def _spread(network: Network, columns: Ints, width: int) -> Network:
    """Return the network over `width` columns, which ignores all but those that it was trained on."""
    first = np.zeros((len(network.biases[0]), width))
    first[:, columns] = network.weights[0]
    return Network((first, *network.weights[1:]), network.biases, network.activation)
