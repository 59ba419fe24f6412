"""The quality report says how far a surrogate can be trusted, by data that it was not trained on."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data import Batch
from clearloop.data.checks import MOST_CLASSES
from clearloop.errors import ClearloopError
from clearloop.networks import Scaling
from clearloop.numbers import amount, floored_percent
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Surrogate
from clearloop.task import Task

# The errors of a single step: of each state, of the reward, and of failure.


@dataclass(frozen=True, eq=False)
class StateErrors:
    """The prediction errors of the S states after one step, over all members."""

    rmse: Floats
    """[S] root mean square error of ordinary steps, in the state's unit"""
    r_squared: Floats
    """[S] share of the variance of a state's change that is explained; NaN for a state that never changes"""
    failing: Floats
    """[S] root mean square error of failing steps; NaN if there is none"""


@dataclass(frozen=True, eq=False)
class RewardErrors:
    """The errors of predicted rewards and failures, over all members, by their own predicted next states."""

    levels: Floats
    """[classes] distinct rewards, the best first; none if there are too many"""
    confusion: Ints
    """[classes, classes] number of steps with the row's true and the column's predicted reward"""
    score: float
    """share of the rewards that are right; R² of a reward without classes"""
    found: float | None
    """share of the failed steps that are predicted to fail; None if there are none, or failure is unknown"""
    false_alarms: float | None
    """share of the other steps that are predicted to fail"""


def state_errors(steps: Steps, predicted: Floats) -> StateErrors:
    """Return the errors of predicted next states [M, n, S]."""
    squares = np.square(predicted - steps.next).mean(axis=0)
    ordinary = ~steps.failing
    error, scale = squares[ordinary].mean(axis=0), Scaling.of(steps.change[ordinary])
    explained = np.where(scale.scale > 0, 1.0 - error * scale.inverse**2, np.nan)
    failing = squares[steps.failing].mean(axis=0) if steps.failing.any() else np.full_like(error, np.nan)
    return StateErrors(np.sqrt(error), explained, np.sqrt(failing))


def reward_errors(surrogate: Surrogate, steps: Steps, predicted: Floats) -> RewardErrors:
    """Return the errors of rewards and failures by predicted next states [M, n, S]."""
    rewards, fails = _judged(surrogate, steps, predicted)
    true = np.broadcast_to(steps.reward, rewards.shape)
    levels = np.unique(np.append(true, rewards))[::-1]
    if levels.size > MOST_CLASSES:
        levels = levels[:0]
    confusion = [[np.count_nonzero((true == t) & (rewards == p)) for p in levels] for t in levels]
    failed, told = surrogate.reward.failed(steps), surrogate.reward.tells_failure
    return RewardErrors(
        levels,
        np.array(confusion, np.int64).reshape(levels.size, levels.size),
        score=float(np.mean(true == rewards)) if levels.size else _r_squared(true, rewards),
        found=_share(fails[:, failed]) if told else None,
        false_alarms=_share(fails[:, ~failed]) if told else None,
    )


def _judged(surrogate: Surrogate, steps: Steps, predicted: Floats) -> tuple[Floats, Flags]:
    """Return rewards and failures [M, n] of predicted steps."""
    rest = np.hstack([steps.window, steps.before, steps.setpoints])
    judged = [surrogate.judge(np.hstack([states, rest]), member) for member, states in enumerate(predicted)]
    rewards, fails = zip(*judged, strict=True)
    return np.stack(rewards), np.stack(fails)


def _share(flags: Flags) -> float | None:
    return float(flags.mean()) if flags.size else None


def _r_squared(true: Floats, predicted: Floats) -> float:
    variance = float(true.var())
    return 1.0 - float(np.square(predicted - true).mean()) / variance if variance else 0.0


# The error grows with the horizon, so logged actions are replayed on the model, starting at logged states.

_LONGEST = 200  # steps of a replay
_FEWEST = 10  # replays that must last to a step for its error to count, or half of all if that is less


