"""One plant with its sensors and its driver, and how it fares."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from clearloop.plants.stepper import Floats, Stepper
from clearloop.studio.course import Outside
from clearloop.studio.drivers import Driver
from clearloop.studio.sensors import Faults, Sensors
from clearloop.task import Task

DIGITS = 6  # after the point, of what is shown


class Side:
    def __init__(self, task: Task, driver: Driver, spans: Floats) -> None:
        """`spans`: [S], how wide the range of each state is."""
        self.task, self.driver = task, driver
        self._names, self._spans = task.unveiled.state_names, spans
        self._plant = Stepper(task)

    def begin(self, start: Floats, luck: Floats, faults: Faults, aims: Mapping[str, float]) -> None:
        """A new episode, from a state [S] of the task unveiled."""
        self._plant.begin(start)
        self._sensors = Sensors(self.task, self._spans)
        self.driver.begin()
        self.action = dict.fromkeys(self.task.actions, 0.0)
        self.seen = self._sensors.look(start, luck, faults, aims)
        self.steps, self.penalty, self.failed = 0, 0.0, False

    def hand_to(self, driver: Driver) -> None:
        """Somebody else drives from here."""
        self.driver = driver
        driver.begin()

    @property
    def state(self) -> dict[str, float]:
        """What is true, hidden or not."""
        return dict(zip(self._names, self._plant.state.tolist(), strict=True))

    def step(self, outside: Outside, luck: Floats, faults: Faults, aims: Mapping[str, float]) -> None:
        """One control interval. What has failed stays where it is."""
        if self.failed:
            return
        hidden = {name: value for name, value in self.state.items() if name not in self.task.states}
        wanted = self.driver.act(self.seen, hidden, aims)
        vector = np.array([wanted[name] for name in self.task.actions])
        applied, reward, self.failed = self._plant.step(vector, *outside)
        self.action = dict(zip(self.task.actions, applied.tolist(), strict=True))
        self.penalty -= self.task.discount**self.steps * reward
        self.steps += 1
        self._sensors.acted(self.action)
        after = {name: float(outside.aims[1, self._names.index(name)]) for name in aims}
        self.seen = self._sensors.look(self._plant.state, luck, faults, after)

    def push(self, name: str, amount: float) -> None:
        if not self.failed:
            self._plant.push(name, amount)

    def frame(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "state": _short(self.state),
            "seen": _short(self.seen),
            "action": _short(self.action),
            "terms": [{**term, "value": round(term["value"], DIGITS)} for term in self.driver.terms()],
            "failed": self.failed,
            "up": round(self.steps * self.task.dt, DIGITS),
            "penalty": round(self.penalty, DIGITS),
        }


def _short(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in values.items()}
