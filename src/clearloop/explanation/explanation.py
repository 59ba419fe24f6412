"""How the actions of a log were chosen: at random, or by a law, and by which (`clearloop data explain`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import PID, Controller, Equation, Linear
from clearloop.controllers.pid import Loop, Loops
from clearloop.data import Batch
from clearloop.data.excitation import DETERMINED
from clearloop.errors import ClearloopError
from clearloop.explanation.fitting import PARTS, ROUNDING, FitTarget, fit, make_target, parts_of, price
from clearloop.explanation.signals import Regressor, Signals, Structure
from clearloop.explanation.trials import MOST_SUMMED, LawCandidate, Past, Trials, look_back, simplest
from clearloop.expression import Variable, parse, substitute, to_text, variables
from clearloop.expression.nodes import READ_LIMIT
from clearloop.numbers import careful_percent, counted, significant
from clearloop.task import Task
from clearloop.task.tables import MOST_STEPS_BACK

# A law with its gains, and how much of the action it explains: of what was logged, in time held out.

_NAMES = {"": "linear", "i": "PI", "d": "PD", "di": "PID"}


@dataclass(frozen=True, eq=False)
class Law:
    """Eq. (a) of `structure.py`, in units of the log and seconds."""

    structure: Structure
    terms: tuple[Regressor, ...]
    gains: Floats
    """[k]"""
    errors: Floats
    """[k] standard errors of the gains, from laws of parts of the log"""
    windows: dict[str, int]
    """rows that the sum of a state runs over; 0: all since the episode's start"""
    constant: float
    """0 where there is none; with sums since the start, each episode may have its own"""
    explained: float
    """share of the action's variance, in held-out time, what is at limits included"""

    @property
    def kind(self) -> str:
        """`linear`, `PI`, `PD`, `PID` or `equation`."""
        return kind_of(self.terms)


def kind_of(terms: tuple[Regressor, ...]) -> str:
    kinds = {term.kind for term in terms}
    if "formula" in kinds:
        return "equation"
    return _NAMES["d" * ("rate" in kinds) + "i" * ("sum" in kinds)]


def find_law(signals: Signals, target: FitTarget, candidate: LawCandidate) -> tuple[Law, Floats]:
    """With gains from all rows; and [n] what it asks for, within limits. A constant must be worth it."""
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
        # The jackknife over parts in time, which knows how much neighbouring rows repeat.
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


# Laws in words and numbers that people compare with their own.

_DIGITS = 4


def formula(law: Law) -> str:
    """`6*theta + 1.8*rate(theta)`."""
    lag = f"[t-{law.structure.delay}]" if law.structure.delay else ""
    products = [
        f"{gain:.{_DIGITS}g}*{name_of(term)}{lag}" for term, gain in zip(law.terms, law.gains, strict=True)
    ]
    constant = [f"{law.constant:.{_DIGITS}g}"] if law.constant or not products else []
    return " + ".join([*products, *constant]).replace("+ -", "- ")


def name_of(term: Regressor) -> str:
    """`rate(theta)`."""
    if term.kind == "sum":
        return f"integral({term.state})"
    if term.kind == "rate":
        return f"rate({term.state})"
    return f"{term.state}.setpoint" if term.kind == "setpoint" else term.state


class StandardForm(NamedTuple):
    """Kp (e + ∫e / Ti + Td ė) on e = setpoint − state; times in seconds, None where there is no such term."""

    state: str
    kp: float
    ti: float | None
    td: float | None

    def __str__(self) -> str:
        times = [("Ti", self.ti), ("Td", self.td)]
        said = [f"{name} = {value:.{_DIGITS}g} s" for name, value in times if value is not None]
        return f"{self.state}: " + ", ".join([f"Kp = {self.kp:.{_DIGITS}g}", *said])


def standard_forms(law: Law) -> Iterator[StandardForm]:
    """Of the states whose value, and integral or rate, are in the law."""
    gains = {(term.kind, term.state): float(gain) for term, gain in zip(law.terms, law.gains, strict=True)}
    for (kind, state), kp in gains.items():
        ki, kd = gains.get(("sum", state)), gains.get(("rate", state))
        if kind == "value" and kp and (ki or kd):
            yield StandardForm(state, -kp, kp / ki if ki else None, kd / kp if kd else None)


def notes(law: Law, dt: float) -> Iterator[str]:
    """What the formula leaves open."""
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
    """The time constant of a filter, τ = a dt / (1 − a): backward Euler."""
    return pole * dt / (1 - pole)


