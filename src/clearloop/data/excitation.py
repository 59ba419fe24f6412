"""Whether a log can tell what an action does: it must vary, within limits, and not only with the state."""

from collections.abc import Iterator

import numpy as np

from clearloop.data.cells import Floats
from clearloop.data.log import Log
from clearloop.data.report import Finding
from clearloop.task import Task
from clearloop.task.levels import to_levels
from clearloop.task.tables import Action

DETERMINED = 0.99  # share of an action's variance that a linear law explains
BETWEEN = 1e-3  # of a step: what a value differs from the nearest one by, and is no rounding of the log
MOST_ROWS = 100_000  # for fitting that law; more would not change the answer


def check_excitation(log: Log, task: Task) -> list[Finding]:
    findings = []
    for name, values in zip(task.state_names, log.states.T, strict=True):
        if _constant(values):
            findings += [Finding("warning", "constant-column", f"{name} never changes", {"name": name})]
    for (name, action), values in zip(task.actions.items(), log.actions.T, strict=True):
        if _constant(values):
            what = f"{name} never changes, so nothing tells what it does; log some minutes in which it varies"
            findings += [Finding("problem", "constant-action", what, {"name": name})]
        else:
            findings += [*_outside(name, values, action), *_determined(name, values, log)]
    return findings


def _constant(values: Floats) -> bool:
    known = values[np.isfinite(values)]
    return len(known) > 0 and bool((known == known[0]).all())


def _outside(name: str, values: Floats, action: Action) -> Iterator[Finding]:
    low, high = action.limits
    outside = (values < low) | (values > high)
    count = int(np.count_nonzero(outside))
    if count:
        what = f"{name} is outside its limits, {low:g} to {high:g}, in {count:,} rows; correct limits or log"
        yield Finding("warning", "action-limits", what, {"name": name, "count": count})
    if action.step:
        levels = to_levels(values[:, None], np.array([action.limits]), np.array([action.count]))[:, 0]
        between = ~outside & (np.abs(values - levels) > BETWEEN * action.step)
        if count := int(np.count_nonzero(between)):
            what = f"{name} is between its steps of {action.step:g} in {count:,} rows; correct step or log"
            yield Finding("warning", "action-steps", what, {"name": name, "count": count})


def _determined(name: str, values: Floats, log: Log) -> list[Finding]:
    setpoints = [] if log.setpoints is None else [log.setpoints]
    causes = np.column_stack([log.states, *setpoints, np.ones(len(values))])
    rows = np.flatnonzero(np.isfinite(values) & np.isfinite(causes).all(axis=1))
    rows = rows[:: 1 + len(rows) // MOST_ROWS]
    if len(rows) <= 2 * causes.shape[1]:
        return []
    x, y = _scaled(causes[rows]), _scaled(values[rows])
    y -= y.mean()
    residual = y - x @ np.linalg.lstsq(x, y)[0]
    explained = 1 - float(residual @ residual) / max(float(y @ y), np.finfo(np.float64).tiny)
    if explained < DETERMINED:
        return []
    what = (
        f"{name} never varies independently of the state (a linear law explains {100 * explained:.1f} % "
        "of it); log some minutes with a small random signal added to it; "
        "`clearloop data explain` shows the law"
    )
    return [Finding("problem", "determined-action", what, {"name": name, "explained": explained})]


def _scaled(values: Floats) -> Floats:
    """Each column between -1 and 1, so that no square overflows."""
    largest = np.abs(values).max(axis=0)
    return values / np.where(largest > 0, largest, 1.0)
