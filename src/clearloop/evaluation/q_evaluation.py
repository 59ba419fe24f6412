"""Fitted Q evaluation estimates a controller's penalty from the batch alone (Eqs. 1 and 2 of the paper).

It starts at q₀ = 0. After as many iterations as the horizon has steps, q(s, a) is the return of these steps:
minus the penalty of a rollout, as far as the approximator can tell. In iteration k a failing step counts its
reward k times, because failure lasts; q is never needed in failed states.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Flags, Floats, Ints
from clearloop.controllers import Controller, encode
from clearloop.data import Batch
from clearloop.data.log import first_windows
from clearloop.errors import ClearloopError
from clearloop.evaluation.rollouts import standard_error_of
from clearloop.expression import Number
from clearloop.kernels.engine import System, roll_out
from clearloop.kernels.layout import DERIVATIVE, Dynamics, Job, Policies
from clearloop.networks import Training
from clearloop.numbers import estimate
from clearloop.plants.plant import empty_networks, lower_judgements
from clearloop.plants.scenarios import setpoint_table
from clearloop.programs import lower_ways, unbounded
from clearloop.surrogate.steps import Steps, judge_frame
from clearloop.task import Task

if TYPE_CHECKING:
    from clearloop.networks.descent import Refitting


# Fitted Q evaluation fits networks or extremely randomised trees (Ernst, Geurts, Wehenkel 2005). The points
# at which an approximator is fitted and those at which it is asked stay the same, while the targets change
# from iteration to iteration. Targets and predictions are shares, from 0 to 1, of the range of returns.

_Fit = Callable[[Floats], Floats]  # from targets [n] at the points to predictions [M, m] where it is asked


class Approximator(ABC):
    """A function approximator. Approximators are frozen dataclasses of their own settings."""

    @abstractmethod
    def begin(self, points: Floats, asked: Floats, *, rng: np.random.Generator) -> _Fit:
        """Return a function that fits targets [n] and returns the predictions [M, m] of M members.

        Args:
            points: [n, columns] points of the data.
            asked: [m, columns] points at which predictions are wanted.
            rng: The source of all random numbers.
        """


@dataclass(frozen=True, kw_only=True)
class NetworkFits(Approximator):
    """Networks with different first weights; each fit goes on from the last.

    Half of them also see the products of all pairs of columns. Without data the two sorts extrapolate
    differently: on the cart-pole, whose batch is slow and whose controllers drive fast, the one finds too few
    failures, the other too many.
    """

    members: int = 4
    """number of networks"""
    training: Training = field(
        default_factory=lambda: Training(
            hidden=(64, 64), activation="tanh", epochs=3, batch_size=256, learning_rate=1e-3
        )
    )
    """settings of each fit; the step size is constant"""

    def begin(self, points: Floats, asked: Floats, *, rng: np.random.Generator) -> "Refitting":
        from clearloop.networks.descent import Refitting

        seen, asked = _with_products(points), _with_products(asked)
        reads = np.ones((self.members, seen.shape[1]))
        reads[::2, points.shape[1] :] = 0.0
        return Refitting(seen, asked, reads=reads, settings=self.training, rng=rng)

    def features(self, fit: "Refitting", points: Floats) -> Floats:
        """Return the outputs [n, features] of the last hidden layers for points [n, columns]."""
        return fit.features(_with_products(points))


def _with_products(rows: Floats) -> Floats:
    """[n, columns + pairs of columns]"""
    one, other = np.triu_indices(rows.shape[1])
    return np.hstack([rows, rows[:, one] * rows[:, other]])


@dataclass(frozen=True, kw_only=True)
class Trees(Approximator):
    """Forests of extremely randomised trees, which differ in their random splits.

    With given trees, a fit is an average over leaves, which takes no time. So trees are grown again only
    every few iterations.
    """

    members: int = 3
    """number of forests"""
    trees: int = 30
    """trees of each forest, whose predictions are averaged"""
    leaf: int = 3
    """fewest rows in a leaf"""
    regrown: int = 10
    """fits until trees are grown again"""

    def begin(self, points: Floats, asked: Floats, *, rng: np.random.Generator) -> _Fit:
        forests = [_Forest(self, points, asked, child) for child in rng.spawn(self.members)]
        return lambda targets: np.stack([forest(targets) for forest in forests])


class _Forest:
    def __init__(self, settings: Trees, points: Floats, asked: Floats, rng: np.random.Generator) -> None:
        self.settings, self.points, self.asked, self.rng = settings, points, asked, rng
        self.fits = 0

    def __call__(self, targets: Floats) -> Floats:
        """[m]"""
        if self.fits % self.settings.regrown == 0:
            self._grow(targets)
        self.fits += 1
        sums = np.bincount(self.leaves.ravel(), np.repeat(targets, self.settings.trees), self.counts.size)
        means = sums / self.counts
        return np.asarray(means[self.asked_leaves].mean(axis=1))

    def _grow(self, targets: Floats) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        forest = ExtraTreesRegressor(
            self.settings.trees,
            min_samples_leaf=self.settings.leaf,
            random_state=int(self.rng.integers(2**31)),
        ).fit(self.points, targets)
        first = np.cumsum([0, *(tree.tree_.node_count for tree in forest.estimators_)])
        self.leaves: Ints = forest.apply(self.points) + first[:-1]
        """[n, trees] index of the leaf that each point is in, counted over all trees"""
        self.asked_leaves: Ints = forest.apply(self.asked) + first[:-1]
        self.counts = np.maximum(np.bincount(self.leaves.ravel(), minlength=first[-1]), 1)


class LoggedSteps(NamedTuple):
    """Logged steps as the tuples (s, a, s′, r) of Eq. (1) of the paper.

    A state s holds the R values that a controller can read: the states, then states and actions of each lag.
    """

    state: Floats
    """[n, R] s"""
    action: Floats
    """[n, A] a"""
    after: Floats
    """[n, R] next state"""
    reward: Floats
    """[n] r"""
    failing: Flags
    """[n] whether the step led into failure, after which every reward is the same"""
    succeeding: Flags
    """[n] whether the step led to success, after which every reward is 0"""

    def some(self, rows: Ints) -> "LoggedSteps":
        """Return some of the steps."""
        return LoggedSteps(
            self.state[rows],
            self.action[rows],
            self.after[rows],
            self.reward[rows],
            self.failing[rows],
            self.succeeding[rows],
        )

    @property
    def pairs(self) -> Floats:
        """[n, R + A] the pairs (s, a), which Q is a function of."""
        return np.hstack([self.state, self.action])


def experience(task: Task, steps: Steps) -> LoggedSteps:
    """Return steps as tuples (s, a, s′, r)."""
    n_states, width = len(task.states), len(task.scope.names)
    window = steps.window
    state = np.delete(window, np.s_[n_states:width], axis=1)
    after = np.hstack([steps.next, window[:, : window.shape[1] - width]])
    chosen = window[:, n_states:width]
    return LoggedSteps(state, chosen, after, steps.reward, steps.failing, steps.succeeding)


def as_errors(task: Task, steps: Steps) -> Steps:
    """Return the steps with present and past states as deviations from the setpoints."""
    aims = np.hstack([steps.setpoints, np.zeros((len(steps), len(task.actions)))])
    return replace(
        steps,
        next=steps.next - steps.setpoints,
        window=steps.window - np.tile(aims, (1, task.history)),
        setpoints=np.zeros_like(steps.setpoints),
        aims=np.zeros_like(steps.aims),
    )


def with_mirror_image(steps: Steps) -> Steps:
    """Add the steps with all signs turned, which a symmetric plant could have taken as well."""
    image = replace(
        steps,
        next=-steps.next,
        window=-steps.window,
        before=-steps.before,
        setpoints=-steps.setpoints,
        aims=-steps.aims,
    )
    return Steps(
        *(np.concatenate(pair) for pair in zip(vars(steps).values(), vars(image).values(), strict=True))
    )


def total_discount(discount: float, steps: int) -> float:
    """Return Σ γᵏ, k = 0 … steps − 1: the discounted return of a reward of 1 at every step."""
    return float(steps if discount == 1 else (1 - discount**steps) / (1 - discount))


def decisions(policies: Policies, task: Task, views: NDArray[Any], setpoints: Floats) -> NDArray[Any]:
    """Return the actions [P, n, A] of P controllers, by one step on a plant that stands still.

    Args:
        policies: P controllers.
        task: The task.
        views: [n, R] the states, then states and actions of each lag; they decide the precision.
        setpoints: [1, S] the setpoints.
    """
    if task.history < 2:  # the last action is not part of what is seen, so its rate cannot be limited
        policies = policies._replace(rates=np.zeros(0))
    windows = np.insert(views, [len(task.states)] * len(task.actions), 0.0, axis=1)
    job = Job(windows, setpoints.astype(views.dtype), task.discount, task.history)
    rollout = roll_out(policies, _standstill(task, views.dtype), job, trajectories=True)
    return np.asarray(rollout.actions)[0, :, :, 0]


def _standstill(task: Task, dtype: Any) -> System:
    n_states = len(task.states)
    dynamics = Dynamics(
        kind=DERIVATIVE,
        **lower_ways(task, {}, {}, dtype, None),
        networks=empty_networks(dtype),
        substeps=1,
        dt=task.dt,
        bounds=unbounded(len(task.states)),
        absorbing=False,
        on_failure=np.full(n_states, np.nan, dtype),
    )
    return System(dynamics, lower_judgements([Number(0.0)], task, dtype), members=1)


_Progress = Callable[[float], None]  # is told the share of the work that is done


@dataclass(frozen=True, eq=False)
class FittedQ:
    """The estimated penalties of one controller from N starts, by the M members of an ensemble."""

    task: str
    """name of the task"""
    penalties: Floats
    """[M, N] minus the estimated return"""

    @property
    def penalty(self) -> float:
        """The mean penalty."""
        return float(self.penalties.mean())

    @property
    def standard_error(self) -> float:
        """The standard error over members, which shows the chance in the fits, not what the batch lacks."""
        return standard_error_of(self.penalties.mean(axis=1))

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as JSON values."""
        error = self.standard_error
        return {
            "task": self.task,
            "on": "batch",
            "starts": self.penalties.shape[1],
            "penalty": {"mean": self.penalty, "se": error if np.isfinite(error) else None},
            "failures": None,
        }

    @property
    def summary(self) -> str:
        """The estimate in words: `penalty   2.952 ± 0.028   (from the batch alone, 1,024 starts)`."""
        starts = self.penalties.shape[1]
        penalty = estimate(self.penalty, self.standard_error)
        return f"penalty   {penalty}   (from the batch alone, {starts:,} starts)"

    def __repr__(self) -> str:
        return f"{self.task}: {self.summary}"


