"""The transfer function from one action to one state, from a log: a few numbers that engineers know.

The difference equations of `identification.py` explain the next row; over many rows, noise of the sensor
makes them coarse. Here the whole course of the log is repeated from its actions alone by

    G(s) = K (1 + Z s) exp(−L s) / D(s),  D of first to third order, with or without an integrator,

sampled exactly behind a zero-order hold. What is left is a series of its own, made white by an autoregression
(Box and Jenkins' structure; Ljung, System Identification, 1999, sec. 4.2), so that the fit is consistent in
closed loop, too. Gains, zeros, and the state in which each episode begins are linear, and projected out
(Golub and Pereyra 1973); time constants and dead time are found by nonlinear least squares. Schwarz's
criterion chooses the structure.

The errors of such a fit are those of a linear plant of this form. A real one may be of no such form, or
another one on another day. So the log is explained twice more, by difference equations of high order, which
have room for any linear plant, and in two halves. What differs by more than the errors say counts, too.
"""

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.data.log import first_rows
from clearloop.methods.identification import FOLLOWS
from clearloop.methods.pid_rules import DRAWN, Process
from clearloop.task import Task

MOST_ROWS = 20_000
PIECE = 2_000  # rows of a piece of a longer log
FEWEST = 40  # rows of an episode that counts
NOISE_LAGS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)  # of the autoregression
CLOSE = 6.0  # structures whose criterion is worse by less are as likely, nearly
FASTEST, SLOWEST = 0.2, 20.0  # bounds of time constants: steps, and lengths of the longest episode
DAMPING = (0.03, 20.0)
CHANCE = 4.0  # times the variance that errors explain: plants that differ by more do not do so by chance
HIGH_ORDER = 100  # rows that the equations of high order look back
LEAST_ORDER = 5  # rows that they look back at least
ROWS_EACH = 10  # rows for each of their numbers
VAGUE = 1.0  # standard error, of which the log says nothing, of logarithms of D and of the dead time in steps
_TINY = 1e-12


class Structure(NamedTuple):
    """The form of a transfer function."""

    order: int
    """of D without its integrator, 0 to 3"""
    integrates: bool
    zero: bool

    @property
    def tops(self) -> list[list[float]]:
        """The numerators that a gain belongs to: 1, and with a zero, s."""
        return [[1.0], [1.0, 0.0]][: 1 + self.zero]


STRUCTURES = (
    Structure(1, False, False), Structure(2, False, False), Structure(2, False, True),
    Structure(3, False, False), Structure(3, False, True),
    Structure(0, True, False), Structure(1, True, False), Structure(1, True, True), Structure(2, True, False),
)  # fmt: skip


def sampled(top: ArrayLike, bottom: ArrayLike, delay: float, dt: float) -> Process:
    """Sample top(s)/bottom(s) · exp(−delay s) behind a zero-order hold, exactly.

    Args:
        top: The numerator, highest power first, of a lower degree than the denominator.
        bottom: The denominator.
        delay: The dead time in seconds.
        dt: Seconds of a step.
    """
    below, above = np.asarray(bottom, float), np.asarray(top, float)
    n = len(below) - 1
    scaled = below / below[0]
    a = np.eye(n, k=-1)
    a[0] = -scaled[1:]
    c = np.zeros(n)
    c[n - len(above) :] = above / below[0]
    whole = math.floor(delay / dt + 1e-9)
    late = max(0.0, delay - whole * dt)
    step, new = _held(a, dt - late)
    begun, old = _held(a, late)
    full, old = step @ begun, step @ old
    state, course = new, [c @ new]
    for k in range(n):
        state = full @ state + (old if k == 0 else 0.0)
        course.append(c @ state)
    den = np.real(np.poly(full))
    return Process(den, np.concatenate([np.zeros(whole + 1), np.convolve(den, course)[: n + 1]]))


def _held(a: Floats, dt: float) -> tuple[Floats, Floats]:
    """Return exp(a dt) and ∫exp(a s) ds over dt for an input to the first state."""
    from scipy.linalg import expm

    n = len(a)
    both = np.zeros((n + 1, n + 1))
    both[:n, :n], both[0, n] = a, 1.0
    found = expm(both * dt)
    return found[:n, :n], found[:n, n]


