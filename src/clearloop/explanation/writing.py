"""Laws as controller files.

A file of kind `pid` holds sums and plain derivatives of errors. What it cannot hold is written so that it
reads its own past actions: with z for a step back, D = (1 − a z) and S = (1 − z) where there are a filter
and sums, Eq. (a) of `structure.py` times D S is

    (b)  D S action = Σ zᵈ (Kp D S + Ki dt D + Kd (1 − a) (1 − z) S / dt) x + D(1) S(1) c.

Before the start, actions are 0 and the first observation is repeated. A filter soon forgets that it began
there; sums never would, so that their first steps are by Eq. (a) itself. The setpoint is the present one at
all lags, so that after a change of it Eq. (b) takes the filter's time, or the sums', to agree with Eq. (a).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clearloop.controllers import PID, Controller, Equation, Linear
from clearloop.controllers.pid import Loop, Loops
from clearloop.data.cells import Floats
from clearloop.errors import ClearloopError
from clearloop.explanation.law import Law
from clearloop.explanation.structure import Term
from clearloop.explanation.trials import LONGEST
from clearloop.expression import Variable, parse, significant, substitute, to_text, variables
from clearloop.task import Task
from clearloop.task.scope import MOST_STEPS_BACK

DIGITS = 6
RECURSIVE_DIGITS = 12  # a small difference of large gains is what counts there


@dataclass(frozen=True)
class Sum:
    """constant + Σ gain · formula."""

    constant: float
    gains: dict[str, float]
    """of formulas; all are names where the controller can be linear"""

    @property
    def linear(self) -> bool:
        return not self.constant and bool(self.gains) and all(_is_variable(text) for text in self.gains)

    def __str__(self) -> str:
        text = " + ".join(f"{gain!r}*{formula}" for formula, gain in self.gains.items())
        parts = [part for part in (text, f"{self.constant!r}" if self.constant or not text else "") if part]
        return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True)
class Restarted:
    """A sum that begins with another one: while no action has been taken so long ago.

    Before the start actions were 0, and what is seen first was seen. An action may be 0 later, too, at a
    limit for example, but then the states that are added up move.
    """

    action: str
    states: tuple[str, ...]
    steps: int
    first: Sum
    later: Sum

    def __str__(self) -> str:
        rest = [f"{_lagged(one, self.steps)} == {_lagged(one, self.steps - 1)}" for one in self.states]
        unmoved = " and ".join([f"{Variable(self.action, lag=self.steps)} == 0", *rest])
        return f"if({unmoved}, {self.first}, {self.later})"


def write(
    task: Task, laws: Mapping[str, Law | float], longest: int, moving: Sequence[str], name: str
) -> Controller:
    """A law or a constant for each action. `longest`: rows of an episode; `moving`: setpoints that change."""
    loops = {action: _loops(law, task, longest, moving) for action, law in laws.items()}
    if all(loops.values()):
        return PID(name=name, outputs={action: found for action, found in loops.items() if found})
    found = {action: _formula(law, task, action) for action, law in laws.items()}
    rows = {action: one.gains for action, one in found.items() if isinstance(one, Sum) and one.linear}
    if len(rows) == len(found):
        return Linear(name=name, gains=rows)
    return Equation(name=name, outputs={action: str(one) for action, one in found.items()})


def _loops(law: Law | float, task: Task, longest: int, moving: Sequence[str]) -> Loops | None:
    """None if a file of kind `pid` cannot hold this law, or need not."""
    if isinstance(law, float) or law.kind not in ("PI", "PD", "PID"):
        return None
    form = law.structure
    kinds = {(term.kind, term.state): gain for term, gain in zip(law.terms, law.gains, strict=True)}
    value_rates = not form.of_error and any(("rate", name) in kinds for name in moving)
    setpoints = any(kind == "setpoint" for kind, _ in kinds)
    if form.delay or form.pole or form.paused or value_rates or setpoints:
        return None
    loops = []
    for name in task.state_names:
        kp, ki, kd = (-kinds.get((kind, name), 0.0) for kind in ("value", "sum", "rate"))
        if kp or ki or kd:
            window = law.windows.get(name, 1) or min(max(longest, task.horizon), LONGEST)
            gains = {"kp": _short(kp), "ki": _short(ki * task.dt), "kd": _short(kd / task.dt)}
            loops.append(Loop(input=name, **gains, window=window))
    return Loops(bias=_short(law.constant), loops=tuple(loops))


def _formula(law: Law | float, task: Task, action: str) -> "Sum | Restarted":
    """Eq. (b) where the law has a filter or sums, and then its first steps by Eq. (a)."""
    if isinstance(law, float):
        return Sum(_short(law), {})
    dt, kinds = task.dt, {term.kind for term in law.terms}
    pole = _short(law.structure.pole or 0.0) if "rate" in kinds else 0.0
    smooth, add = np.array([1.0, -pole][: 1 + bool(pole)]), np.array([1.0, -1.0][: 1 + ("sum" in kinds)])
    whole = np.convolve(smooth, add)
    steps = len(whole) - 1
    gains: dict[str, float] = {}
    first: dict[str, float] = {}
    for term, gain in zip(law.terms, law.gains, strict=True):
        if term.kind == "value":
            taps, at_first = whole, np.ones(1)
        elif term.kind == "sum":
            taps, at_first = dt * np.convolve(smooth, _box(law.windows[term.state])), np.full(steps, dt)
        elif term.kind == "rate":
            change = (1 - pole) / dt * np.array([1.0, -1.0])
            taps, at_first = np.convolve(change, add), change
        else:  # a setpoint and a formula are read as they are, and enter at once
            taps, at_first = whole.sum()[None], np.ones(1)
        _add(gains, term, gain * taps, law.structure.delay)
        _add(first, term, gain * at_first, law.structure.delay)
    for lag, gain in enumerate(whole[1:], 1):
        gains[str(Variable(action, lag=lag))] = -gain
    later = _rounded(law.constant * whole.sum(), gains, RECURSIVE_DIGITS if steps else DIGITS)
    if "sum" not in kinds:
        return later
    summed = tuple(term.state for term in law.terms if term.kind == "sum")
    return Restarted(action, summed, steps, _rounded(law.constant, first, DIGITS), later)


def _rounded(constant: float, gains: Mapping[str, float], digits: int) -> Sum:
    return Sum(_short(constant), {name: _short(gain, digits) for name, gain in gains.items() if gain})


def _add(gains: dict[str, float], term: Term, taps: Floats, delay: int) -> None:
    """Each tap of a filter at its lag."""
    for lag, gain in enumerate(taps, delay):
        if lag > MOST_STEPS_BACK and gain:
            raise ClearloopError(f"the law looks back {lag:,} steps: more than a controller file can hold")
        setpoint = term.kind == "setpoint"
        name = str(Variable(term.state, part="setpoint")) if setpoint else _lagged(term.state, lag)
        gains[name] = gains.get(name, 0.0) + float(gain)


def _lagged(formula: str, lag: int) -> str:
    tree = parse(formula)
    names = {variable: Variable(variable.name, lag=lag) for variable in variables(tree)} if lag else {}
    return to_text(substitute(tree, names))


def _box(window: int) -> Floats:
    """Taps of the sum over a window times (1 − z): 1 − zᵂ; of the sum since the start: 1."""
    taps = np.zeros(window + 1)
    taps[0], taps[-1] = 1.0, -1.0 if window else 1.0
    return taps


def _is_variable(text: str) -> bool:
    return isinstance(parse(text), Variable)


def _short(number: float, digits: int = DIGITS) -> float:
    return significant(number, digits) + 0.0  # no -0.0
