"""Planners among the controllers of a run: they are scored from fewer starts, and all others beside them.

A planner shows what the model makes possible, at a thousand times the cost of deciding.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from clearloop.controllers import Planner
from clearloop.evaluation import Evaluation
from clearloop.methods import Point
from clearloop.methods.result import PLANNED_STARTS


@dataclass(frozen=True)
class Beside:
    """A row of `planned.csv`: what a controller costs from the starts that planners are scored from."""

    controller: str
    planner: bool
    starts: int
    """the first so many of the scoring set"""
    penalty_model: float
    penalty_system: float | None
    failures_system: float | None


class Scored(NamedTuple):
    """A controller with all of its scores."""

    controller: str
    planner: bool
    model: Evaluation
    system: Evaluation | None

    @classmethod
    def of(cls, number: str, point: Point) -> "Scored":
        return cls(number, isinstance(point.controller, Planner), point.model, point.system)


def beside_planners(scored: Iterable[Scored]) -> tuple[Beside, ...]:
    """Nothing where there is no planner."""
    rows = list(scored)
    if not any(row.planner for row in rows):
        return ()
    return tuple(_row(*row) for row in rows)


def _row(controller: str, planner: bool, model: Evaluation, system: Evaluation | None) -> Beside:
    model, system = model.first(PLANNED_STARTS), system and system.first(PLANNED_STARTS)
    starts = model.penalties.shape[1]
    if system is None:
        return Beside(controller, planner, starts, model.penalty, None, None)
    return Beside(controller, planner, starts, model.penalty, system.penalty, system.failures)
