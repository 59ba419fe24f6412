"""Whether a log can tell what an action does: it must vary, within limits, and not only with the state."""

from collections.abc import Iterator

import numpy as np

from clearloop.data.cells import Floats
from clearloop.data.course import Course
from clearloop.data.feedback import check_feedback
from clearloop.data.log import Log
from clearloop.data.report import Finding
from clearloop.expression import variables
from clearloop.task import Task
from clearloop.task.levels import to_levels
from clearloop.task.tables import Action

BETWEEN = 1e-3  # of a step: what a value differs from the nearest one by, and is no rounding of the log
AT_A_LIMIT = 0.95  # share of the rows at one and the same limit
MOSTLY_OUTSIDE = 0.1  # share of the rows outside the limits, from which on units or limits must be wrong
NARROW = 0.02  # of the limits: what an action must use of them
NINE_TENTHS = (0.05, 0.95)
FEWEST_MOVES, FEW_MOVES = 4, 20  # ways through the action's range, up or down


def check_excitation(log: Log, course: Course, task: Task) -> Iterator[Finding]:
    for name, values in zip(task.state_names, log.states.T, strict=True):
        if _constant(values):
            yield _constant_state(name, task)
    for i, (name, action) in enumerate(task.actions.items()):
        values, limits = log.actions[:, i], task.action_limits[i]
        if _constant(values):
            what = f"{name} never changes, so nothing tells what it does; log some minutes in which it varies"
            yield Finding("problem", "constant-action", what, {"name": name})
            continue
        known = values[np.isfinite(values)]
        if len(known):
            yield from _outside(name, known, limits)
            yield from _between(name, known, action)
            yield from _saturated(name, known, limits)
            yield from _narrow(name, known, limits)
            yield from _moves(name, course.actions[:, i])
            yield from check_feedback(name, i, course)


def _constant(values: Floats) -> bool:
    known = values[np.isfinite(values)]
    return len(known) > 0 and bool((known == known[0]).all())


def _constant_state(name: str, task: Task) -> Finding:
    """A goal that never moves cannot be learned; another state may be constant."""
    if name not in goals(task):
        return Finding("warning", "constant-column", f"{name} never changes", {"name": name})
    what = f"{name} never changes, and the reward depends on it; check the sensor, or log moves of it"
    return Finding("problem", "constant-column", what, {"name": name})


def goals(task: Task) -> set[str]:
    """The states that the reward depends on; those with a setpoint, where it is learned from a column."""
    if task.reward_expression is None:
        return set(task.setpoints)
    return {variable.name for variable in variables(task.reward_expression)} & set(task.state_names)


def _outside(name: str, values: Floats, limits: Floats) -> Iterator[Finding]:
    low, high = (float(limit) for limit in limits)
    count = int(np.count_nonzero((values < low) | (values > high)))
    if count:
        numbers = {"name": name, "count": count}
        what = f"{name} is outside its limits, {low:g} to {high:g}, in {count:,} rows; correct limits or log"
        if count < MOSTLY_OUTSIDE * len(values):
            yield Finding("warning", "action-limits", what, numbers)
        else:
            yield Finding("problem", "action-limits", f"{what}: a unit may be wrong, or a column", numbers)


def _between(name: str, values: Floats, action: Action) -> Iterator[Finding]:
    """Of an action that takes only some values."""
    if not action.step:
        return
    low, high = action.limits
    levels = to_levels(values[:, None], np.array([action.limits]), np.array([action.count]))[:, 0]
    inside = (values >= low) & (values <= high)
    count = int(np.count_nonzero(inside & (np.abs(values - levels) > BETWEEN * action.step)))
    if count:
        what = f"{name} is between its steps of {action.step:g} in {count:,} rows; correct step or log"
        yield Finding("warning", "action-steps", what, {"name": name, "count": count})


def _saturated(name: str, values: Floats, limits: Floats) -> Iterator[Finding]:
    """At one limit: a signal that jumps between both is a good one."""
    for limit in limits:
        share = float(np.mean(np.abs(values - limit) <= 1e-9 * np.ptp(limits)))
        if share > AT_A_LIMIT:
            what = (
                f"{name} stands at its limit {limit:g} in {100 * share:.3g} % of the rows; "
                "log some minutes in which it varies between its limits"
            )
            yield Finding("problem", "saturated-action", what, {"name": name, "share": share})


def _narrow(name: str, values: Floats, limits: Floats) -> Iterator[Finding]:
    used = float((values.max() / 2 - values.min() / 2) / (np.ptp(limits) / 2))
    if used < NARROW:
        what = (
            f"{name} uses only {100 * used:.2g} % of its limits, {limits[0]:g} to {limits[1]:g}: "
            "check its unit, narrow the limits to what was tried, or log larger moves"
        )
        yield Finding("problem", "narrow-action", what, {"name": name, "used": used})


def _moves(name: str, values: Floats) -> Iterator[Finding]:
    """How often the action went through its usual range."""
    low, high = np.quantile(values, NINE_TENTHS)
    width = high - low if high > low else np.ptp(values)
    moves = float(
        np.abs(np.diff(np.clip(values, low, high) if high > low else values)).sum() / max(width, 1e-12)
    )
    if moves < FEW_MOVES:
        what = (
            f"{name} moves only about {moves:.2g} times; log {FEW_MOVES} moves or more, to different values"
        )
        severe = moves < FEWEST_MOVES
        yield Finding("problem" if severe else "warning", "few-moves", what, {"name": name, "moves": moves})
