"""Planners (sec. 3.4 of the paper): at every step they search an action sequence on a model of the plant.

The file of a planner holds the settings of the search and the place of the run with its model. The search
itself is in a higher layer, where models are known (`evaluation/planning.py`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

from pydantic import Field, PrivateAttr, Strict, model_validator

from clearloop.controllers.controller import Controller, Known
from clearloop.controllers.memory import Memory
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Variable
from clearloop.task import Task
from clearloop.task.tables import Text, expecting

MOST = 10_000

Count = Annotated[int, Strict(), Field(ge=1, le=MOST), expecting(f"a whole number from 1 to {MOST:,}")]
Share = Annotated[float, Strict(), Field(ge=0.0, le=1.0), expecting("a number from 0 to 1")]
Seed = Annotated[int, Strict(), Field(ge=0, lt=2**32), expecting("a whole number from 0 to 4,294,967,295")]


class PlannerMemory(Memory):
    """A memory that also keeps the plans of the last step."""

    plans: Any = None


class Pilot(Protocol):
    """The search for plans on a model, which a planner uses."""

    history: int
    """the number of observations that it looks at, the present one included"""

    def respond(self, memory: PlannerMemory) -> dict[str, float]:
        """Return the actions before they are limited."""


class Planner(Controller):
    """A controller that plans its actions by a particle swarm on a model.

    Attributes:
        run: The run directory with its model, relative to the folder of this file.
        outputs: The names of the actions.
        horizon: The number of steps that it looks ahead.
        hold: The number of steps for which a plan keeps an action.
        particles: The number of plans that are tried in each round.
        rounds: The number of rounds of the swarm for each step.
        carried: The share of the swarm that starts from the best plans of the last step.
        fresh: The share that starts at random; the rest starts around the best plan of the last step.
        spread: The largest distance of that rest from the best plan, as a share of an action's range.
        members: The number of members of the model, for whose mean it plans.
        seed: The seed of the random numbers.
    """

    readable: ClassVar[bool] = False
    plans: ClassVar[bool] = True
    windowed: ClassVar[bool] = False
    kind: Literal["planner"] = "planner"
    run: Text
    outputs: Annotated[tuple[Text, ...], Field(min_length=1)]
    horizon: Count
    hold: Count = 1
    particles: Count = 128
    rounds: Count = 16
    carried: Share = 0.5
    fresh: Share = 0.25
    spread: Share = 0.5
    members: Count = 1
    seed: Seed = 0

    _folder: Path = PrivateAttr(default=Path())
    _pilot: Pilot | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if len(set(self.outputs)) < len(self.outputs):
            raise ClearloopError("outputs: an action is named twice")
        if self.carried + self.fresh > 1.0:
            raise ClearloopError("carried, fresh: expected shares whose sum is at most 1")
        return self

    def beside(self, file: str | Path) -> Self:
        """Return the same planner, which looks for its run in the folder of `file`."""
        copy = self.model_copy()
        copy._folder = Path(file).parent
        return copy

    def with_pilot(self, pilot: Pilot) -> Self:
        """Return the same planner with its search, so that it can act."""
        copy = self.model_copy()
        copy._pilot = pilot
        return copy

    @property
    def run_directory(self) -> Path:
        """The run directory with its model."""
        return self._folder / self.run

    @property
    def pilot(self) -> Pilot | None:
        """The search for plans, if `with_pilot` has set it."""
        return self._pilot

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:  # noqa: ARG002
        """Yield nothing: a planner looks at whatever its model looks at."""
        return iter(())

    def _reads(self, task: Task) -> set[str]:
        return set(task.state_names)

    @property
    def complexity(self) -> int:
        """The complexity: 1 for each plan that is tried before an action."""
        return self.particles * self.rounds

    @property
    def summary(self) -> str:
        return (
            f"plans {self.horizon} steps ahead on the model of {quoted(self.run)}: "
            f"{self.particles} particles, {self.rounds} rounds"
        )

    def words(self) -> Iterator[str]:
        yield f"{', '.join(self.outputs)}: planned anew at every step, not meant to be read"
        yield f"  looks {self.horizon} steps ahead{self._seconds(self.horizon)}"
        yield f"  keeps an action for {self.hold} steps{self._seconds(self.hold)}"
        yield f"  tries {self.complexity:,} plans: {self.particles} particles, {self.rounds} rounds"
        models = "1 model" if self.members == 1 else f"the mean of {self.members} models"
        yield f"  on {models} of {quoted(self.run)}"
        yield from self.limit_words()
        for name, aim in self.setpoint.items():
            yield f"The setpoint of {name} is {aim:g}{self.unit(name)}."

    def _seconds(self, steps: int) -> str:
        return f" ({steps * self.dt:.4g} s)" if self.dt else ""

    def reset(self) -> PlannerMemory:
        return PlannerMemory(self._pilot.history if self._pilot else 1, self.actions, self.starts)

    def respond(self, memory: Memory) -> dict[str, float]:
        if self._pilot is None or not isinstance(memory, PlannerMemory):
            raise ClearloopError(
                "a planner needs its model to act: give it the model with clearloop.evaluation.with_model"
            )
        return self._pilot.respond(memory)
