"""What a controller tells pages, exports and the studio, in terms that do not depend on its kind."""

from collections.abc import Callable
from typing import NamedTuple

from clearloop.controllers.memory import Memory
from clearloop.expression import Variable
from clearloop.expression.summands import Choice, Term

TIMES = "\N{MULTIPLICATION SIGN}"


class Note(NamedTuple):
    """A part of a controller that is no term of a formula, in words."""

    label: str
    does: str


Part = Term | Choice | Note
"""A line of the table of what the parts of a controller do; a choice has lines below it."""


class Summand(NamedTuple):
    """One of what adds up to an action before it is limited."""

    action: str
    text: str
    """as it is shown"""
    worth: Callable[[Memory], float]
    """in the action's unit, at the step that a memory has just been through"""


class FeedbackLoop(NamedTuple):
    """kp e + ki Σe + kd Δe of e = setpoint − state, per step and in the action's unit."""

    action: str
    state: str
    kp: float
    ki: float
    kd: float
    window: int
    """steps that Σe goes back, the present one included"""


class DrawnRule(NamedTuple):
    """A fuzzy rule, as figures draw it."""

    action: str
    number: int
    """of the action's rules, from 1"""
    premise: dict[Variable, tuple[float, float]]
    """centre and width in each feature; `rho`, `rho[t]` and `rho.error` are the same feature"""
    output: float
    """of the rule alone, in the action's unit"""


def variable_words(variable: Variable) -> str:
    """`theta`, `the setpoint of rho`, `theta 3 steps ago`."""
    name = f"the setpoint of {variable.name}" if variable.part == "setpoint" else variable.name
    if not variable.lag:
        return name
    return f"{name} {'1 step' if variable.lag == 1 else f'{variable.lag} steps'} ago"
