"""`clearloop data explain` finds out how the actions of a log were chosen: at random, or by which law."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import PID, Controller, Equation, Linear
from clearloop.controllers.pid import Loop, Loops
from clearloop.data import Batch
from clearloop.data.excitation import DETERMINED, is_constant
from clearloop.errors import ClearloopError
from clearloop.explanation.fitting import PARTS, ROUNDING, FitTarget, fit, make_target, parts_of, price
from clearloop.explanation.signals import Regressor, Signals, Structure
from clearloop.explanation.trials import MOST_SUMMED, LawCandidate, Past, Trials, look_back, simplest
from clearloop.expression import Variable, parse, substitute, to_text, variables
from clearloop.expression.nodes import READ_LIMIT
from clearloop.numbers import careful_percent, counted, significant
from clearloop.task import Task
from clearloop.task.tables import MOST_STEPS_BACK

# Laws with their gains, and the share of the action that each explains in held-out time.

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

    @property
    def kind(self) -> str:
        """The kind of law: `linear`, `PI`, `PD`, `PID` or `equation`."""
        return kind_of(self.terms)


def kind_of(terms: tuple[Regressor, ...]) -> str:
    """Return the kind of a law with these terms: `linear`, `PI`, `PD`, `PID` or `equation`."""
    kinds = {term.kind for term in terms}
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

_DIGITS = 4


def formula(law: Law) -> str:
    """Write a law as a formula: `6*theta + 1.8*rate(theta)`."""
    lag = f"[t-{law.structure.delay}]" if law.structure.delay else ""
    products = [
        f"{gain:.{_DIGITS}g}*{name_of(term)}{lag}" for term, gain in zip(law.terms, law.gains, strict=True)
    ]
    constant = [f"{law.constant:.{_DIGITS}g}"] if law.constant or not products else []
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
        said = [f"{name} = {value:.{_DIGITS}g} s" for name, value in times if value is not None]
        return f"{self.state}: " + ", ".join([f"Kp = {self.kp:.{_DIGITS}g}", *said])


def standard_forms(law: Law) -> Iterator[StandardForm]:
    """Yield the PID laws in a law: of each state whose value, and integral or rate, it reads."""
    gains = {(term.kind, term.state): float(gain) for term, gain in zip(law.terms, law.gains, strict=True)}
    for (kind, state), kp in gains.items():
        ki, kd = gains.get(("sum", state)), gains.get(("rate", state))
        if kind == "value" and kp and (ki or kd):
            yield StandardForm(state, -kp, kp / ki if ki else None, kd / kp if kd else None)


def notes(law: Law, dt: float) -> Iterator[str]:
    """Yield what the formula of a law does not say: filters, windows and delays."""
    form, kinds = law.structure, {term.kind for term in law.terms}
    if "rate" in kinds:
        of = "value - setpoint" if form.of_error else "the value alone"
        tau = (
            f"filtered with a time constant of {time_constant_of(form.pole, dt):.3g} s"
            if form.pole
            else "not filtered"
        )
        yield f"rates, per second, are those of {of}, {tau}"
    if "sum" in kinds:
        yield f"integrals, in seconds, run {_span(law, dt)}"
    if form.delay:
        yield f"the law reads what was observed {counted(form.delay, 'step')} before"


def time_constant_of(pole: float, dt: float) -> float:
    """Return the time constant of a filter, τ = a dt / (1 − a): backward Euler."""
    return pole * dt / (1 - pole)


def _span(law: Law, dt: float) -> str:
    if not any(law.windows.values()):
        return "from the episode's start" + ", but not while the action is at a limit" * law.structure.paused
    return "over " + ", ".join(f"{rows * dt:.3g} s ({name})" for name, rows in law.windows.items())


# The account of one action: how it was chosen, and whether that leaves something to learn from.

Chosen = Literal["law", "random", "planned", "constant"]
RANDOM = 0.05  # share of a random action that a law may explain by chance
ADDS = 0.05  # share that a law must explain of what the action's own past leaves
_CERTAIN = 1e-6  # share of an action: a law that leaves less needs no other proof


@dataclass(frozen=True, eq=False)
class Account:
    """The account of how one action was chosen."""

    action: str
    law: Law
    """the best law that was found, whether or not it is believed"""
    past: Past
    mean: float
    """the mean of the action"""
    saturated: float
    """the share of the rows at a limit"""
    tried: tuple[tuple[str, float], ...]
    """the kinds of law that were tried, and the share that the best of each explains; none if constant"""
    dt: float

    @property
    def chosen(self) -> Chosen:
        """The way in which the action was chosen; planned: held or drifting, whatever the states are."""
        if not self.tried:
            return "constant"
        if self.law.terms and 1 - self.law.explained <= _CERTAIN:
            return "law"
        if not self.law.terms or self.law.explained < RANDOM or self.past.added < ADDS:
            return "planned" if self.past.explained >= 0.5 else "random"
        return "law"

    @property
    def independent(self) -> float:
        """The share of the action's variance that does not come from a law."""
        return max(0.0, 1 - self.law.explained) if self.chosen == "law" else float(self.chosen != "constant")

    @property
    def enough(self) -> bool:
        """True if the action varies enough apart from the law to tell what it does."""
        return self.independent >= 1 - DETERMINED

    @property
    def verdict(self) -> str:
        """One sentence that says how the action was chosen."""
        name, law = self.action, self.law
        if self.chosen == "constant":
            if law.explained < 1:
                return f"{name} is {law.constant:.6g}, except in the first or last rows of an episode."
            return f"{name} never changes: it is always {law.constant:.6g}."
        if self.chosen == "law":
            kind = f"An {law.kind}" if law.kind == "equation" else f"A {law.kind} law"
            return f"{kind} explains {careful_percent(law.explained)} of {name}."
        if self.chosen == "random":
            best = max(share for _, share in self.tried)
            return f"The actions look random: no law explains more than {careful_percent(best)} of {name}."
        return (
            "The actions look random and held, or planned: no law of the states adds to what "
            f"the actions before already tell about {name} ({careful_percent(self.past.explained)})."
        )

    @property
    def advice(self) -> str:
        """One sentence that says whether this action can be learned from."""
        if self.chosen == "constant":
            return f"Nothing tells what {self.action} does: log some minutes in which it varies."
        if self.chosen != "law":
            return f"All of {self.action} varies independently of the states: that is good to learn from."
        apart = f"Apart from the law, {careful_percent(self.independent)} of {self.action} varies by itself: "
        if self.enough:
            return apart + "enough to learn what it does."
        return apart + "too little to learn what it does; log some minutes with a small random signal added."

    def gain_rows(self) -> list[tuple[str, str, str]]:
        """Return the law's terms, their gains and standard errors, ready for a table."""
        numbers = zip(self.law.terms, self.law.gains, self.law.errors, strict=True)
        return [
            (f"    {name_of(term)}", f"{gain:.{_DIGITS}g}", f"{error:.2g}") for term, gain, error in numbers
        ]

    def loops(self) -> list[StandardForm]:
        """Return the PID laws in the law, in standard form."""
        return list(standard_forms(self.law)) if self.chosen == "law" else []

    def notes(self) -> list[str]:
        """Return what the law's formula does not say: filters, windows and delays."""
        return list(notes(self.law, self.dt)) if self.chosen == "law" else []

    def to_dict(self) -> dict[str, Any]:
        """Return the account as JSON values."""
        return {
            "verdict": self.verdict,
            "advice": self.advice,
            "chosen": self.chosen,
            "independent": self.independent,
            "enough": self.enough,
            "law": self._law() if self.chosen == "law" else None,
            "tried": dict(self.tried),
            "own_past": self.past.explained,
            "added_to_past": self.past.added,
            "saturated": self.saturated,
        }

    def _law(self) -> dict[str, Any]:
        law, form = self.law, self.law.structure
        gains = [
            {"of": term.kind, "name": term.state, "gain": float(gain), "standard_error": float(error)}
            for term, gain, error in zip(law.terms, law.gains, law.errors, strict=True)
        ]
        return {
            "kind": law.kind,
            "formula": formula(law),
            "explained": law.explained,
            "gains": gains,
            "constant": law.constant,
            "standard_form": [loop._asdict() for loop in self.loops()],
            "delay": form.delay,
            "rate_of": "error" if form.of_error else "value",
            "filter_seconds": time_constant_of(form.pole, self.dt) if form.pole else 0.0,
            "windows": law.windows,
        }


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


