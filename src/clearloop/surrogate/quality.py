"""The quality report of a surrogate: how far it can be trusted, on data that it was not trained on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clearloop.data import Batch
from clearloop.data.cells import Floats
from clearloop.errors import ClearloopError
from clearloop.surrogate.disagreement import Disagreement, disagreement
from clearloop.surrogate.one_step import RewardErrors, StateErrors, reward_errors, state_errors
from clearloop.surrogate.open_loop import OpenLoop, replay
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Surrogate
from clearloop.surrogate.verdict import Grade, judge
from clearloop.task import Task


@dataclass(frozen=True, eq=False, repr=False)
class Quality:
    """Arrays have a column for each of the task's S states."""

    task: Task
    steps: int
    """held-out transitions"""
    verdict: Grade
    reasons: tuple[str, ...]
    """what is good, or what is not"""
    states: StateErrors
    open_loop: OpenLoop
    reward: RewardErrors
    disagreement: Disagreement | None
    """None for a single member"""

    def to_dict(self) -> dict[str, Any]:
        """JSON values; null for what cannot be told."""
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
    """Examine a surrogate on data that it was not trained on: `surrogate.split(batch)[1]`, or another log."""
    task = surrogate.task
    steps = Steps.of(task, held_out)
    if steps.failing.all():
        raise ClearloopError("a model cannot be assessed on steps that all fail: hold out more episodes")
    seen = {"after": steps.next, "setpoints": steps.aims}
    predicted = np.stack([surrogate.predict(steps.window, m, **seen) for m in range(surrogate.members)])
    states, reward = state_errors(steps, predicted), reward_errors(surrogate, steps, predicted)
    open_loop = replay(surrogate, held_out, steps)
    verdict, reasons = judge(task, states, open_loop, reward)
    apart = disagreement(surrogate, steps, predicted)
    return Quality(task, len(steps), verdict, reasons, states, open_loop, reward, apart)


def _by_state(names: Sequence[str], values: Floats) -> dict[str, Any]:
    """{state: number, or list of numbers}"""
    return {name: _json(value) for name, value in zip(names, values.tolist(), strict=True)}


def _json(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
