"""Who chooses the actions of one side: a hand, or a controller."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from clearloop.controllers import Controller
from clearloop.studio.terms import terms_of
from clearloop.task import Task

Values = Mapping[str, float]


class Driver(ABC):
    @abstractmethod
    def begin(self) -> None:
        """A new episode."""

    @abstractmethod
    def act(self, seen: Values, hidden: Values, aims: Values) -> dict[str, float]:
        """By what sensors show; `hidden`: what they do not."""

    @abstractmethod
    def terms(self) -> list[dict[str, Any]]:
        """What the latest action is the sum of, before it is limited; nothing where it is no sum."""


class Hand(Driver):
    """Somebody at the keyboard: holds each action at a share of its range, -1 … 1; 0 is the middle."""

    def __init__(self, task: Task) -> None:
        self._limits = {name: action.limits for name, action in task.actions.items()}
        self._shares = dict.fromkeys(self._limits, 0.0)

    def hold(self, shares: Values) -> None:
        """Actions that are not named stay as they are."""
        self._shares |= {name: min(max(share, -1.0), 1.0) for name, share in shares.items()}

    def begin(self) -> None:
        """The hand stays where it is."""

    def act(self, seen: Values, hidden: Values, aims: Values) -> dict[str, float]:  # noqa: ARG002
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
        self._terms = terms_of(controller)
        self.begin()

    def begin(self) -> None:
        self._memory, self._acted = self.controller.reset(), False

    def act(self, seen: Values, hidden: Values, aims: Values) -> dict[str, float]:
        self._acted = True
        return self.controller.act({**hidden, **seen} if self._sees_all else seen, self._memory, aims)

    def terms(self) -> list[dict[str, Any]]:
        if not self._acted:
            return []
        return [
            {"action": term.action, "text": term.text, "value": term.worth(self._memory)}
            for term in self._terms
        ]
