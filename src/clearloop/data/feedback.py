"""Whether an action is nothing but an answer to the states: then its effect cannot be told from its cause.

A law is looked for that gives the action from the states and setpoints of the row; clipped at the action's
own ends; and of two rows before, with the action before, as PID controllers do. An action that is held for
long moves the states with it and then seems to follow them. So a law must also tell what the last actions do
not.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Flags, Floats, Ints
from clearloop.data.course import Course, lagged
from clearloop.data.influence import Lags, influence
from clearloop.data.report import Finding

DETERMINED = 0.99  # share of an action's variance that a law explains
EXACT = 0.9999  # beyond that nothing is left to learn from, whatever it seems to do
ADDED = 0.5  # of what the last actions do not tell: what a law must tell
WITH_MEMORY = 0.75  # the same, of a law that reads the last action itself: a word of warning, no more
PAST = 3  # actions
FEWEST = 10  # rows for each term of a law
CLIPPED = (
    0.005  # share of the rows at its smallest or largest value from which on a law counts as clipped there
)
AT_THE_ENDS = 0.9  # share of the rows from which on an action counts as switched
MOST_STATES = 6  # for laws with squares and products
FEW_CHANGES = 20  # of the setpoints: with more of them they are an experiment of their own


class Law(NamedTuple):
    explained: float
    """share of the action's variance"""
    asked: Floats
    """[rows] what it asks for"""
    sure: bool = True
    """enough to refuse a log"""


def check_feedback(name: str, i: int, course: Course) -> Iterator[Finding]:
    rows = course.rows(PAST)
    values = course.actions[rows, i]
    if not np.any(values):
        return
    alone, aimed = course.states, np.hstack([course.states, course.setpoints])
    law = _best(aimed, values, rows, course, i)
    if law is None:
        return
    numbers = {"name": name, "explained": law.explained}
    causes = "states and setpoints" if course.setpoints.size else "states"
    size = f"a law of the {causes} explains {100 * law.explained:.4g} % of it"
    changes = int(np.count_nonzero(np.any(np.diff(course.setpoints, axis=0), axis=1)))
    if changes >= FEW_CHANGES and _best(alone, values, rows, course, i) is None:
        what = (
            f"{name} varies independently of the state only by the setpoint's {changes:,} changes ({size}): "
            "a small random signal added to it would tell more"
        )
        yield Finding("warning", "determined-action", what, numbers)
    elif not law.sure or (law.explained < EXACT and _acts(course, rows, law, i)):
        what = f"{name} hardly varies independently of the state ({size}): add a larger random signal to it"
        yield Finding("warning", "determined-action", what, numbers)
    else:
        what = (
            f"{name} never varies independently of the state ({size}); log some minutes with a small random "
            "signal added to it; `clearloop data explain` shows the law"
        )
        yield Finding("problem", "determined-action", what, numbers)


def _best(causes: Floats, values: Floats, rows: Ints, course: Course, i: int) -> Law | None:
    """The law that determines the action; None if there is none."""
    own = lagged(course.actions[:, [i]], rows, range(1, 1 + PAST))
    now, before = causes[rows], lagged(causes, rows, range(1, PAST))
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


def _determines(law: Law, own: Floats, values: Floats) -> bool:
    """Without noise, a loop's own actions tell the next one: then only an exact law is proof."""
    return law.explained >= EXACT or (law.explained >= DETERMINED and _added(own, law.asked, values) >= ADDED)


def _law(terms: Floats, values: Floats) -> Law | None:
    """Linear in its terms, and clipped at the ends of what was done."""
    low, high = values.min(), values.max()
    inside = np.ones(len(values), np.bool_)
    for end in (low, high):
        if np.mean(values == end) > CLIPPED:
            inside &= values != end
    if np.mean(inside) <= 1 - AT_THE_ENDS:
        return _switch(terms, values, low, high)
    if np.count_nonzero(inside) < FEWEST * terms.shape[1]:
        return None
    asked = np.clip(_fitted(terms, values, inside), low, high)
    return Law(_explained(values, asked), asked)


def _switch(terms: Floats, values: Floats, low: float, high: float) -> Law | None:
    """One end or the other, by the side of a plane."""
    from sklearn.linear_model import LogisticRegression

    if len(values) < FEWEST * terms.shape[1]:
        return None
    upper = values > (low + high) / 2
    fit = LogisticRegression(C=1e6, max_iter=200).fit(terms, upper)
    asked = np.where(fit.predict(terms), high, low)
    return Law(_explained(values, asked), asked)


def _fitted(terms: Floats, values: Floats, rows: Flags) -> Floats:
    columns = np.hstack([terms, np.ones((len(terms), 1))])
    gains = np.linalg.lstsq(columns[rows], values[rows], rcond=1e-10)[0]
    return np.asarray(columns @ gains)


def _explained(values: Floats, asked: Floats) -> float:
    return 1 - float(
        np.square(values - asked).sum() / max(float(np.square(values - values.mean()).sum()), 1e-300)
    )


def _added(own: Floats, asked: Floats, values: Floats) -> float:
    """Share of what the last actions leave that goes when the law is known too."""
    everywhere = np.ones(len(values), np.bool_)
    left = np.square(values - _fitted(own, values, everywhere)).sum()
    with_law = np.square(values - _fitted(np.hstack([own, asked[:, None]]), values, everywhere)).sum()
    return 1 - float(with_law / left) if left > 0 else 0.0


def _acts(course: Course, rows: Ints, law: Law, i: int) -> bool:
    """Whether what the law leaves of the action is seen to move a state."""
    asked, rest = np.zeros((len(course), 1)), np.zeros((len(course), 1))
    asked[rows, 0], rest[rows, 0] = law.asked, course.actions[rows, i] - law.asked
    changes = course.states - np.roll(course.states, 1, axis=0)
    given = [Lags(course.states, range(1, 1 + PAST)), Lags(asked, range(1, 2))]
    return influence(course, changes, [Lags(rest, range(1, 2))], given, PAST + 1).clear
