"""The checks of cause and effect: do rows follow from those before, do actions act, and after how long?"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data.findings import Finding
from clearloop.data.log import Log
from clearloop.numbers import counted, rough_percent
from clearloop.task import Task

# The log as signals in time: scaled columns, and how far back each row can look without a break.

_MOST_ROWS = 12_000  # more would change few answers
_LARGE = 100_000  # rows in which an effect is looked for that fewer do not show
_BLOCK = 2_000  # rows in a piece, where there are more


class Rows(Protocol):
    """Rows of a log as a `Batch` holds them."""

    @property
    def states(self) -> Floats:
        """[n, S]"""

    @property
    def actions(self) -> Floats:
        """[n, A]"""

    @property
    def setpoints(self) -> Floats | None:
        """[n, P]"""

    @property
    def episodes(self) -> Ints:
        """[n]"""

    @property
    def terminal(self) -> Flags:
        """[n]"""


@dataclass(frozen=True, eq=False)
class StandardisedLog:
    """The n rows of a log, or of evenly spaced pieces of a long one, with columns of mean 0, deviation 1."""

    states: Floats
    """[n, S]"""
    actions: Floats
    """[n, A], 0 where none is known"""
    setpoints: Floats
    """[n, P]"""
    age: Ints
    """[n] the number of rows before this one in the same unbroken stretch; -1 if the row is not known"""

    @classmethod
    def of(cls, log: Log | Rows, most: int = _MOST_ROWS) -> "StandardisedLog":
        """Choose and scale the rows of a log, about `most` of them."""
        chosen = _pieces(len(log.states), most)
        states, actions, setpoints = (array[chosen] for array in (log.states, log.actions, _setpoints(log)))
        episodes, terminal = log.episodes[chosen], log.terminal[chosen]
        acted = np.asarray(np.isfinite(actions).all(axis=1))
        # The state after a failure says nothing about the dynamics.
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
        """The length of a typical stretch: half of the rows are in longer ones."""
        ends = np.append(self.age[1:] <= 0, True) & (self.age >= 0)
        lengths = np.sort(self.age[ends] + 1)
        if not len(lengths):
            return 0
        return int(lengths[np.searchsorted(np.cumsum(lengths), lengths.sum() / 2)])

    def rows(self, back: int) -> Ints:
        """Return the rows that have at least `back` rows before them in their stretch."""
        return np.flatnonzero(self.age >= back)


def scaled(values: Floats) -> Floats:
    """Scale each column to mean 0 and deviation 1, or to 0 if constant; cells that are not finite are 0."""
    known = np.isfinite(values)
    cells = np.where(known, values, 0.0)
    largest = np.abs(cells).max(axis=0, initial=0.0)  # first to -1 … 1, so that no square overflows
    cells = cells / np.where(largest > 0, largest, 1.0)
    count = np.maximum(known.sum(axis=0), 1)
    cells = np.where(known, cells - cells.sum(axis=0) / count, 0.0)
    spread = np.sqrt(np.square(cells).sum(axis=0) / count)
    return np.asarray(cells / np.where(spread > 1e-12, spread, np.inf))


def lagged(values: Floats, rows: Ints, lags: range) -> Floats:
    """Return the values [rows, lags × columns] that stand `lags` rows before the given rows."""
    return np.concatenate([values[rows - lag] for lag in lags] or [np.zeros((len(rows), 0))], axis=1)


def _setpoints(log: Log | Rows) -> Floats:
    return np.zeros((len(log.states), 0)) if log.setpoints is None else log.setpoints


def _pieces(rows: int, most: int) -> Ints:
    if rows <= most:
        return np.arange(rows)
    begins = np.linspace(0, rows - _BLOCK, most // _BLOCK).astype(np.int64)
    return np.unique(begins[:, None] + np.arange(_BLOCK))


# The test: does one signal of a log act on another, more than the same signal at another time seems to?
#
# The past of some signals, the drivers, explains a share of the variance of others, the targets, beyond what
# is given. Drivers that are shifted in time by a random distance keep their own character and lose their
# meaning, so whatever they explain is chance. This holds for held, drifting and feedback signals, for which
# the tables of the F test do not.

SHIFTS = 19
CLEAR = 6.0  # standard deviations above chance
_SMALLEST = 1e-6  # share of a signal's variance: rounding does as much
_FEWEST = 10  # rows for each column
ALIKE = 1e-10  # drivers that differ by less, squared, are one


class Lags(NamedTuple):
    """Signals [n, columns] at some lags: rows before the row that is to be explained."""

    values: Floats
    lags: range


class Influence(NamedTuple):
    """The influence of drivers on T targets; the arrays are empty for a log that is too short to tell."""

    share: Floats
    """[T] the share of each target's variance that the drivers explain beyond what is given"""
    left: Floats
    """[T] the share that nothing explains"""
    clear: bool
    """true if the drivers explain more than chance, for one target or more"""