def _span(law: Law, dt: float) -> str:
    if not any(law.windows.values()):
        return "from the episode's start" + ", but not while the action is at a limit" * law.structure.paused
    return "over " + ", ".join(f"{rows * dt:.3g} s ({name})" for name, rows in law.windows.items())


# How one action was chosen, as the log tells it, and whether that leaves something to learn from.

Chosen = Literal["law", "random", "planned", "constant"]
RANDOM = 0.05  # of an action: what a law explains of chance is less
ADDS = 0.05  # of what an action's own past leaves: what a law must explain of it
_CERTAIN = 1e-6  # of an action: a law that leaves less needs no other proof


@dataclass(frozen=True, eq=False)
class Account:
    action: str
    law: Law
    """the best that was found, whether or not it is believed"""
    past: Past
    mean: float
    """of the action"""
    saturated: float
    """share of the rows at a limit"""
    tried: tuple[tuple[str, float], ...]
    """kinds of law, and the share that the best of each explains"""
    dt: float

    @property
    def chosen(self) -> Chosen:
        """By a law of the states; at random; or planned: held or drifting, whatever the states."""
        left = 1 - self.law.explained
        if left <= _CERTAIN:
            return "law" if self.law.terms else "constant"
        if not self.law.terms or self.law.explained < RANDOM or self.past.added < ADDS:
            return "planned" if self.past.explained >= 0.5 else "random"
        return "law"

    @property
    def independent(self) -> float:
        """Share of the action's variance that is not from a law."""
        return max(0.0, 1 - self.law.explained) if self.chosen == "law" else float(self.chosen != "constant")

    @property
    def enough(self) -> bool:
        """Whether the action varies enough beside the law to tell what it does."""
        return self.independent >= 1 - DETERMINED

    @property
    def verdict(self) -> str:
        """One sentence."""
        name, law = self.action, self.law
        if self.chosen == "constant":
            return f"{name} never changes: it is always {law.constant:.6g}."
        if self.chosen == "law":
            kind = f"An {law.kind}" if law.kind == "equation" else f"A {law.kind} law"
            return f"{kind} explains {careful_percent(law.explained)} of {name}."
        if self.chosen == "random":
            best = max(share for _, share in self.tried)
            return f"The actions look random: no law explains more than {careful_percent(best)} of {name}."
        return (
            "The actions look random and held, or planned: no law of the states adds to what "
            f"the actions before already tell of {name} ({careful_percent(self.past.explained)})."
        )

    @property
    def advice(self) -> str:
        """Whether it can be learned from."""
        if self.chosen == "constant":
            return f"Nothing tells what {self.action} does: log some minutes in which it varies."
        if self.chosen != "law":
            return f"All of {self.action} varies independently of the states: that is good to learn from."
        beside = f"Beside the law, {careful_percent(self.independent)} of {self.action} varies by itself: "
        if self.enough:
            return beside + "enough to learn what it does."
        return beside + "too little to learn what it does; log some minutes with a small random signal added."

    def gain_rows(self) -> list[tuple[str, str, str]]:
        """The law's terms, their gains and standard errors, ready for a table."""
        numbers = zip(self.law.terms, self.law.gains, self.law.errors, strict=True)
        return [
            (f"    {name_of(term)}", f"{gain:.{_DIGITS}g}", f"{error:.2g}") for term, gain, error in numbers
        ]

    def loops(self) -> list[StandardForm]:
        """The parts of a law that are PID-like, in standard form."""
        return list(standard_forms(self.law)) if self.chosen == "law" else []

    def notes(self) -> list[str]:
        """What the law's formula leaves open."""
        return list(notes(self.law, self.dt)) if self.chosen == "law" else []

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
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
# A file of kind `pid` holds sums and plain derivatives of errors. What it cannot hold is written so that it
# reads its own past actions: with z for a step back, D = (1 − a z) and S = (1 − z) where there are a filter
# and sums, Eq. (a) of `structure.py` times D S is
#
# (b)  D S action = Σ zᵈ (Kp D S + Ki dt D + Kd (1 − a) (1 − z) S / dt) x + D(1) S(1) c.
#
# Before the start, actions are 0 and the first observation is repeated. A filter soon forgets that it began
# there; sums never would, so that their first steps are by Eq. (a) itself. The setpoint is the present one at
# all lags, so that after a change of it Eq. (b) takes the filter's time, or the sums', to agree with Eq. (a).

WRITTEN_DIGITS = 6
RECURSIVE_DIGITS = 12  # a small difference of large gains is what counts there


