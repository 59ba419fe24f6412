"""How the actions of a log were chosen: at random, or by a law, and by which (`clearloop data explain`)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.data.cells import Floats
from clearloop.errors import ClearloopError
from clearloop.explanation.account import Account
from clearloop.explanation.candidate import Candidate, simplest
from clearloop.explanation.clipping import Target, make_target
from clearloop.explanation.law import Law, find_law, kind_of
from clearloop.explanation.persistence import Past, look_back
from clearloop.explanation.signals import Signals
from clearloop.explanation.structure import Structure
from clearloop.explanation.trials import Trials
from clearloop.explanation.words import percent
from clearloop.explanation.writing import write
from clearloop.expression.meanings import READ_LIMIT
from clearloop.task import Task

NONE = Candidate(Structure(), (), 0.0, 1.0, 1.0)  # a law of no terms
PLAIN, MUCH = 0.9, 0.2  # a law that explains this share needs no rest that lasts to be better by that much
FEWEST = 50  # rows with an action
LONGEST_NAME = 200  # characters


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
        shares = ", ".join(f"{percent(a.law.explained)} of {a.action}" for a in self.accounts)
        name = f"as logged; explains {shares}"[:LONGEST_NAME]
        return write(self.task, laws, self.longest, self.moving, name).for_task(self.task)

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
    if rows < FEWEST:
        what = f"only {rows} rows have an action: at least {FEWEST} are needed to tell how it was chosen"
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


def _account(signals: Signals, target: Target) -> Account:
    known = target.values[signals.chosen]
    if not np.ptp(known):
        law = replace(find_law(signals, target, NONE)[0], constant=float(known[0]))
        return Account(target.name, law, Past(1.0, 0.0), float(known[0]), 0.0, (), signals.task.dt)
    trials = Trials(signals, target)
    found = [NONE, *trials.candidates()]
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


def _best(signals: Signals, target: Target, found: Sequence[Candidate], rows: int) -> tuple[Law, Floats]:
    """The law to believe, and [n] what it asks for. `rows`: of the trials."""
    best = simplest(found, rows)
    law, asked = find_law(signals, target, best)
    if best.lasting and law.explained < PLAIN - MUCH:  # the rest would be large: is there no law without it?
        plain = simplest([replace(one, lasting=0.0, unexplained=one.plain) for one in found], rows)
        again, then = find_law(signals, target, plain)
        if again.explained > max(PLAIN, law.explained + MUCH):
            return again, then
    return law, asked


def _tried(trials: Trials, candidates: Iterable[Candidate]) -> tuple[tuple[str, float], ...]:
    """The share that the best law of each kind explains, in the rows of the trials."""
    whole = Candidate(Structure(), tuple(Structure().terms(trials.signals)), 0.0, 1.0, 1.0)
    kinds: dict[str, list[Candidate]] = {"linear": [whole]}
    for candidate in candidates:
        if candidate.terms:
            kinds.setdefault(kind_of(candidate.terms), []).append(candidate)
    plain = {kind: replace(simplest(some, trials.rows), lasting=0.0) for kind, some in kinds.items()}
    laws = {kind: find_law(trials.signals, trials.target, some)[0] for kind, some in plain.items()}
    return tuple((kind, law.explained) for kind, law in laws.items())
