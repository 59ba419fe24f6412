"""The signals that a controller could have read when it chose an action, and the terms of a law of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data import Batch
from clearloop.data.log import first_rows, setpoint_rows
from clearloop.expression import Call, Expression, Number, Operation, Variable, fold, parse, simplify
from clearloop.expression.nodes import READ_LIMIT
from clearloop.expression.summands import Term, split_terms
from clearloop.task import Task


@dataclass(frozen=True, eq=False)
class Signals:
    """The n rows of a log in time order, with S states."""

    task: Task
    states: Floats
    """[n, S]"""
    aims: Floats
    """[n, S] setpoints, 0 for states without one"""
    episodes: Ints
    """[n]"""
    first: Ints
    """[n] the row in which the row's episode begins"""
    chosen: Flags
    """[n] true if an action was chosen in this row: not in the last row of an episode"""

    @classmethod
    def of(cls, task: Task, batch: Batch) -> Self:
        """Take the signals from a batch."""
        aims = setpoint_rows(task, batch.setpoints, len(batch.states))
        states, aims = (np.clip(values, -READ_LIMIT, READ_LIMIT) for values in (batch.states, aims))
        chosen = np.isfinite(batch.actions).all(axis=1) & ~batch.terminal
        return cls(task, states, aims, batch.episodes, first_rows(batch.episodes), chosen)

    def of_episodes(self, wanted: Ints) -> tuple[Self, Ints]:
        """Return the signals of some episodes alone, and their rows."""
        rows = np.flatnonzero(np.isin(self.episodes, wanted))
        numbers = np.searchsorted(np.sort(wanted), self.episodes[rows])
        parts = self.states[rows], self.aims[rows], numbers, first_rows(numbers), self.chosen[rows]
        return type(self)(self.task, *parts), rows

    @property
    def age(self) -> Ints:
        """The steps since the episode's start [n]."""
        return np.arange(len(self.first)) - self.first

    @property
    def errors(self) -> Floats:
        """The errors, value − setpoint [n, S]: a bare name in a controller file means the error."""
        return self.states - self.aims

    @cached_property
    def sums(self) -> "dict[str, ErrorSum]":
        """The computed states that sum the error of another state."""
        return error_sums(self.task)

    @property
    def moving(self) -> Flags:
        """True for the states whose setpoint changes in this log [S]."""
        changing: Flags = np.ptp(self.aims, axis=0) > 0
        return changing

    def delayed(self, values: Floats, steps: int) -> Floats:
        """Return values as they were some steps ago [n]; before an episode's start, its first value."""
        return values[np.maximum(np.arange(len(values)) - steps, self.first)] if steps else values

    def summed(self, values: Floats, window: int) -> Floats:
        """Sum values over the last `window` rows, the present one included [n]; 0: since the start."""
        total = np.cumsum(values)
        before = np.append(0.0, total)
        begin = self.first if not window else np.maximum(self.first, np.arange(len(values)) + 1 - window)
        sums: Floats = total - before[begin]
        return sums

    def filtered_change(self, values: Floats, pole: float, from_zero: bool) -> Floats:
        """Return d[t] = a d[t-1] + (1 − a) (x[t] − x[t-1]), with d = 0 before the episode's start [n].

        Args:
            values: x [n].
            pole: a.
            from_zero: True if x before the start is 0; else it is the first value.
        """
        change = np.diff(values, prepend=0.0)
        begins = self.age == 0
        change[begins] = values[begins] if from_zero else 0.0
        return self.smoothed(change, pole)

    def smoothed(self, values: Floats, pole: float) -> Floats:
        """Return y[t] = a y[t-1] + (1 − a) x[t], 0 before each episode [n]: sums over 2, 4, 8, … rows."""
        smoothed, age, reach = (1 - pole) * values, self.age, 1
        while pole**reach > np.finfo(np.float64).eps and reach < len(values):
            before = np.where(age[reach:] >= reach, smoothed[:-reach], 0.0)
            smoothed = np.append(smoothed[:reach], smoothed[reach:] + pole**reach * before)
            reach *= 2
        return smoothed


class ErrorSum(NamedTuple):
    """What a computed state sums up, such as `clip(sum[t-1] + dt*level.error, -9, 9)`."""

    state: str
    """the state whose error, value - setpoint, it sums"""
    rate: float
    """by how much it grows in a second with an error of 1"""


def error_sums(task: Task) -> dict[str, ErrorSum]:
    """Find the computed states that sum the error of another state, within limits or without.

    Args:
        task: The task, whose formulas say what is computed.

    Returns:
        What each of them sums, by its name.
    """
    found = ((name, _error_sum(name, formula, task.dt)) for name, formula in task.derived.items())
    return {name: summed for name, summed in found if summed}


def _error_sum(name: str, formula: Expression, dt: float) -> ErrorSum | None:
    if isinstance(formula, Call) and formula.operation.name == "clip":
        formula = formula.arguments[0]
    before = Variable(name, lag=1)
    terms = split_terms(simplify(formula))
    match [term for term in terms if term != Term(1.0, before)]:
        case [Term(factor, Variable(state, "error", None))] if len(terms) == 2:
            return ErrorSum(state, factor / dt)
    return None


