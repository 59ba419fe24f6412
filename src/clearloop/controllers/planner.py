"""A planner (sec. 3.4 of the paper): at every step it searches an action sequence on a model of the plant.

Its file holds the settings of the search, and where the run with its model is. What plans stands higher,
where models are known (`evaluation/planning.py`).
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
    """Also what was planned in the last step."""

    plans: Any = None


class Pilot(Protocol):
    """What plans for it, with its model."""

    history: int
    """observations that it looks at, the present one included"""

    def respond(self, memory: PlannerMemory) -> dict[str, float]: ...


class Planner(Controller):
    readable: ClassVar[bool] = False
    plans: ClassVar[bool] = True
    windowed: ClassVar[bool] = False
    kind: Literal["planner"] = "planner"
    run: Text
    """the run directory with its model, from the folder of this file"""
    outputs: Annotated[tuple[Text, ...], Field(min_length=1)]
    """the actions"""
    horizon: Count
    """steps that it looks ahead"""
    hold: Count = 1
    """steps for which a plan keeps an action"""
    particles: Count = 128
    """plans that are tried in each round"""
    rounds: Count = 16
    """of the swarm, for each step"""
    carried: Share = 0.5
    """share of the swarm that goes on with the best of the last step's plans"""
    fresh: Share = 0.25
    """share that begins anywhere; the rest begins around the last step's best plan"""
    spread: Share = 0.5
    """how far around it at most, as a share of an action's range"""
    members: Count = 1
    """of the model, for whose mean it plans"""
    seed: Seed = 0

    _folder: Path = PrivateAttr(default=Path())
    _pilot: Pilot | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if len(set(self.outputs)) < len(self.outputs):
            raise ClearloopError("outputs: an action stands twice")
        if self.carried + self.fresh > 1.0:
            raise ClearloopError("carried, fresh: expected shares that are not more than 1 together")
        return self

    def beside(self, file: str | Path) -> Self:
        """The same planner, which looks for its run from the folder of a file."""
        copy = self.model_copy()
        copy._folder = Path(file).parent
        return copy

    def with_pilot(self, pilot: Pilot) -> Self:
        """The same planner, ready to act."""
        copy = self.model_copy()
        copy._pilot = pilot
        return copy

    @property
    def run_directory(self) -> Path:
        return self._folder / self.run

    @property
    def pilot(self) -> Pilot | None:
        return self._pilot

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:  # noqa: ARG002
        """None by name: it looks at whatever its model looks at."""
        return iter(())

    def _reads(self, task: Task) -> set[str]:
        return set(task.state_names)

    @property
    def complexity(self) -> int:
        """1 for each plan that is tried before an action."""
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
        return PlannerMemory(self._pilot.history if self._pilot else 1, self.actions)

    def respond(self, memory: Memory) -> dict[str, float]:
        if self._pilot is None or not isinstance(memory, PlannerMemory):
            raise ClearloopError(
                "planner: it acts with its model only: give it that with clearloop.evaluation.with_model"
            )
        return self._pilot.respond(memory)