def fitted_q(
    controller: Controller,
    task: Task,
    batch: Batch,
    *,
    starts: Floats | int = 1024,
    approximator: Approximator | None = None,
    rng: np.random.Generator,
    progress: _Progress | None = None,
) -> FittedQ:
    """Evaluate a controller from the batch alone, without a plant and without a model.

    Args:
        controller: The controller, which must decide by the task's window alone.
        task: The task.
        batch: The logged episodes.
        starts: The number of points of the task's scoring set, or states [N, S].
        approximator: The function approximator; None takes networks.
        rng: The source of all random numbers.
        progress: A function that is told the share of the work that is done, if any.

    Returns:
        The estimated penalty of each start by each member.

    Raises:
        ClearloopError: The controller remembers more than the window, or the logged rewards do not apply.
    """
    controller = controller.for_task(task)
    check_memory(controller, task)
    points = _scoring_starts(task, batch, starts) if isinstance(starts, int) else starts
    aims = setpoint_table(task, 1, controller.setpoint)
    steps = possible_experience(task, batch, aims[0])
    views = np.concatenate([steps.after, first_view(task, points)])
    asked = asked_points(controller, task, views, aims)
    fit = (approximator or NetworkFits()).begin(steps.pairs, asked, rng=rng)
    returns = iterate(steps, len(asked), fit, task, progress)
    return FittedQ(task.name, -returns[:, len(steps.reward) :])  # Eq. (2)