@dataclass(frozen=True, eq=False)
class Transfer:
    """A transfer function with its errors.

    Attributes:
        structure: Its form.
        dt: Seconds of a step.
        x: Logarithms of what D has, then the dead time in steps.
        gains: K, or K and K Z.
        covariance: Of x and the gains.
        residual: The standard deviation of the errors of one step.
        stray: That of the errors of free runs, in spreads of the state.
        price: Schwarz's criterion.
        others: Plants that explain the log nearly as well: of other structures, and drawn by the errors.
        rivals: Plants that another look at the log shows, and that differ from it by more than chance.
    """

    structure: Structure
    dt: float
    x: Floats
    gains: Floats
    covariance: Floats
    residual: float
    stray: float
    price: float
    others: tuple[Process, ...] = ()
    rivals: tuple[Process, ...] = ()

    @property
    def process(self) -> Process:
        """The plant as a difference equation."""
        return _process(self.structure, self.x, self.gains, self.dt)

    @property
    def follows(self) -> bool:
        """True if free runs follow the log; otherwise its numbers mean little."""
        return self.stray < FOLLOWS


def _denominator(structure: Structure, x: Floats) -> Floats:
    bottom = np.ones(1)
    if structure.order >= 2:
        tau, damping = np.exp(x[:2])
        bottom = np.array([tau * tau, 2 * damping * tau, 1.0])
    if structure.order % 2:
        bottom = np.convolve(bottom, [math.exp(x[structure.order - 1]), 1.0])
    return np.convolve(bottom, [1.0, 0.0]) if structure.integrates else bottom


def _process(structure: Structure, x: Floats, gains: Floats, dt: float) -> Process:
    return sampled(gains[::-1], _denominator(structure, x), x[-1] * dt, dt)


