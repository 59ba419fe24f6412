"""One simulation that somebody plays or watches: the only truth about it, stepped one step at a time."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from clearloop.controllers.reading import check_names
from clearloop.errors import ClearloopError
from clearloop.plants.stepper import Floats
from clearloop.studio.course import Course, Outside
from clearloop.studio.drivers import Driver, Hand
from clearloop.studio.recording import Recorder
from clearloop.studio.sensors import Faults, standard_normal
from clearloop.studio.side import Side
from clearloop.studio.stage import Stage

REST = 1.0  # seconds on the floor, at full speed
GENTLE = 0.15  # of the start box, when a hand steers


class Session:
    """One side, or two that start alike and are disturbed alike; they begin episodes together."""

    def __init__(self, stage: Stage, seed: int = 0) -> None:
        self.stage, self.task = stage, stage.task
        self.hand = Hand(self.task)
        self.sides = [Side(self.task, self.hand, stage.spans)]
        self.faults, self.paused, self.speed = Faults(), False, 1.0
        self._changed: dict[str, float] = {}
        self.recorder: Recorder | None = None
        self.steps, self.episode = 0, -1
        """since the session began"""
        self.restart(seed)

    def restart(self, seed: int, spread: float | None = None) -> None:
        """The same seed gives the same episodes."""
        self._seed, self._spread, self._number = seed, spread, -1
        self._begin()

    def _begin(self) -> None:
        """The next episode, for both sides."""
        self._cut()
        self.episode += 1
        self._number += 1
        self._step, self._rest = 0, math.ceil(REST / self.stage.pace)
        self._pushed = False
        self._luck = np.random.default_rng([self._seed, self._number, 1])
        chance = np.random.default_rng([self._seed, self._number])
        self._course = Course(self.task, self._start(chance), chance)
        outside, luck = self._outside(), standard_normal(self.task, self._luck)
        for side in self.sides:
            side.begin(self._course.start, luck, self.faults, self.setpoint(outside))

    def _start(self, rng: np.random.Generator) -> Floats:
        """[S] in the start box, or near its middle."""
        spread = self._spread
        if spread is None:
            spread = GENTLE if self.sides[0].driver is self.hand else 1.0
        full = self.task.unveiled
        assert full.start_box is not None  # noqa: S101  a stage that is played has one
        middle = full.start_box.mean(axis=1)
        point: Floats = middle + spread * (full.random_starts(1, rng)[0] - middle)
        return point

    def _outside(self) -> Outside:
        """With the setpoints that were changed by hand."""
        outside = self._course.at(self._step)
        for name, value in self._changed.items():
            outside.aims[:, self.task.state_names.index(name)] = value
        return outside

    def setpoint(self, outside: Outside | None = None) -> dict[str, float]:
        """Of the states that have one, now."""
        aims = (outside or self._outside()).aims[0]
        return {name: float(aims[self.task.state_names.index(name)]) for name in self.task.setpoints}

    def step(self) -> None:
        """One control interval, of all sides; or the end of a rest, when it is over."""
        self.steps += 1
        if self._over:
            self._rest -= 1
            if self._rest <= 0:
                self._begin()
                return
        outside, luck = self._outside(), standard_normal(self.task, self._luck)
        aims, first = self.setpoint(outside), self.sides[0]
        shown, driving = first.seen, not first.failed
        for side in self.sides:
            side.step(outside, luck, self.faults, aims)
        if self.recorder is not None and driving and not self._pushed:
            self.recorder.note(shown, first.action, aims)
            if first.failed:
                self._cut(terminal=True)
        self._pushed = False
        self._step += 1

    @property
    def _over(self) -> bool:
        """All have failed; or the player has, who would rather go on than look on."""
        playing = self.sides[0].driver is self.hand
        return all(side.failed for side in (self.sides[:1] if playing else self.sides))

    def drive(self, number: int, driver: Driver | None) -> None:
        """Whoever drives a lonely side takes over in mid-flight; two sides begin anew."""
        if number == 0 and driver is None:
            raise ClearloopError("drive: side 0 needs a controller, or the hand")
        if number == 1 and driver is self.hand:
            raise ClearloopError("drive: the hand drives side 0 only")
        if number == 0 and driver is not None:
            self._cut()
            self.sides[0].hand_to(driver)
        if number == 1:
            self.sides[1:] = [Side(self.task, driver, self.stage.spans)] if driver else []
        if len(self.sides) == 2:
            self._begin()

    def steer(self, shares: Mapping[str, float]) -> None:
        check_names("hand", shares, "an action", self.task.action_names)
        self.hand.hold(shares)

    def push(self, name: str | None, size: float) -> None:
        """All sides alike. No action explains the step, so it is not recorded, and the episode ends there."""
        pushed, amount = self.stage.push(name, size)
        self._cut()
        self._pushed = True
        for side in self.sides:
            side.push(pushed, amount)

    def aim(self, name: str, value: float) -> None:
        check_names("setpoint", (name,), "a state with a setpoint", tuple(self.task.setpoints))
        self._changed[name] = value

    def disturb(self, faults: Faults) -> None:
        self._cut()
        self.faults = faults

    def record(self, name: str) -> None:
        if self.recorder is None:
            self.recorder = Recorder(self.task, name)

    def stop_recording(self) -> Recorder | None:
        """What was recorded, to be saved."""
        self._cut()
        recorder, self.recorder = self.recorder, None
        return recorder

    def _cut(self, *, terminal: bool = False) -> None:
        if self.recorder is not None:
            self.recorder.cut(self.sides[0].seen, self.setpoint(), terminal=terminal)

    def frame(self) -> dict[str, Any]:
        """What there is to see, as JSON values."""
        recorder = self.recorder
        return {
            "t": self.steps,
            "episode": self.episode,
            "sides": [side.frame() for side in self.sides],
            "recording": {
                "on": recorder is not None,
                "rows": recorder.transitions if recorder else 0,
                "episodes": recorder.episodes if recorder else 0,
                "name": recorder.name if recorder else None,
            },
            "setpoint": self.setpoint(),
            "paused": self.paused,
            "speed": self.speed,
        }
