"""Difference equations of the plant from logged rows: orders, dead times, coefficients and their errors.

The next outputs follow from present and past outputs y, external inputs x and actions u,

  y[t+1] = Σ A_i y[t-i] + Σ E_i x[t-i] + Σ B_j u[t-j] + c + e[t+1] + Σ M_i e[t-i],

an ARMAX model (Ljung, System Identification, 1999, sec. 4.2 and 7). Sensor noise stands in all values of y.
Least squares takes it for motion and finds plants that are too fast, with static gains that are too small;
the part with the errors e keeps the noise apart. It does so in closed loop, too.

1. A long equation without M is fitted by least squares; what it leaves stands for e (Hannan and Rissanen
   1982).
2. With these e, the equation is linear in all numbers, and least squares is quick: the dead time from each
   action to each output, and whether there is an M follow from Schwarz's criterion.
3. Steps of Gauss and Newton reduce the prediction errors of the whole equation, with as many lags of the
   actions as Schwarz's criterion prefers, unless free runs are clearly nearer to the log with others.
4. This is done with one lag of y, two lags, and so on, as long as Schwarz's criterion is better for it and
   free runs along the log are about as near to it, or clearly nearer. The second rule is for plants that are
   not linear: there, more lags always explain a little more of one step, with numbers that mean nothing.

Standard errors are those of blocks of the log (Liang and Zeger 1986), so that they also hold where the errors
depend on each other or on the place, as they do if the plant is not linear.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Flags, Floats, Ints

MOST_LAGS = 4  # of outputs, where the task does not ask for more
LONGEST_DELAY = 60  # steps of dead time that are looked for
LONG = 25  # lags of the long equation
BLOCK = 200  # rows of a block
ROUNDS = 12  # of Gauss and Newton's method
ENOUGH = 1e-5  # a round that lowers the cost by a smaller share is the last
TINY = 1e-9  # share of usual sizes below which differences are rounding
SAME = 1e-9  # added to the diagonal of the normal equations, where columns have length 1
EXACT = 1e-10  # share of an output's variance: what leaves less is as good as exact
QUIET = 1e-6  # share of an output's spread: errors that are smaller are no noise
NEARER = 0.9  # another number of lags of actions must reduce the errors of free runs to this share
ABOUT = 1.25  # disturbances move the errors of free runs by as much: a lag may increase them to this share
BEYOND = 0.8  # a lag beyond the task's history must reduce the errors of free runs to this share
RUN = 50  # steps of a free run
FOLLOWS = 0.7  # a model follows the log if its free runs stray less: then it explains half of the variance
CHANCE = 1e-4  # the probability of such an effect of an action that has none; many dead times are tried
_ALL = slice(None)


class Record(NamedTuple):
    """Rows of a log in order, for P outputs, E external inputs and A actions."""

    outputs: Floats
    """[n, P]"""
    external: Floats
    """[n, E]"""
    actions: Floats
    """[n, A]"""
    known: Flags
    """[n] True if the next row follows this one, and the step between them counts"""
    age: Ints
    """[n] rows since the last break"""


@dataclass(frozen=True, eq=False)
class Equations:
    """Difference equations of P outputs with errors of their coefficients."""

    states: Floats
    """[P, H, P + E] from outputs and external inputs of each lag, the present first"""
    actions: Floats
    """[P, L, A] from the actions of each lag"""
    constant: Floats
    """[P]"""
    residual: Floats
    """[P] standard deviation of the errors e"""
    delays: Ints
    """[P, A] dead time from each action to each output in steps, beyond the step that every action takes"""
    stray: float
    """how far free runs stray from the log, in spreads of the outputs: 0 is a perfect model, 1 is none"""
    effective: Flags
    """[A] True if the action has an effect, on all outputs and with all lags together"""
    free: Flags
    """[P, H (P + E) + L A + 1] the coefficients that were fitted; the others are 0"""
    covariance: Floats
    """[F, F] of those that were fitted, row after row"""

    @property
    def follows(self) -> bool:
        """True if free runs of the equations follow the log; otherwise their numbers mean little."""
        return self.stray < FOLLOWS

    @property
    def _deviations(self) -> Floats:
        """[P, H (P + E) + L A + 1] standard error of each coefficient"""
        errors = np.zeros(self.free.shape)
        errors[self.free] = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return errors

    @property
    def state_errors(self) -> Floats:
        """[P, H, P + E] standard errors of `states`"""
        return self._deviations[:, : self.states[0].size].reshape(self.states.shape)

    @property
    def action_errors(self) -> Floats:
        """[P, L, A] standard errors of `actions`"""
        return self._deviations[:, self.states[0].size : -1].reshape(self.actions.shape)

    @property
    def packed(self) -> Floats:
        """[P, H (P + E) + L A + 1] states, actions and constant in one row for each output"""
        p = len(self.constant)
        return np.hstack([self.states.reshape(p, -1), self.actions.reshape(p, -1), self.constant[:, None]])

    def with_packed(self, packed: Floats) -> "Equations":
        """Return equations with other coefficients [P, H (P + E) + L A + 1]."""
        p, cut = len(self.constant), self.states[0].size
        return replace(
            self,
            states=packed[:, :cut].reshape(self.states.shape),
            actions=packed[:, cut:-1].reshape(self.actions.shape),
            constant=packed[:p, -1],
        )

    def drawn(self, count: int, rng: np.random.Generator) -> Iterator["Equations"]:
        """Yield equations whose coefficients differ from these by their errors."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        for noise in rng.standard_normal((count, len(values))):
            packed = self.packed
            packed[self.free] += root @ noise
            yield self.with_packed(packed)