def iterate(
    steps: LoggedSteps, asked: int, fit: _Fit, task: Task, progress: _Progress | None = None
) -> Floats:
    """Iterate Eq. (1) over the horizon.

    Args:
        steps: The n logged steps.
        asked: The number of points at which the approximator is asked; the first n are (s′, π(s′)).
        fit: The approximator.
        task: The task.
        progress: A function that is told the share of the work that is done, if any.

    Returns:
        The returns [M, asked] of the horizon's steps at these points.
    """
    n, returns = len(steps.reward), np.zeros((1, asked))
    low, high = bounds(steps, task)
    for k in range(1, task.horizon + 1):
        targets = _targets(steps, returns[:, :n].mean(axis=0), task.discount, k)
        returns = low + (high - low) * fit((targets - low) / (high - low))  # Eq. (1)
        if progress:
            progress(k / task.horizon)
    return returns


def bounds(steps: LoggedSteps, task: Task) -> tuple[float, float]:
    """Return the range of returns: the lowest and the highest reward of the batch at every step."""
    low, high = min(0.0, float(steps.reward.min())), max(0.0, float(steps.reward.max()))
    times = total_discount(task.discount, task.horizon)
    return times * low, times * (high if high > low else 1.0)


def asked_points(controller: Controller, task: Task, views: Floats, setpoints: Floats) -> Floats:
    """Return views [n, R] joined with the actions of the controller there: [n, R + A]."""
    policies = encode([controller], task, history=task.history)
    return np.hstack([views, decisions(policies, task, views, setpoints)[0]])


