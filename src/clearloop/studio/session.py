"""One simulation that somebody plays or watches: the only truth about it, stepped one step at a time."""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.controllers.controller import check_names
from clearloop.controllers.memory import Derivation
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.numbers import shorten_numbers
from clearloop.plants.plant import PlantStepper
from clearloop.studio.stage import Outside, SharedCourse, Stage
from clearloop.task import Task

# Who chooses the actions of one side: a hand, or a controller.

_Values = Mapping[str, float]


class Driver(ABC):
    @abstractmethod
    def begin(self) -> None:
        """A new episode."""

    @abstractmethod
    def act(self, seen: _Values, hidden: _Values, aims: _Values) -> dict[str, float]:
        """By what sensors show; `hidden`: what they do not."""

    @abstractmethod
    def terms(self) -> list[dict[str, Any]]:
        """What the latest action is the sum of, before it is limited; nothing where it is no sum."""


class Hand(Driver):
    """Somebody at the keyboard: holds each action at a share of its range, -1 … 1; 0 is the middle."""

    def __init__(self, task: Task) -> None:
        self._limits = {name: action.limits for name, action in task.actions.items()}
        self._shares = dict.fromkeys(self._limits, 0.0)

    def hold(self, shares: _Values) -> None:
        """Actions that are not named stay as they are."""
        self._shares |= {name: min(max(share, -1.0), 1.0) for name, share in shares.items()}

    def begin(self) -> None:
        """The hand stays where it is."""

    def act(self, seen: _Values, hidden: _Values, aims: _Values) -> dict[str, float]:  # noqa: ARG002
        return {
            name: (low + high) / 2 + self._shares[name] * (high - low) / 2
            for name, (low, high) in self._limits.items()
        }

    def terms(self) -> list[dict[str, Any]]:
        return []


class Automatic(Driver):
    """A controller. `sees_all`: what is hidden, too, as the law of a task's exploration may."""

    def __init__(self, controller: Controller, *, sees_all: bool = False) -> None:
        self.controller, self._sees_all = controller, sees_all
        self._terms = [term._replace(text=_shortened(term.text)) for term in controller.summands()]
        self.begin()

    def begin(self) -> None:
        self._memory, self._acted = self.controller.reset(), False

    def act(self, seen: _Values, hidden: _Values, aims: _Values) -> dict[str, float]:
        self._acted = True
        return self.controller.act({**hidden, **seen} if self._sees_all else seen, self._memory, aims)

    def terms(self) -> list[dict[str, Any]]:
        if not self._acted:
            return []
        return [
            {"action": term.action, "text": term.text, "value": term.worth(self._memory)}
            for term in self._terms
        ]


LONGEST = 120  # characters of a term, as it is shown


def _shortened(text: str) -> str:
    text = shorten_numbers(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


# What one side's sensors show: noise added, some steps late; and what the task computes from that.

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
        self._derivation = Derivation(task.derived, task.action_names) if task.derived else None

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


# One plant with its sensors and its driver, and how it fares.

_DIGITS = 6  # after the point, of what is shown


class Side:
    def __init__(self, task: Task, driver: Driver, spans: Floats) -> None:
        """`spans`: [S], how wide the range of each state is."""
        self.task, self.driver = task, driver
        self._names, self._spans = task.unveiled.state_names, spans
        self._plant = PlantStepper(task)

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
            "terms": [{**term, "value": round(term["value"], _DIGITS)} for term in self.driver.terms()],
            "failed": self.failed,
            "up": round(self.steps * self.task.dt, _DIGITS),
            "penalty": round(self.penalty, _DIGITS),
        }


def _short(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, _DIGITS) for name, value in values.items()}


# A batch in the making: what one side's sensors showed and what was done, episode by episode.


_MOST_ROWS = 400_000  # nearly three hours at 40 steps per second


class RecordedRow(NamedTuple):
    seen: tuple[float, ...]
    action: tuple[float, ...]
    aims: tuple[float, ...]
    terminal: bool


class Recorder:
    """An episode ends where the plant fails, and wherever something happens that no action explains."""

    def __init__(self, task: Task, name: str) -> None:
        self.task, self.name = task, name
        self._followed = [name for name, aim in task.setpoints.items() if isinstance(aim, str)]
        self._episodes: list[list[RecordedRow]] = []
        self._open: list[RecordedRow] = []
        self.transitions = 0

    @property
    def episodes(self) -> int:
        return len(self._episodes) + bool(self._open)

    @property
    def full(self) -> bool:
        return self.transitions >= _MOST_ROWS

    def note(self, seen: _Values, action: _Values, aims: _Values) -> None:
        """What was shown before a step, and what was done then."""
        self._open.append(self._row(seen, tuple(action[name] for name in self.task.actions), aims, False))
        self.transitions += 1

    def cut(self, seen: _Values, aims: _Values, *, terminal: bool = False) -> None:
        """The episode, if there is one, ends with this observation; `terminal`: it failed."""
        if self._open:
            nothing = (float("nan"),) * len(self.task.actions)
            self._episodes.append([*self._open, self._row(seen, nothing, aims, terminal)])
            self._open = []

    def _row(self, seen: _Values, action: tuple[float, ...], aims: _Values, terminal: bool) -> RecordedRow:
        shown = tuple(seen[name] for name in self.task.states)
        return RecordedRow(shown, action, tuple(aims[name] for name in self._followed), terminal)

    def batch(self) -> Batch:
        """After the last cut."""
        rows = [row for episode in self._episodes for row in episode]
        counts = [len(episode) for episode in self._episodes]
        times = [step * self.task.dt for count in counts for step in range(count)]
        width = len(self.task.states)
        return Batch(
            columns=self.task.columns,
            states=np.array([row.seen for row in rows]).reshape(-1, width),
            actions=np.array([row.action for row in rows]).reshape(-1, len(self.task.actions)),
            episodes=np.repeat(np.arange(len(counts)), counts),
            terminal=np.array([row.terminal for row in rows], np.bool_),
            times=np.array(times),
            setpoints=np.array([row.aims for row in rows]) if self._followed else None,
        )


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
        self._course = SharedCourse(self.task, self._start(chance), chance)
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
