"""Forms of law with their terms, and which of them to believe."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clearloop.explanation.moments import Moments, cost
from clearloop.explanation.structure import Structure, Term


@dataclass(frozen=True)
class Candidate:
    """A form of law, with the terms that are worth their place."""

    structure: Structure
    terms: tuple[Term, ...]
    lasting: float
    """rho of what is not from the law"""
    unexplained: float
    """what is new and not from the law, as a share of the variance, in held-out time"""
    plain: float
    """the same for rho = 0: what is not from the law"""

    @property
    def consistent(self) -> bool:
        """Whether it has the terms of its form; if not, it is a law of another one."""
        kinds = {term.kind for term in self.terms}
        return (self.structure.windows is None or "sum" in kinds) and (
            self.structure.pole is None or "rate" in kinds
        )

    @property
    def numbers(self) -> int:
        """How many numbers a person has to read."""
        form = self.structure
        kinds = [term.kind for term in self.terms]
        windows = kinds.count("sum") if any(form.windows or ()) else 0
        flags = (form.pole, form.paused, form.continued)
        return len(kinds) + kinds.count("formula") + windows + sum(map(bool, flags))


def judged(structure: Structure, terms: Sequence[Term], kept: Sequence[int], moments: Moments) -> Candidate:
    """With the terms that are kept."""
    left = moments.left(kept)
    best = int(left.argmin())
    chosen = tuple(terms[term] for term in kept)
    return Candidate(structure, chosen, moments.lastings[best], float(left[best]), float(left[0]))


def simplest(candidates: Iterable[Candidate], rows: int) -> Candidate:
    """The one that leaves least, where every number must be worth its place. `rows`: of the trials."""
    return min(candidates, key=lambda one: cost(one.unexplained, one.numbers, rows, one.lasting))
