"""The checks of excitation: an action must vary, within its limits, and not only with the states."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data.causality import Lags, StandardisedLog, influence, lagged
from clearloop.data.findings import Finding
from clearloop.data.log import Log, first_rows, last_rows
from clearloop.expression import variables
from clearloop.numbers import counted, rough_percent
from clearloop.task import Task
from clearloop.task.tables import Action, to_levels

# Feedback: if an action is nothing but a function of the states, its effect cannot be told from its cause.
#
# The check looks for a law that gives the action from the states and setpoints of the row, clipped at the
# action's extremes; or from those of two rows more and the last action, as a PID controller does. An action
# that is held for long moves the states with it and then seems to follow them. So a law must also explain
# what the last actions do not.

DETERMINED = 0.99  # share of an action's variance that a law explains
_EXACT = 0.9999  # share beyond which nothing is left to learn from
_NEARLY = 0.999  # share beyond which what is left must be seen to move a state
ADDED = 0.5  # share that a law must explain of what the last actions leave
WITH_MEMORY = 0.75  # the same for a law that reads the last action itself: enough for a warning
_PAST = 3  # actions
_FEWEST = 10  # rows for each term of a law
CLIPPED = (
    0.005  # share of the rows at its smallest or largest value from which on a law counts as clipped there
)
AT_THE_ENDS = 0.9  # share of the rows from which on an action counts as switched
MOST_STATES = 6  # for laws with squares and products
FEWEST_CHANGES = 4  # of the setpoints: so many steps excite the plant by themselves
JUMPS = 0.03  # of an action's deviation: by so much it must jump when setpoints change
LOUDER = 5.0  # times what the law leaves in other rows
LED = 0.5  # share of an action that setpoints explain by themselves, without the states
_LATE, _LATE_STEP = 64, 8  # rows after a change of the setpoint that are looked at, and one of so many


class ActionLaw(NamedTuple):
    """A law that gives an action from the states."""

    explained: float
    """the share of the action's variance that the law explains"""
    asked: Floats
    """[rows] the action that the law asks for"""
    sure: bool = True
    """true if the law is reason enough to refuse the log"""


def check_feedback(name: str, i: int, course: StandardisedLog) -> Iterator[Finding]:
    """Check that action `i`, called `name`, is not determined by the states and setpoints."""
    rows = course.rows(_PAST)
    values = course.actions[rows, i]
    if not len(values) or not np.ptp(values):
        return
    # A state that moves in steps only is a setpoint that the task does not call one.
    stairs = np.array([is_staircase(state) for state in course.states.T], np.bool_)
    aimed, alone = np.hstack([course.states, course.setpoints]), course.states[:, ~stairs]
    aims = np.hstack([course.setpoints, course.states[:, stairs]])
    law = _best(aimed, values, rows, course, i)
    if law is None:
        return
    numbers = {"name": name, "explained": law.explained}
    causes = "states and setpoints" if aims.size else "states"
    size = f"a law of the {causes} explains {rough_percent(law.explained, 4)} of it"
    changes = np.any(np.diff(aims, axis=0, prepend=aims[:1]), axis=1)
    count = int(np.count_nonzero(changes))
    if count >= FEWEST_CHANGES and (
        _is_led(course, aims, i) or _excites(changes, rows, _best(alone, values, rows, course, i), values)
    ):
        what = (
            f"{name} varies independently of the state only by the setpoint's {count:,} changes ({size}): "
            "a small random signal added to it would tell more"
        )
        yield Finding("warning", "determined-action", what, numbers)
    elif not law.sure or law.explained < _NEARLY or (law.explained < _EXACT and _acts(course, rows, law, i)):
        what = f"{name} hardly varies independently of the state ({size}): add a larger random signal to it"
        yield Finding("warning", "determined-action", what, numbers)
    else:
        what = (
            f"{name} never varies independently of the state ({size}); log some minutes with a small random "
            "signal added to it; `clearloop data explain` shows the law"
        )
        yield Finding("problem", "determined-action", what, numbers)