class _Orders(NamedTuple):
    """What is fitted: lags, and which coefficients."""

    lags: int
    """H, lags of outputs and external inputs"""
    moving: bool
    """True with a part M"""
    delays: Ints
    """[P, A]"""
    width: int
    """lags of each action from its dead time on"""


def fit_equations(
    record: Record, *, most_lags: int, longest: int, kept: int, plain: bool = False, symmetric: bool = False
) -> Equations:
    """Fit difference equations to a record.

    Args:
        record: The rows.
        most_lags: The most lags of outputs.
        longest: The most lags of actions, dead time included.
        kept: The lags that the task has anyway. More must help clearly.
        plain: True for least squares with `kept` or fewer lags of everything, without dead time and M.
        symmetric: True if there is no constant.
    """
    lagged = _Lagged(record, most_lags, longest, symmetric=symmetric)
    errors = lagged.surprises()
    found = [_fit(lagged, errors, kept=kept, plain=plain)]
    if lagged.noisy and not plain and not symmetric:
        drifting = _Lagged(record, most_lags, longest, symmetric=symmetric, drifting=True)
        found.append(_fit(drifting, errors, kept=kept, plain=plain))
    best, table = min(found, key=lambda one: one[0].price / len(one[0].x))
    if kept < longest and not plain and best.orders.delays.max(initial=0) >= kept:
        # Large disturbances hide the first rows of a slow answer, which looks like a long dead time then.
        near = _Lagged(record, most_lags, kept, symmetric=symmetric)
        other = _fit(near, near.surprises(), kept=kept, plain=plain)
        if other[0].stray < NEARER * best.stray:
            best, table = other
    return best.equations(best.found, table.effective(best.orders))


def _fit(lagged: "_Lagged", errors: Floats, *, kept: int, plain: bool) -> tuple["_Prediction", "_Table"]:
    """Find the orders, and fit the equation to them."""
    table = _Table(lagged, errors)
    best: _Prediction | None = None
    for lags in range(1, lagged.most + 1):
        fit, *others = [_Prediction(lagged, errors, one) for one in table.choose(lags, plain=plain)]
        nearer = [one for one in others if one.stray < NEARER * fit.stray]
        fit = min(nearer, key=attrgetter("stray"), default=fit)
        if best is not None:
            share = ABOUT if lags <= kept else BEYOND
            if fit.price >= best.price or fit.stray > share * best.stray:
                break
        best = fit
    assert best is not None  # noqa: S101 - there is at least one lag
    return best, table


