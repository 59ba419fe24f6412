"""What acts on what: rows that follow from those before, actions that do something, and when they do it."""

from collections.abc import Iterator, Set

import numpy as np

from clearloop.data.cells import Floats
from clearloop.data.course import Course
from clearloop.data.influence import Influence, Lags, influence, unexplained
from clearloop.data.report import Finding
from clearloop.task import Task

RELATED = 0.05  # share of a state's variance that the row before must explain, of one state at least
LONGEST_DELAY = 50  # rows
LOOKED_BACK = 4  # rows of states, or as many as the task's history: shows what is not measured
SHARE_OF_EFFECT = 0.01  # what an action does in its first rows is nothing, if it is less of all that it does
DRIVEN = 0.1  # share of what is new in an action that a state must explain, to be taken for what drives it
TOGETHER = 0.1  # correlation of what is new in both at the same time: a feedback law has more
LONGER = (2, 3, 5, 8, 12)  # rows of history that are tried
WORTH = 0.5  # of what is left unexplained: more must go with a longer history to be worth a word
MATTERS = 0.1  # of a state's change: if less is left unexplained, there is no need of more history
NEARLY = 1.1  # times the least that is left


def check_causality(course: Course, task: Task, doubtful: Set[str]) -> Iterator[Finding]:
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

    def __init__(self, course: Course, task: Task) -> None:
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
            if found.clear and _part(found) >= DRIVEN and self._together(i, j) < TOGETHER:
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
    if gain[-1] > WORTH and left[0][state] > MATTERS:
        rows = next(
            rows for rows, some in zip(tried, left, strict=True) if some[state] <= NEARLY * left[-1][state]
        )
        before, after = (
            f"{100 * (1 - max(float(share), 0.0)):.3g} %" for share in (left[0][state], left[-1][state])
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
        f"{name} has no effect on any state within {lags} step{'s' * (lags > 1)}, not more than chance would "
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
