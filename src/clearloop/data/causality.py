"""What acts on what: rows that follow from those before, actions that do something, and when they do it."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from clearloop.arrays import Floats, Ints
from clearloop.data.findings import Finding
from clearloop.data.log import Log
from clearloop.numbers import counted, rough_percent
from clearloop.task import Task

# A log as signals in time: scaled columns, and how far back each row can look without a break.

_MOST_ROWS = 12_000  # more would not change the answers
_BLOCK = 2_000  # rows in a piece, where there are more


@dataclass(frozen=True, eq=False)
class StandardisedLog:
    """n rows: those of a log, or evenly spaced pieces of a long one. Columns have mean 0 and deviation 1."""

    states: Floats
    """[n, S]"""
    actions: Floats
    """[n, A]; 0 where none is known"""
    setpoints: Floats
    """[n, P]"""
    age: Ints
    """[n] rows of the same unbroken stretch before this one"""

    @classmethod
    def of(cls, log: Log) -> "StandardisedLog":
        chosen = _pieces(len(log.states))
        states, actions, setpoints = (array[chosen] for array in (log.states, log.actions, _setpoints(log)))
        episodes, terminal = log.episodes[chosen], log.terminal[chosen]
        acted = np.asarray(np.isfinite(actions).all(axis=1))
        # What failure leaves behind says nothing of the dynamics.
        known = ~terminal
        known &= np.isfinite(np.hstack([states, setpoints])).all(axis=1)
        begins = np.ones(len(states), np.bool_)
        begins[1:] = (episodes[1:] != episodes[:-1]) | (np.diff(chosen) != 1) | ~acted[:-1] | ~known[:-1]
        age = np.arange(len(states)) - np.maximum.accumulate(np.where(begins, np.arange(len(states)), 0))
        age[~known] = -1
        return cls(scaled(states), scaled(actions), scaled(setpoints), age)

    def __len__(self) -> int:
        return len(self.age)

    @property
    def length(self) -> int:
        """Of a typical stretch: half of the rows are in longer ones."""
        ends = np.append(self.age[1:] <= 0, True) & (self.age >= 0)
        lengths = np.sort(self.age[ends] + 1)
        if not len(lengths):
            return 0
        return int(lengths[np.searchsorted(np.cumsum(lengths), lengths.sum() / 2)])

    def rows(self, back: int) -> Ints:
        """Rows that have so many before them."""
        return np.flatnonzero(self.age >= back)


def scaled(values: Floats) -> Floats:
    """Each column with mean 0 and deviation 1, or all 0; cells without a finite number are 0."""
    known = np.isfinite(values)
    cells = np.where(known, values, 0.0)
    largest = np.abs(cells).max(axis=0, initial=0.0)  # first to -1 … 1, so that no square overflows
    cells = cells / np.where(largest > 0, largest, 1.0)
    count = np.maximum(known.sum(axis=0), 1)
    cells = np.where(known, cells - cells.sum(axis=0) / count, 0.0)
    spread = np.sqrt(np.square(cells).sum(axis=0) / count)
    return np.asarray(cells / np.where(spread > 1e-12, spread, np.inf))


def lagged(values: Floats, rows: Ints, lags: range) -> Floats:
    """[rows, lags × columns]: the values so many rows earlier."""
    return np.concatenate([values[rows - lag] for lag in lags] or [np.zeros((len(rows), 0))], axis=1)


def _setpoints(log: Log) -> Floats:
    return np.zeros((len(log.states), 0)) if log.setpoints is None else log.setpoints


def _pieces(rows: int) -> Ints:
    if rows <= _MOST_ROWS:
        return np.arange(rows)
    begins = np.linspace(0, rows - _BLOCK, _MOST_ROWS // _BLOCK).astype(np.int64)
    return np.unique(begins[:, None] + np.arange(_BLOCK))


# Whether one signal of a log acts on another: more than the same signal at another time would seem to.
#
# What the past of some signals explains of others, beyond what is given, is a share of their variance.
# Drivers that are moved in time by a random distance keep their own character and lose their meaning; what
# they seem to explain is chance. That holds for held, drifting and feedback signals, where tables of the F
# test do not.

SHIFTS = 19
CLEAR = 6.0  # standard deviations above chance
_SMALLEST = 1e-6  # share of a signal's variance: rounding does as much
_FEWEST = 10  # rows for each column
ALIKE = 1e-10  # drivers that differ by less, squared, are one


class Lags(NamedTuple):
    """Signals [n, columns], so many rows before the row that is to be explained."""

    values: Floats
    lags: range


class Influence(NamedTuple):
    share: Floats
    """[T] of the targets' variance that the drivers explain beyond what is given"""
    left: Floats
    """[T] share that nothing explains"""
    clear: bool
    """whether that is more than chance, for one target or more"""


