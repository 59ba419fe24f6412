"""A law with its gains, and how much of the action it explains: of what was logged, in time held out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clearloop.data.cells import Floats
from clearloop.explanation.candidate import Candidate
from clearloop.explanation.clipping import Target, fit
from clearloop.explanation.moments import PARTS, ROUNDING, parts_of, price
from clearloop.explanation.signals import Signals
from clearloop.explanation.structure import Structure, Term

NAMES = {"": "linear", "i": "PI", "d": "PD", "di": "PID"}


@dataclass(frozen=True, eq=False)
class Law:
    """Eq. (a) of `structure.py`, in units of the log and seconds."""

    structure: Structure
    terms: tuple[Term, ...]
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


def kind_of(terms: tuple[Term, ...]) -> str:
    kinds = {term.kind for term in terms}
    if "formula" in kinds:
        return "equation"
    return NAMES["d" * ("rate" in kinds) + "i" * ("sum" in kinds)]


def find_law(signals: Signals, target: Target, candidate: Candidate) -> tuple[Law, Floats]:
    """With gains from all rows; and [n] what it asks for, within limits. A constant must be worth it."""
    laws = [_fitted(signals, target, candidate, constant) for constant in _constants(candidate.structure)]
    worth = 1 + price(int(np.count_nonzero(signals.chosen)))
    enough = worth * (1 - laws[0][0].explained) + ROUNDING
    return next(law for law in reversed(laws) if 1 - law[0].explained <= enough)


def _constants(structure: Structure) -> tuple[bool, ...]:
    if structure.continued:
        return (True,)
    return (True, False) if structure.constant else (False,)


def _fitted(signals: Signals, target: Target, candidate: Candidate, constant: bool) -> tuple[Law, Floats]:
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


def _windows(candidate: Candidate, names: Sequence[str]) -> dict[str, int]:
    sizes = dict(zip(names, candidate.structure.windows or (), strict=False))
    return {term.state: sizes[term.state] for term in candidate.terms if term.kind == "sum"}


def _explained(values: Floats, predicted: Floats) -> float:
    spread = float(np.sum((values - values.mean()) ** 2))
    left = float(np.sum((values - predicted) ** 2))
    return 1 - left / spread if spread else 1.0
