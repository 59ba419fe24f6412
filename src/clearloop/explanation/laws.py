"""Laws that may have chosen the actions of a log: fitted with their gains, in words, as controller files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import PID, Controller, Equation, Linear
from clearloop.controllers.pid import Loop, Loops
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.explanation.fitting import PARTS, ROUNDING, FitTarget, fit, parts_of, price
from clearloop.explanation.signals import ErrorSum, Regressor, Signals, Structure
from clearloop.explanation.trials import LawCandidate
from clearloop.expression import Variable, parse, substitute, to_text, variables
from clearloop.numbers import counted, plain, significant
from clearloop.task import Task
from clearloop.task.tables import MOST_STEPS_BACK

_NAMES = {"": "linear", "i": "PI", "d": "PD", "di": "PID"}


@dataclass(frozen=True, eq=False)
class Law:
    """A law that may have chosen an action: Eq. (a) of `signals.py`, in units of the log and seconds."""

    structure: Structure
    terms: tuple[Regressor, ...]
    gains: Floats
    """[k] the gain of each term"""
    errors: Floats
    """[k] the standard errors of the gains, from laws of parts of the log"""
    windows: dict[str, int]
    """the rows that the sum of a state runs over; 0: all since the episode's start"""
    constant: float
    """0 if there is none; with sums since the start, each episode may have its own"""
    explained: float
    """the share of the action's variance that the law explains in held-out time, rows at limits included"""
    sums: Mapping[str, ErrorSum] = field(default_factory=dict)
    """what the computed states of the task sum up"""

    @property
    def kind(self) -> str:
        """The kind of law: `linear`, `PI`, `PD`, `PID` or `equation`."""
        return kind_of(self.terms, self.sums)


def kind_of(terms: tuple[Regressor, ...], sums: Mapping[str, ErrorSum]) -> str:
    """Return the kind of a law with these terms: `linear`, `PI`, `PD`, `PID` or `equation`.

    Args:
        terms: The terms.
        sums: The computed states that are integrals of errors.
    """
    kinds = {"sum" if term.state in sums else term.kind for term in terms}
    if "formula" in kinds:
        return "equation"
    return _NAMES["d" * ("rate" in kinds) + "i" * ("sum" in kinds)]


def find_law(signals: Signals, target: FitTarget, candidate: LawCandidate) -> tuple[Law, Floats]:
    """Fit a candidate to all rows; a constant is kept only if it explains enough.

    Returns:
        The law, and the action that it asks for in each row [n], within limits.
    """
    laws = [_fitted(signals, target, candidate, constant) for constant in _constants(candidate.structure)]
    worth = 1 + price(int(np.count_nonzero(signals.chosen)))
    enough = worth * (1 - laws[0][0].explained) + ROUNDING
    return next(law for law in reversed(laws) if 1 - law[0].explained <= enough)


def _constants(structure: Structure) -> tuple[bool, ...]:
    if structure.continued:
        return (True,)
    return (True, False) if structure.constant else (False,)


def _fitted(
    signals: Signals, target: FitTarget, candidate: LawCandidate, constant: bool
) -> tuple[Law, Floats]:
    structure, terms, rows = candidate.structure, candidate.terms, signals.chosen
    columns = [structure.column(term, signals, target.saturated) for term in terms]
    features = np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0))
    episodes = signals.episodes if structure.continued else np.zeros_like(signals.episodes)
    groups, parts = episodes if constant else None, parts_of(signals)
    predicted, gains = np.empty(len(rows)), []
    for part in range(PARTS):
        law = fit(features, target, rows & (parts != part), groups, candidate.lasting)
        held_out = parts == part
        predicted[held_out] = target.clip(law(features, groups))[held_out]
        gains.append(law.gains)
    law = fit(features, target, rows, groups, candidate.lasting)
    found = Law(
        structure=structure,
        terms=terms,
        gains=law.gains,
        # The jackknife over parts in time, which takes into account that neighbouring rows are alike.
        errors=np.sqrt((PARTS - 1) * np.var(gains, axis=0)),
        windows=_windows(candidate, signals.task.state_names),
        constant=0.0 if structure.continued else float(law.constants[0]),
        explained=_explained(target.values[rows], predicted[rows]),
        sums=signals.sums,
    )
    return found, target.clip(law(features, groups))