_NONE = Influence(np.zeros(0), np.zeros(0), clear=False)


def influence(
    course: StandardisedLog, targets: Floats, drivers: Sequence[Lags], given: Sequence[Lags], back: int
) -> Influence:
    """On `targets` [n, T]. `back`: rows that every row needs before it. NONE for a log too short to tell."""
    rows = course.rows(back)
    known = np.hstack([np.ones((len(rows), 1)), _columns(given, rows)])
    if len(rows) < _FEWEST * (known.shape[1] + sum(one.values.shape[1] * len(one.lags) for one in drivers)):
        return _NONE
    basis = _basis(known)
    left = _beyond(targets[rows], basis)
    whole = np.square(targets[rows] - targets[rows].mean(axis=0)).sum(axis=0)
    share = _share(left, drivers, rows, basis, whole)
    rng = np.random.default_rng(0)
    offsets = rng.integers(len(course) // 10, len(course) - len(course) // 10, SHIFTS)
    moved = ([Lags(np.roll(one.values, offset, axis=0), one.lags) for one in drivers] for offset in offsets)
    chance = np.array([_share(left, some, rows, basis, whole) for some in moved])
    limit = chance.mean(axis=0) + CLEAR * chance.std(axis=0)
    rest = np.square(left).sum(axis=0) / np.where(whole > 0, whole, np.inf) - share
    return Influence(share, rest, bool(np.any((share > limit) & (share > _SMALLEST))))


def unexplained(course: StandardisedLog, targets: Floats, given: Sequence[Lags], back: int) -> Floats:
    """[T] share of the targets' variance that is left when all that is given is known; none if too short."""
    rows = course.rows(back)
    known = np.hstack([np.ones((len(rows), 1)), _columns(given, rows)])
    if len(rows) < _FEWEST * known.shape[1]:
        return np.zeros(0)
    whole = np.square(targets[rows] - targets[rows].mean(axis=0)).sum(axis=0)
    left = np.square(_beyond(targets[rows], _basis(known))).sum(axis=0)
    return np.asarray(left / np.where(whole > 0, whole, np.inf))


def _columns(parts: Sequence[Lags], rows: Ints) -> Floats:
    """[rows, columns]"""
    return np.hstack([np.zeros((len(rows), 0)), *(lagged(one.values, rows, one.lags) for one in parts)])


def _basis(columns: Floats) -> Floats:
    """Orthonormal, of all that the columns span."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-9 * sizes.max(initial=1e-300)])


def _beyond(columns: Floats, basis: Floats) -> Floats:
    rest = columns - basis @ (basis.T @ columns)
    return np.asarray(rest - basis @ (basis.T @ rest))


def _share(left: Floats, drivers: Sequence[Lags], rows: Ints, basis: Floats, whole: Floats) -> Floats:
    """[T] of `whole` that drivers explain of what is left."""
    columns = _columns(drivers, rows)
    own = _beyond(columns, basis)
    size = np.sqrt(np.square(columns).sum(axis=0))
    own = own[:, np.square(own).sum(axis=0) > np.square(1e-6 * size)]  # the others are known already
    if not own.shape[1]:
        return np.zeros(left.shape[1])
    own /= np.linalg.norm(own, axis=0)
    values, axes = np.linalg.eigh(own.T @ own)
    axes = axes[:, values > ALIKE] / np.sqrt(values[values > ALIKE])
    explained = np.square(axes.T @ (own.T @ left)).sum(axis=0)
    return np.asarray(explained / np.where(whole > 0, whole, np.inf))


RELATED = 0.05  # share of a state's variance that the row before must explain, of one state at least
LONGEST_DELAY = 50  # rows
LOOKED_BACK = 4  # rows of states, or as many as the task's history: shows what is not measured
SHARE_OF_EFFECT = 0.01  # what an action does in its first rows is nothing, if it is less of all that it does
_DRIVEN = 0.1  # share of what is new in an action that a state must explain, to be taken for what drives it
TOGETHER = 0.1  # correlation of what is new in both at the same time: a feedback law has more
LONGER = (2, 3, 5, 8, 12)  # rows of history that are tried
_WORTH = 0.5  # of what is left unexplained: more must go with a longer history to be worth a word
MATTERS = 0.1  # of a state's change: if less is left unexplained, there is no need of more history
_NEARLY = 1.1  # times the least that is left


def check_causality(task: Task, course: StandardisedLog, doubtful: Set[str]) -> Iterator[Finding]:
    """Nothing is said of logs that are too short to tell, and of doubtful actions, which tell nothing."""
    sight = Sight(course, task)
    if sight.fading():
        what = (
            "a row says nothing of the next one: no state follows from the states and actions before; "
            "sort the rows by time, number the episodes, or log at shorter intervals"
        )
        yield Finding("problem", "unrelated-rows", what)
        return
    yield from _memory(sight, task)
    for i, name in enumerate(task.action_names):
        if name not in doubtful and np.any(course.actions[:, i]):
            yield from _action(sight, task, i, name)


class Sight:
    """How one looks at a course: which past is given when something new is to be explained."""

    def __init__(self, course: StandardisedLog, task: Task) -> None:
        self.course, self.task = course, task
        self.measured = [task.state_names.index(name) for name in task.predicted]
        """states that a model must predict"""
        n_states, n_actions = course.states.shape[1], course.actions.shape[1]
        self.back = max(task.history, LOOKED_BACK)
        room = len(course) // (12 * (n_actions + 1)) - self.back * n_states
        self.delays: int = max(1, min(LONGEST_DELAY, course.length // 3 - self.back, room))
        """lags of an action that are looked at"""
        self.deep = max(self.back, self.delays)
        self.changes = (course.states - np.roll(course.states, 1, axis=0))[:, self.measured]
        """[n, measured] since the row before; of no meaning in the first row of a stretch"""
        pairs = [course.states[:, [j]] * course.states[:, : j + 1] for j in range(min(n_states, 6))]
        self.curved = np.concatenate(pairs, axis=1)
        """[n, pairs] products of states, which a linear law leaves out"""

    def fading(self) -> bool:
        """Whether states do not follow from the row before."""
        past = Lags(np.hstack([self.course.states, self.curved, self.course.actions]), range(1, 2))
        states = self.course.states[:, self.measured]
        left = unexplained(self.course, states, [past], 1)
        moving = np.any(states, axis=0)
        return left.size > 0 and bool(np.all(left[moving] > 1 - RELATED)) and bool(moving.any())

    def effect(self, i: int, lags: int) -> Influence:
        """Of an action's last so many values on all states; the states, the values before and other actions
        are given.
        """
        course = self.course
        action, others = course.actions[:, [i]], np.delete(course.actions, i, axis=1)
        curved = np.hstack([action * course.states, np.square(action)])
        drivers = [Lags(action, range(1, lags + 1)), Lags(curved, range(1, 2))]
        given = [
            Lags(course.states, range(1, self.back + 1)),
            Lags(self.curved, range(1, 2)),
            Lags(others, range(1, self.delays + 1)),
            Lags(action, range(lags + 1, self.delays + 1)),
        ]
        return influence(course, self.changes, drivers, given, self.deep)

    def left(self, history: int, deep: int) -> Floats:
        """[measured] share of changes that so many rows do not explain, linearly; none if too short."""
        course = self.course
        past = [Lags(np.hstack([course.states, course.actions]), range(1, history + 1))]
        return unexplained(course, self.changes, [*past, Lags(self.curved, range(1, 2))], deep)

    def driver(self, i: int) -> int | None:
        """The state that drives an action instead of being driven: neither this action nor another state acts
        on it, it acts on the action, and not at once, as it would through a law.
        """
        course = self.course
        action, lags = course.actions[:, [i]], range(1, self.back + 1)
        for j in self.measured:
            state, rest = course.states[:, [j]], np.delete(course.states, j, axis=1)
            others = np.hstack([course.actions, rest])
            own = [Lags(state, lags)]
            if not np.any(state) or influence(course, state, [Lags(others, lags)], own, self.back).clear:
                continue
            given = [Lags(action, lags), Lags(rest, lags)]
            found = influence(course, action, [Lags(state, lags)], given, self.back)
            if found.clear and _part(found) >= _DRIVEN and self._together(i, j) < TOGETHER:
                return j
        return None

    def _together(self, i: int, j: int) -> float:
        """The correlation of an action and a state of the same row, beyond what the rows before tell."""
        course, lags = self.course, range(1, self.back + 1)
        given = [Lags(course.states, lags), Lags(course.actions, lags)]
        state = Lags(course.states[:, [j]], range(1))
        found = influence(course, course.actions[:, [i]], [state], given, self.back)
        return float(np.sqrt(_part(found)))


def _part(found: Influence) -> float:
    """Of what was not known, the share that is explained, of the first target."""
    return float((found.share / np.maximum(found.share + found.left, 1e-12)).max(initial=0.0))


def _memory(sight: Sight, task: Task) -> Iterator[Finding]:
    """Whether more rows of history would tell much more: a speed that is not measured, noise, a delay."""
    tried = [task.history, *(rows for rows in LONGER if rows > task.history)]
    left = [sight.left(rows, max(tried)) for rows in tried]
    if len(tried) < 2 or not all(some.size for some in left):
        return
    gain = np.array([np.max((left[0] - some) / np.maximum(left[0], 1e-12)) for some in left])
    state = int(np.argmax((left[0] - left[-1]) / np.maximum(left[0], 1e-12)))
    if gain[-1] > _WORTH and left[0][state] > MATTERS:
        rows = next(
            rows for rows, some in zip(tried, left, strict=True) if some[state] <= _NEARLY * left[-1][state]
        )
        before, after = (
            rough_percent(1 - max(float(share), 0.0)) for share in (left[0][state], left[-1][state])
        )
        what = (
            f"{task.predicted[state]} depends on what was before: with history = {rows}, a linear model "
            f"explains {after} of its change, with history = {task.history} only {before}"
        )
        yield Finding("warning", "short-history", what, {"name": task.predicted[state], "history": rows})


def _action(sight: Sight, task: Task, i: int, name: str) -> Iterator[Finding]:
    whole = sight.effect(i, sight.delays)
    if not whole.share.size:
        return
    if (j := sight.driver(i)) is not None:
        state = task.state_names[j]
        what = (
            f"{name} follows {state}, and nothing acts on {state}: the columns seem to be swapped; "
            "correct [data] in the task, or the log's header"
        )
        yield Finding("problem", "swapped-columns", what, {"name": name, "state": state})
        return
    if not whole.clear:
        yield _without_effect(name, sight.delays)
        return
    delay = _delay(sight, i, whole)
    if delay >= task.history:
        what = (
            f"{name} acts only after {delay + 1} steps, but the model sees {task.history} row"
            f"{'s' * (task.history > 1)}: write history = {delay + 1} in the task"
        )
        yield Finding("problem", "delay", what, {"name": name, "steps": delay, "history": delay + 1})
    elif delay:
        what = f"{name} acts after {delay + 1} steps, which history = {task.history} shows"
        yield Finding("ok", "delay", what, {"name": name, "steps": delay, "history": delay + 1})


def _without_effect(name: str, lags: int) -> Finding:
    what = (
        f"{name} has no effect on any state within {counted(lags, 'step')}, not more than chance would "
        "show; check that it is what the plant received, log larger moves of it, or the states that it moves"
    )
    return Finding("problem", "no-effect", what, {"name": name, "steps": lags})


def _delay(sight: Sight, i: int, whole: Influence) -> int:
    """Steps that pass before an action acts, beyond the usual one: with so many lags it does not, with one
    more it does.
    """
    none, some = 0, int(sight.delays)
    while some - none > 1:
        lags = 1 if not none else (none + some) // 2  # most act at once
        found = sight.effect(i, lags)
        if found.clear and np.any(found.share > SHARE_OF_EFFECT * whole.share):
            some = lags
        else:
            none = lags
    return some - 1