@dataclass(frozen=True, eq=False)
class OpenLoop:
    """Absolute errors in the units of the states after 1 … K steps, over replays and members."""

    median: Floats
    """[K, S] median error"""
    ninety: Floats
    """[K, S] error that nine of ten do not exceed"""
    replays: Ints
    """[K] number of replays that last as long"""
    spread: Floats
    """[S] standard deviation of the states in the log, to compare with"""

    @property
    def drift(self) -> Floats:
        """[K, S] the median error in standard deviations of the state; NaN for a constant state."""
        spread = np.broadcast_to(self.spread, self.median.shape)
        return np.divide(self.median, spread, out=np.full_like(self.median, np.nan), where=spread > 0)


def replay(surrogate: Surrogate, batch: Batch, steps: Steps) -> OpenLoop:
    """Replay the logged actions of a batch, whose steps are `steps`, on a surrogate.

    A replay begins with each episode, and again after each horizon.
    """
    begins, lengths = segments(batch.transitions().episode, steps, min(surrogate.task.horizon, _LONGEST))
    running = np.sum(lengths[:, None] > np.arange(lengths.max(initial=0)), axis=0)
    horizon = int(np.count_nonzero(running >= min(_FEWEST, -(-len(begins) // 2))))
    errors = np.stack(
        [errors_of(surrogate, m, surrogate.task, steps, begins, horizon) for m in range(surrogate.members)]
    )
    of_step = [errors[:, lengths > k, k].reshape(-1, errors.shape[-1]) for k in range(horizon)]
    quantiles = np.array([np.quantile(step, [0.5, 0.9], axis=0) for step in of_step])
    quantiles = quantiles.reshape(horizon, 2, errors.shape[-1])
    return OpenLoop(quantiles[:, 0], quantiles[:, 1], running[:horizon], batch.states.std(axis=0))


def segments(episode: Ints, steps: Steps, horizon: int) -> tuple[Ints, Ints]:
    """Return where replays begin, and their numbers of steps up to the next beginning or to an end."""
    n = len(steps)
    first = np.searchsorted(episode, episode)
    begins = np.flatnonzero((np.arange(n) - first) % horizon == 0)
    ending = np.append(np.flatnonzero(steps.ending), n)
    ends = np.minimum(np.append(begins[1:], n), ending[np.searchsorted(ending, begins)])
    lengths = ends - begins
    return begins[lengths > 0], lengths[lengths > 0]


class Predictor(Protocol):
    """A model that can be replayed."""

    def predict(
        self, window: Floats, member: int, *, after: Floats | None, setpoints: Floats | None
    ) -> Floats:
        """Return the next states [n, S], as `Surrogate.predict` does."""


def errors_of(
    predictor: Predictor, member: int, task: Task, steps: Steps, begins: Ints, horizon: int
) -> Floats:
    """Return the absolute errors [replays, horizon, S]; they mean nothing after the end of a replay.

    Args:
        predictor: The model.
        member: The member that predicts.
        task: The task.
        steps: The logged steps.
        begins: [replays] the steps at which replays begin.
        horizon: The number of steps of every replay.
    """
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


# Members that disagree more where there is no data show that they do not know it.

STRETCH = 1.5  # factor of the distance from the middle of the data, for steps outside of it


@dataclass(frozen=True, eq=False)
class Disagreement:
    """The deviation between members after one step: root mean square over steps, in the states' units."""

    inside: Floats
    """[S] deviation in steps of the log"""
    outside: Floats
    """[S] deviation with states 1.5 times as far from the middle of the data, if that leaves its range"""


def disagreement(surrogate: Surrogate, steps: Steps, predicted: Floats) -> Disagreement | None:
    """Return the disagreement between members, or None if there is only one.

    Args:
        surrogate: The surrogate.
        steps: The n logged steps.
        predicted: [M, n, S] their predicted next states.
    """
    if surrogate.members == 1:
        return None
    stretched = _stretched(surrogate, steps.window)
    outside = np.stack([surrogate.predict(stretched, member) for member in range(surrogate.members)])
    return Disagreement(_deviation(predicted), _deviation(outside))


def _stretched(surrogate: Surrogate, window: Floats) -> Floats:
    """Return windows outside the region of the training data; lags keep their pattern, actions stay."""
    low, high = surrogate.region.T
    n_states, width = len(surrogate.task.states), len(surrogate.task.scope.names)
    factor = np.where(np.arange(low.size) % width < n_states, STRETCH, 1.0)
    middle = (low + high) / 2
    stretched = middle + factor * (window - middle)
    return np.asarray(stretched[((stretched < low) | (stretched > high)).any(axis=1)])


def _deviation(predicted: Floats) -> Floats:
    """Return the deviation [S] of predictions [M, n, S]; NaN if there are none."""
    if not predicted.shape[1]:
        return np.full(predicted.shape[2], np.nan)
    return np.asarray(np.sqrt(predicted.var(axis=0, ddof=1).mean(axis=0)))


# The verdict is good, fair or poor, with reasons in words. Each criterion is good up to the first limit
# below, fair up to the second, and poor beyond; the verdict is that of the worst criterion. Only states that
# networks predict are judged, because states that are computed from them are as good as they are.

Grade = Literal["good", "fair", "poor"]

UNEXPLAINED = (0.01, 0.1)  # unexplained share of the variance of a state's change in one step
SOON = 10  # steps
DRIFT_SOON = (0.1, 0.5)  # median error of replays after so many steps, in standard deviations of the state
DRIFT_AT_THE_END = (0.5, np.inf)  # never poor: in open loop an unstable plant runs off with any model
WRONG_REWARDS = (0.03, 0.1)  # share of wrong rewards; unexplained variance of a reward without classes
MISSED = (0.1, 0.3)  # share of the failures that are not predicted
FALSE_ALARMS = (0.01, 0.05)  # share of the other steps that are predicted to fail


class Criterion(NamedTuple):
    """The grade of one criterion, with the reason in words."""

    grade: Grade
    reason: str


def grade_model(
    task: Task, states: StateErrors, open_loop: OpenLoop, reward: RewardErrors
) -> tuple[Grade, tuple[str, ...]]:
    """Return the grade of the worst criterion, and the reasons of all criteria with this grade."""
    found = [*_one_step(task, states), *_drift(task, open_loop), *_reward(reward)]
    worst: Grade = max((criterion.grade for criterion in found), key=["good", "fair", "poor"].index)
    return worst, tuple(criterion.reason for criterion in found if criterion.grade == worst)


def _grade(value: float, limits: tuple[float, float]) -> Grade:
    good, fair = limits
    return "good" if value <= good else "fair" if value <= fair else "poor"


def _one_step(task: Task, states: StateErrors) -> Iterator[Criterion]:
    """Grade the state that is predicted worst one step ahead."""
    shares = _of_predicted(task, states.r_squared)
    if not np.isnan(shares).all():
        worst = int(np.nanargmin(shares))
        explained = float(shares[worst])
        said = f"{floored_percent(max(explained, 0.0))} of the change of {task.state_names[worst]}"
        yield Criterion(_grade(1.0 - explained, UNEXPLAINED), f"one step ahead, {said} is explained")


def _of_predicted(task: Task, values: Floats) -> Floats:
    """Return the values [S], with NaN for states that are not predicted."""
    return np.where(np.isin(task.state_names, task.predicted), values, np.nan)


def _drift(task: Task, open_loop: OpenLoop) -> Iterator[Criterion]:
    """Grade the state that is predicted worst several steps ahead."""
    end = len(open_loop.median)
    horizons = [(min(SOON, end), DRIFT_SOON), (end, DRIFT_AT_THE_END)]
    for steps, limits in horizons[: 1 + (end > SOON)] if end else ():
        drift = _of_predicted(task, open_loop.drift[steps - 1])
        if not np.isnan(drift).all():
            worst = int(np.nanargmax(drift))
            name, state = list(task.states.items())[worst]
            size = amount(open_loop.median[steps - 1, worst], state.unit)
            said = f"the typical error of {name} is {size}, {drift[worst]:.2g} of its spread"
            yield Criterion(_grade(float(drift[worst]), limits), f"{steps} steps ahead, {said}")


def _reward(reward: RewardErrors) -> Iterator[Criterion]:
    said = "of the rewards are predicted" if reward.levels.size else "of the reward's variance is explained"
    yield Criterion(
        _grade(1.0 - reward.score, WRONG_REWARDS), f"{floored_percent(max(reward.score, 0.0))} {said}"
    )
    if reward.found is not None:
        yield Criterion(
            _grade(1.0 - reward.found, MISSED),
            f"{floored_percent(reward.found)} of the failures are predicted",
        )
    if reward.false_alarms is not None:
        yield Criterion(
            _grade(reward.false_alarms, FALSE_ALARMS),
            f"{floored_percent(reward.false_alarms)} of the other steps are predicted to fail",
        )


@dataclass(frozen=True, eq=False, repr=False)
class Quality:
    """The quality report of a surrogate. Its arrays have a column for each of the task's S states."""

    task: Task
    steps: int
    """number of held-out transitions"""
    verdict: Grade
    reasons: tuple[str, ...]
    """reasons for the verdict, in words"""
    states: StateErrors
    open_loop: OpenLoop
    reward: RewardErrors
    disagreement: Disagreement | None
    """None for a single member"""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values; null stands for what is unknown."""
        names = self.task.state_names
        apart = self.disagreement
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "steps": self.steps,
            "one_step": {
                "rmse": _by_state(names, self.states.rmse),
                "r_squared": _by_state(names, self.states.r_squared),
                "rmse_failing": _by_state(names, self.states.failing),
            },
            "open_loop": {
                "replays": self.open_loop.replays.tolist(),
                "spread": _by_state(names, self.open_loop.spread),
                "median": _by_state(names, self.open_loop.median.T),
                "ninety": _by_state(names, self.open_loop.ninety.T),
            },
            "reward": {
                "levels": self.reward.levels.tolist(),
                "confusion": self.reward.confusion.tolist(),
                "score": self.reward.score,
                "failures_found": self.reward.found,
                "false_alarms": self.reward.false_alarms,
            },
            "disagreement": apart
            and {"inside": _by_state(names, apart.inside), "outside": _by_state(names, apart.outside)},
        }

    def __repr__(self) -> str:
        return f"{self.verdict}, from {self.steps:,} held-out transitions: {'; '.join(self.reasons)}"


def assess(surrogate: Surrogate, held_out: Batch) -> Quality:
    """Assess a surrogate on data that it was not trained on: `surrogate.split(batch)[1]`, or another log.

    Raises:
        ClearloopError: All steps of the data fail.
    """
    task = surrogate.task
    steps = Steps.of(task, held_out)
    if steps.failing.all():
        raise ClearloopError("a model cannot be assessed if all held-out steps fail: hold out more episodes")
    seen = {"after": steps.next, "setpoints": steps.aims}
    predicted = np.stack([surrogate.predict(steps.window, m, **seen) for m in range(surrogate.members)])
    states, reward = state_errors(steps, predicted), reward_errors(surrogate, steps, predicted)
    open_loop = replay(surrogate, held_out, steps)
    verdict, reasons = grade_model(task, states, open_loop, reward)
    apart = disagreement(surrogate, steps, predicted)
    return Quality(task, len(steps), verdict, reasons, states, open_loop, reward, apart)


def _by_state(names: Sequence[str], values: Floats) -> dict[str, Any]:
    """Return a number, or a list of numbers, for each state."""
    return {name: _json(value) for name, value in zip(names, values.tolist(), strict=True)}


def _json(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