def _size(values: Floats) -> Floats:
    sizes = values.std(axis=0)
    return np.where(sizes > 0, sizes, 1.0)


class _Lagged:
    """The columns of a record, scaled to a standard deviation of 1, and the rows that are fitted.

    With `drifting`, the columns are differences from the row before.
    """

    def __init__(
        self, record: Record, most_lags: int, longest: int, *, symmetric: bool, drifting: bool = False
    ) -> None:
        parts = record.outputs, record.external, record.actions
        self.p, self.e, self.a = (part.shape[1] for part in parts)
        both = np.hstack(parts)
        self.drifting = drifting
        self.bare = symmetric or drifting
        """True if there is no constant to fit"""
        self.scale = _size(both)
        self.middle = np.zeros(both.shape[1]) if symmetric else both.mean(axis=0)
        self.columns = (both - self.middle) / self.scale
        if drifting:
            self.columns = np.diff(self.columns, axis=0, prepend=self.columns[:1])
        usable = np.flatnonzero(record.known)
        ages = record.age[usable]
        self.depth = self._room(ages, max(longest, most_lags))
        self.most = min(most_lags, self.depth)
        self.rows = usable[ages >= self.depth - (0 if drifting else 1)]
        self.targets = self.columns[self.rows + 1, : self.p]
        self.noisy = drifting

    def _room(self, ages: Ints, longest: int) -> int:
        """Return the longest look back that leaves most of the rows, and enough of them."""
        width = self.columns.shape[1]
        for lags in range(longest, 1, -1):
            left = int(np.count_nonzero(ages >= lags - 1))
            if left >= max(0.7 * len(ages), 6 * (lags + width)):
                return lags
        return 1

    def lag(self, columns: slice, lag: int, source: Floats | None = None) -> Floats:
        """Return columns [n, …] as they were some rows before each row that is fitted."""
        values = self.columns if source is None else source
        return values[self.rows - lag][:, columns]

    @property
    def ones(self) -> Floats:
        """[n, 1] the column of the constant"""
        return np.full((len(self.rows), 1), 0.0 if self.bare else 1.0)

    def surprises(self) -> Floats:
        """Return the errors [rows of the record, P] of the long equation; 0 where there are none."""
        n = len(self.rows)
        lags = int(np.clip(n // (8 * self.columns.shape[1]), 1, min(LONG, self.depth)))
        x = np.hstack([*(self.lag(_ALL, lag) for lag in range(lags)), self.ones])
        left = self.targets - x @ np.linalg.lstsq(x, self.targets, rcond=1e-9)[0]
        errors = np.zeros((len(self.columns), self.p))
        errors[self.rows + 1] = left
        self.noisy = bool((np.sqrt(np.mean(left**2, axis=0)) > QUIET).any())
        return errors


class _Table:
    """The inner products of all lagged columns, from which every least-squares fit follows at once."""

    def __init__(self, lagged: _Lagged, errors: Floats) -> None:
        self.lagged = lagged
        seen, acts = slice(0, lagged.p + lagged.e), slice(lagged.p + lagged.e, None)
        x = np.hstack(
            [
                *(lagged.lag(seen, lag) for lag in range(lagged.most)),
                *(lagged.lag(_ALL, lag, errors) for lag in range(lagged.most)),
                *(lagged.lag(acts, lag) for lag in range(lagged.depth)),
                lagged.ones,
            ]
        )
        self.n = len(x)
        self.gram = x.T @ x / self.n + 1e-12 * np.eye(x.shape[1])
        self.cross = x.T @ lagged.targets / self.n
        self.power = np.mean(lagged.targets**2, axis=0)

    def choose(self, lags: int, *, plain: bool) -> list[_Orders]:
        """Choose dead times and whether there is an M, for several numbers of lags of actions.

        Returns:
            What Schwarz's criterion prefers, the best first.
        """
        noise = (False, True) if self.lagged.noisy and not plain else (False,)
        tried = []
        for width in (lags,) if plain else dict.fromkeys((1, lags, lags + 1)):
            options = []
            for moving in noise:
                found = [self._delays(k, lags, moving, width, plain) for k in range(self.lagged.p)]
                price = sum(one[0] for one in found)
                options.append((price, _Orders(lags, moving, np.array([one[1] for one in found]), width)))
            tried.append(min(options, key=itemgetter(0)))
        return [orders for _, orders in sorted(tried, key=itemgetter(0))][: 1 if self.lagged.p > 2 else None]

    def _delays(
        self, output: int, lags: int, moving: bool, width: int, plain: bool
    ) -> tuple[float, NDArray[np.int64]]:
        """Find the dead times [A] to one output, one action after the other; return their price, too."""
        delays = np.zeros(self.lagged.a, np.int64)
        best = self._price(output, self._chosen(lags, moving, delays, width))
        for _ in range(0 if plain else 2):
            before = best
            for j in range(self.lagged.a):
                for delay in range(max(1, self.lagged.depth - lags)):
                    trial = delays.copy()
                    trial[j] = delay
                    price = self._price(output, self._chosen(lags, moving, trial, width))
                    if price < best:
                        best, delays = price, trial
            if best == before:
                break
        return best, delays

    def _chosen(self, lags: int, moving: bool, delays: Ints, width: int) -> Ints:
        """Return the numbers of the columns of one fit."""
        p, e, a, most = self.lagged.p, self.lagged.e, self.lagged.a, self.lagged.most
        base = most * (2 * p + e)
        acts = [
            base + lag * a + j
            for j in range(a)
            for lag in range(delays[j], min(delays[j] + width, self.lagged.depth))
        ]
        errors = most * (p + e) + np.arange(lags * p if moving else 0)
        last = [] if self.lagged.bare else [len(self.gram) - 1]
        return np.concatenate([np.arange(lags * (p + e)), errors, np.array([*acts, *last], np.int64)])

    def effective(self, orders: _Orders) -> Flags:
        """Tell for each action whether the errors are clearly larger without it (a likelihood ratio)."""
        from scipy.special import chdtri  # the quantile of chi-squared; scipy.stats takes long to import

        last = len(self.gram) - (0 if self.lagged.bare else 1)
        first = self.lagged.most * (2 * self.lagged.p + self.lagged.e)
        found = np.zeros(self.lagged.a, np.bool_)
        for j in range(self.lagged.a):
            gained, numbers = 0.0, 0
            for k in range(self.lagged.p):
                columns = self._chosen(orders.lags, orders.moving, orders.delays[k], orders.width)
                of_it = (columns >= first) & (columns < last) & ((columns - first) % self.lagged.a == j)
                with_it, without = self._variance(k, columns), self._variance(k, columns[~of_it])
                gained += self.n * float(np.log(without / with_it))
                numbers += int(of_it.sum())
            found[j] = gained > chdtri(max(1, numbers), CHANCE)
        return found

    def _variance(self, output: int, columns: Ints) -> float:
        """Return the variance that least squares with these columns leaves."""
        gram, cross = self.gram[np.ix_(columns, columns)], self.cross[columns, output]
        left = self.power[output] - cross @ np.linalg.solve(gram, cross)
        return float(max(left, EXACT * self.power[output], 1e-300))

    def _price(self, output: int, columns: Ints) -> float:
        """Return Schwarz's criterion, n log(variance) + numbers log(n)."""
        return float(self.n * np.log(self._variance(output, columns)) + len(columns) * np.log(self.n))


class _Estimate(NamedTuple):
    """The numbers of the equation in scaled columns, and what they leave."""

    gains: Floats
    """[P, H (P + E) + L A + 1]"""
    moving: Floats
    """[H, P, P] M"""
    errors: Floats
    """[n, P]"""
    slopes: Floats
    """[n, P, F] derivatives of the errors by all that is free"""


def damped_step(slopes: Floats, errors: Floats, damping: float) -> Floats:
    """Return the step of Gauss and Newton towards smaller errors, with Levenberg's damping.

    `slopes` [n, F] are derivatives of the errors [n] by what is free. Columns may be the same, such as an
    external state that is constant in each episode, and its lag: they share the step.
    """
    size = np.sqrt(np.sum(slopes**2, axis=0)) + 1e-12
    columns = slopes / size
    normal = columns.T @ columns + (damping + SAME) * np.eye(len(size))
    return np.asarray(-np.linalg.solve(normal, columns.T @ errors) / size)


class _Prediction:
    """The prediction errors of the whole equation over blocks of rows, and their derivatives."""

    def __init__(self, lagged: _Lagged, errors: Floats, orders: _Orders) -> None:
        self.lagged, self.orders = lagged, orders
        seen, acts = slice(0, lagged.p + lagged.e), slice(lagged.p + lagged.e, None)
        self.depth = int(min(orders.delays.max(initial=0) + orders.width, lagged.depth))
        own = [lagged.lag(seen, lag) for lag in range(orders.lags)]
        done = [lagged.lag(acts, lag) for lag in range(self.depth)]
        self.x = np.hstack([*own, *done, lagged.ones])
        self.past = np.stack([lagged.lag(_ALL, lag, errors) for lag in range(orders.lags)], axis=1)
        self.free = self._free()
        self.linear = int(self.free.sum())
        """how many numbers there are besides M"""
        self._cut()
        found = self._start()
        self.found = self._descend(found) if orders.moving else found
        """the numbers with the least prediction errors"""
        self.stray = self._stray(self.found.gains)
        """how far free runs stray from the log, in spreads of the outputs"""

    def _free(self) -> Flags:
        """[P, columns of x] the numbers that are fitted"""
        lagged, orders = self.lagged, self.orders
        free = np.ones((lagged.p, self.x.shape[1]), np.bool_)
        free[:, -1] = not lagged.bare
        lags = np.arange(self.depth)[None, :, None] - orders.delays[:, None, :]
        first = orders.lags * (lagged.p + lagged.e)
        free[:, first:-1] = ((lags >= 0) & (lags < orders.width)).reshape(lagged.p, -1)
        return free

    def _cut(self) -> None:
        """Cut the rows into blocks [B, T] of rows that follow each other; a mask tells which are there."""
        rows = self.lagged.rows
        starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        blocks: list[NDArray[np.int64]] = []
        for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
            blocks += np.array_split(np.arange(start, end), max(1, round((end - start) / BLOCK)))
        self.index = np.zeros((len(blocks), max(map(len, blocks))), np.int64)
        self.mask = np.zeros(self.index.shape, np.bool_)
        for b, part in enumerate(blocks):
            self.index[b, : len(part)], self.mask[b, : len(part)] = part, True

    @property
    def price(self) -> float:
        """Schwarz's criterion of all outputs together."""
        variances = np.maximum(np.mean(self.found.errors**2, axis=0), EXACT)
        numbers = self.found.slopes.shape[2]
        return float(len(self.x) * np.log(variances).sum() + numbers * np.log(len(self.x)))

    def _stray(self, gains: Floats) -> float:
        """Free runs begin with logged rows and go on with their own outputs, under the logged actions.

        Differences are summed up again.
        """
        p, seen, lags = self.lagged.p, self.lagged.p + self.lagged.e, self.orders.lags
        length = min(RUN, self.index.shape[1])
        rows = self.index[self.mask[:, length - 1], :length]
        own = [self.x[rows[:, 0], lag * seen : lag * seen + p] for lag in range(lags)]
        total, off = np.zeros(p), np.zeros((len(rows), p))
        for now in rows.T:
            x = self.x[now].copy()
            for lag, values in enumerate(own):
                x[:, lag * seen : lag * seen + p] = values
            after = np.clip(x @ gains.T, -1e3, 1e3)
            off = after - self.lagged.targets[now] + (off if self.lagged.drifting else 0.0)
            total += np.mean(off**2, axis=0)
            own = [after, *own[:-1]]
        return float(np.sqrt(np.mean(total / length) + QUIET**2))

    def _start(self) -> _Estimate:
        """Return the least-squares fit, in which the errors of the long equation stand for e."""
        p, lags = self.lagged.p, self.orders.lags
        gains, moving = np.zeros(self.free.shape), np.zeros((lags, p, p))
        past = self.past.reshape(len(self.x), -1)[:, : lags * p if self.orders.moving else 0]
        for k in range(p):
            x = np.hstack([self.x[:, self.free[k]], past])
            found = np.linalg.lstsq(x, self.lagged.targets[:, k], rcond=1e-12)[0]
            own = int(self.free[k].sum())
            gains[k, self.free[k]] = found[:own]
            if self.orders.moving:
                moving[:, k] = found[own:].reshape(lags, p)
        while not _forgets(moving):
            moving *= 0.8
        return _Estimate(gains, moving, *self._look(gains, moving))

    def _look(self, gains: Floats, moving: Floats) -> tuple[Floats, Floats]:
        """Return the errors [n, P] and their derivatives [n, P, F]."""
        plain = self.lagged.targets - self.x @ gains.T
        extra = moving.size if self.orders.moving else 0
        slopes = np.zeros((*plain.shape, self.linear + extra))
        ends = np.cumsum(self.free.sum(axis=1))
        for k, end in enumerate(ends):
            slopes[:, k, end - self.free[k].sum() : end] = -self.x[:, self.free[k]]
        if self.orders.moving:
            self._filter(plain, moving, slopes)
        return plain, slopes

    def _filter(self, errors: Floats, moving: Floats, slopes: Floats | None = None) -> None:
        """Take the part of M out of errors [n, P] and slopes [n, P, F], in place, block by block."""
        lags, p, _ = moving.shape
        late = [self.past[self.index[:, 0], i] for i in range(lags)]  # e[t], e[t-1], …
        width = 0 if slopes is None else slopes.shape[2]
        bends = [np.zeros((len(self.index), p, width)) for _ in range(lags)]
        for rows, mask in zip(self.index.T, self.mask.T, strict=True):
            now = errors[rows]
            for before, matrix in zip(late, moving, strict=True):
                now = now - before @ matrix.T
            if slopes is not None:
                bend = slopes[rows]
                for i, matrix in enumerate(moving):
                    bend -= matrix @ bends[i]
                    for k in range(p):
                        at = self.linear + (i * p + k) * p
                        bend[:, k, at : at + p] -= late[i]
                slopes[rows[mask]] = bend[mask]
                bends = [bend, *bends[:-1]]
            errors[rows[mask]] = now[mask]
            late = [now, *late[:-1]]

    def _descend(self, found: _Estimate) -> _Estimate:
        """Lower the sum of squared errors by Gauss and Newton's steps, with Levenberg's damping."""
        weight = 1 / np.maximum(found.errors.std(axis=0), 1e-12)
        cost, damping = float(np.sum((found.errors * weight) ** 2)), 1e-6
        for _ in range(ROUNDS):
            flat = (found.slopes * weight[:, None]).reshape(-1, found.slopes.shape[2])
            for _ in range(6):
                step = damped_step(flat, (found.errors * weight).ravel(), damping)
                gains, moving = self._moved(found, step)
                new = self._cost(gains, moving, weight)
                if new < cost:
                    break
                damping = max(20 * damping, 1e-4)
            if not new < cost:
                break
            found = _Estimate(gains, moving, *self._look(gains, moving))
            gained, cost, damping = (cost - new) / cost, new, damping / 10
            if gained < ENOUGH:
                break
        return found

    def _moved(self, found: _Estimate, step: Floats) -> tuple[Floats, Floats]:
        gains = found.gains.copy()
        gains[self.free] += step[: self.linear]
        return gains, found.moving + step[self.linear :].reshape(found.moving.shape)

    def _cost(self, gains: Floats, moving: Floats, weight: Floats) -> float:
        if not _forgets(moving):
            return np.inf
        errors = self.lagged.targets - self.x @ gains.T
        self._filter(errors, moving)
        return float(np.sum((errors * weight) ** 2))

    def _covariance(self, found: _Estimate) -> Floats:
        """Return the covariance [F, F] of all numbers.

        It is that of the blocks. If these are too few, only the variances are theirs, where these are larger,
        and the correlations are those of independent errors.
        """
        weight = 1 / np.maximum(found.errors.std(axis=0), 1e-12)
        slopes, errors = found.slopes * weight[:, None], found.errors * weight
        flat = slopes.reshape(-1, slopes.shape[2])
        size = np.sqrt(np.sum(flat**2, axis=0)) + 1e-12
        inverse = np.linalg.pinv((flat / size).T @ (flat / size), rcond=1e-12, hermitian=True)
        usual = inverse * float(np.mean(errors**2))
        pushes = np.einsum("nkf,nk->nf", slopes, errors) / size
        groups = np.array_split(np.arange(len(self.index)), min(len(self.index), 40))
        sums = np.array([pushes[self.index[g][self.mask[g]]].sum(axis=0) for g in groups])
        more = np.ones(len(size))
        if len(sums) >= max(8, 2 * len(size)):
            robust = inverse @ (sums.T @ sums) @ inverse * len(sums) / (len(sums) - 1)
            return np.asarray(robust / np.outer(size, size))
        if len(sums) >= 8:
            blocks = np.einsum("fg,bg->bf", inverse, sums)
            variances = np.sum(blocks**2, axis=0) * len(sums) / (len(sums) - 1)
            more = np.sqrt(np.maximum(1.0, variances / np.maximum(np.diag(usual), 1e-300)))
        return usual * np.outer(more / size, more / size)

    def equations(self, found: _Estimate, effective: Flags) -> Equations:
        """Return the numbers in the units of the log, for absolute values in place of deviations."""
        lagged, lags = self.lagged, self.orders.lags
        p, seen = lagged.p, lagged.p + lagged.e
        by = np.concatenate(
            [np.tile(lagged.scale[:seen], lags), np.tile(lagged.scale[seen:], self.depth), [1.0]]
        )
        middle = np.concatenate(
            [np.tile(lagged.middle[:seen], lags), np.tile(lagged.middle[seen:], self.depth), [0.0]]
        )
        factors = lagged.scale[:p, None] / by
        packed = found.gains * factors
        packed[:, -1] += lagged.middle[:p] - packed @ middle
        rows, columns = np.nonzero(self.free)
        change = np.diag(factors[self.free])
        for at in np.flatnonzero(columns == self.free.shape[1] - 1):
            mine = (rows == rows[at]) & (columns < columns[at])
            change[at, mine] = -middle[columns[mine]] * factors[rows[at], columns[mine]]
        left = np.sum(found.errors**2, axis=0) / max(1, len(found.errors) - self.linear // p)
        return Equations(
            states=packed[:, : lags * seen].reshape(p, lags, seen),
            actions=packed[:, lags * seen : -1].reshape(p, self.depth, lagged.a),
            constant=packed[:, -1].copy(),
            residual=np.sqrt(left) * lagged.scale[:p],
            delays=self.orders.delays,
            stray=self.stray,
            effective=effective,
            free=self.free,
            covariance=change @ self._covariance(found)[: self.linear, : self.linear] @ change.T,
        )


def _forgets(moving: Floats) -> bool:
    """Tell whether errors of long ago no longer count, so that they can be computed one after the other."""
    lags, p, _ = moving.shape
    companion = np.eye(lags * p, k=-p)
    companion[:p] = -np.concatenate(list(moving), axis=1)
    return bool(np.abs(np.linalg.eigvals(companion)).max() < 0.999)
