"""What one side's sensors show: noise added, some steps late; and what the task computes from that."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clearloop.controllers.derivation import Derivation
from clearloop.expression import to_text
from clearloop.plants.stepper import Floats
from clearloop.task import Task

MOST_DELAY = 10  # steps
LARGEST_NOISE = 0.05  # of a state's range, as standard deviation


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Of all sensors, on top of what the task's own have."""

    noise: float = 0.0
    """0 … 1, of the largest"""
    delay: int = 0
    """steps"""


class Sensors:
    """Of one episode. States with a formula are no sensor's: they follow from what the others show."""

    def __init__(self, task: Task, spans: Floats) -> None:
        """`spans`: [S], how wide the range of each state is."""
        self._names = tuple(task.states)
        self._shown = [j for j, state in enumerate(task.states.values()) if state.formula is None]
        self._spans = LARGEST_NOISE * spans
        self._past: deque[Floats] = deque(maxlen=MOST_DELAY + 1)
        formulas = {name: to_text(formula) for name, formula in task.derived.items()}
        self._derivation = Derivation(formulas, task.action_names) if formulas else None

    def look(
        self, state: Floats, luck: Floats, faults: Faults, aims: Mapping[str, float]
    ) -> dict[str, float]:
        """`state`: [S or more], those of the task first. `luck`: [S], standard normal."""
        self._past.appendleft(state[: len(self._names)])
        values = self._past[min(faults.delay, len(self._past) - 1)]
        if faults.noise:
            values = values + faults.noise * self._spans * luck
        seen = {self._names[j]: float(values[j]) for j in self._shown}
        return self._derivation.complete(seen, aims) if self._derivation else seen

    def acted(self, action: Mapping[str, float]) -> None:
        if self._derivation:
            self._derivation.acted(action)


def standard_normal(task: Task, rng: np.random.Generator) -> Floats:
    """[S] the luck of all sides' sensors at one step."""
    return rng.standard_normal(len(task.states))