def _excites(changes: Flags, rows: Ints, law: ActionLaw | None, values: Floats) -> bool:
    """Return True if setpoints move the action in a way that no law of the states alone gives.

    Args:
        changes: The rows of the log in which a setpoint changes [n].
        rows: The rows of the log that the law is made of.
        law: The best law of the states alone; None if there is none.
        values: The action in these rows, with deviation 1.
    """
    if law is None:
        return True
    left = np.zeros(len(changes) + _PAST)
    left[rows] = np.abs(values - law.asked)
    steps = np.flatnonzero(changes)
    after = np.stack([left[steps + k] for k in range(_PAST)])  # an action may be logged a row late
    usual = np.median(np.delete(left[: len(changes)], steps))
    return bool(np.median(after.max(axis=0)) > max(JUMPS, LOUDER * float(usual)))


def _is_led(course: StandardisedLog, aims: Floats, i: int) -> bool:
    """Return True if setpoints alone, now and before, explain most of an action, and clearly beyond chance.

    Setpoints do not answer to the plant. So an action that follows them is an experiment, however exactly a
    law gives it; also under a slow integral, where no change of a setpoint makes the action jump.
    """
    back = min(_LATE, course.length // 4)
    if back < 2:
        return False
    drivers = [Lags(aims, range(0, back, _LATE_STEP))]
    found = influence(course, course.actions[:, [i]], drivers, [], back)
    return found.clear and bool(found.share[0] >= LED)


def _best(causes: Floats, values: Floats, rows: Ints, course: StandardisedLog, i: int) -> ActionLaw | None:
    """Return the law that determines the action; None if there is none."""
    own = lagged(course.actions[:, [i]], rows, range(1, 1 + _PAST))
    if not causes.shape[1]:
        return None
    now, before = causes[rows], lagged(causes, rows, range(1, _PAST))
    some = causes[:, :MOST_STATES][rows]
    products = np.concatenate([some[:, [j]] * some[:, : j + 1] for j in range(some.shape[1])], axis=1)
    cubes = np.concatenate([products * some[:, [j]] for j in range(some.shape[1])], axis=1)
    levels = [_law(terms, values) for terms in (now, np.hstack([now, products, cubes]))]
    found = [law for law in levels if law and _determines(law, own, values)]
    with_memory = _law(np.hstack([now, before, own[:, :1]]), values)
    added = _added(own, with_memory.asked, values) if with_memory else 0.0
    if with_memory and with_memory.explained >= DETERMINED and added >= WITH_MEMORY:
        found.append(with_memory._replace(sure=added >= DETERMINED))
    return max(found, key=lambda law: law.explained, default=None)


def _determines(law: ActionLaw, own: Floats, values: Floats) -> bool:
    """Return True if the law determines the action.

    Without noise, the last actions of a closed loop predict the next one; then only an exact law is proof.
    """
    return law.explained >= _EXACT or (
        law.explained >= DETERMINED and _added(own, law.asked, values) >= ADDED
    )


def _law(terms: Floats, values: Floats) -> ActionLaw | None:
    """Fit a law that is linear in its terms, and clipped at the action's extremes."""
    low, high = values.min(), values.max()
    inside = np.ones(len(values), np.bool_)
    for end in (low, high):
        if np.mean(values == end) > CLIPPED:
            inside &= values != end
    if np.mean(inside) <= 1 - AT_THE_ENDS:
        return _switch(terms, values, low, high)
    if np.count_nonzero(inside) < _FEWEST * terms.shape[1]:
        return None
    asked = np.clip(_fitted(terms, values, inside), low, high)
    return ActionLaw(_explained(values, asked), asked)


def _switch(terms: Floats, values: Floats, low: float, high: float) -> ActionLaw | None:
    """Fit a law that switches between two values at a plane in the space of its terms."""
    from sklearn.linear_model import LogisticRegression

    if len(values) < _FEWEST * terms.shape[1]:
        return None
    upper = values - low > high - values
    fit = LogisticRegression(C=1e6, max_iter=200).fit(terms, upper)
    asked = np.where(fit.predict(terms), high, low)
    return ActionLaw(_explained(values, asked), asked)


def _fitted(terms: Floats, values: Floats, rows: Flags) -> Floats:
    columns = np.hstack([terms, np.ones((len(terms), 1))])
    gains = np.linalg.lstsq(columns[rows], values[rows], rcond=1e-10)[0]
    return np.asarray(columns @ gains)


def _explained(values: Floats, asked: Floats) -> float:
    return 1 - float(
        np.square(values - asked).sum() / max(float(np.square(values - values.mean()).sum()), 1e-300)
    )


def _added(own: Floats, asked: Floats, values: Floats) -> float:
    """Return the share that the law explains of what the last actions leave."""
    everywhere = np.ones(len(values), np.bool_)
    left = np.square(values - _fitted(own, values, everywhere)).sum()
    with_law = np.square(values - _fitted(np.hstack([own, asked[:, None]]), values, everywhere)).sum()
    return 1 - float(with_law / left) if left > 0 else 0.0


def _acts(course: StandardisedLog, rows: Ints, law: ActionLaw, i: int) -> bool:
    """Return True if the part of the action that the law leaves clearly moves a state."""
    asked, rest = np.zeros((len(course), 1)), np.zeros((len(course), 1))
    asked[rows, 0], rest[rows, 0] = law.asked, course.actions[rows, i] - law.asked
    changes = course.states - np.roll(course.states, 1, axis=0)
    given = [Lags(course.states, range(1, 1 + _PAST)), Lags(asked, range(1, 2))]
    return influence(course, changes, [Lags(rest, range(1, 2))], given, _PAST + 1).clear


# The range of an action, and how often it moves.

BETWEEN = 1e-3  # of a step: a value that is further from the nearest level was not just rounded by the log
AT_A_LIMIT = 0.95  # share of the rows at one and the same limit
MOSTLY_OUTSIDE = 0.1  # share of the rows outside the limits, from which on units or limits must be wrong
NARROW = 0.02  # share of the limits' range that an action must use
NINE_TENTHS = (0.05, 0.95)
FEWEST_MOVES, FEW_MOVES = 4, 20  # passes through the action's range, up or down; or steps, if it is held
HELD = 0.1  # share of rows with a new value, up to which an action counts as held
STEP = 0.1  # of the usual range: the smallest step of a held action that counts


def check_excitation(task: Task, log: Log, course: StandardisedLog) -> Iterator[Finding]:
    """Check that states and actions vary enough, and in the right way, to learn from.

    Args:
        task: What is to be controlled.
        log: The log as it was read.
        course: The same log, standardised.
    """
    for name, values in zip(task.state_names, log.states.T, strict=True):
        if _constant(values):
            yield _constant_state(name, task)
    for i, (name, action) in enumerate(task.actions.items()):
        values, limits = log.actions[:, i], task.action_limits[i]
        if is_constant(values, log.episodes):
            but = "" if _constant(values) else ", except in the first or last rows of an episode"
            what = f"{name} never changes{but}, so the log does not show what it does"
            what += "; log some minutes in which it varies"
            yield Finding("problem", "constant-action", what, {"name": name})
            continue
        known = values[np.isfinite(values)]
        if len(known):
            yield from _outside(name, known, limits)
            yield from _between(name, known, action)
            yield from _saturated(name, known, limits)
            yield from _narrow(name, known, limits)
            yield from _moves(name, i, course)
            yield from check_feedback(name, i, course)


def is_constant(values: Floats, episodes: Ints) -> bool:
    """Return True for an action that never changes, or only in the first three rows and the last of episodes.

    Args:
        values: The action in each row [rows], NaN where there is none.
        episodes: The episode of each row [rows].
    """
    known = np.isfinite(values)
    steps = known & ~last_rows(episodes) & np.append(known[1:], False)  # the last row often has no action
    later = steps & (np.arange(len(episodes)) - first_rows(episodes) >= _PAST)
    return _constant(values) or (2 * later.sum() >= steps.sum() and _constant(values[later]))


STAND = 30  # rows of the same value, from which on a signal stands still
BETWEEN_STEPS = 0.01  # share of the rows in shorter stretches, up to which a signal moves in steps only


def is_staircase(values: Floats) -> bool:
    """Return True for a signal that moves in steps only and stands still in between, as a setpoint does.

    Args:
        values: The signal in each row [rows].
    """
    edges = np.flatnonzero(values[1:] != values[:-1]) + 1
    lengths = np.diff(np.concatenate([[0], edges, [len(values)]]))
    return len(edges) > 0 and bool(lengths[lengths < STAND].sum() <= BETWEEN_STEPS * len(values))


def _constant(values: Floats) -> bool:
    known = values[np.isfinite(values)]
    return len(known) > 0 and bool((known == known[0]).all())


def _constant_state(name: str, task: Task) -> Finding:
    """Refuse a constant state if the reward depends on it; warn otherwise."""
    if name not in goals(task):
        return Finding("warning", "constant-column", f"{name} never changes", {"name": name})
    what = f"{name} never changes, and the reward depends on it; check the sensor, or log moves of it"
    return Finding("problem", "constant-column", what, {"name": name})


def goals(task: Task) -> set[str]:
    """Return the states that the reward depends on; those with a setpoint if the reward is learned."""
    if task.reward_expression is None:
        return set(task.setpoints)
    return {variable.name for variable in variables(task.reward_expression)} & set(task.state_names)


def single_rows(rows: int) -> int:
    """Return how many rows of a log may be left out as single ones, such as those of a startup."""
    return min(max(3, rows // 1000), 20)


def _outside(name: str, values: Floats, limits: Floats) -> Iterator[Finding]:
    low, high = (float(limit) for limit in limits)
    count = int(np.count_nonzero((values < low) | (values > high)))
    if count:
        numbers = {"name": name, "count": count}
        where = f"{name} is outside its limits, {low:g} to {high:g}, in {counted(count, 'row')}"
        what = f"{where}; correct the limits or the log"
        if count <= single_rows(len(values)):
            yield Finding(
                "note", "action-limits", f"{where}: single rows, such as those of a startup", numbers
            )
        elif count < MOSTLY_OUTSIDE * len(values):
            yield Finding("warning", "action-limits", what, numbers)
        else:
            yield Finding("problem", "action-limits", f"{what}: a unit or a column may be wrong", numbers)


def _between(name: str, values: Floats, action: Action) -> Iterator[Finding]:
    """Warn of values between the levels of an action that takes only some values."""
    if not action.step:
        return
    low, high = action.limits
    levels = to_levels(values[:, None], np.array([action.limits]), np.array([action.count]))[:, 0]
    inside = (values >= low) & (values <= high)
    count = int(np.count_nonzero(inside & (np.abs(values - levels) > BETWEEN * action.step)))
    if count:
        what = (
            f"{name} is between its steps of {action.step:g} in {count:,} rows; correct the step or the log"
        )
        yield Finding("warning", "action-steps", what, {"name": name, "count": count})


def _saturated(name: str, values: Floats, limits: Floats) -> Iterator[Finding]:
    """Refuse an action that stands at one limit; one that jumps between both is good to learn from."""
    for limit in limits:
        share = float(np.mean(np.abs(values - limit) <= 1e-9 * np.ptp(limits)))
        if share > AT_A_LIMIT:
            what = (
                f"{name} is at its limit {limit:g} in {rough_percent(share)} of the rows; "
                "log some minutes in which it varies between its limits"
            )
            yield Finding("problem", "saturated-action", what, {"name": name, "share": share})


def _narrow(name: str, values: Floats, limits: Floats) -> Iterator[Finding]:
    used = float((values.max() / 2 - values.min() / 2) / (np.ptp(limits) / 2))
    if used < NARROW:
        what = (
            f"{name} uses only {rough_percent(used, 2)} of its limits, {limits[0]:g} to {limits[1]:g}: "
            "check its unit, narrow the limits to what was tried, or log larger moves"
        )
        yield Finding("problem", "narrow-action", what, {"name": name, "used": used})


def _moves(name: str, i: int, course: StandardisedLog) -> Iterator[Finding]:
    """Count how often the action moved, and complain if that is rare.

    These are passes through its usual range; for an action that is held, its steps of a tenth of it; for one
    that follows setpoints, the changes of these.
    """
    values = course.actions[:, i]
    low, high = np.quantile(values, NINE_TENTHS)
    width = high - low if high > low else np.ptp(values)
    changes = np.abs(np.diff(np.clip(values, low, high) if high > low else values)) / max(width, 1e-12)
    moves = float(changes.sum())
    if np.mean(changes > 0) < HELD:
        moves = max(moves, float(np.count_nonzero(changes >= STEP)))
    if moves < FEWEST_MOVES and course.setpoints.shape[1] and _is_led(course, course.setpoints, i):
        moves = max(moves, float(np.any(np.diff(course.setpoints, axis=0), axis=1).sum()))
    if moves < FEW_MOVES:
        what = (
            f"{name} moves only about {moves:.2g} times; log {FEW_MOVES} moves or more, to different values"
        )
        severe = moves < FEWEST_MOVES
        yield Finding("problem" if severe else "warning", "few-moves", what, {"name": name, "moves": moves})