def _windows(candidate: LawCandidate, names: Sequence[str]) -> dict[str, int]:
    sizes = dict(zip(names, candidate.structure.windows or (), strict=False))
    return {term.state: sizes[term.state] for term in candidate.terms if term.kind == "sum"}


def _explained(values: Floats, predicted: Floats) -> float:
    spread = float(np.sum((values - values.mean()) ** 2))
    left = float(np.sum((values - predicted) ** 2))
    return 1 - left / spread if spread else 1.0


# Laws in words, and in numbers that people can compare with those of their controllers.

DIGITS = 4


def formula(law: Law) -> str:
    """Write a law as a formula: `6*theta + 1.8*rate(theta)`."""
    lag = f"[t-{law.structure.delay}]" if law.structure.delay else ""
    products = [
        f"{gain:.{DIGITS}g}*{name_of(term)}{lag}" for term, gain in zip(law.terms, law.gains, strict=True)
    ]
    constant = [f"{law.constant:.{DIGITS}g}"] if law.constant or not products else []
    return " + ".join([*products, *constant]).replace("+ -", "- ")


def name_of(term: Regressor) -> str:
    """Write a term: `rate(theta)`."""
    if term.kind == "sum":
        return f"integral({term.state})"
    if term.kind == "rate":
        return f"rate({term.state})"
    return f"{term.state}.setpoint" if term.kind == "setpoint" else term.state


class StandardForm(NamedTuple):
    """A PID law Kp (e + ∫e / Ti + Td ė) of e = setpoint − state; Ti and Td in seconds, None if not there."""

    state: str
    kp: float
    ti: float | None
    td: float | None

    def __str__(self) -> str:
        times = [("Ti", self.ti), ("Td", self.td)]
        said = [f"{name} = {value:.{DIGITS}g} s" for name, value in times if value is not None]
        return f"{self.state}: " + ", ".join([f"Kp = {self.kp:.{DIGITS}g}", *said])


def standard_forms(law: Law) -> Iterator[StandardForm]:
    """Yield the PID laws in a law: of each state whose value, and integral or rate, it reads."""
    gains = {(term.kind, term.state): float(gain) for term, gain in zip(law.terms, law.gains, strict=True)}
    integrals = {state: gain for (kind, state), gain in gains.items() if kind == "sum"}
    for name, (state, rate) in law.sums.items():
        if ("value", name) in gains:
            integrals[state] = integrals.get(state, 0.0) + rate * gains["value", name]
    for (kind, state), kp in gains.items():
        ki, kd = integrals.get(state), gains.get(("rate", state))
        if kind == "value" and kp and (ki or kd):
            yield StandardForm(state, -kp, kp / ki if ki else None, kd / kp if kd else None)


def notes(law: Law, dt: float) -> Iterator[str]:
    """Yield what the formula of a law does not say: filters, windows and delays."""
    form, kinds = law.structure, {term.kind for term in law.terms}
    if "rate" in kinds:
        of = "value - setpoint" if form.of_error else "the value alone"
        tau = (
            f"filtered with a time constant of {plain(time_constant_of(form.pole, dt))} s"
            if form.pole
            else "not filtered"
        )
        yield f"rates are per second, of {of}, {tau}"
    if "sum" in kinds:
        yield f"integrals, in seconds, run {_span(law, dt)}"
    if form.delay:
        yield f"the law reads the observation of {counted(form.delay, 'step')} before"


def time_constant_of(pole: float, dt: float) -> float:
    """Return the time constant of a filter, τ = a dt / (1 − a): backward Euler."""
    return pole * dt / (1 - pole)


def _span(law: Law, dt: float) -> str:
    if not any(law.windows.values()):
        return "from the episode's start" + ", but not while the action is at a limit" * law.structure.paused
    return "over " + ", ".join(f"{plain(rows * dt)} s ({name})" for name, rows in law.windows.items())