def _targets(steps: LoggedSteps, goes_on: Floats, discount: float, k: int) -> Floats:
    """Return the targets [n] of iteration k, r + γ q(s′, π(s′)), where q is the mean of the members."""
    lasting = total_discount(discount, k) * steps.reward
    follows = np.where(steps.succeeding, 0.0, discount * goes_on)
    targets: Floats = np.where(steps.failing, lasting, steps.reward + follows)
    return targets


def check_memory(controller: Controller, task: Task) -> None:
    """Raise an error if a controller needs more than the task's window to decide."""
    if not controller.windowed:
        raise ClearloopError(
            f"fitted Q evaluation: a {controller.kind} remembers more than the task's window holds:"
            " evaluate it on a model or on the plant"
        )
    if controller.history > task.history:
        raise ClearloopError(
            f"fitted Q evaluation: the controller looks back further than history = {task.history} of task"
            f" '{task.name}': give the task a history of {controller.history}"
        )


def possible_experience(task: Task, batch: Batch, aims: Floats) -> LoggedSteps:
    """Return the batch as if these setpoints [S] had been set; of a symmetric plant with its mirror image."""
    steps = Steps.of(task, batch)
    known = task.reward_expression is not None
    if not known and (steps.setpoints != aims).any():
        raise ClearloopError(
            f"task {task.name}: the logged rewards are for other setpoints than the controller's: give the"
            " task a formula for its reward, or give the controller the logged setpoints"
        )
    if task.symmetric and (known or not aims.any()):
        steps = with_mirror_image(steps)
    if known:
        setpoints = np.tile(aims, (len(steps), 1))
        reward, _ = judge_frame(task, np.hstack([steps.next, steps.window, setpoints]))
        steps = replace(steps, setpoints=setpoints, reward=reward)
    return experience(task, steps)


def _scoring_starts(task: Task, batch: Batch, n: int) -> Floats:
    """Return starts [n, S] of the task, or if it has no start box, rows spread over the whole batch."""
    if task.start_box is not None:
        return task.scoring_starts(n)
    rows = np.flatnonzero(~batch.terminal)
    points: Floats = batch.states[rows[np.linspace(0, len(rows) - 1, n).astype(int)]]
    return points


def first_view(task: Task, starts: Floats) -> Floats:
    """Return what a controller sees first [N, R]: the window without the actions that are to be chosen."""
    windows = first_windows(starts, len(task.actions), task.history, task.action_starts)
    return np.delete(windows, np.s_[len(task.states) : len(task.scope.names)], axis=1)


# Fitted Q evaluation of whole populations is linear in features that do not change, so that it takes no time.
# The features are the outputs of the last hidden layer of networks that have evaluated one controller, the
# reference. For another controller π only q(s′, π(s′)) differs, and an iteration of Eq. (1) is a product with
# a matrix: with the weights w of the features φ,
#
# w_k = B y_k,  y_k = r + γ φ(s′, π(s′)) w_{k-1}:  w_k = B r_k + γ (B φ(s′, π(s′))) w_{k-1}
#
# where B is the matrix of least squares. A row has the weight 1 / (p (1 - p)), as in the cross-entropy, where
# p is the share that the networks predict.

_ROWS = 3000  # of the batch, at random: more rows make it slower and hardly better
NETWORK_SETTINGS = NetworkFits(members=2)
RIDGE = 1e-3  # share of the features' mean square: with less, errors grow from iteration to iteration
CAUTION = 0.01  # is added to p (1 - p), so that rows with p near 0 or 1 do not outweigh all others


_Features = Callable[[Floats], Floats]  # from states and actions [n, columns] to features [n, features]