_NONE = Influence(np.zeros(0), np.zeros(0), clear=False)


def influence(
    course: StandardisedLog, targets: Floats, drivers: Sequence[Lags], given: Sequence[Lags], back: int
) -> Influence:
    """Test whether drivers act on targets.

    Args:
        course: The log.
        targets: The signals to explain [n, T].
        drivers: The signals that may act on them.
        given: The signals whose effect is known already.
        back: The number of rows that every row needs before it.
    """
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
    """Return the share of each target's variance [T] that `given` leaves; empty if the log is too short."""
    rows = course.rows(back)
    known = np.hstack([np.ones((len(rows), 1)), _columns(given, rows)])
    if len(rows) < _FEWEST * known.shape[1]:
        return np.zeros(0)
    whole = np.square(targets[rows] - targets[rows].mean(axis=0)).sum(axis=0)
    left = np.square(_beyond(targets[rows], _basis(known))).sum(axis=0)
    return np.asarray(left / np.where(whole > 0, whole, np.inf))


def _columns(parts: Sequence[Lags], rows: Ints) -> Floats:
    """Return the lagged signals side by side [rows, columns]."""
    return np.hstack([np.zeros((len(rows), 0)), *(lagged(one.values, rows, one.lags) for one in parts)])


def _basis(columns: Floats) -> Floats:
    """Return an orthonormal basis of what the columns span."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-9 * sizes.max(initial=1e-300)])


def _beyond(columns: Floats, basis: Floats) -> Floats:
    rest = columns - basis @ (basis.T @ columns)
    return np.asarray(rest - basis @ (basis.T @ rest))


def _share(left: Floats, drivers: Sequence[Lags], rows: Ints, basis: Floats, whole: Floats) -> Floats:
    """Return the share of `whole` [T] that drivers explain of what is left."""
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


# A slow plant shows little in one row, and fifty lags of an action spread a small effect over as many
# parameters. So one mean of the action is also compared with what happens to a state some rows later. Only
# actions up to the row from which the state is followed count: later ones may already answer to it.

AHEAD = (1, 4, 16, 64)  # rows after which a state is compared with its value
AVERAGED = (1, 8)  # rows of the action that are averaged
LATER_SHIFTS = 99
BEYOND_CHANCE = 1.5  # times the largest score of the shifted copies


def acts_later(course: StandardisedLog, i: int, targets: Sequence[int], back: int) -> bool:
    """Test whether action `i` moves a state within some rows, by one parameter for each number of rows.

    Args:
        course: The log.
        i: The index of the action.
        targets: The indices of the states that it may move.
        back: The number of rows of states that are given.
    """
    rng = np.random.default_rng(0)
    offsets = np.append(0, rng.integers(len(course) // 10, len(course) - len(course) // 10, LATER_SHIFTS))
    scores = [
        _later_scores(course, i, targets, Lags(course.states, range(ahead, ahead + back)), mean, offsets)
        for ahead in AHEAD
        for mean in AVERAGED
        if 4 * (ahead + max(back, mean)) <= course.length
    ]
    found = np.max([score for score in scores if score.size] or [np.zeros(1 + LATER_SHIFTS)], axis=0)
    return bool(found[0] > BEYOND_CHANCE * found[1:].max())


def _later_scores(
    course: StandardisedLog, i: int, targets: Sequence[int], given: Lags, mean: int, offsets: Ints
) -> Floats:
    """Return the largest effect on a target, in units of chance, of the action shifted by each offset."""
    ahead = given.lags.start
    rows = course.rows(ahead + max(len(given.lags), mean))
    others = Lags(np.delete(course.actions, i, axis=1), range(ahead, ahead + 1))
    known = np.hstack([np.ones((len(rows), 1)), _columns([given, others], rows)])
    if len(rows) < _FEWEST * known.shape[1]:
        return np.zeros(0)
    basis = _basis(known)
    changes = (course.states - np.roll(course.states, ahead, axis=0))[:, list(targets)]
    left = _beyond(changes[rows], basis)
    action = np.mean([np.roll(course.actions[:, i], ahead + k) for k in range(mean)], axis=0)
    drivers = _beyond(np.stack([np.roll(action, offset)[rows] for offset in offsets], axis=1), basis)
    sizes = np.square(drivers).sum(axis=0)[:, None]
    shares = np.square(drivers.T @ left) / np.where(sizes > 0, sizes, np.inf)
    chance = shares[1:].mean(axis=0)
    return np.asarray((shares / np.where(chance > 0, chance, np.inf)).max(axis=1, initial=0.0))


# The checks.

RELATED = 0.05  # share of a state's variance that the row before must explain, of one state at least
LONGEST_DELAY = 50  # rows
LOOKED_BACK = 4  # rows of states that are given, or the task's history: they show what is not measured
FURTHER_BACK = 24  # rows of states that are given where the delay of a weak effect is measured
SHARE_OF_EFFECT = 0.01  # of an action's whole effect: it has not begun to act in rows that show less
_DRIVEN = 0.1  # share of what is new in an action that a state must explain to count as its driver
TOGETHER = 0.1  # correlation of what is new in both in the same row: under a feedback law it is larger
LONGER = (2, 3, 5, 8, 12)  # rows of history that are tried
_WORTH = 0.15  # share of the unexplained that a longer history must explain to be advised
MATTERS = 0.1  # of a state's change: if less is left unexplained, no longer history is needed
_NEARLY = 1.1  # times the least that is left unexplained
SET = (
    0.5  # share of a signal's rows that repeat the row before, or least unexplained: it is set, not measured
)
SEEN = 0.5  # share of an action's effect that the task's history must show
HIDDEN = 0.05  # share of a state's change that may depend on actions before the history
AS_GOOD = 0.95  # of the share that the best lag explains


def check_causality(
    task: Task, log: Log | Rows, course: StandardisedLog, doubtful: Set[str]
) -> Iterator[Finding]:
    """Check that rows follow from rows and that actions act, and find how much history is needed.

    Nothing is said about logs that are too short to tell.

    Args:
        task: What is to be controlled.
        log: The log.
        course: The same log, standardised.
        doubtful: Actions that other checks have refused, and that are left out here.
    """
    sight = Sight(course, task)
    if sight.fading():
        what = (
            "a row says nothing about the next one: no state can be predicted from the rows before; "
            "sort the rows by time, number the episodes, or log at shorter intervals"
        )
        yield Finding("problem", "unrelated-rows", what)
        return
    yield from _memory(sight, task)
    for i, name in enumerate(task.action_names):
        if name not in doubtful and np.any(course.actions[:, i]):
            yield from _action(sight, log, task, i, name)


class Sight:
    """The questions to a log: for each one, which past is given, and what is to be explained."""

    def __init__(self, course: StandardisedLog, task: Task) -> None:
        self.course, self.task = course, task
        self.measured = [task.state_names.index(name) for name in task.predicted]
        """the indices of the states that a model must predict"""
        self.given = [task.state_names.index(name) for name in task.state_names if name not in task.derived]
        """the indices of the states that are not computed: a sum or a difference tells nothing new about the
        plant, but with them a controller's action follows from the states of its own row"""
        n_states, n_actions = course.states.shape[1], course.actions.shape[1]
        self.back = max(task.history, LOOKED_BACK)
        room = len(course) // (12 * (n_actions + 1)) - self.back * n_states
        self.delays: int = max(1, min(LONGEST_DELAY, course.length // 3 - self.back, room))
        """the number of lags of an action that are looked at"""
        self.deep = max(self.back, self.delays)
        self.changes = (course.states - np.roll(course.states, 1, axis=0))[:, self.measured]
        """[n, measured] changes since the row before; meaningless in the first row of a stretch"""
        seen = course.states[:, self.given]
        pairs = [seen[:, [j]] * seen[:, : j + 1] for j in range(min(len(self.given), 6))]
        self.curved = np.concatenate(pairs, axis=1)
        """[n, pairs] products of states, which a linear law leaves out"""

    def fading(self) -> bool:
        """Return True if no state follows from the row before."""
        past = Lags(np.hstack([self.course.states, self.curved, self.course.actions]), range(1, 2))
        states = self.course.states[:, self.measured]
        left = unexplained(self.course, states, [past], 1)
        moving = np.any(states, axis=0)
        return left.size > 0 and bool(np.all(left[moving] > 1 - RELATED)) and bool(moving.any())

    def effect(self, i: int, lags: int, states: Sequence[int] = ()) -> Influence:
        """Test the influence of an action's last `lags` values on the changes of some states, or of all.

        The states, the action's earlier values and the other actions are given.
        """
        course = self.course
        action, others = course.actions[:, [i]], np.delete(course.actions, i, axis=1)
        curved = np.hstack([action * course.states, np.square(action)])
        drivers = [Lags(action, range(1, lags + 1)), Lags(curved, range(1, 2))]
        given = [
            Lags(course.states[:, self.given], range(1, self.back + 1)),
            Lags(self.curved, range(1, 2)),
            Lags(others, range(1, self.delays + 1)),
            Lags(action, range(lags + 1, self.delays + 1)),
        ]
        chosen = [self.measured.index(state) for state in states or self.measured]
        return influence(course, self.changes[:, chosen], drivers, given, self.deep)

    def left(self, history: int, deep: int) -> Floats:
        """Return the share of each state's change [measured] that `history` rows do not explain linearly.

        The array is empty if the log is too short; every row needs `deep` rows before it.
        """
        course = self.course
        past = [Lags(np.hstack([course.states, course.actions]), range(1, history + 1))]
        return unexplained(course, self.changes, [*past, Lags(self.curved, range(1, 2))], deep)

    def driver(self, i: int) -> int | None:
        """Return the state that drives action `i` instead of being driven by it; None if there is none.

        Neither the action nor another state acts on such a state, and it acts on the action, but not within
        the same row, as it would through a feedback law.
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

    def is_set(self, j: int) -> bool:
        """Return True if a state looks like a signal that somebody sets: held, or without a past."""
        course = self.course
        values, rows = course.states[:, j], course.rows(1)
        if np.mean(values[rows] == values[rows - 1]) > SET:
            return True
        left = unexplained(
            course, values[:, None], [Lags(values[:, None], range(1, self.back + 1))], self.back
        )
        return bool(np.any(left > SET))

    def moves_another(self, i: int, j: int) -> bool:
        """Return True if action `i` clearly moves a measured state other than `j`."""
        others = [state for state in self.measured if state != j]
        return bool(others) and (
            self.effect(i, self.delays, others).clear or acts_later(self.course, i, others, self.back)
        )

    def hides(self, i: int) -> bool:
        """Return True if the task's history shows less than half of an effect of action `i` that matters."""
        lags = min(self.task.history, self.delays)
        whole, short = self._plain(i, range(1, self.delays + 1)), self._plain(i, range(1, lags + 1))
        return bool(np.any((whole - short > HIDDEN) & (short < SEEN * whole)))

    def usual_delay(self, i: int) -> int:
        """Return the delay of the single value of action `i` that explains most, or of one nearly as good."""
        shares = np.array([self._plain(i, range(lag, lag + 1)) for lag in range(1, self.delays + 1)])
        best = shares[:, int(np.argmax(shares.max(axis=0)))]
        return int(np.flatnonzero(best >= AS_GOOD * best.max())[0])

    def _plain(self, i: int, lags: range) -> Floats:
        """Return the share of each state's change that lags of an action explain, less that of chance."""
        # Under a feedback law earlier actions tell about earlier states: those are given, too.
        room = len(self.course) // (_FEWEST * self.course.states.shape[1]) - self.deep
        further = max(self.back, min(FURTHER_BACK, room))
        given = [
            Lags(self.course.states, range(1, further + 1)),
            Lags(np.delete(self.course.actions, i, axis=1), range(1, self.delays + 1)),
        ]
        rows = self.course.rows(max(self.deep, further))
        basis = _basis(np.hstack([np.ones((len(rows), 1)), _columns(given, rows)]))
        left = _beyond(self.changes[rows], basis)
        drivers = [Lags(self.course.actions[:, [i]], lags)]
        share = _share(left, drivers, rows, basis, np.square(left).sum(axis=0))
        return share - len(lags) / len(rows)

    def _together(self, i: int, j: int) -> float:
        """Return the correlation of an action with a state of the same row, given the rows before."""
        course, lags = self.course, range(1, self.back + 1)
        given = [Lags(course.states, lags), Lags(course.actions, lags)]
        state = Lags(course.states[:, [j]], range(1))
        found = influence(course, course.actions[:, [i]], [state], given, self.back)
        return float(np.sqrt(_part(found)))


def _part(found: Influence) -> float:
    """Return the largest share that is explained of what was not known."""
    return float((found.share / np.maximum(found.share + found.left, 1e-12)).max(initial=0.0))


def _memory(sight: Sight, task: Task) -> Iterator[Finding]:
    """Warn if a longer history would explain much more: a hidden velocity, noise, or a delay."""
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
            f"{task.predicted[state]} depends on earlier rows: with history = {rows}, a linear model "
            f"explains {after} of its change, with history = {task.history} only {before}"
        )
        yield Finding("warning", "short-history", what, {"name": task.predicted[state], "history": rows})


def has_effect(task: Task, log: Log | Rows, i: int) -> bool:
    """Tell whether action `i` moves a measured state more than chance; False for a log too short to tell."""
    sight = Sight(StandardisedLog.of(log), task)
    whole = sight.effect(i, sight.delays)
    return bool(whole.share.size) and _acts(sight, log, i, whole)


def _acts(sight: Sight, log: Log | Rows, i: int, whole: Influence) -> bool:
    """Tell whether action `i` acts; what a few rows do not show, all rows of a long log may."""
    if whole.clear or acts_later(sight.course, i, sight.measured, sight.back):
        return True
    if len(sight.course) == len(log.states):
        return False
    return acts_later(StandardisedLog.of(log, _LARGE), i, sight.measured, sight.back)


def _action(sight: Sight, log: Log | Rows, task: Task, i: int, name: str) -> Iterator[Finding]:
    whole = sight.effect(i, sight.delays)
    if not whole.share.size:
        return
    acts = _acts(sight, log, i, whole)
    if (j := sight.driver(i)) is not None:
        state = task.state_names[j]
        if not acts or (sight.is_set(j) and not sight.moves_another(i, j)):
            yield _swapped(name, state)
            return
        yield _from_outside(name, state)
    if not acts:
        yield _without_effect(name, sight.delays)
    elif whole.clear:
        yield from _late(sight, task, i, name, whole)


def _late(sight: Sight, task: Task, i: int, name: str, whole: Influence) -> Iterator[Finding]:
    delay = _delay(sight, i, whole)
    late = delay >= task.history
    hidden = late and sight.hides(i)
    if late and not hidden:
        delay = sight.usual_delay(i)
    numbers = {"name": name, "steps": delay, "history": delay + 1}
    if delay >= task.history:
        sees = f"{name} acts only after {delay + 1} steps, but the model sees {counted(task.history, 'row')}"
        what = sees if hidden else f"{sees}, which hint at most of its effect"
        what += f": write history = {delay + 1} in the task"
        yield Finding("problem" if hidden else "warning", "delay", what, numbers)
    elif delay and not late:
        what = f"{name} acts after {delay + 1} steps, which history = {task.history} covers"
        yield Finding("ok", "delay", what, numbers)


def _swapped(name: str, state: str) -> Finding:
    what = (
        f"{name} follows {state}, and nothing acts on {state}: the columns seem to be swapped; "
        "correct [data] in the task, or the log's header"
    )
    return Finding("problem", "swapped-columns", what, {"name": name, "state": state})


def _from_outside(name: str, state: str) -> Finding:
    what = (
        f"{name} follows {state}, and nothing acts on {state}: if {state} comes from outside, write "
        f"external = true; if it is a setpoint, name it at its state; if {name} should move it, check [data]"
    )
    return Finding("warning", "outside-state", what, {"name": name, "state": state})


def _without_effect(name: str, lags: int) -> Finding:
    what = (
        f"{name} has no effect on any state within {counted(lags, 'step')} that differs from chance; "
        "check that the plant received it, or log larger moves of it, or log the states that it moves"
    )
    return Finding("problem", "no-effect", what, {"name": name, "steps": lags})


def _delay(sight: Sight, i: int, whole: Influence) -> int:
    """Return how many steps pass before an action acts, beyond the usual one, by bisection over lags."""
    none, some = 0, int(sight.delays)
    while some - none > 1:
        lags = 1 if not none else (none + some) // 2  # most actions act at once
        found = sight.effect(i, lags)
        if found.clear and np.any(found.share > SHARE_OF_EFFECT * whole.share):
            some = lags
        else:
            none = lags
    return some - 1
