"""`clearloop data explain` finds out how the actions of a log were chosen: at random, or by which law."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from clearloop.arrays import Floats, Ints
from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.data.excitation import DETERMINED, FEW_MOVES, FEWEST_MOVES, is_constant
from clearloop.errors import ClearloopError
from clearloop.explanation.fitting import FitTarget, make_target
from clearloop.explanation.laws import (
    DIGITS,
    Law,
    StandardForm,
    find_law,
    formula,
    kind_of,
    name_of,
    notes,
    standard_forms,
    time_constant_of,
    write_law,
)
from clearloop.explanation.signals import Signals, Structure
from clearloop.explanation.trials import LawCandidate, Past, Trials, look_back, simplest
from clearloop.expression.nodes import READ_LIMIT
from clearloop.numbers import careful_percent
from clearloop.showing import Shown
from clearloop.task import Task

# The account of one action: how it was chosen, and whether that leaves something to learn from.

Chosen = Literal["law", "random", "planned", "constant"]
RANDOM = 0.05  # share of a random action that a law may explain by chance
ADDS = 0.05  # share that a law must explain of what the action's own past leaves
_ROUNDING = 1e-9  # share of the largest action
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
    moves: int
    """how often the action changed from one row to the next"""

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
        return self.independent >= 1 - DETERMINED and self.moves >= FEWEST_MOVES

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
            f"The actions look random and held, or planned: earlier actions explain "
            f"{careful_percent(self.past.explained)} of {name}, and a law of the states adds little."
        )

    @property
    def advice(self) -> str:
        """One sentence that says whether this action can be learned from."""
        if self.chosen == "constant":
            return f"The log does not show what {self.action} does: log some minutes in which it varies."
        if self.chosen != "law" and self.moves < FEW_MOVES:
            return (
                f"{self.action} does not depend on the states, but it moves only {self.moves} times: log "
                f"{FEW_MOVES} moves or more, to different values."
            )
        if self.chosen != "law":
            return f"All of {self.action} varies independently of the states: that is good to learn from."
        apart = f"Apart from the law, {careful_percent(self.independent)} of {self.action} varies by itself: "
        if self.enough:
            return apart + "enough to learn what it does."
        return (
            apart
            + "too little to learn what it does, unless many changes of a setpoint moved it; else log some "
            "minutes with a small random signal added."
        )

    def gain_rows(self) -> list[tuple[str, str, str]]:
        """Return the law's terms, their gains and standard errors, ready for a table."""
        numbers = zip(self.law.terms, self.law.gains, self.law.errors, strict=True)
        return [
            (f"    {name_of(term)}", f"{gain:.{DIGITS}g}", f"{error:.2g}") for term, gain, error in numbers
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


_NONE = LawCandidate(Structure(), (), 0.0, 1.0, 1.0)  # a law without terms
_PLAIN, _MUCH = 0.9, 0.2  # a law with ρ = 0 is preferred if it explains this share, and so much more
_FEWEST = 50  # rows with an action
_LONGEST_NAME = 200  # characters


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Shown):
    """The answer to how the actions of a batch were chosen."""

    task: Task
    accounts: tuple[Account, ...]
    """an account of each action"""
    moving: tuple[str, ...]
    """the states whose setpoint changes in the log"""

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
        return write_law(self.task, laws, self.moving, name).for_task(self.task)

    def __repr__(self) -> str:
        lines = [account.verdict for account in self.accounts]
        if any(account.chosen == "law" for account in self.accounts):
            lines += self.controller().words()
        return "\n".join(lines)

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
    with threadpool_limits(limits=1, user_api="blas"):  # more threads wait for each other
        accounts = tuple(_account(signals, target) for target in targets)
    return Explanation(
        task=task,
        accounts=accounts,
        moving=tuple(np.array(task.state_names)[signals.moving].tolist()),
    )


def _account(signals: Signals, target: FitTarget) -> Account:
    known = target.values[signals.chosen]
    if is_constant(target.values, signals.episodes):
        levels, counts = np.unique(known, return_counts=True)
        usual, share = float(levels[counts.argmax()]), float(counts.max() / len(known))
        law = replace(find_law(signals, target, _NONE)[0], constant=usual, explained=share)
        return Account(target.name, law, Past(1.0, 0.0), usual, 0.0, (), signals.task.dt, 0)
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
        moves=_moves(target.values, signals.episodes),
    )


def _moves(values: Floats, episodes: Ints) -> int:
    """Count the changes of an action [n] within episodes; what rounding changes is no move."""
    changes = np.abs(np.diff(values)) > _ROUNDING * np.nanmax(np.abs(values))
    return int(np.count_nonzero(changes & (episodes[1:] == episodes[:-1])))


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
            kinds.setdefault(kind_of(candidate.terms, trials.signals.sums), []).append(candidate)
    plain = {kind: replace(simplest(some, trials.rows), lasting=0.0) for kind, some in kinds.items()}
    laws = {kind: find_law(trials.signals, trials.target, some)[0] for kind, some in plain.items()}
    return tuple((kind, law.explained) for kind, law in laws.items())
