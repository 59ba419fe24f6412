"""A live session: one or two plants with sensors and drivers, stepped in real time, perhaps recorded."""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.controllers.controller import check_names
from clearloop.controllers.memory import Derivation, Values
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.numbers import shorten_numbers
from clearloop.plants.plant import SOUND, ActionFault, PlantStepper
from clearloop.studio.course import Course, Outside, PastRow
from clearloop.studio.stage import Stage
from clearloop.task import Task

# Drivers choose the actions of one side: a person's hand, or a controller.


class Driver(ABC):
    """Something that chooses the actions of one side."""

    @abstractmethod
    def begin(self, past: Sequence[PastRow] = ()) -> None:
        """Begin a new episode, before which the log shows some rows, the oldest first."""

    @abstractmethod
    def twin(self) -> "Driver":
        """Return a driver of another model, which wants the same and remembers its own past."""

    @abstractmethod
    def act(self, seen: Values, hidden: Values, aims: Values) -> dict[str, float]:
        """Choose the actions of one step.

        Args:
            seen: The states as the sensors show them.
            hidden: The states that no sensor shows.
            aims: The setpoints.
        """

    @abstractmethod
    def terms(self) -> list[dict[str, Any]]:
        """Return the terms whose sum is the latest action before its limits, as JSON values.

        The list is empty if the action is no sum.
        """


class Hand(Driver):
    """A person at the keyboard, who holds each action at a position of its range, from -1 to 1."""

    def __init__(self, task: Task) -> None:
        """Hold each action in the middle of its range."""
        self._limits = {name: action.limits for name, action in task.actions.items()}
        self._shares = dict.fromkeys(self._limits, 0.0)

    def hold(self, shares: Values) -> None:
        """Move the hand; actions that are not named stay as they are."""
        self._shares |= {name: min(max(share, -1.0), 1.0) for name, share in shares.items()}

    def begin(self, past: Sequence[PastRow] = ()) -> None:
        """Begin a new episode with the hand where it is."""

    def twin(self) -> "Hand":
        """Return the hand itself, which remembers nothing."""
        return self

    def act(self, seen: Values, hidden: Values, aims: Values) -> dict[str, float]:  # noqa: ARG002
        """Return the actions at the positions of the hand."""
        return {
            name: (low + high) / 2 + self._shares[name] * (high - low) / 2
            for name, (low, high) in self._limits.items()
        }

    def terms(self) -> list[dict[str, Any]]:
        """Return no terms."""
        return []


class Automatic(Driver):
    """A controller that drives."""

    def __init__(self, controller: Controller, *, sees_all: bool = False) -> None:
        """Let a controller drive; `sees_all` if it reads hidden states, as the law of a task's log may."""
        self.controller, self._sees_all = controller, sees_all
        self._terms = [term._replace(text=_shortened(term.text)) for term in controller.summands()]
        self.begin()

    def begin(self, past: Sequence[PastRow] = ()) -> None:
        """Begin a new episode; the controller remembers rows of the log, but has not acted in them."""
        self._memory, self._acted = self.controller.reset(), False
        for row in past:
            self._memory.observe(row.seen, {**self.controller.setpoint, **row.aims})
            self._memory.acted({name: row.done[name] for name in self.controller.actions})

    def twin(self) -> "Automatic":
        """Return the same controller with a memory of its own."""
        return Automatic(self.controller, sees_all=self._sees_all)

    def act(self, seen: Values, hidden: Values, aims: Values) -> dict[str, float]:
        """Return the actions of the controller."""
        self._acted = True
        return self.controller.act({**hidden, **seen} if self._sees_all else seen, self._memory, aims)

    def terms(self) -> list[dict[str, Any]]:
        """Return the terms of the controller; none before its first action."""
        if not self._acted:
            return []
        return [
            {"action": term.action, "text": term.text, "value": term.worth(self._memory)}
            for term in self._terms
        ]


LONGEST = 120  # characters of a term on the page