# Laws as controller files.
#
# A file of kind `pid` holds sums and plain derivatives of errors. A law that it cannot hold is written so
# that it reads its own past actions: with z for a step back, D = (1 − a z) where there is a filter, and
# S = (1 − z) where there are sums, Eq. (a) of `signals.py` times D S is
#
# (b)  D S action = Σ zᵈ (Kp D S + Ki dt D + Kd (1 − a) (1 − z) S / dt) x + D(1) S(1) c.
#
# Before the start, actions are 0 and the first observation is repeated. A filter soon forgets that it began
# there; sums never would, so their first steps are those of Eq. (a) itself. The setpoint is the present one
# at all lags; after it changes, Eq. (b) agrees with Eq. (a) again after the time of the filter or the sums.

WRITTEN_DIGITS = 6
RECURSIVE_DIGITS = 12  # such a law depends on small differences of large gains


@dataclass(frozen=True)
class WeightedSum:
    """A sum constant + Σ gain · formula."""

    constant: float
    gains: dict[str, float]
    """the gain of each formula"""

    @property
    def linear(self) -> bool:
        """True if a linear controller can hold the sum: no constant, and only names as formulas."""
        return not self.constant and bool(self.gains) and all(_is_variable(text) for text in self.gains)

    def __str__(self) -> str:
        text = " + ".join(f"{gain!r}*{formula}" for formula, gain in self.gains.items())
        parts = [part for part in (text, f"{self.constant!r}" if self.constant or not text else "") if part]
        return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True)
class Restarted:
    """A weighted sum that replaces another one once `steps` actions have been taken.

    Before the start, the action was 0 and the summed states did not change. The action may be 0 later, too,
    for example at a limit, but then the summed states change.
    """

    action: str
    states: tuple[str, ...]
    """the states that are summed"""
    steps: int
    first: WeightedSum
    """the sum in the first steps"""
    later: WeightedSum
    """the sum in all later steps"""

    def __str__(self) -> str:
        rest = [f"{_lagged(one, self.steps)} == {_lagged(one, self.steps - 1)}" for one in self.states]
        unmoved = " and ".join([f"{Variable(self.action, lag=self.steps)} == 0", *rest])
        return f"if({unmoved}, {self.first}, {self.later})"


def write_law(task: Task, laws: Mapping[str, Law | float], moving: Sequence[str], name: str) -> Controller:
    """Write laws as one controller, of the simplest kind that can hold them.

    Args:
        task: The task whose actions are chosen.
        laws: A law or a constant for each action.
        moving: The states whose setpoint changes in the log.
        name: What the controller is called.

    Raises:
        ClearloopError: A law looks back further than a controller file can.
    """
    loops = {action: _loops(law, task, moving) for action, law in laws.items()}
    if all(loops.values()):
        return PID(name=name, outputs={action: found for action, found in loops.items() if found})
    found = {action: _formula(law, task, action) for action, law in laws.items()}
    rows = {action: one.gains for action, one in found.items() if isinstance(one, WeightedSum) and one.linear}
    if len(rows) == len(found):
        return Linear(name=name, gains=rows)
    return Equation(name=name, outputs={action: str(one) for action, one in found.items()})


