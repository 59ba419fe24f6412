"""How good the predictions of a single step are: of each state, of the reward, and of failure."""

from dataclasses import dataclass

import numpy as np

from clearloop.data.cells import Flags, Floats, Ints
from clearloop.networks import Scaling
from clearloop.surrogate.reward_fitting import MOST_CLASSES
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Surrogate


@dataclass(frozen=True, eq=False)
class StateErrors:
    """Of the S states, over all members."""

    rmse: Floats
    """[S] root mean square error of ordinary steps, in the state's unit"""
    r_squared: Floats
    """[S] share of the variance of a state's change that is explained; NaN for a state that stays as it is"""
    failing: Floats
    """[S] root mean square error of failing steps; NaN if there is none"""


@dataclass(frozen=True, eq=False)
class RewardErrors:
    """Over all members, which see their own predictions of the next state."""

    levels: Floats
    """[classes] the rewards that there are, the best first; none if there are too many"""
    confusion: Ints
    """[classes, classes] steps of the true reward of the row for which that of the column was predicted"""
    score: float
    """share of the rewards that are right; of a reward without classes R²"""
    found: float | None
    """share of the failed steps that are predicted to fail; None if there are none, or nothing tells"""
    false_alarms: float | None
    """share of the other steps that are"""


def state_errors(steps: Steps, predicted: Floats) -> StateErrors:
    """`predicted`: next states [M, n, S]."""
    squares = np.square(predicted - steps.next).mean(axis=0)
    ordinary = ~steps.failing
    error, scale = squares[ordinary].mean(axis=0), Scaling.of(steps.change[ordinary])
    explained = np.where(scale.scale > 0, 1.0 - error * scale.inverse**2, np.nan)
    failing = squares[steps.failing].mean(axis=0) if steps.failing.any() else np.full_like(error, np.nan)
    return StateErrors(np.sqrt(error), explained, np.sqrt(failing))


def reward_errors(surrogate: Surrogate, steps: Steps, predicted: Floats) -> RewardErrors:
    """`predicted`: next states [M, n, S]."""
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
    """Rewards and failures [M, n] of predicted steps."""
    rest = np.hstack([steps.window, steps.before, steps.setpoints])
    judged = [surrogate.judge(np.hstack([states, rest]), member) for member, states in enumerate(predicted)]
    rewards, fails = zip(*judged, strict=True)
    return np.stack(rewards), np.stack(fails)


def _share(flags: Flags) -> float | None:
    return float(flags.mean()) if flags.size else None


def _r_squared(true: Floats, predicted: Floats) -> float:
    variance = float(true.var())
    return 1.0 - float(np.square(predicted - true).mean()) / variance if variance else 0.0