def write_law(
    task: Task, laws: Mapping[str, Law | float], longest: int, moving: Sequence[str], name: str
) -> Controller:
    """Write laws as one controller, of the simplest kind that can hold them.

    Args:
        task: The task whose actions are chosen.
        laws: A law or a constant for each action.
        longest: The rows of the longest episode.
        moving: The states whose setpoint changes in the log.
        name: What the controller is called.

    Raises:
        ClearloopError: A law looks back further than a controller file can.
    """
    loops = {action: _loops(law, task, longest, moving) for action, law in laws.items()}
    if all(loops.values()):
        return PID(name=name, outputs={action: found for action, found in loops.items() if found})
    found = {action: _formula(law, task, action) for action, law in laws.items()}
    rows = {action: one.gains for action, one in found.items() if isinstance(one, WeightedSum) and one.linear}
    if len(rows) == len(found):
        return Linear(name=name, gains=rows)
    return Equation(name=name, outputs={action: str(one) for action, one in found.items()})


def _loops(law: Law | float, task: Task, longest: int, moving: Sequence[str]) -> Loops | None:
    """Return the law as PID loops; None if a file of kind `pid` cannot hold it, or need not."""
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
            window = law.windows.get(name, 1) or min(max(longest, task.horizon), MOST_SUMMED)
            gains = {"kp": _short(kp), "ki": _short(ki * task.dt), "kd": _short(kd / task.dt)}
            loops.append(Loop(input=name, **gains, window=window))
    return Loops(bias=_short(law.constant), loops=tuple(loops))


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


