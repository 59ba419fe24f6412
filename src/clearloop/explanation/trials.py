"""The search for the form of a law: which terms, and which delay, windows and filter.

Forms are compared by what they leave unexplained in held-out time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from clearloop.arrays import Floats, Ints
from clearloop.explanation.fitting import (
    MOST_TERMS,
    PARTS,
    FitTarget,
    Moments,
    by_part,
    cost,
    measure_moments,
)
from clearloop.explanation.signals import Regressor, Signals, Structure, feature_formulas

# The rows on which forms are compared.

_MOST_ROWS = 20_000  # more would not change the choice


def some_episodes(signals: Signals, target: FitTarget) -> tuple[Signals, FitTarget]:
    """Choose episodes from all over the log, as many as are needed."""
    count = int(signals.episodes[-1]) + 1
    wanted = min(count, max(PARTS, -(-_MOST_ROWS * count // len(signals.episodes))))
    some, rows = signals.of_episodes(np.linspace(0, count - 1, wanted).round().astype(np.int64))
    return some, replace(target, values=target.values[rows], begins=target.begins[rows])


def usable_rows(signals: Signals, target: FitTarget) -> tuple[Ints, bool]:
    """Return the rows that are not at a limit, and True if the rows before them are not either.

    Rows whose row before is at a limit are left out, if that leaves most of them.
    """
    free = signals.chosen & ~target.saturated
    follows = free & ~target.begins & np.append(False, free[:-1])
    enough = 2 * np.count_nonzero(follows) >= np.count_nonzero(free)
    rows = np.flatnonzero(follows if enough else free)
    return rows[:: max(1, -(-len(rows) // _MOST_ROWS))], bool(enough)


# Candidates: forms with their terms.


@dataclass(frozen=True)
class LawCandidate:
    """A form of law, with the terms that explain enough to be kept."""

    structure: Structure
    terms: tuple[Regressor, ...]
    lasting: float
    """rho of the rest, which does not come from the law"""
    unexplained: float
    """what is new in the rest, as a share of the action's variance, in held-out time"""
    plain: float
    """the same for rho = 0: the whole rest"""

    @property
    def consistent(self) -> bool:
        """True if the law has the terms of its form; if not, it is a law of a simpler form."""
        kinds = {term.kind for term in self.terms}
        return (self.structure.windows is None or "sum" in kinds) and (
            self.structure.pole is None or "rate" in kinds
        )

    @property
    def numbers(self) -> int:
        """The number of numbers in the law."""
        form = self.structure
        kinds = [term.kind for term in self.terms]
        windows = kinds.count("sum") if any(form.windows or ()) else 0
        flags = (form.pole, form.paused, form.continued)
        return len(kinds) + kinds.count("formula") + windows + sum(map(bool, flags))


def judged(
    structure: Structure, terms: Sequence[Regressor], kept: Sequence[int], moments: Moments
) -> LawCandidate:
    """Make a candidate of a form, with the terms at the indices `kept`."""
    left = moments.left(kept)
    best = int(left.argmin())
    chosen = tuple(terms[term] for term in kept)
    return LawCandidate(structure, chosen, moments.lastings[best], float(left[best]), float(left[0]))


def simplest(candidates: Iterable[LawCandidate], rows: int) -> LawCandidate:
    """Return the candidate of least cost; `rows` are those of the trials."""
    return min(candidates, key=lambda one: cost(one.unexplained, one.numbers, rows, one.lasting))


# The search.

DELAYS = (0, 1, 2)
FILTERS = range(-2, 8)  # time constants to begin with: these powers of two, in steps
ROUGH, PRECISE = 0.05, 1e-5  # of a power
FEWEST_SUMMED, MOST_SUMMED = 8, 10_000  # rows of a window: fewer act like a filter, more fit in no file
_LONG = 200  # rows of an episode, on average, so that its own constant biases gains little (Nickell 1981)
SWEEPS = 3
GAIN = 0.999  # share of the unexplained that a sweep must leave at most for another one to follow
MOST_ADDED = 8  # terms of an equation, in addition to the linear ones
_WORTH = 0.97  # share of the unexplained that another such term must leave at most
_EXACT = 1e-8  # unexplained share below which the search ends