def _loops(law: Law | float, task: Task, moving: Sequence[str]) -> Loops | None:
    """Return the law as PID loops; None if a file of kind `pid` cannot hold it, or need not."""
    if isinstance(law, float) or law.kind not in ("PI", "PD", "PID"):
        return None
    if all(term.kind in ("value", "setpoint") for term in law.terms):
        return None  # the integral is a computed state: a weighted sum holds such a law
    form = law.structure
    kinds = {(term.kind, term.state): gain for term, gain in zip(law.terms, law.gains, strict=True)}
    if form.delay:
        return None
    loops, fed = [], {}
    for name in task.state_names:
        kp, ki, kd = (-kinds.get((kind, name), 0.0) for kind in ("value", "sum", "rate"))
        aim = kinds.get(("setpoint", name), 0.0)
        if aim and not kp:
            fed[str(Variable(name, part="setpoint"))] = _short(aim)
        if kp or ki or kd:
            table: dict[str, Any] = {
                "input": name, "kp": _short(kp), "ki": _short(ki * task.dt), "kd": _short(kd / task.dt)
            }  # fmt: skip
            if law.windows.get(name, 1) == 0:
                table["integral"] = True
            else:
                table["window"] = law.windows.get(name, 1)
            if kd and form.pole:
                table["filter"] = _short(form.pole / (1 - form.pole))
            if kd and not form.of_error and name in moving:
                table["derivative_of"] = "measurement"
            if aim and kp:  # kp e + aim r = kp (b r − y)
                table["setpoint_weight"] = _short(1 + aim / kp)
            loops.append(Loop(**table))
    return Loops(bias=_short(law.constant), loops=tuple(loops), feedforward=fed or None)


_NEAR_ZERO = 0.01  # of the range of an action


def begin_at_mean(controller: Controller, task: Task, batch: Batch) -> Controller:
    """Return a PID whose empty integrals begin at the mean actions of the log, not at 0; others as they are.

    Args:
        controller: A controller; a bias that it has stays.
        task: The task.
        batch: The log.
    """
    if not isinstance(controller, PID):
        return controller
    outputs = dict(controller.outputs)
    for name, mean, (low, high) in zip(
        task.action_names,
        np.nanmean(batch.actions, axis=0).tolist(),
        task.action_limits.tolist(),
        strict=True,
    ):
        output = outputs[name]
        if any(loop.integral for loop in output.chain) and not output.bias:
            usual = significant(min(max(mean, low), high), 3)
            bias = usual if abs(usual) > _NEAR_ZERO * (high - low) else 0.0
            outputs[name] = output.model_copy(update={"bias": bias})
    return controller.model_copy(update={"outputs": outputs})


def _formula(law: Law | float, task: Task, action: str) -> "WeightedSum | Restarted":
    """Write the law by Eq. (b) if it has a filter or sums, and its first steps by Eq. (a)."""
    if isinstance(law, float):
        return WeightedSum(_short(law), {})
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
    later = _rounded(law.constant * whole.sum(), gains, RECURSIVE_DIGITS if steps else WRITTEN_DIGITS)
    if "sum" not in kinds:
        return later
    summed = tuple(term.state for term in law.terms if term.kind == "sum")
    return Restarted(action, summed, steps, _rounded(law.constant, first, WRITTEN_DIGITS), later)


def _rounded(constant: float, gains: Mapping[str, float], digits: int) -> WeightedSum:
    return WeightedSum(_short(constant), {name: _short(gain, digits) for name, gain in gains.items() if gain})


def _add(gains: dict[str, float], term: Regressor, taps: Floats, delay: int) -> None:
    """Add each tap of a filter to the gain of its lag."""
    for lag, gain in enumerate(taps, delay):
        if lag > MOST_STEPS_BACK and gain:
            raise ClearloopError(
                f"the law looks back {lag:,} steps, which is more than a controller file can hold"
            )
        setpoint = term.kind == "setpoint"
        name = str(Variable(term.state, part="setpoint")) if setpoint else _lagged(term.state, lag)
        gains[name] = gains.get(name, 0.0) + float(gain)


def _lagged(formula: str, lag: int) -> str:
    tree = parse(formula)
    names = {variable: Variable(variable.name, lag=lag) for variable in variables(tree)} if lag else {}
    return to_text(substitute(tree, names))


def _box(window: int) -> Floats:
    """Return the taps of the sum over a window times (1 − z), 1 − zᵂ; of the sum since the start, 1."""
    taps = np.zeros(window + 1)
    taps[0], taps[-1] = 1.0, -1.0 if window else 1.0
    return taps


def _is_variable(text: str) -> bool:
    return isinstance(parse(text), Variable)


def _short(number: float, digits: int = WRITTEN_DIGITS) -> float:
    return significant(number, digits) + 0.0  # no -0.0
