"""What every method promises: begin a search; then rounds, candidates, and a state to resume from."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from clearloop.controllers import Controller
from clearloop.methods.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clearloop.methods.trial import Trial

State = dict[str, Any]
"""Plain data: dictionaries, lists, strings, numbers and arrays. What a search needs to go on, to the bit."""


@dataclass(frozen=True)
class Candidate:
    controller: Controller
    penalty: float
    """as the search saw it: optimistic, because it was chosen for it"""
    compared: bool = False
    """not for the front: kept beside it by its name, whatever it costs"""


class Search(ABC):
    """A search under way. Everything random comes from the generator that it was begun with."""

    trials: "Sequence[Trial]" = ()
    """what was tried for a tuning, with trajectories, where the method tunes"""
    latest: float | None = None
    """the penalty of what the last round found, where that may be worse than what was there before"""

    @abstractmethod
    def advance(self) -> None:
        """One round: a few calls of the engine."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether more rounds would change nothing, whatever is left of the budget."""

    @property
    @abstractmethod
    def best(self) -> float:
        """The lowest penalty so far; infinite before the first round."""

    @abstractmethod
    def candidates(self) -> list[Candidate]:
        """What was found so far, from the simplest to the best."""

    @abstractmethod
    def state(self) -> State: ...

    @abstractmethod
    def restore(self, state: State) -> None: ...


class Method(ABC):
    """One way to get controllers from a batch. A frozen dataclass: it is its own configuration."""

    name: ClassVar[str]
    needs_model: ClassVar[bool] = False
    """whether it asks more of the problem than penalties, so that it cannot search on the batch alone"""

    @abstractmethod
    def begin(self, problem: Problem, *, rng: np.random.Generator) -> Search: ...
