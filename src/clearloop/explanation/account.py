"""How one action was chosen, as the log tells it, and whether that leaves something to learn from."""

from dataclasses import dataclass
from typing import Any, Literal

from clearloop.data.feedback import DETERMINED
from clearloop.explanation.law import Law
from clearloop.explanation.persistence import Past
from clearloop.explanation.words import (
    DIGITS,
    StandardForm,
    formula,
    name_of,
    notes,
    percent,
    seconds,
    standard_forms,
)

Chosen = Literal["law", "random", "planned", "constant"]
RANDOM = 0.05  # of an action: what a law explains of chance is less
ADDS = 0.05  # of what an action's own past leaves: what a law must explain of it
CERTAIN = 1e-6  # of an action: a law that leaves less needs no other proof


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
        if left <= CERTAIN:
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
            return f"{kind} explains {percent(law.explained)} of {name}."
        if self.chosen == "random":
            best = max(share for _, share in self.tried)
            return f"The actions look random: no law explains more than {percent(best)} of {name}."
        return (
            "The actions look random and held, or planned: no law of the states adds to what "
            f"the actions before already tell of {name} ({percent(self.past.explained)})."
        )

    @property
    def advice(self) -> str:
        """Whether it can be learned from."""
        if self.chosen == "constant":
            return f"Nothing tells what {self.action} does: log some minutes in which it varies."
        if self.chosen != "law":
            return f"All of {self.action} varies independently of the states: that is good to learn from."
        beside = f"Beside the law, {percent(self.independent)} of {self.action} varies by itself: "
        if self.enough:
            return beside + "enough to learn what it does."
        return beside + "too little to learn what it does; log some minutes with a small random signal added."

    def gain_rows(self) -> list[tuple[str, str, str]]:
        """The law's terms, their gains and standard errors, ready for a table."""
        numbers = zip(self.law.terms, self.law.gains, self.law.errors, strict=True)
        return [
            (f"    {name_of(term)}", f"{gain:.{DIGITS}g}", f"{error:.2g}") for term, gain, error in numbers
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
            "filter_seconds": seconds(form.pole, self.dt) if form.pole else 0.0,
            "windows": law.windows,
        }
