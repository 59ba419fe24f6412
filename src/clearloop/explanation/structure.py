"""The forms that a law may have, and the terms that each gives it: what is multiplied by gains and added up.

Eq. (a): action[t] = c + Σ (Kp x + Kr setpoint + Ki ∫x + Kd ẋ)[t − delay], x = value − setpoint, with
∫x = dt Σ x over a window of rows, ẋ = d/dt of x or of the value, d[t] = a d[t-1] + (1 − a) (x[t] − x[t-1]).
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clearloop.data.cells import Flags, Floats
from clearloop.explanation.library import values_of
from clearloop.explanation.signals import Signals

Kind = Literal["value", "setpoint", "sum", "rate", "formula"]


@dataclass(frozen=True)
class Term:
    kind: Kind
    state: str
    """whose value, setpoint, sum or rate it is; of a formula: the formula, in errors"""


@dataclass(frozen=True, kw_only=True)
class Structure:
    """Everything about a law but its gains."""

    delay: int = 0
    """steps between the row that it read and the row of the action"""
    windows: tuple[int, ...] | None = None
    """[S] rows that each state's sum runs over; 0: all since the episode's start; None: there are no sums"""
    continued: bool = False
    """whether sums since the start go on from where they were: a constant for each episode, not known"""
    paused: bool = False
    """whether sums stand still while the action is at a limit"""
    pole: float | None = None
    """a of the derivatives' filter, 0 where there is no filter; None: there are no derivatives"""
    of_error: bool = True
    """whether derivatives are those of the error, or of the value alone"""
    from_zero: bool = False
    """whether the value before an episode's first was taken as 0, or as the first one"""

    @property
    def constant(self) -> bool:
        """With sums that begin at 0 there is none: no controller file could hold it."""
        return self.windows is None or self.continued

    def terms(self, signals: Signals) -> list[Term]:
        """All that a law of this form may add up."""
        names = np.array(signals.task.state_names)
        kinds: list[tuple[Kind, list[str]]] = [
            ("value", list(names)),
            ("setpoint", list(names[signals.moving])),
            ("sum", list(names) if self.windows is not None else []),
            ("rate", list(names) if self.pole is not None else []),
        ]
        return [Term(kind, str(name)) for kind, there in kinds for name in there]

    def relevant(self, term: Term, signals: Signals) -> "Structure":
        """Only what this term depends on, so that its column is not computed again."""
        if term.kind == "sum":
            names = signals.task.state_names
            sizes = zip(names, self.windows or (), strict=True)
            windows = tuple(size if name == term.state else 0 for name, size in sizes)
            return Structure(delay=self.delay, windows=windows, paused=self.paused)
        if term.kind == "rate":
            return replace(self, windows=None, paused=False, continued=False)
        return Structure(delay=self.delay)

    def column(self, term: Term, signals: Signals, saturated: Flags) -> Floats:
        """[n] one term, in units of its state, times or per second. `saturated`: rows at a limit."""
        if term.kind == "formula":
            return signals.delayed(values_of(term.state, signals), self.delay)
        j, dt = signals.task.state_names.index(term.state), signals.task.dt
        error = signals.errors[:, j]
        if term.kind == "value":
            values = error
        elif term.kind == "setpoint":
            values = signals.aims[:, j]
        elif term.kind == "sum":
            window = (self.windows or ())[j]
            values = dt * signals.summed(np.where(self.paused & saturated, 0.0, error), window)
        else:
            source = error if self.of_error else signals.states[:, j]
            values = signals.filtered_change(source, self.pole or 0.0, self.from_zero) / dt
        return signals.delayed(values, self.delay)
