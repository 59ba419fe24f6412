"""Least squares judged on held-out time: every episode is cut in parts, and each part is predicted by a law
that was fitted to the others. All that this needs of the rows is sums of products, so that thousands of sets
of terms can be tried.

What is added to a law's action may last: a signal that is held for a while, or drifts. It moves the plant,
and the plant's states then seem to explain it. So the rest is taken as v[t] = ρ v[t-1] + w[t], and laws are
compared by w: by what is new in the action and not from the law (Cochrane and Orcutt 1949).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from clearloop.data.cells import Floats, Ints
from clearloop.explanation.signals import Signals

PARTS = 5
LASTING = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.999)  # values of ρ
DOUBT = 1.02  # on what is left, where ρ is not 0: other gains with another ρ often do nearly as well
NEGLIGIBLE = 0.002  # of the unexplained
MOST_TERMS = 12  # of which every choice is tried
ROUNDING = 1e-9  # of the variance
COLLINEAR = 1e-5  # of the largest variance: directions in which terms hardly differ are not used


def price(rows: int, lasting: float = 0.0) -> float:
    """How much more may be left unexplained, as a share of it, without a number: negligible, or by chance.

    A number without meaning explains ln(n) / n of what is left at the most (Schwarz 1978); twice is safe.
    Where the rest lasts, its rho is a guess, and numbers make up for that: they must explain more.
    """
    return max(DOUBT - 1 if lasting else NEGLIGIBLE, 2 * float(np.log(rows)) / rows)


def parts_of(signals: Signals) -> Ints:
    """[n] the part in time, 0 to 4, of each row; shifted from episode to episode, for short ones."""
    length = np.bincount(signals.episodes)[signals.episodes]
    return np.asarray((PARTS * signals.age // length + signals.episodes) % PARTS)


def by_part(rows: Ints, signals: Signals) -> tuple[Ints, Ints]:
    """Rows, those of a part together, and [F] where each part ends."""
    parts = parts_of(signals)[rows]
    return rows[np.argsort(parts, kind="stable")], np.cumsum(np.bincount(parts, minlength=PARTS))


@dataclass(frozen=True, eq=False)
class Moments:
    """Products of k terms and, last, the action, for each of F parts and R values of ρ."""

    train: Floats
    """[R, F, k + 1, k + 1] over the rows of the other parts"""
    test: Floats
    """[R, F, k + 1, k + 1] over the rows of the part"""
    spread: float
    """of the action about its mean, over all rows"""
    lastings: tuple[float, ...]
    """[R] the first is 0"""
    rows: int
    """n, of all parts"""

    def at(self, lasting: Iterable[float]) -> "Moments":
        """For some values of ρ alone."""
        some = [self.lastings.index(rho) for rho in dict.fromkeys(lasting)]
        chosen = tuple(self.lastings[i] for i in some)
        return replace(self, train=self.train[some], test=self.test[some], lastings=chosen)

    def left(self, terms: Sequence[int]) -> Floats:
        """[R] w² as a share of the action's variance, in parts held out, of a law of these terms.

        Of a rest v that lasts, w² is (1 - rho²) v². Less than that is no such rest, but a filter's doing, and
        does not count.
        """
        left = self.left_by(np.array(terms, dtype=np.intp)[None])[:, 0]
        least: Floats = (1 - np.array(self.lastings) ** 2) * left[0]
        return np.maximum(left, least)

    def left_by(self, choices: Ints) -> Floats:
        """[R, C] the same for each of some choices [C, m] of terms."""
        rows, columns = choices[..., None], choices[:, None, :]
        train, test = self.train[..., rows, columns], self.test[..., rows, columns]
        with_action = self.train[..., choices, -1]
        inverse = np.linalg.pinv(train, rcond=COLLINEAR, hermitian=True)
        gains = np.einsum("rfcij,rfcj->rfci", inverse, with_action)
        left = self.test[..., -1, -1, None] - 2 * np.einsum(
            "rfci,rfci->rfc", self.test[..., choices, -1], gains
        )
        left += np.einsum("rfci,rfcij,rfcj->rfc", gains, test, gains)
        doubt = np.where(np.array(self.lastings) > 0, DOUBT, 1.0)[:, None]
        shares: Floats = doubt * np.maximum(left.sum(axis=1), 0.0) / self.spread
        return shares

    def unexplained(self, terms: Sequence[int]) -> float:
        """For the best rho."""
        return float(self.left(terms).min())

    def prune(self, terms: Sequence[int]) -> list[int]:
        """The terms that are worth their place: of all choices among them, the least costly.

        Where there are too many choices, the least useful go first, one by one.
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
            found.append((cost(float(left.min()), size, self.rows, rho), choices[left.argmin()].tolist()))
        return min(found)[1]


def cost(unexplained: float, numbers: int, rows: int, lasting: float) -> float:
    """Of a law: what it leaves, where every number that it takes must be worth its place."""
    return (unexplained + ROUNDING) * (1 + price(rows, lasting)) ** numbers


def measure(now: Floats, before: Floats | None, ends: Ints, groups: Ints | None) -> Moments:
    """Terms and, last, the action, [k + 1, n] each: in some rows, and in the rows before these.

    `ends`: [F] where each part ends, as the rows of a part stand together. `before` is None where nothing can
    be said of what lasts. `groups` [n] of rows with a constant in common; None: no constant.
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
    """[F, k + 1, k + 1] products of z[t] − ρ z[t-1], from those [F, 2 (k + 1), 2 (k + 1)] of both."""
    k = products.shape[-1] // 2
    crossed = products[:, :k, k:]
    return products[:, :k, :k] - rho * (crossed + crossed.mT) + rho**2 * products[:, k:, k:]


def _products(z: Floats, ends: Ints, groups: Ints | None) -> tuple[Floats, Floats]:
    """[F, k, k] over the other parts, and over the part, with the constants of the other parts taken off."""
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
    """Sums [G, F, k] and counts [G, F] of rows."""
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