class Trials:
    """The trials of forms of law on the rows of one action that are not at a limit."""

    def __init__(self, signals: Signals, target: FitTarget) -> None:
        self.signals, self.target = some_episodes(signals, target)
        rows, self._lasting = usable_rows(self.signals, self.target)
        self._rows, self._ends = by_part(rows, self.signals)
        self._episodes = np.unique(self.signals.episodes[self._rows], return_inverse=True)[1]
        self.longest = int(self.signals.age.max()) + 1
        self._column = lru_cache(maxsize=256)(self._make_column)
        self._unexplained = lru_cache(maxsize=None)(self._judge)

    @property
    def rows(self) -> int:
        """The number of rows that are used."""
        return len(self._rows)

    def _make_column(self, structure: Structure, term: Regressor) -> Floats:
        """Compute a term in the rows that are used, and in the rows before these [2, n]."""
        return self._pick(structure.column(term, self.signals, self.target.saturated))

    def _pick(self, values: Floats) -> Floats:
        return np.stack([values[self._rows], values[self._rows - 1]])

    def _measure(self, structure: Structure, terms: Iterable[Regressor]) -> Moments:
        columns = [self._column(structure.relevant(term, self.signals), term) for term in terms]
        now, before = np.stack([*columns, self._pick(self.target.values)], axis=1)
        groups = self._episodes if structure.continued else np.zeros_like(self._episodes)
        constant = groups if structure.constant else None
        lasting = self._lasting and not structure.continued  # constants of episodes are what lasts
        return measure_moments(now, before if lasting else None, self._ends, constant)

    def _judge(self, structure: Structure, terms: tuple[Regressor, ...] = ()) -> float:
        """Return what all terms of a form leave unexplained, or some of them."""
        terms = terms or tuple(structure.terms(self.signals))
        return self._measure(structure, terms).unexplained(range(len(terms)))

    def _candidate(self, structure: Structure) -> LawCandidate:
        """Return the best law of a form; the filter is tuned again without the terms that were dropped."""
        best = self._pruned(structure)
        if structure.pole and best.consistent:
            again = self._pruned(*self._filters(structure, best.terms))
            return min(again, best, key=_left)
        return best

    def _pruned(self, structure: Structure) -> LawCandidate:
        terms = structure.terms(self.signals)
        moments = self._measure(structure, terms)
        return judged(structure, terms, moments.prune(range(len(terms))), moments)

    def candidates(self) -> list[LawCandidate]:
        """Return laws from linear ones to those with sums and filtered derivatives.

        The search ends early when it finds an exact law, and finds none if the action never changes.
        """
        if not np.ptp(self.target.values[self._rows]):
            return []
        full = (0,) * len(self.signals.task.states)
        found = [self._candidate(Structure(delay=delay)) for delay in DELAYS]
        linear = min(found, key=_left)
        forms = Structure(pole=0.0), Structure(windows=full), Structure(windows=full, pole=0.0)
        for form in forms:
            if min(found, key=_left).unexplained > _EXACT:
                found += [self._candidate(refined) for refined in self._refined(form)]
        best = min(found, key=_left)
        if best.unexplained > _EXACT:
            found += [self._equation(linear), *self._windowed(best)]
        return [candidate for candidate in found if candidate.consistent]

    def _equation(self, linear: LawCandidate) -> LawCandidate:
        """Add functions and products to a linear law, one by one, as long as each explains enough."""
        structure = linear.structure
        values = structure.terms(self.signals)
        names = [*dict.fromkeys(term.state for term in (*linear.terms, *values))][:MOST_TERMS]
        terms = [*values, *(Regressor("formula", formula) for formula in feature_formulas(names))]
        moments = self._measure(structure, terms).at((0.0, linear.lasting))
        kept = [terms.index(term) for term in linear.terms]
        left = moments.unexplained(kept)
        for _ in range(MOST_ADDED):
            more = [[*kept, term] for term in range(len(terms)) if term not in kept]
            lefts = [moments.unexplained(some) for some in more]
            if min(lefts) > _WORTH * left:
                break
            left, kept = min(lefts), more[int(np.argmin(lefts))]
        return judged(structure, terms, moments.prune(kept), moments)

    def _windowed(self, best: LawCandidate) -> Iterator[LawCandidate]:
        count, delay = len(self.signals.task.states), best.structure.delay
        most = min(MOST_SUMMED, int(self.longest / 1.5))
        sizes = [2**power for power in range(3, 14) if FEWEST_SUMMED <= 2**power <= most]
        for pole in (None, 0.0):
            if sizes:
                forms = [Structure(delay=delay, windows=(size,) * count, pole=pole) for size in sizes]
                yield from map(self._candidate, self._refined(min(forms, key=self._unexplained)))

    def _refined(self, form: Structure) -> list[Structure]:
        """Return the best variants of a form: without a filter, and with one."""
        plain = self._turned(form)
        if form.pole is None:
            return [plain]
        return [plain, self._turned(replace(plain, pole=_pole(1.0)))]

    def _turned(self, form: Structure) -> Structure:
        """Turn one knob of a form after the other, until nothing gets better."""
        for _ in range(SWEEPS):
            before = self._unexplained(form)
            for knob in self._knobs(form):
                form = min([form, *knob(form)], key=self._unexplained)
            if self._unexplained(form) > GAIN * before:
                break
        return form

    def _knobs(self, form: Structure) -> Iterator[Callable[[Structure], Iterable[Structure]]]:
        yield lambda form: [replace(form, delay=delay) for delay in DELAYS]
        if form.pole is not None and self.signals.moving.any():
            yield lambda form: [replace(form, of_error=not form.of_error)]
        if form.pole:
            yield self._filters
        if form.pole is not None:
            yield lambda form: [replace(form, from_zero=not form.from_zero)]
        if any(form.windows or ()):
            yield from (partial(self._windows, state) for state in range(len(form.windows or ())))
        elif form.windows is not None:
            if len(self.signals.first) >= _LONG * (int(self.signals.episodes[-1]) + 1):
                yield lambda form: [replace(form, continued=not form.continued)]
            if self.target.saturated.any():
                yield lambda form: [replace(form, paused=not form.paused)]

    def _filters(self, form: Structure, terms: tuple[Regressor, ...] = ()) -> list[Structure]:
        """Find the best time constant: from a grid, then around its best; for all terms, or for some."""

        def of(power: float) -> Structure:
            return replace(form, pole=_pole(2.0**power))

        def left(power: float) -> float:
            return self._unexplained(of(power), terms)

        best, width = float(min(FILTERS, key=left)), 1.0
        while width > (PRECISE if terms else ROUGH):
            best = min((best, best - width / 2, best + width / 2), key=left)
            width /= 2
        return [of(best)]

    def _windows(self, state: int, form: Structure) -> list[Structure]:
        """Find the best window of a state: wider or narrower by half, then by less, then by single rows."""
        windows, most = form.windows or (), min(MOST_SUMMED, self.longest)

        def of(size: int) -> Structure:
            return replace(form, windows=(*windows[:state], size, *windows[state + 1 :]))

        best, stride = windows[state], max(windows[state] // 2, 1)
        while stride:
            near = [size for size in (best, best - stride, best + stride) if FEWEST_SUMMED <= size <= most]
            better = min(near, key=lambda size: self._unexplained(of(size)))
            stride = stride // 2 if better == best else stride
            best = better
        return [of(best)]


def _pole(steps: float) -> float:
    """Return a of a filter from its time constant in steps: backward Euler, τ/dt = a / (1 − a)."""
    return float(steps / (1 + steps))


def _left(candidate: LawCandidate) -> float:
    return candidate.unexplained


# The action's own past: does a law tell more about an action?
#
# Actions that are held, or drift, move the plant, and its states follow them: a law of the states then seems
# to explain what was planned or random. But it adds nothing to what the last actions already tell.

_PAST = 20, 10, 5  # actions: with more of them, signals that are held for longer are recognised
ENOUGH = 10  # rows for each of them


@dataclass(frozen=True)
class Past:
    """The shares of an action that its own past explains, and that a law adds."""

    explained: float
    """the share of the action's variance that the actions before it explain, in held-out time"""
    added: float
    """the share of the rest that the law's action explains, of this row and the row before"""


def look_back(signals: Signals, target: FitTarget, asked: Floats) -> Past:
    """Compare a law with the action's own past; `asked` is the law's action in each row [n]."""
    for steps in _PAST:
        rows = _rows_with_past(signals, target, steps)
        if len(rows) >= ENOUGH * steps:
            return _compare(signals, target, asked, rows, steps)
    return Past(0.0, 1.0)  # episodes too short to tell: only the law counts


def _rows_with_past(signals: Signals, target: FitTarget, steps: int) -> Ints:
    known = signals.chosen & ~target.saturated & (signals.age >= steps)
    for back in range(1, steps + 1):
        known[back:] &= signals.chosen[:-back]
    return np.flatnonzero(known)


def _compare(signals: Signals, target: FitTarget, asked: Floats, rows: Ints, steps: int) -> Past:
    rows, ends = by_part(rows, signals)
    past = [target.values[rows - back] for back in range(1, steps + 1)]
    columns = [*past, asked[rows], asked[rows - 1], target.values[rows]]
    moments = measure_moments(np.stack(columns), None, ends, np.zeros_like(rows))
    if not moments.spread:  # an action that never changes there
        return Past(1.0, 0.0)
    own, both = moments.unexplained(range(steps)), moments.unexplained(range(steps + 2))
    return Past(1 - own, 1 - both / own if own > 0 else 0.0)