# Terms of equations: functions and products of errors, in the formula language.

_FUNCTIONS = ("{}**2", "{}**3", "abs({})", "sign({})", "sin({})", "cos({})")
FACTORS = ("{}", "abs({})", "sin({})", "cos({})")
_MOST_NAMES = 12  # states in products of two
MOST_FACTORED = 4  # states in products of functions

_MEANINGS: dict[str, Callable[..., Any]] = {
    "mul": np.multiply,
    "pow": np.power,
    "abs": np.abs,
    "sign": np.sign,
    "sin": np.sin,
    "cos": np.cos,
}


def feature_formulas(names: Sequence[str]) -> list[str]:
    """List functions and products of states as formulas; `names` has the more important states first."""
    singles = [function.format(name) for name in names[:_MOST_NAMES] for function in _FUNCTIONS]
    products = [f"{a}*{b}" for a, b in combinations(names[:_MOST_NAMES], 2)]
    factors = [[factor.format(name) for factor in FACTORS] for name in names[:MOST_FACTORED]]
    within = [f"{a}*{b}" for same in factors for a, b in combinations(same, 2)]
    across = [f"{a}*{b}" for one, other in combinations(factors, 2) for a in one for b in other]
    squares = [f"{a}**2*{b}" for a, b in permutations(names[:MOST_FACTORED], 2)]
    return list(dict.fromkeys([*singles, *products, *within, *across, *squares]))


def values_of(formula: str, signals: Signals) -> Floats:
    """Evaluate a formula of errors in all rows [n]."""
    errors = dict(zip(signals.task.state_names, signals.errors.T, strict=True))

    def leaf(node: Number | Variable) -> Any:
        return node.value if isinstance(node, Number) else errors[node.name]

    def call(operation: Operation, arguments: Sequence[Any]) -> Any:
        return _MEANINGS[operation.name](*arguments)

    values: Floats = fold(parse(formula, signals.task.state_names), leaf, call)
    return values


# The forms that a law may have, and its terms: what is multiplied by gains and summed.
#
# Eq. (a): action[t] = c + Σ (Kp x + Kr setpoint + Ki ∫x + Kd ẋ)[t − delay], x = value − setpoint, with
# ∫x = dt Σ x over a window of rows, ẋ = d/dt of x or of the value, d[t] = a d[t-1] + (1 − a) (x[t] − x[t-1]).

_Kind = Literal["value", "setpoint", "sum", "rate", "formula"]


@dataclass(frozen=True)
class Regressor:
    """A term of a law."""

    kind: _Kind
    state: str
    """the state whose value, setpoint, sum or rate the term is; or the formula, of errors"""


@dataclass(frozen=True, kw_only=True)
class Structure:
    """The form of a law: everything but its terms and gains."""

    delay: int = 0
    """the steps between the row that the law read and the row of the action"""
    windows: tuple[int, ...] | None = None
    """[S] the rows that each state's sum runs over, 0: all since the episode's start; None: no sums"""
    continued: bool = False
    """true if sums continue from an unknown value at the episode's start: a constant for each episode"""
    paused: bool = False
    """true if sums stand still while the action is at a limit"""
    pole: float | None = None
    """a of the derivatives' filter, 0 without a filter; None: no derivatives"""
    of_error: bool = True
    """true if derivatives are those of the error, false if they are those of the value alone"""
    from_zero: bool = False
    """true if the value before an episode's first was taken as 0, false if as the first one"""

    @property
    def constant(self) -> bool:
        """True if the law may have a constant; with sums that begin at 0, no file could hold one."""
        return self.windows is None or self.continued

    def terms(self, signals: Signals) -> list[Regressor]:
        """Return all terms that a law of this form may have.

        Without sums of its own, a law reads the sums that the task computes. With them it does not: what it
        summed up began with another value, or had other limits, than what is computed. The rate of a computed
        sum is the error itself.
        """
        names = list(signals.task.state_names)
        plain = [name for name in names if name not in signals.sums]
        kinds: list[tuple[_Kind, list[str]]] = [
            ("value", names if self.windows is None else plain),
            ("setpoint", np.array(names)[signals.moving].tolist()),
            ("sum", plain if self.windows is not None else []),
            ("rate", plain if self.pole is not None else []),
        ]
        return [Regressor(kind, name) for kind, there in kinds for name in there]

    def relevant(self, term: Regressor, signals: Signals) -> "Structure":
        """Return the part of the form that a term depends on, so that its column is computed once."""
        if term.kind == "sum":
            names = signals.task.state_names
            sizes = zip(names, self.windows or (), strict=True)
            windows = tuple(size if name == term.state else 0 for name, size in sizes)
            return Structure(delay=self.delay, windows=windows, paused=self.paused)
        if term.kind == "rate":
            return replace(self, windows=None, paused=False, continued=False)
        return Structure(delay=self.delay)

    def column(self, term: Regressor, signals: Signals, saturated: Flags) -> Floats:
        """Compute a term in each row [n], in units of its state, times or per second.

        Args:
            term: The term.
            signals: The rows.
            saturated: True in the rows at a limit [n], in which a paused sum stands still.
        """
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
