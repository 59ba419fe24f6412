"""Views of a controller for pages, exports and the studio, which do not depend on its kind."""

from collections.abc import Callable
from typing import NamedTuple

from clearloop.arrays import Floats
from clearloop.controllers.memory import Memory
from clearloop.expression import Variable
from clearloop.expression.summands import Choice, Term

TIMES = "\N{MULTIPLICATION SIGN}"


class Note(NamedTuple):
    """A part of a controller that is no term of a formula: its label, and in words what it does."""

    label: str
    does: str


Part = Term | Choice | Note
"""A row of the table of a controller's parts; a choice has rows below it."""


class Summand(NamedTuple):
    """A term of the sum that an action is before it is limited.

    Attributes:
        action: The action.
        text: The term as it is shown.
        worth: The function that gives its value in the action's unit, at the last step of a memory.
    """

    action: str
    text: str
    worth: Callable[[Memory], float]


class FeedbackLoop(NamedTuple):
    """A loop kp e + ki Σe + kd Δe on e = setpoint − state, with gains per step in the action's unit.

    The sum has the last `window` errors, the present one included; 0: all since the start.
    """

    action: str
    state: str
    kp: float
    ki: float
    kd: float
    window: int


class Recursion(NamedTuple):
    """A linear law u[t] = Σₖ gains[name][k] name[t−k] − Σ_{k≥1} past[k] u[t−k], for small deviations."""

    past: Floats
    """[n] the denominator, whose first number is 1"""
    gains: dict[str, Floats]
    """the numerator of each state"""


class DrawnRule(NamedTuple):
    """A fuzzy rule as figures draw it.

    Attributes:
        action: The action.
        number: The number of the rule among those of the action, from 1.
        premise: The centre and width in each feature; `rho`, `rho[t]` and `rho.error` are the same feature.
        output: The action where only this rule applies, in its unit.
    """

    action: str
    number: int
    premise: dict[Variable, tuple[float, float]]
    output: float


def variable_words(variable: Variable) -> str:
    """Return a variable in words: `theta`, `the setpoint of rho` or `theta 3 steps ago`."""
    name = f"the setpoint of {variable.name}" if variable.part == "setpoint" else variable.name
    if not variable.lag:
        return name
    return f"{name} {'1 step' if variable.lag == 1 else f'{variable.lag} steps'} ago"
