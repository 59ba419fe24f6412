"""Laws are fitted by least squares and judged on held-out time.

Every episode is cut into parts, and each part is predicted by a law that was fitted to the others. This needs
only sums of products over the rows, so that thousands of sets of terms can be tried.

A signal that is added to a law's action may last: it is held for a while, or drifts. It moves the plant, and
the plant's states then seem to explain it. So the rest v, which does not come from the law, is modelled as
v[t] = ρ v[t-1] + w[t], and laws are compared by w, what is new in it (Cochrane and Orcutt 1949).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.explanation.signals import Signals

PARTS = 5
LASTING = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.999)  # values of ρ
_DOUBT = 1.02  # factor on what is left if ρ is not 0: other gains with another ρ often do nearly as well
_NEGLIGIBLE = 0.002  # share of the unexplained
MOST_TERMS = 12  # up to which every choice of terms is tried
_MANY_TERMS = 48  # up to which terms are dropped by what their loss costs in held-out parts
ROUNDING = 1e-9  # of the variance, or of the range
_VISIBLE = 1e-3  # of the variance: to choose terms, so much counts as unexplained by rounding in any log
_COLLINEAR = 1e-5  # of the largest variance: directions in which terms hardly differ are not used


def price(rows: int, lasting: float = 0.0) -> float:
    """Return the share of the unexplained that a further number in a law must explain.

    A number without meaning explains at most ln(n) / n of what is left (Schwarz 1978); twice that is safe.
    Where the rest lasts, its ρ is a guess that numbers can make up for, so they must explain more.

    Args:
        rows: The number of rows, n.
        lasting: ρ of the rest.
    """
    return max(_DOUBT - 1 if lasting else _NEGLIGIBLE, 2 * float(np.log(rows)) / rows)


def parts_of(signals: Signals) -> Ints:
    """Return the part in time of each row [n], 0 to 4; it is shifted from episode to episode."""
    length = np.bincount(signals.episodes)[signals.episodes]
    return np.asarray((PARTS * signals.age // length + signals.episodes) % PARTS)


def by_part(rows: Ints, signals: Signals) -> tuple[Ints, Ints]:
    """Sort rows by their part; return them, and where each part ends [F]."""
    parts = parts_of(signals)[rows]
    return rows[np.argsort(parts, kind="stable")], np.cumsum(np.bincount(parts, minlength=PARTS))


@dataclass(frozen=True, eq=False)
class Moments:
    """The products of k terms and, last, the action, for each of F parts and R values of ρ."""

    train: Floats
    """[R, F, k + 1, k + 1] products over the rows of the other parts"""
    test: Floats
    """[R, F, k + 1, k + 1] products over the rows of the part"""
    spread: float
    """the sum of squares of the action about its mean, over all rows"""
    lastings: tuple[float, ...]
    """[R] values of rho; the first is 0"""
    rows: int
    """the number of rows of all parts"""

    def at(self, lasting: Iterable[float]) -> "Moments":
        """Return the moments for some values of ρ alone."""
        some = [self.lastings.index(rho) for rho in dict.fromkeys(lasting)]
        chosen = tuple(self.lastings[i] for i in some)
        return replace(self, train=self.train[some], test=self.test[some], lastings=chosen)

    def left(self, terms: Sequence[int]) -> Floats:
        """Return w² of a law of these terms in held-out parts, as a share of the action's variance [R].

        For a rest v that lasts, w² is (1 − ρ²) v². A smaller w² comes from a filter and not from such a rest,
        and does not count.
        """
        left = self.left_by(np.array(terms, dtype=np.intp)[None])[:, 0]
        least: Floats = (1 - np.array(self.lastings) ** 2) * left[0]
        return np.maximum(left, least)

    def left_by(self, choices: Ints) -> Floats:
        """Return the same for each of C choices of m terms [C, m], without that bound [R, C]."""
        rows, columns = choices[..., None], choices[:, None, :]
        train, test = self.train[..., rows, columns], self.test[..., rows, columns]
        with_action = self.train[..., choices, -1]
        inverse = np.linalg.pinv(train, rcond=_COLLINEAR, hermitian=True)
        gains = np.einsum("rfcij,rfcj->rfci", inverse, with_action)
        left = self.test[..., -1, -1, None] - 2 * np.einsum(
            "rfci,rfci->rfc", self.test[..., choices, -1], gains
        )
        left += np.einsum("rfci,rfcij,rfcj->rfc", gains, test, gains)
        doubt = np.where(np.array(self.lastings) > 0, _DOUBT, 1.0)[:, None]
        shares: Floats = doubt * np.maximum(left.sum(axis=1), 0.0) / self.spread
        return shares

    def unexplained(self, terms: Sequence[int]) -> float:
        """Return what a law of these terms leaves, for the best ρ."""
        return float(self.left(terms).min())

    def without_the_weakest(self, terms: Sequence[int]) -> list[int]:
        """Drop terms one by one until at most 48 are left, each time the one whose loss costs least.

        The cost is g² / C, with the gain g of the term and its entry C on the diagonal of the inverse of the
        products over the rows of the fit. One inverse gives it for all terms, of which there may be hundreds.
        Of several values of ρ, the first is used.
        """
        kept, products = list(terms), self.train[0].sum(axis=0)
        while len(kept) > _MANY_TERMS:
            inverse = np.linalg.pinv(products[np.ix_(kept, kept)], rcond=_COLLINEAR, hermitian=True)
            gains, own = inverse @ products[kept, -1], np.diag(inverse)
            worth = np.divide(gains**2, own, out=np.zeros_like(own), where=own > 0)
            del kept[int(worth.argmin())]
        return kept

    def prune(self, terms: Sequence[int]) -> list[int]:
        """Return the choice among the terms that costs least.

        If there are too many choices, the least useful terms are dropped first, one by one. In a log with
        rounded numbers, nearly all of the rest of an exact law is rounding. It drifts where it is summed,
        and the sum of any other state would explain some of that. So a term must explain what can be seen.
        """
        rho = self.lastings[int(self.left(terms).argmin())]
        best = self.at([rho])
        kept = list(terms)
        while len(kept) > MOST_TERMS:
            rests = np.array([[other for other in kept if other != term] for term in kept])
            kept = rests[best.left_by(rests)[0].argmin()].tolist()
        found: list[tuple[float, list[int]]] = []
        for size in range(len(kept) + 1):
            choices = np.array(list(combinations(kept, size)), dtype=np.intp)
            left = best.left_by(choices)[0]
            least = cost(float(left.min()) + _VISIBLE, size, self.rows, rho)
            found.append((least, choices[left.argmin()].tolist()))
        return min(found)[1]


def cost(unexplained: float, numbers: int, rows: int, lasting: float) -> float:
    """Return the cost of a law: what it leaves unexplained, times a price for each of its numbers."""
    return (unexplained + ROUNDING) * (1 + price(rows, lasting)) ** numbers


def measure_moments(now: Floats, before: Floats | None, ends: Ints, groups: Ints | None) -> Moments:
    """Compute the moments of terms and an action.

    Args:
        now: The terms and, last, the action in n rows [k + 1, n]; the rows of a part stand together.
        before: The same in the rows before these; None if ρ is 0.
        ends: Where each part ends [F].
        groups: The group of each row [n]; the rows of a group have a constant in common. None: no constant.
    """
    z = now.copy() if before is None else np.concatenate([now, before])
    k, target = len(now), now[-1]
    if groups is not None:
        z -= z.mean(axis=1, keepdims=True)
    sizes = np.sqrt(np.mean(z[:k] ** 2, axis=1))
    sizes = np.where(sizes > 0, sizes, 1.0)
    z /= np.tile(sizes, len(z) // k)[:, None]
    train, test = _products(z, ends, groups)
    spread = float(np.sum((target - target.mean()) ** 2)) / sizes[-1] ** 2
    if before is None:
        return Moments(train[None], test[None], spread, LASTING[:1], len(target))
    train, test = (np.stack([_without(part, rho) for rho in LASTING]) for part in (train, test))
    return Moments(train, test, spread, LASTING, len(target))


def _without(products: Floats, rho: float) -> Floats:
    """Return the products of z[t] − ρ z[t-1], [F, k, k], from those of z[t] and z[t-1], [F, 2k, 2k]."""
    k = products.shape[-1] // 2
    crossed = products[:, :k, k:]
    return products[:, :k, :k] - rho * (crossed + crossed.mT) + rho**2 * products[:, k:, k:]


def _products(z: Floats, ends: Ints, groups: Ints | None) -> tuple[Floats, Floats]:
    """Return the products [F, k, k] over the other parts and over the part, without constants.

    The constants that are taken off are those of the other parts.
    """
    slices = [slice(begin, end) for begin, end in zip((0, *ends[:-1]), ends, strict=True)]
    gram = np.stack([z[:, rows] @ z[:, rows].T for rows in slices])
    if groups is None:
        return gram.sum(axis=0) - gram, gram
    sums, counts = _by_group(z, slices, groups)
    others, rest = sums.sum(axis=1, keepdims=True) - sums, counts.sum(axis=1, keepdims=True) - counts
    means = others / np.maximum(rest, 1)[..., None]
    train = gram.sum(axis=0) - gram - np.einsum("gfi,gfj->fij", others, means)
    crossed = np.einsum("gfi,gfj->fij", sums, means)
    again = np.einsum("gfi,gfj->fij", means * counts[..., None], means)
    return train, gram - crossed - crossed.mT + again


def _by_group(z: Floats, slices: Sequence[slice], groups: Ints) -> tuple[Floats, Floats]:
    """Return the sums [G, F, k] and the numbers [G, F] of the rows of each group and part."""
    count = int(groups.max()) + 1
    if count == 1:
        sums = np.stack([z[:, rows].sum(axis=1) for rows in slices])[None]
        return sums, np.array([[rows.stop - rows.start for rows in slices]], np.float64)
    cells = groups * PARTS
    for part, rows in enumerate(slices):
        cells[rows] += part
    sums = np.stack([np.bincount(cells, column, count * PARTS) for column in z], axis=1)
    counts = np.bincount(cells, minlength=count * PARTS).astype(np.float64)
    return sums.reshape(count, PARTS, len(z)), counts.reshape(count, PARTS)


# Actions that were clipped to limits: at a limit, it is only known that the law asked for that or more.
#
# Leaving such rows out would bias the gains if noise was added before clipping, as it keeps the rows whose
# noise pointed inwards. So they are filled in with the action that the law is expected to have asked for, and
# the fit is repeated until it agrees with itself: expectation–maximisation for a censored normal (Tobin
# 1958).

_REPEATED = 0.002  # share of the rows that stand at the same extreme value, so that it must be a limit
_FEWEST = 5  # such rows; and values between the limits
ALMOST_ALL = 0.95  # share of the rows at limits from which on these are levels to choose from, not clipping
_ROUNDS = 200
_AGREES = 1e-3  # of the residual: the change from round to round at which the fit ends
_FAR = 30.0  # standard deviations, beyond which the tail of a normal is exponential


@dataclass(frozen=True, eq=False)
class FitTarget:
    """An action as it was logged, in n rows."""

    name: str
    values: Floats
    """[n] NaN where no action was chosen"""
    low: float
    """the lower limit that it was clipped to; infinite if there is none"""
    high: float
    """the upper one"""
    begins: Flags
    """[n] true in the first row of an episode"""

    @property
    def side(self) -> Ints:
        """The limit at which the action stands [n]: -1 the lower one, 1 the upper one, 0 none."""
        margin = ROUNDING * np.nanmax(np.abs(self.values))
        above, below = self.values >= self.high - margin, self.values <= self.low + margin
        sides: Ints = above.astype(np.int64) - below
        return sides

    @property
    def saturated(self) -> Flags:
        """True in the rows at a limit [n]."""
        at_limit: Flags = self.side != 0
        return at_limit

    def clip(self, values: Floats) -> Floats:
        """Clip actions to the limits."""
        return np.clip(values, self.low, self.high)


def make_target(name: str, values: Floats, signals: Signals, limits: Floats) -> FitTarget:
    """Make the target of a fit, and find the limits that the action was clipped to.

    A limit is an extreme at which the action often stands, or the task's limit if the log keeps it.

    Args:
        name: The name of the action.
        values: The action in each row [n].
        signals: The rows.
        limits: The task's limits of the action [2].
    """
    known = values[signals.chosen]
    values = np.where(signals.chosen, values, np.nan)
    low, high = (_limit(sign * known, sign * end) * sign for sign, end in zip((-1, 1), limits, strict=True))
    target = FitTarget(name, values, low, high, signals.age == 0)
    free = known[~target.saturated[signals.chosen]]
    if len(free) < (1 - ALMOST_ALL) * len(known) or len(np.unique(free)) < _FEWEST:
        return replace(target, low=-np.inf, high=np.inf)
    return target


def _limit(known: Floats, limit: float) -> float:
    """Find the upper limit; the lower one is that of the negated action."""
    top = float(known.max())
    often = np.count_nonzero(known == top)
    if often >= max(_FEWEST, _REPEATED * len(known)):
        return top
    return limit if top <= limit else np.inf


@dataclass(frozen=True, eq=False)
class Fit:
    """A law with fitted gains."""

    gains: Floats
    """[k] the gain of each term"""
    constants: Floats
    """[G] the constant of each group of rows; 0 if there is none"""

    def __call__(self, features: Floats, groups: Ints | None) -> Floats:
        """Return the action that the law asks for [n], before it is clipped."""
        asked: Floats = features @ self.gains
        return asked if groups is None else asked + self.constants[groups]


def fit(features: Floats, target: FitTarget, rows: Flags, groups: Ints | None, lasting: float) -> Fit:
    """Fit a law by least squares; rows at limits count with the action that the law asks for there.

    Args:
        features: The terms of the law [n, k].
        target: The action.
        rows: The rows to fit [n].
        groups: The group of each row [n]; the rows of a group have a constant in common. None: no constant.
        lasting: ρ of the rest, v[t] = ρ v[t-1] + w[t]; the sum of w² is made small.
    """
    side, y = target.side, target.values
    law = _Squares(features, target, rows & (side == 0), groups, lasting)(y)
    if not side[rows].any():
        return law
    squares = _Squares(features, target, rows, groups, lasting)
    at, free = np.flatnonzero(rows & (side != 0)), rows & (side == 0)
    limit = np.where(side[at] > 0, target.high, target.low)
    filled = y.copy()
    variance = float(np.mean((y - law(features, groups))[free] ** 2))
    floor = (ROUNDING * float(np.abs(y[rows]).max())) ** 2
    for _ in range(_ROUNDS):
        asked = law(features, groups)
        filled[at], doubt = _expected(asked[at], side[at], limit, variance)
        law = squares(filled)
        after = law(features, groups)
        variance = (float(np.sum((filled - after)[rows] ** 2)) + float(doubt.sum())) / np.count_nonzero(rows)
        if np.mean((after - asked)[rows] ** 2) <= _AGREES**2 * variance + floor:
            break
    return law


def _expected(asked: Floats, side: Ints, limit: Floats, variance: float) -> tuple[Floats, Floats]:
    """Return the expected actions before clipping [m], and their variances: normals beyond a limit."""
    from scipy.special import log_ndtr

    deviation = max(np.sqrt(variance), np.finfo(np.float64).tiny)
    z = np.clip(side * (limit - asked) / deviation, -_FAR, 1 / ROUNDING)  # distance of the limit from the law
    near = np.minimum(z, _FAR)
    hazard = np.exp(-0.5 * near**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(-near))
    hazard = np.where(z < _FAR, hazard, z + 1 / np.maximum(z, _FAR))
    doubt = variance * np.clip(1 + z * hazard - hazard**2, 0.0, 1.0)
    return asked + side * deviation * hazard, doubt


class _Squares:
    """A least-squares fit with the same terms, over the same rows, for many targets."""

    def __init__(
        self, x: Floats, target: FitTarget, rows: Flags, groups: Ints | None, lasting: float
    ) -> None:
        self._x, self._lasting = x, lasting
        self._all = np.flatnonzero(rows)
        follows = rows & ~target.begins & np.append(False, rows[:-1])
        self._rows = np.flatnonzero(follows) if lasting else self._all
        self._groups = groups
        self._count = 1 if groups is None else int(groups.max()) + 1
        changes = self._centred(self._changes(x))
        sizes = np.sqrt(np.mean(changes**2, axis=0)) if len(changes) else np.ones(x.shape[1])
        self._sizes = np.where(sizes > 0, sizes, 1.0)
        self._terms = changes / self._sizes
        self._inverse = np.linalg.pinv(self._terms.T @ self._terms, rcond=_COLLINEAR, hermitian=True)

    def _changes(self, values: Floats) -> Floats:
        """Return z[t] − ρ z[t-1]."""
        now = values[self._rows]
        return now - self._lasting * values[self._rows - 1] if self._lasting else now

    def _centred(self, values: Floats) -> Floats:
        if self._groups is None:
            return values
        of = self._groups[self._rows]
        return values - self._means(values, of)[of]

    def _means(self, values: Floats, of: Ints) -> Floats:
        """Return the means of each group [G, ...]."""
        columns = values.reshape(len(values), -1).T
        sums = np.array([np.bincount(of, column, self._count) for column in columns])
        counts = np.maximum(np.bincount(of, minlength=self._count), 1)
        return (sums.reshape(-1, self._count) / counts).T.reshape(self._count, *values.shape[1:])

    def __call__(self, y: Floats) -> Fit:
        gains = self._inverse @ (self._terms.T @ self._centred(self._changes(y))) / self._sizes
        if self._groups is None:
            return Fit(gains, np.zeros(1))
        rest = (y - self._x @ gains)[self._all]
        return Fit(gains, self._means(rest, self._groups[self._all]))