class LinearQ:
    """A fast fitted Q evaluation of memoryless controllers, for the task's own setpoints."""

    def __init__(self, task: Task, steps: LoggedSteps, features: _Features, shares: Floats) -> None:
        """Solve the least squares once for all controllers.

        Args:
            task: The task.
            steps: The n logged steps.
            features: The features of states and actions.
            shares: [n] predictions of the networks for the steps, from 0 to 1.
        """
        self.task, self.steps, self._learned = task, steps, features
        self._setpoints = setpoint_table(task, 1)
        self._views = steps.after.astype(np.float32)
        phi = self._features(steps.pairs)
        weights = 1 / (shares * (1 - shares) + CAUTION)
        weighted = phi.T * (weights / weights.mean())
        normal = weighted @ phi
        normal += RIDGE * np.trace(normal) / len(normal) * np.eye(len(normal))
        solve: Floats = np.linalg.solve(normal, weighted)
        self.goes_on: Floats = solve * ~(steps.failing | steps.succeeding)
        """[features, n] B, with 0 for the steps that end an episode"""
        self.rewards = (solve * ~steps.failing) @ steps.reward
        self.failures = (solve * steps.failing) @ steps.reward
        """[features] B r of the steps that do not fail, and of those that do"""

    @classmethod
    def learn(
        cls,
        task: Task,
        batch: Batch,
        reference: Controller,
        *,
        rng: np.random.Generator,
    ) -> Self:
        """Learn the features by a fitted Q evaluation of a reference with networks, in half a minute.

        Args:
            task: The task.
            batch: The logged episodes.
            reference: The controller that the networks evaluate.
            rng: The source of all random numbers.
        """
        reference = reference.for_task(task)
        check_memory(reference, task)
        aims = setpoint_table(task, 1)
        steps = possible_experience(task, batch, aims[0])
        asked = asked_points(reference, task, steps.after, aims)
        rows = rng.permutation(len(steps.reward))[:_ROWS]
        fit = NETWORK_SETTINGS.begin(steps.pairs, np.concatenate([asked, steps.pairs[rows]]), rng=rng)
        returns = iterate(steps, len(asked) + len(rows), fit, task)
        low, high = bounds(steps, task)
        shares = (returns[:, len(asked) :].mean(axis=0) - low) / (high - low)
        return cls(task, steps.some(rows), partial(NETWORK_SETTINGS.features, fit), shares)

    @property
    def cost(self) -> int:
        """The logged steps that one evaluation reads: all of them in each iteration."""
        return len(self.steps.reward) * self.task.horizon

    def penalties(self, policies: Policies, starts: Floats) -> Floats:
        """Return the penalties [P, N] of P controllers from N starts.

        If the fit breaks down, returns are higher than possible, and a search would look for just that. So
        the excess is counted as a penalty, at the starts and, on average, in the batch.

        Args:
            policies: P controllers, encoded for the task's history in single precision.
            starts: [N, S] states.
        """
        views = first_view(self.task, starts).astype(np.float32)
        afterwards = decisions(policies, self.task, self._views, self._setpoints)
        at_first = decisions(policies, self.task, views, self._setpoints)
        low, high = bounds(self.steps, self.task)
        penalties = np.empty(at_first.shape[:2])
        for number, (later, first) in enumerate(zip(afterwards, at_first, strict=True)):
            features = self._features(np.hstack([self._views, later]))
            weights = self.iterate(features)
            returns = self._features(np.hstack([views, first])) @ weights
            impossible = np.maximum(features @ weights - high, 0).mean()
            penalties[number] = impossible + np.abs(returns - high) - high
        return np.minimum(penalties, -low)

    def iterate(self, features: Floats) -> Floats:
        """Return the weights [features] after the horizon, from the features [n, …] of (s′, π(s′))."""
        discount, matrix = self.task.discount, self.goes_on @ features
        weights = np.zeros(len(matrix))
        for k in range(1, self.task.horizon + 1):
            weights = (
                self.rewards + total_discount(discount, k) * self.failures + discount * (matrix @ weights)
            )
        return weights

    def value(self, controller: Controller, starts: Floats) -> Floats:
        """Return the penalties [N] of one controller from starts [N, S]."""
        policies = encode([controller], self.task, history=self.task.history, dtype=np.float32)
        penalties: Floats = self.penalties(policies, starts)[0]
        return penalties

    def _features(self, rows: Floats) -> Floats:
        """Return the features [n, features] of rows; the last one is 1."""
        return np.hstack([self._learned(rows), np.ones((len(rows), 1))])