# The explanation.

_NONE = LawCandidate(Structure(), (), 0.0, 1.0, 1.0)  # a law without terms
_PLAIN, _MUCH = 0.9, 0.2  # a law with ρ = 0 is preferred if it explains this share, and so much more
_FEWEST = 50  # rows with an action
_LONGEST_NAME = 200  # characters


@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer to how the actions of a batch were chosen."""

    task: Task
    accounts: tuple[Account, ...]
    """an account of each action"""
    moving: tuple[str, ...]
    """the states whose setpoint changes in the log"""
    longest: int
    """the rows of the longest episode"""

    @property
    def verdict(self) -> str:
        """One sentence for each action."""
        return " ".join(account.verdict for account in self.accounts)

    def controller(self) -> Controller:
        """Return the laws as one controller; an action without a law is held at its mean.

        Raises:
            ClearloopError: No action has a law.
        """
        if not any(account.chosen in ("law", "constant") for account in self.accounts):
            raise ClearloopError(f"there is no law to write: {self.verdict}")
        laws = {a.action: a.law if a.chosen == "law" else a.mean for a in self.accounts}
        shares = ", ".join(f"{careful_percent(a.law.explained)} of {a.action}" for a in self.accounts)
        name = f"as logged; explains {shares}"[:_LONGEST_NAME]
        return write_law(self.task, laws, self.longest, self.moving, name).for_task(self.task)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        return {
            "task": self.task.name,
            "verdict": self.verdict,
            "actions": {account.action: account.to_dict() for account in self.accounts},
        }


def explain(task: Task, batch: Batch) -> Explanation:
    """Find out from a batch alone how its actions were chosen: at random, or by a law.

    Args:
        task: What is to be controlled.
        batch: The log.

    Returns:
        An account of each action. Every share that it gives is of rows that the law was not fitted to.

    Raises:
        ClearloopError: The log is too short.
    """
    signals = Signals.of(task, batch)
    rows = np.count_nonzero(signals.chosen)
    if rows < _FEWEST:
        what = f"only {rows} rows have an action: at least {_FEWEST} are needed to tell how it was chosen"
        raise ClearloopError(f"{what}; log more")
    actions = np.clip(batch.actions, -READ_LIMIT, READ_LIMIT)
    targets = [
        make_target(name, values, signals, limits)
        for name, values, limits in zip(task.action_names, actions.T, task.action_limits, strict=True)
    ]
    return Explanation(
        task=task,
        accounts=tuple(_account(signals, target) for target in targets),
        moving=tuple(np.array(task.state_names)[signals.moving].tolist()),
        longest=int(signals.age.max()) + 1,
    )


def _account(signals: Signals, target: FitTarget) -> Account:
    known = target.values[signals.chosen]
    if is_constant(target.values, signals.episodes):
        levels, counts = np.unique(known, return_counts=True)
        usual, share = float(levels[counts.argmax()]), float(counts.max() / len(known))
        law = replace(find_law(signals, target, _NONE)[0], constant=usual, explained=share)
        return Account(target.name, law, Past(1.0, 0.0), usual, 0.0, (), signals.task.dt)
    trials = Trials(signals, target)
    found = [_NONE, *trials.candidates()]
    law, asked = _best(signals, target, found, trials.rows)
    return Account(
        action=target.name,
        law=law,
        past=look_back(signals, target, asked),
        mean=float(known.mean()),
        saturated=float(np.mean(target.saturated[signals.chosen])),
        tried=_tried(trials, found),
        dt=signals.task.dt,
    )


def _best(
    signals: Signals, target: FitTarget, found: Sequence[LawCandidate], rows: int
) -> tuple[Law, Floats]:
    """Return the law to believe, and the action that it asks for [n]. `rows` are those of the trials."""
    best = simplest(found, rows)
    law, asked = find_law(signals, target, best)
    if best.lasting and law.explained < _PLAIN - _MUCH:  # much is left: is a law with ρ = 0 better?
        plain = simplest([replace(one, lasting=0.0, unexplained=one.plain) for one in found], rows)
        again, then = find_law(signals, target, plain)
        if again.explained > max(_PLAIN, law.explained + _MUCH):
            return again, then
    return law, asked


def _tried(trials: Trials, candidates: Iterable[LawCandidate]) -> tuple[tuple[str, float], ...]:
    """Return the share that the best law of each kind explains, in the rows of the trials."""
    whole = LawCandidate(Structure(), tuple(Structure().terms(trials.signals)), 0.0, 1.0, 1.0)
    kinds: dict[str, list[LawCandidate]] = {"linear": [whole]}
    for candidate in candidates:
        if candidate.terms:
            kinds.setdefault(kind_of(candidate.terms), []).append(candidate)
    plain = {kind: replace(simplest(some, trials.rows), lasting=0.0) for kind, some in kinds.items()}
    laws = {kind: find_law(trials.signals, trials.target, some)[0] for kind, some in plain.items()}
    return tuple((kind, law.explained) for kind, law in laws.items())