class _Record:
    """The episodes of a log, of one state and one action."""

    def __init__(self, task: Task, batch: Batch, state: str, action: str) -> None:
        if len(batch) > MOST_ROWS:
            batch = batch.thinned(MOST_ROWS, PIECE)
        self.dt = task.dt
        y = batch.states[:, task.state_names.index(state)]
        u = np.nan_to_num(batch.actions[:, task.action_names.index(action)])
        ends = [*np.flatnonzero(first_rows(batch.episodes) == np.arange(len(y))), len(y)]
        pieces = [(y[a:b], u[a:b]) for a, b in pairwise(ends) if b - a >= FEWEST]
        self.pieces = [(y, np.append(0.0, u[:-1] - u[0])) for y, u in pieces]
        self.longest = max((len(y) for y, _ in self.pieces), default=0)
        self.size = max(float(np.std(y)), _TINY)
        self.late = 0
        """rows at the beginning of an episode that do not count, since actions before it act there"""

    @property
    def halves(self) -> "list[_Record]":
        """The first and the second half of the rows; the episode in the middle is cut in two."""
        half, passed = sum(len(y) for y, _ in self.pieces) // 2, 0
        sides: list[list[tuple[Floats, Floats]]] = [[], []]
        for y, u in self.pieces:
            cut = min(max(half - passed, 0), len(y))
            passed += len(y)
            for side, part in zip(sides, (slice(0, cut), slice(cut, len(y))), strict=True):
                if len(y[part]) >= FEWEST:
                    side.append((y[part], u[part] - u[part][0]))
        found = []
        for side in sides:
            one = copy(self)
            one.pieces, one.longest = side, max((len(y) for y, _ in side), default=0)
            found.append(one)
        return found

    def project(self, structure: Structure, x: Floats, noise: Floats) -> tuple[Floats, Floats, Floats]:
        """Fit what is linear: the gains, and the state in which each episode begins.

        Args:
            structure: The form of the transfer function.
            x: Its numbers.
            noise: The autoregression that makes the residuals white.

        Returns:
            The residuals [n], the gains, and their columns [n, 1–2].
        """
        from scipy.signal import lfilter

        bottom = _denominator(structure, x)
        each = [sampled(top, bottom, x[-1] * self.dt, self.dt) for top in structure.tops]
        den, skip = each[0].a, len(noise) - 1
        wanted, columns = [], []
        for whole, u in self.pieces:
            late = min(self.late, len(u) // 2)
            moved = [lfilter(one.b[1:], den, u)[late:] for one in each]
            y = whole[late:]
            pulse = np.zeros(len(y))
            pulse[0] = 1.0
            free = [lfilter([1.0], den, np.ones(len(y)))]
            for _ in range(len(den) - 1):
                free.append(lfilter([1.0], den, pulse))
                pulse = np.diff(pulse, prepend=0.0)
            table = lfilter(noise, [1.0], np.column_stack([*free, *moved, y]), axis=0)[skip:]
            start = table[:, : len(free)]
            basis = np.linalg.qr(start / (np.linalg.norm(start, axis=0) + _TINY))[0]
            rest = table[:, len(free) :]
            rest = rest - basis @ (basis.T @ rest)
            wanted.append(rest[:, -1])
            columns.append(rest[:, :-1])
        target, table = np.concatenate(wanted), np.vstack(columns)
        scale = np.linalg.norm(table, axis=0) + _TINY
        gains = np.linalg.lstsq(table / scale, target, rcond=1e-10)[0] / scale
        return target - table @ gains, gains, table

    def residuals(self, structure: Structure, x: Floats, gains: Floats, noise: Floats) -> Floats:
        """Return the residuals [n] with these gains."""
        left, best, table = self.project(structure, x, noise)
        return left + table @ (best - gains)


def find_transfer(task: Task, batch: Batch, state: str, action: str) -> Transfer | None:
    """Fit transfer functions from an action to a state, and choose the best.

    Args:
        task: The task.
        batch: The log.
        state: The name of the state.
        action: The name of the action.

    Returns:
        The transfer function, with those that are nearly as likely as its `others`; None if the log has no
        episode that is long enough.
    """
    record = _Record(task, batch, state, action)
    if not record.pieces:
        return None
    white = np.ones(1)
    first = _fit(record, STRUCTURES[0], _grid(record, STRUCTURES[0], white), white)
    record.late = math.ceil(1.2 * first.x[-1]) + 1
    first = _fit(record, STRUCTURES[0], [first.x], white)
    second = _fit(record, STRUCTURES[1], _starts(record, STRUCTURES[1], [first]), white)
    noise = _whitener(record, second)
    found = _all(record, noise, [first, second])
    again = _whitener(record, found[0])
    if len(again) > 1 or len(noise) > 1:
        found = _refitted(record, found[:4], again)
    long = _HighOrder.of(record)
    if long is not None and long.speaks_against(found[0]):
        guessed = [
            _fit(record, one, _guesses(one, long, record), white) for one in STRUCTURES if one.order > 1
        ]
        again = _whitener(record, min([found[0], *guessed], key=lambda one: one.stray))
        found = _refitted(record, [*found[:4], *sorted(guessed, key=_price_of)[:4]], again)
    best = found[0]
    others = [one.process for one in found[1:] if one.price - best.price < CLOSE]
    others += _drawn(record, best, again, np.random.default_rng(0))
    rivals = [long.process] if long is not None and long.speaks_against(best) else []
    rivals += _halves(record, best, again)
    return replace(best, others=tuple(others), rivals=tuple(rivals))


def _refitted(record: _Record, known: Sequence[Transfer], noise: Floats) -> list[Transfer]:
    """Fit structures again from where they are, the best first, each structure once."""
    best: dict[Structure, Transfer] = {}
    for one in sorted((_fit(record, one.structure, [one.x], noise) for one in known), key=_price_of):
        best.setdefault(one.structure, one)
    return list(best.values())


def _halves(record: _Record, whole: Transfer, noise: Floats) -> list[Process]:
    """Return the plants of the two halves of the log if they differ by more than chance."""
    halves = record.halves
    if min(sum(len(y) for y, _ in half.pieces) for half in halves) < 3 * FEWEST:
        return []
    found = [_fit(half, whole.structure, [whole.x], noise) for half in halves]
    z = _middle(whole.process)
    first, second = (_response(one, one.x, one.gains, z) for one in found)
    variance = np.sum([_response_variance(one, z) for one in found], axis=0)
    apart = np.mean(np.abs(first - second) ** 2 / variance) > CHANCE
    return [one.process for one in found] if apart else []


@dataclass(frozen=True, eq=False)
class _HighOrder:
    """The equations y = Σ aᵢ y₋ᵢ + Σ bᵢ u₋ᵢ + c of high order, which have room for any linear plant."""

    a: Floats
    b: Floats
    covariance: Floats

    @classmethod
    def of(cls, record: _Record) -> "_HighOrder | None":
        """Fit them by least squares; None if the log is too short."""
        depth = min(HIGH_ORDER, sum(len(y) for y, _ in record.pieces) // (2 * ROWS_EACH))
        pieces = [(y, u) for y, u in record.pieces if len(y) > 2 * depth]
        if depth < LEAST_ORDER or not pieces:
            return None
        table, wanted = [], []
        for y, u in pieces:
            rows = np.arange(depth, len(y))
            back = rows[:, None] - np.arange(1, depth + 1)
            columns = np.hstack([y[back], u[back + 1]])  # u[k] is what was sent at row k − 1
            table.append(columns - columns.mean(axis=0))  # each piece has its own mean
            wanted.append(y[rows] - y[rows].mean())
        columns, target = np.vstack(table), np.concatenate(wanted)
        inverse = np.linalg.pinv(columns.T @ columns, rcond=1e-13, hermitian=True)
        numbers = inverse @ (columns.T @ target)
        left = target - columns @ numbers
        covariance = inverse * float(left @ left) / max(len(target) - 2 * depth, 1)
        return cls(numbers[:depth], numbers[depth:], covariance)

    @property
    def process(self) -> Process:
        """The plant."""
        return Process(np.append(1.0, -self.a), np.append(0.0, self.b))

    def variance(self, z: Any) -> Floats:
        """Return the variance of the frequency response [F], to first order."""
        powers = z[:, None] ** -np.arange(1, len(self.a) + 1)
        top, bottom = powers @ self.b, 1 - powers @ self.a
        slopes = np.hstack([(top / bottom**2)[:, None] * powers, powers / bottom[:, None]])
        variance = np.einsum("fi,ij,fj->f", slopes, self.covariance, slopes.conj()).real
        return np.asarray(np.maximum(variance, 1e-30))

    def speaks_against(self, one: Transfer) -> bool:
        """Tell whether a plant differs from this one by more than chance where a loop may cross over."""
        z = _middle(one.process)
        off = np.abs(self.process.response(z) - _response(one, one.x, one.gains, z)) ** 2
        return bool(np.mean(off / (self.variance(z) + _response_variance(one, z))) > CHANCE)


def _guesses(structure: Structure, long: _HighOrder, record: _Record) -> list[Floats]:
    """Return points to start from: the best fit to the frequency response of the equations of high order."""
    from scipy.optimize import least_squares

    z = _middle(long.process)
    wanted, sizes = long.process.response(z), np.sqrt(long.variance(z))
    weights = 1 / np.maximum(sizes, 1e-3 * np.abs(wanted))
    dt, order = record.dt, structure.order

    def left(x: Floats) -> Floats:
        bottom = _denominator(structure, x)
        plants = [sampled(top, bottom, x[-1] * dt, dt) for top in structure.tops]
        columns = np.array([one.response(z) * weights for one in plants]).T
        table, target = (np.concatenate([one.real, one.imag]) for one in (columns, wanted * weights))
        scale = np.linalg.norm(table, axis=0) + _TINY
        return np.asarray(target - table / scale @ np.linalg.lstsq(table / scale, target, rcond=1e-10)[0])

    slow = dt / float(np.angle(z[0]))
    starts = [
        np.array([math.log(share * slow), math.log(damping), *([math.log(late * slow)] * (order - 2)), rows])
        for share in (0.2, 0.5, 1.0)
        for damping in (0.5, 1.0)
        for late in (0.1, 1.0)[: 1 + (order > 2)]
        for rows in (0.0, 0.3 * slow / dt)
    ]
    low, high = _bounds(record, structure)
    found = []
    for late in (False, True):  # a dead time and a zero or a lag look alike: one point with it, one without
        inside = [np.clip(one, low + 1e-6, high - 1e-6) for one in starts if bool(one[-1]) is late]
        inside.sort(key=lambda x: float(np.sum(left(x) ** 2)))
        end = np.append(high[:-1], high[-1] if late else 1.0)
        runs = [least_squares(left, x, bounds=(low, end), diff_step=1e-5, max_nfev=40) for x in inside[:2]]
        found.append(np.asarray(min(runs, key=lambda run: float(run.cost)).x))
    return found


def _middle(process: Process) -> Any:
    """Return points of the unit circle at which a loop may cross over: where the plant lags 45° to 225°."""
    angles = np.geomspace(1e-4, np.pi, 400)
    response = process.response(np.exp(1j * angles))
    lag = -np.degrees(np.unwrap(np.angle(response * np.sign(response[0].real or 1.0))))
    inside = angles[(lag >= 45) & (lag <= 225)]
    chosen = inside if len(inside) >= 2 else angles
    return np.exp(1j * np.geomspace(chosen[0], chosen[-1], 16))


def _response(one: Transfer, x: Floats, gains: Floats, z: Any) -> Any:
    return _process(one.structure, x, gains, one.dt).response(z)


def _response_variance(one: Transfer, z: Any) -> Floats:
    """Return the variance of the frequency response by the errors of a fit, to first order."""
    middle, slopes = _response(one, one.x, one.gains, z), []
    for k, size in enumerate(np.append(np.full(len(one.x), 1e-4), 1e-4 * np.abs(one.gains))):
        x, gains = one.x.copy(), one.gains.copy()
        (x if k < len(x) else gains)[k if k < len(x) else k - len(x)] += size
        slopes.append((_response(one, x, gains, z) - middle) / (size or 1.0))
    columns = np.array(slopes)
    variance = np.einsum("if,ij,jf->f", columns, one.covariance, columns.conj()).real
    return np.asarray(np.maximum(variance, 1e-30))


def _drawn(record: _Record, one: Transfer, noise: Floats, rng: np.random.Generator) -> Iterator[Process]:
    """Yield plants that differ from one by its errors, nearer to it where the log speaks against them."""
    left, middle = record.residuals(one.structure, one.x, one.gains, noise), np.append(one.x, one.gains)
    values, vectors = np.linalg.eigh(one.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    least = float(np.sum(left**2))
    allowed = least * math.exp((len(values) + 2 * math.sqrt(2 * len(values))) / len(left))
    steps = [*(rng.standard_normal((DRAWN, len(values))) @ root.T), None]
    for step in steps:
        for share in 0.5 ** np.arange(8):
            if step is None:
                x, gains = _sharper(one, share), one.gains
            else:
                moved = middle + share * step
                x, gains = moved[: len(one.x)], moved[len(one.x) :]
                x[-1] = max(x[-1], 0.0)
            if float(np.sum(record.residuals(one.structure, x, gains, noise) ** 2)) <= allowed:
                yield _process(one.structure, x, gains, one.dt)
                break


def _sharper(one: Transfer, share: float) -> Floats:
    """Return the numbers with a part of the last lag as dead time: the most gain at high frequencies."""
    x, k = one.x.copy(), one.structure.order - 1
    if one.structure.order % 2:
        x[k] += share * min(0.0, math.log(FASTEST * one.dt) - x[k])
        x[-1] += (math.exp(one.x[k]) - math.exp(x[k])) / one.dt
    return x


def _all(record: _Record, noise: Floats, known: list[Transfer]) -> list[Transfer]:
    """Fit all structures, the best first."""
    found: list[Transfer] = []
    for structure in STRUCTURES:
        starts = _starts(record, structure, [*known, *found])
        if structure.order <= 1 and not structure.zero:
            starts += _grid(record, structure, noise)
        found.append(_fit(record, structure, starts, noise))
    return sorted(found, key=_price_of)


def _price_of(one: Transfer) -> float:
    return one.price


def _grid(record: _Record, structure: Structure, noise: Floats) -> list[Floats]:
    """Return the best two of a grid of time constants and dead times."""
    lags = np.geomspace(1.0, record.longest / 3, 9) * record.dt
    delays = np.append(0.0, np.geomspace(1.0, record.longest / 10, 8))
    tried = [
        np.append([math.log(lag)] * (structure.order > 0), late)
        for lag in (lags if structure.order else lags[:1])
        for late in delays
    ]
    return sorted(tried, key=lambda x: float(np.sum(record.project(structure, x, noise)[0] ** 2)))[:2]


def _starts(record: _Record, structure: Structure, known: Sequence[Transfer]) -> list[Floats]:
    """Return points to start from: those of smaller structures, with a part of the dead time as a lag."""
    dt, found = record.dt, []
    for one in known:
        if one.structure.integrates != structure.integrates:
            continue
        late = one.x[-1]
        if one.structure.order == structure.order:
            found.append(one.x.copy())
        elif one.structure.order == 1 and structure.order == 2:
            lag = math.exp(one.x[0])
            for share in (0.5, 0.05):
                other = max(share * late, 0.5) * dt
                tau = math.sqrt(lag * other)
                found.append(np.array([math.log(tau), math.log((lag + other) / 2 / tau), (1 - share) * late]))
            found.append(np.array([math.log(lag / 1.5), 0.0, 0.8 * late]))
        elif one.structure.order == 2 and structure.order == 3:
            found += [
                np.array([*one.x[:2], math.log(max(share * late, 0.5) * dt), (1 - share) * late])
                for share in (0.4, 0.05)
            ]
        elif one.structure.order == 0 and structure.order == 1:
            found.append(np.array([math.log(max(0.4 * late, 0.5) * dt), 0.6 * late]))
    return found


def _bounds(record: _Record, structure: Structure) -> tuple[Floats, Floats]:
    """Return the least and the largest x of a structure."""
    order, dt = structure.order, record.dt
    fast, slow = math.log(FASTEST * dt), math.log(SLOWEST * record.longest * dt)
    low, high = np.array([fast] * order + [0.0]), np.array([slow] * order + [record.longest / 3])
    if order >= 2:
        low[1], high[1] = map(math.log, DAMPING)
    return low, high


def _fit(record: _Record, structure: Structure, starts: Sequence[Floats], noise: Floats) -> Transfer:
    """Fit one structure from several points."""
    from scipy.optimize import least_squares

    dt, order = record.dt, structure.order
    low, high = _bounds(record, structure)
    inside = [np.clip(one, low + 1e-6, high - 1e-6) for one in starts]
    costs = [float(np.sum(record.project(structure, one, noise)[0] ** 2)) for one in inside]
    runs = [
        least_squares(
            lambda x: record.project(structure, x, noise)[0] / record.size, inside[k],
            bounds=(low, high), x_scale=np.append(np.full(order, 0.1), 0.3), diff_step=1e-5,
            ftol=1e-7, xtol=1e-6, gtol=1e-9, max_nfev=40,
        )
        for k in np.argsort(costs)[:2]
    ]  # fmt: skip
    best = min(runs, key=lambda run: run.cost)
    x = np.asarray(best.x)
    left, gains, table = record.project(structure, x, noise)
    slopes = np.hstack([_slopes(record, structure, x, gains, noise), table])
    variance = max(float(np.mean(left**2)), _TINY * record.size**2)
    known = np.zeros(slopes.shape[1])
    known[:order], known[order] = 1 / VAGUE**2, 1 / VAGUE**2 if x[-1] > 1e-3 else 1e12
    normal = slopes.T @ slopes / variance + np.diag(known)
    size = np.sqrt(np.diag(normal))
    covariance = np.linalg.pinv(normal / np.outer(size, size), rcond=1e-12, hermitian=True)
    covariance /= np.outer(size, size)
    plain, *_ = record.project(structure, x, np.ones(1))
    begins = (order + structure.integrates + 1) * len(record.pieces)
    count = len(x) + len(gains) + begins
    price = len(left) * math.log(variance) + count * math.log(len(left))
    return Transfer(
        structure, dt, x, gains, covariance,
        math.sqrt(variance), float(np.std(plain)) / record.size, price,
    )  # fmt: skip


def _slopes(record: _Record, structure: Structure, x: Floats, gains: Floats, noise: Floats) -> Floats:
    """Return the derivatives [n, X] of the course by x, at these gains."""
    columns = []
    for k in range(len(x)):
        step = np.zeros(len(x))
        step[k] = 1e-4
        back = step if k < len(x) - 1 or x[k] > step[k] else 0 * step  # no dead time is negative
        after, before = (record.residuals(structure, one, gains, noise) for one in (x + step, x - back))
        columns.append((before - after) / (step + back)[k])
    return np.column_stack(columns)


def _whitener(record: _Record, one: Transfer) -> Floats:
    """Return the autoregression [1, …] that makes what is left white, by Schwarz's criterion."""
    left, *_ = record.project(one.structure, one.x, np.ones(1))
    n, most = len(left), min(max(NOISE_LAGS), len(left) // 10)
    full = np.column_stack([left[most - k : n - k] for k in range(most + 1)])
    best, chosen = math.inf, np.ones(1)
    for lags in NOISE_LAGS:
        if lags > most:
            break
        taps = np.linalg.lstsq(full[:, 1 : lags + 1], full[:, 0], rcond=1e-9)[0] if lags else np.zeros(0)
        variance = float(np.mean((full[:, 0] - full[:, 1 : lags + 1] @ taps) ** 2))
        price = len(full) * math.log(max(variance, 1e-300)) + lags * math.log(len(full))
        if price < best:
            best, chosen = price, np.append(1.0, -taps)
    return chosen
