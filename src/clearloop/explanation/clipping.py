"""Laws whose action was clipped to limits: at a limit, it is only known that the law asked for that or more.

Leaving such rows out would bias gains where noise was added before clipping (it keeps the rows whose noise
pointed inwards). So they are filled in with what the law is expected to have asked for there, and the fit is
repeated until it agrees with itself: expectation–maximisation for a censored normal (Tobin 1958).
"""

from dataclasses import dataclass, replace

import numpy as np

from clearloop.data.cells import Flags, Floats, Ints
from clearloop.explanation.moments import COLLINEAR
from clearloop.explanation.signals import Signals

ROUNDING = 1e-9  # of the range
REPEATED = 0.002  # share of the rows that stand at the same extreme value, so that it must be a limit
FEWEST = 5  # such rows; and values between the limits
ALMOST_ALL = 0.95  # of the rows at limits: then, too, they are levels to choose from, and no clipping
ROUNDS = 200
AGREES = 1e-3  # of the residual: what may still change from round to round
FAR = 30.0  # standard deviations, beyond which the tail of a normal is exponential


@dataclass(frozen=True, eq=False)
class Target:
    """An action as it was logged, in n rows."""

    name: str
    values: Floats
    """[n] NaN where none was chosen"""
    low: float
    high: float
    """what it was clipped to; infinite where it was not"""
    begins: Flags
    """[n] where an episode does"""

    @property
    def side(self) -> Ints:
        """[n] -1 at the lower limit, 1 at the upper, else 0."""
        margin = ROUNDING * np.nanmax(np.abs(self.values))
        above, below = self.values >= self.high - margin, self.values <= self.low + margin
        sides: Ints = above.astype(np.int64) - below
        return sides

    @property
    def saturated(self) -> Flags:
        """[n]"""
        at_limit: Flags = self.side != 0
        return at_limit

    def clip(self, values: Floats) -> Floats:
        return np.clip(values, self.low, self.high)


def make_target(name: str, values: Floats, signals: Signals, limits: Floats) -> Target:
    """Finds the limits: the task's, where the log keeps them; or an extreme at which it often stands."""
    known = values[signals.chosen]
    values = np.where(signals.chosen, values, np.nan)
    low, high = (_limit(sign * known, sign * end) * sign for sign, end in zip((-1, 1), limits, strict=True))
    target = Target(name, values, low, high, signals.age == 0)
    free = known[~target.saturated[signals.chosen]]
    if len(free) < (1 - ALMOST_ALL) * len(known) or len(np.unique(free)) < FEWEST:
        return replace(target, low=-np.inf, high=np.inf)
    return target


def _limit(known: Floats, limit: float) -> float:
    """The upper one."""
    top = float(known.max())
    often = np.count_nonzero(known == top)
    if often >= max(FEWEST, REPEATED * len(known)):
        return top
    return limit if top <= limit else np.inf


@dataclass(frozen=True, eq=False)
class Fit:
    gains: Floats
    """[k]"""
    constants: Floats
    """[G] of each group of rows; zero where there is none"""

    def __call__(self, features: Floats, groups: Ints | None) -> Floats:
        """[n] what the law asks for, before it is clipped."""
        asked: Floats = features @ self.gains
        return asked if groups is None else asked + self.constants[groups]


def fit(features: Floats, target: Target, rows: Flags, groups: Ints | None, lasting: float) -> Fit:
    """By least squares over some rows [n]; those at limits count as the law explains them.

    `lasting`: ρ of what is not from the law, v[t] = ρ v[t-1] + w[t]; then w² is made small.
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
    for _ in range(ROUNDS):
        asked = law(features, groups)
        filled[at], doubt = _expected(asked[at], side[at], limit, variance)
        law = squares(filled)
        after = law(features, groups)
        variance = (float(np.sum((filled - after)[rows] ** 2)) + float(doubt.sum())) / np.count_nonzero(rows)
        if np.mean((after - asked)[rows] ** 2) <= AGREES**2 * variance + floor:
            break
    return law


def _expected(asked: Floats, side: Ints, limit: Floats, variance: float) -> tuple[Floats, Floats]:
    """[m] actions before they were clipped, and their variances: of normals beyond their limits."""
    from scipy.special import log_ndtr

    deviation = max(np.sqrt(variance), np.finfo(np.float64).tiny)
    z = np.clip(side * (limit - asked) / deviation, -FAR, 1 / ROUNDING)  # how far the limit is from the law
    near = np.minimum(z, FAR)
    hazard = np.exp(-0.5 * near**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(-near))
    hazard = np.where(z < FAR, hazard, z + 1 / np.maximum(z, FAR))
    doubt = variance * np.clip(1 + z * hazard - hazard**2, 0.0, 1.0)
    return asked + side * deviation * hazard, doubt


class _Squares:
    """Least squares with the same terms, over the same rows, for many targets."""

    def __init__(self, x: Floats, target: Target, rows: Flags, groups: Ints | None, lasting: float) -> None:
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
        self._inverse = np.linalg.pinv(self._terms.T @ self._terms, rcond=COLLINEAR, hermitian=True)

    def _changes(self, values: Floats) -> Floats:
        """z[t] − ρ z[t-1]"""
        now = values[self._rows]
        return now - self._lasting * values[self._rows - 1] if self._lasting else now

    def _centred(self, values: Floats) -> Floats:
        if self._groups is None:
            return values
        of = self._groups[self._rows]
        return values - self._means(values, of)[of]

    def _means(self, values: Floats, of: Ints) -> Floats:
        """[G, …] of each group."""
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