def _shortened(text: str) -> str:
    text = shorten_numbers(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


# The sensors of one side, with noise and delay; derived states follow from what they show.

MOST_DELAY = 10  # steps
LARGEST_NOISE = 0.05  # standard deviation, as a share of a state's range


LARGEST_LOAD = 0.5  # what is added to actions, as a share of half their range


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Faults of all sensors and actuators, in addition to those that the task itself describes."""

    noise: float = 0.0
    """share of the largest noise, from 0 to 1"""
    delay: int = 0
    """steps"""
    gain: float = 1.0
    """the share of each action that acts on the plant; 1 is all"""
    load: float = 0.0
    """share of the largest load, from -1 to 1: what is added to each action unasked"""

    @property
    def actuator(self) -> ActionFault:
        """What actuators make of actions."""
        return ActionFault(self.gain, LARGEST_LOAD * self.load) if self.gain != 1 or self.load else SOUND


class Sensors:
    """The sensors of one side in one episode. A state with a formula has none; it follows from others."""

    def __init__(self, task: Task, spans: Floats, past: Sequence[PastRow] = ()) -> None:
        """Begin an episode; `spans` [S] are the widths of the states' ranges, `past` rows of the log."""
        self._names = tuple(task.states)
        self._shown = [j for j, state in enumerate(task.states.values()) if state.formula is None]
        self._spans = LARGEST_NOISE * spans
        self._past: deque[Floats] = deque(maxlen=MOST_DELAY + 1)
        before = task.past_actions
        self._derivation = Derivation(task.derived, task.action_names, before) if task.derived else None
        if self._derivation:
            for row in past:
                self._derivation.complete(row.seen, row.aims)
                self._derivation.acted(row.done)

    def look(
        self, state: Floats, luck: Floats, faults: Faults, aims: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the states as they are shown.

        Args:
            state: The true states, [S] or more; those of the task come first.
            luck: [S] standard normal random numbers.
            faults: The noise and the delay.
            aims: The setpoints, which derived states may read.
        """
        self._past.appendleft(state[: len(self._names)])
        values = self._past[min(faults.delay, len(self._past) - 1)]
        if faults.noise:
            values = values + faults.noise * self._spans * luck
        seen = {self._names[j]: float(values[j]) for j in self._shown}
        return self._derivation.complete(seen, aims) if self._derivation else seen

    def acted(self, action: Mapping[str, float]) -> None:
        """Take the applied action, which derived states may read."""
        if self._derivation:
            self._derivation.acted(action)


def standard_normal(task: Task, rng: np.random.Generator) -> Floats:
    """Return the random numbers [S] for the noise of one step, the same for all sides."""
    return rng.standard_normal(len(task.states))


_DIGITS = 6  # decimal places of the numbers in a frame


class Side:
    """One plant with its sensors and its driver, and its result so far.

    Where models stand for the plant, the best one is the plant, and each other one is a side of its own
    beside it, with a driver that wants the same.
    """

    def __init__(self, stage: Stage, driver: Driver, plant: PlantStepper | None = None) -> None:
        """Make a side of a stage; without `plant`, of its plant or of all its models."""
        self.task, self.driver = stage.task, driver
        self._names, self._spans = stage.task.unveiled.state_names, stage.spans
        self._plant, *others = stage.plants() if plant is None else [plant]
        self.others = [Side(stage, driver.twin(), other) for other in others]

    def begin(self, course: Course, luck: Floats, faults: Faults, aims: Mapping[str, float]) -> None:
        """Begin a new episode.

        Args:
            course: The course of the episode, with its start.
            luck: [S] standard normal random numbers for the noise of the sensors.
            faults: The faults of sensors and actuators.
            aims: The setpoints.
        """
        self._plant.begin(course.start)
        self._sensors = Sensors(self.task, self._spans, course.past)
        self.driver.begin(course.past)
        self.action = self.task.past_actions
        self.seen = self._sensors.look(self._plant.state, luck, faults, aims)
        self.steps, self.penalty, self.failed, self.succeeded = 0, 0.0, False, False
        for other in self.others:
            other.begin(course, luck, faults, aims)

    def hand_to(self, driver: Driver) -> None:
        """Change the driver in the middle of an episode."""
        self.driver = driver
        driver.begin()
        for other in self.others:
            other.hand_to(driver.twin())

    @property
    def over(self) -> bool:
        """True if the plant has failed or succeeded."""
        return self.failed or self.succeeded

    @property
    def state(self) -> dict[str, float]:
        """The true states by name, hidden ones included."""
        return dict(zip(self._names, self._plant.state.tolist(), strict=True))

    def step(self, outside: Outside, luck: Floats, faults: Faults, aims: Mapping[str, float]) -> None:
        """Make one control step; a plant that has failed or succeeded stays where it is.

        Args:
            outside: The setpoints, external states and noise, now and after the step.
            luck: [S] standard normal random numbers for the noise of the sensors.
            faults: The faults of sensors and actuators.
            aims: The setpoints now.
        """
        for other in self.others:
            other.step(outside, luck, faults, aims)
        if self.over:
            return
        hidden = {name: value for name, value in self.state.items() if name not in self.task.states}
        wanted = self.driver.act(self.seen, hidden, aims)
        vector = np.array([wanted[name] for name in self.task.actions])
        moved = self._plant.step(vector, *outside, faults.actuator)
        chosen, reward, self.failed, self.succeeded = moved
        self.action = dict(zip(self.task.actions, chosen.tolist(), strict=True))
        self.penalty -= self.task.discount**self.steps * reward
        self.steps += 1
        self._sensors.acted(self.action)
        after = {name: float(outside.aims[1, self._names.index(name)]) for name in aims}
        self.seen = self._sensors.look(self._plant.state, luck, faults, after)

    def push(self, name: str, amount: float) -> None:
        """Add an amount to a true state, unless the episode is over."""
        if not self.over:
            self._plant.push(name, amount)
        for other in self.others:
            other.push(name, amount)

    def frame(self) -> dict[str, Any]:
        """Return what the page shows of this side, as JSON values."""
        return {
            "state": _short(self.state),
            "seen": _short(self.seen),
            "action": _short(self.action),
            "terms": [{**term, "value": round(term["value"], _DIGITS)} for term in self.driver.terms()],
            "failed": self.failed,
            "succeeded": self.succeeded,
            "up": round(self.steps * self.task.dt, _DIGITS),
            "penalty": round(self.penalty, _DIGITS),
            "others": [
                {"state": _short(one.state), "action": _short(one.action), "failed": one.failed}
                for one in self.others
            ],
        }


def _short(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, _DIGITS) for name, value in values.items()}


# The recording of one side: what its sensors showed and what was done, episode by episode.

_MOST_ROWS = 400_000  # nearly three hours at 40 steps per second


class RecordedRow(NamedTuple):
    """One row of a recording."""

    seen: tuple[float, ...]
    action: tuple[float, ...]
    aims: tuple[float, ...]
    terminal: bool


class Recorder:
    """A batch that is being recorded.

    An episode ends where the plant fails or succeeds, and wherever something happens that no action explains.
    """

    def __init__(self, task: Task, name: str) -> None:
        """Begin an empty batch of this name."""
        self.task, self.name = task, name
        self._followed = list(task.logged_setpoints)
        self._episodes: list[list[RecordedRow]] = []
        self._open: list[RecordedRow] = []
        self.transitions = 0

    @property
    def episodes(self) -> int:
        """The number of episodes, the one that is going on included."""
        return len(self._episodes) + bool(self._open)

    @property
    def full(self) -> bool:
        """True if the recording has as many rows as it may have."""
        return self.transitions >= _MOST_ROWS

    def note(self, seen: Values, action: Values, aims: Values) -> None:
        """Record one step: the states shown before it, the action and the setpoints."""
        self._open.append(self._row(seen, tuple(action[name] for name in self.task.actions), aims, False))
        self.transitions += 1

    def cut(self, seen: Values, aims: Values, *, terminal: bool = False) -> None:
        """End the episode, if there is one, with this observation; `terminal` if the plant ended it."""
        if self._open:
            nothing = (float("nan"),) * len(self.task.actions)
            self._episodes.append([*self._open, self._row(seen, nothing, aims, terminal)])
            self._open = []

    def _row(self, seen: Values, action: tuple[float, ...], aims: Values, terminal: bool) -> RecordedRow:
        shown = tuple(seen[name] for name in self.task.states)
        return RecordedRow(shown, action, tuple(aims[name] for name in self._followed), terminal)

    def batch(self) -> Batch:
        """Return all episodes that have ended as a batch."""
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


REST = 1.0  # seconds after the end of an episode until the next episode begins, at full speed
GENTLE = 0.15  # share of the start box that is used when a person drives


class Session:
    """One side, or two that start alike and are disturbed alike; their episodes begin together."""

    def __init__(self, stage: Stage, seed: int = 0) -> None:
        """Begin a session of one side, driven by hand."""
        self.stage, self.task = stage, stage.task
        self.hand = Hand(self.task)
        self.sides = [Side(stage, self.hand)]
        self.faults, self.paused, self.speed = Faults(), False, 1.0
        self._changed: dict[str, float] = {}
        self.recorder: Recorder | None = None
        self.steps, self.episode = 0, -1
        """since the session began"""
        self.restart(seed)

    def restart(self, seed: int, spread: float | None = None) -> None:
        """Begin again; the same seed gives the same episodes.

        Args:
            seed: The seed of starts, noise and disturbances.
            spread: The share of the start box that is used, from 0, its middle, to 1. Without it, a person
                gets starts near the middle, and a controller all.
        """
        self._seed, self._spread, self._number = seed, spread, -1
        self._begin()

    def _begin(self) -> None:
        """Begin the next episode of both sides."""
        self._cut()
        self.episode += 1
        self._number += 1
        self._step, self._rest = 0, math.ceil(REST / self.stage.pace)
        self._pushed = False
        self._luck = np.random.default_rng([self._seed, self._number, 1])
        chance = np.random.default_rng([self._seed, self._number])
        self._course = self.stage.course(self._share(), chance)
        outside, luck = self._outside(), standard_normal(self.task, self._luck)
        for side in self.sides:
            side.begin(self._course, luck, self.faults, self.setpoint(outside))

    def _share(self) -> float:
        """Return the share of the start box that is used."""
        if self._spread is not None:
            return self._spread
        return GENTLE if self.sides[0].driver is self.hand else 1.0

    def _outside(self) -> Outside:
        """Return the setpoints and external states of this step; setpoints may have been changed by hand."""
        outside = self._course.at(self._step)
        for name, value in self._changed.items():
            outside.aims[:, self.task.state_names.index(name)] = value
        return outside

    def setpoint(self, outside: Outside | None = None) -> dict[str, float]:
        """Return the present setpoints by state, for the states that have one."""
        aims = (outside or self._outside()).aims[0]
        return {name: float(aims[self.task.state_names.index(name)]) for name in self.task.setpoints}

    def step(self) -> None:
        """Make one control step of all sides, or begin the next episode after an end."""
        self.steps += 1
        if self._over:
            self._rest -= 1
            if self._rest <= 0:
                self._begin()
                return
        outside, luck = self._outside(), standard_normal(self.task, self._luck)
        aims, first = self.setpoint(outside), self.sides[0]
        shown, driving = first.seen, not first.over
        for side in self.sides:
            side.step(outside, luck, self.faults, aims)
        if self.recorder is not None and driving and not self._pushed:
            self.recorder.note(shown, first.action, aims)
            if first.over:
                self._cut(terminal=True)
        self._pushed = False
        self._step += 1

    @property
    def _over(self) -> bool:
        """True if all sides are at their end; a person who drives need not wait for the other side."""
        playing = self.sides[0].driver is self.hand
        return all(side.over for side in (self.sides[:1] if playing else self.sides))

    def drive(self, number: int, driver: Driver | None) -> None:
        """Change the driver of a side.

        With one side, the driver takes over in the middle of the episode; two sides begin a new episode.

        Args:
            number: The side, 0 or 1.
            driver: The driver; None takes away side 1.

        Raises:
            ClearloopError: Side 0 is left without a driver, or the hand is to drive side 1.
        """
        if number == 0 and driver is None:
            raise ClearloopError("drive: side 0 needs a controller, or the hand")
        if number == 1 and driver is self.hand:
            raise ClearloopError("drive: the hand can drive side 0 only")
        if number == 0 and driver is not None:
            self._cut()
            self.sides[0].hand_to(driver)
        if number == 1:
            self.sides[1:] = [Side(self.stage, driver)] if driver else []
        if len(self.sides) == 2:
            self._begin()

    def steer(self, shares: Mapping[str, float]) -> None:
        """Move the hand to a position in the range of each named action, from -1 to 1."""
        check_names("hand", shares, "an action", self.task.action_names)
        self.hand.hold(shares)

    def push(self, name: str | None, size: float) -> None:
        """Push a state of all sides alike, by a share of the largest push.

        No action explains this step, so it is not recorded, and the recorded episode ends there.
        """
        pushed, amount = self.stage.push(name, size)
        self._cut()
        self._pushed = True
        for side in self.sides:
            side.push(pushed, amount)

    def aim(self, name: str, value: float) -> None:
        """Change the setpoint of a state."""
        check_names("setpoint", (name,), "a state with a setpoint", tuple(self.task.setpoints))
        self._changed[name] = value

    def disturb(self, faults: Faults) -> None:
        """Change the faults of sensors and actuators."""
        self._cut()
        self.faults = faults

    def record(self, name: str) -> None:
        """Begin a recording of side 0, unless one is under way."""
        if self.recorder is None:
            self.recorder = Recorder(self.task, name)

    def stop_recording(self) -> Recorder | None:
        """Stop the recording and return it, or None if there is none."""
        self._cut()
        recorder, self.recorder = self.recorder, None
        return recorder

    def _cut(self, *, terminal: bool = False) -> None:
        if self.recorder is not None:
            self.recorder.cut(self.sides[0].seen, self.setpoint(), terminal=terminal)

    def frame(self) -> dict[str, Any]:
        """Return what the page shows, as JSON values."""
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
