"""What the numbers of a quality report come to: good, fair or poor, with reasons in words.

A criterion is good or fair up to the limits below, and poor beyond; the verdict is that of the worst. Only
states that networks predict are judged: what is computed from them is as good as they are.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from clearloop.data.cells import Floats
from clearloop.surrogate.one_step import RewardErrors, StateErrors
from clearloop.surrogate.open_loop import OpenLoop
from clearloop.task import Task

Grade = Literal["good", "fair", "poor"]

UNEXPLAINED = (0.01, 0.1)  # share of a state's change in one step
SOON = 10  # steps
DRIFT_SOON = (0.1, 0.5)  # median error of replays after so many steps, in standard deviations of the state
DRIFT_AT_THE_END = (0.5, np.inf)  # never poor: open loop, an unstable plant runs off whatever the model
WRONG_REWARDS = (0.03, 0.1)  # share of them; of a reward without classes, of its variance
MISSED = (0.1, 0.3)  # share of the failures
FALSE_ALARMS = (0.01, 0.05)  # share of the steps that do not fail


class Criterion(NamedTuple):
    grade: Grade
    reason: str


def judge(
    task: Task, states: StateErrors, open_loop: OpenLoop, reward: RewardErrors
) -> tuple[Grade, tuple[str, ...]]:
    """The grade, and what is good, or what is not."""
    found = [*_one_step(task, states), *_drift(task, open_loop), *_reward(reward)]
    worst: Grade = max((criterion.grade for criterion in found), key=["good", "fair", "poor"].index)
    return worst, tuple(criterion.reason for criterion in found if criterion.grade == worst)


def _grade(value: float, limits: tuple[float, float]) -> Grade:
    good, fair = limits
    return "good" if value <= good else "fair" if value <= fair else "poor"


def _one_step(task: Task, states: StateErrors) -> Iterator[Criterion]:
    """Of the state that is predicted worst."""
    shares = _of_predicted(task, states.r_squared)
    if not np.isnan(shares).all():
        worst = int(np.nanargmin(shares))
        explained = float(shares[worst])
        said = f"{_percent(max(explained, 0.0))} of the change of {task.state_names[worst]}"
        yield Criterion(_grade(1.0 - explained, UNEXPLAINED), f"one step ahead, {said} is explained")


def _of_predicted(task: Task, values: Floats) -> Floats:
    """[S] NaN for the other states."""
    return np.where(np.isin(task.state_names, task.predicted), values, np.nan)


def _drift(task: Task, open_loop: OpenLoop) -> Iterator[Criterion]:
    """Of the state that is predicted worst."""
    end = len(open_loop.median)
    horizons = [(min(SOON, end), DRIFT_SOON), (end, DRIFT_AT_THE_END)]
    for steps, limits in horizons[: 1 + (end > SOON)] if end else ():
        drift = _of_predicted(task, open_loop.drift[steps - 1])
        if not np.isnan(drift).all():
            worst = int(np.nanargmax(drift))
            name, state = list(task.states.items())[worst]
            size = f"{open_loop.median[steps - 1, worst]:.2g} {state.unit}".rstrip()
            said = f"the typical error of {name} is {size}, {drift[worst]:.2g} of its spread"
            yield Criterion(_grade(float(drift[worst]), limits), f"{steps} steps ahead, {said}")


def _reward(reward: RewardErrors) -> Iterator[Criterion]:
    said = "of the rewards are predicted" if reward.levels.size else "of the reward's variance is explained"
    yield Criterion(_grade(1.0 - reward.score, WRONG_REWARDS), f"{_percent(max(reward.score, 0.0))} {said}")
    if reward.found is not None:
        yield Criterion(
            _grade(1.0 - reward.found, MISSED), f"{_percent(reward.found)} of the failures are predicted"
        )
    if reward.false_alarms is not None:
        yield Criterion(
            _grade(reward.false_alarms, FALSE_ALARMS),
            f"{_percent(reward.false_alarms)} of the other steps are predicted to fail",
        )


def _percent(share: float) -> str:
    """Never rounded up to 100 %."""
    return f"{math.floor(round(share * 1e4, 6)) / 100:g} %"