@dataclass(frozen=True)
class WeightedSum:
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
    first: WeightedSum
    later: WeightedSum

    def __str__(self) -> str:
        rest = [f"{_lagged(one, self.steps)} == {_lagged(one, self.steps - 1)}" for one in self.states]
        unmoved = " and ".join([f"{Variable(self.action, lag=self.steps)} == 0", *rest])
        return f"if({unmoved}, {self.first}, {self.later})"


def write_law(
    task: Task, laws: Mapping[str, Law | float], longest: int, moving: Sequence[str], name: str
) -> Controller:
    """A law or a constant for each action. `longest`: rows of an episode; `moving`: setpoints that change."""
    loops = {action: _loops(law, task, longest, moving) for action, law in laws.items()}
    if all(loops.values()):
        return PID(name=name, outputs={action: found for action, found in loops.items() if found})
    found = {action: _formula(law, task, action) for action, law in laws.items()}
    rows = {action: one.gains for action, one in found.items() if isinstance(one, WeightedSum) and one.linear}
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
            window = law.windows.get(name, 1) or min(max(longest, task.horizon), MOST_SUMMED)
            gains = {"kp": _short(kp), "ki": _short(ki * task.dt), "kd": _short(kd / task.dt)}
            loops.append(Loop(input=name, **gains, window=window))
    return Loops(bias=_short(law.constant), loops=tuple(loops))


def _formula(law: Law | float, task: Task, action: str) -> "WeightedSum | Restarted":
    """Eq. (b) where the law has a filter or sums, and then its first steps by Eq. (a)."""
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


def _short(number: float, digits: int = WRITTEN_DIGITS) -> float:
    return significant(number, digits) + 0.0  # no -0.0


_NONE = LawCandidate(Structure(), (), 0.0, 1.0, 1.0)  # a law of no terms
_PLAIN, _MUCH = 0.9, 0.2  # a law that explains this share needs no rest that lasts to be better by that much
_FEWEST = 50  # rows with an action
_LONGEST_NAME = 200  # characters


@dataclass(frozen=True, eq=False)
class Explanation:
    task: Task
    accounts: tuple[Account, ...]
    """of each action"""
    moving: tuple[str, ...]
    """states whose setpoint changes in the log"""
    longest: int
    """rows of the longest episode"""

    @property
    def verdict(self) -> str:
        return " ".join(account.verdict for account in self.accounts)

    def controller(self) -> Controller:
        """The laws as one controller; an action without one is held at its mean. An error if none has one."""
        if not any(account.chosen in ("law", "constant") for account in self.accounts):
            raise ClearloopError(f"there is no law to write: {self.verdict}")
        laws = {a.action: a.law if a.chosen == "law" else a.mean for a in self.accounts}
        shares = ", ".join(f"{careful_percent(a.law.explained)} of {a.action}" for a in self.accounts)
        name = f"as logged; explains {shares}"[:_LONGEST_NAME]
        return write_law(self.task, laws, self.longest, self.moving, name).for_task(self.task)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "task": self.task.name,
            "verdict": self.verdict,
            "actions": {account.action: account.to_dict() for account in self.accounts},
        }


def explain(task: Task, batch: Batch) -> Explanation:
    """From the batch alone. Every share is of rows that the law was not fitted to."""
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
    if not np.ptp(known):
        law = replace(find_law(signals, target, _NONE)[0], constant=float(known[0]))
        return Account(target.name, law, Past(1.0, 0.0), float(known[0]), 0.0, (), signals.task.dt)
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
    """The law to believe, and [n] what it asks for. `rows`: of the trials."""
    best = simplest(found, rows)
    law, asked = find_law(signals, target, best)
    if (
        best.lasting and law.explained < _PLAIN - _MUCH
    ):  # the rest would be large: is there no law without it?
        plain = simplest([replace(one, lasting=0.0, unexplained=one.plain) for one in found], rows)
        again, then = find_law(signals, target, plain)
        if again.explained > max(_PLAIN, law.explained + _MUCH):
            return again, then
    return law, asked


def _tried(trials: Trials, candidates: Iterable[LawCandidate]) -> tuple[tuple[str, float], ...]:
    """The share that the best law of each kind explains, in the rows of the trials."""
    whole = LawCandidate(Structure(), tuple(Structure().terms(trials.signals)), 0.0, 1.0, 1.0)
    kinds: dict[str, list[LawCandidate]] = {"linear": [whole]}
    for candidate in candidates:
        if candidate.terms:
            kinds.setdefault(kind_of(candidate.terms), []).append(candidate)
    plain = {kind: replace(simplest(some, trials.rows), lasting=0.0) for kind, some in kinds.items()}
    laws = {kind: find_law(trials.signals, trials.target, some)[0] for kind, some in plain.items()}
    return tuple((kind, law.explained) for kind, law in laws.items())
