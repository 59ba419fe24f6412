"""Where there is data: of the states where episodes start, and of the range that actions have."""

from collections.abc import Iterator

import numpy as np

from clearloop.data.cells import Flags, Floats
from clearloop.data.log import Log
from clearloop.data.report import Finding
from clearloop.task import Task
from clearloop.task.levels import to_levels
from clearloop.task.tables import Action

PARTS = 10  # in which a range is divided
FEWEST_OF_ACTION = 3  # a controller that switches between two values still needs to know what lies between


def check_coverage(log: Log, task: Task) -> Iterator[Finding]:
    told = task.start_box is not None and task.starts.keys() <= task.states.keys()  # not of hidden states
    boxes = task.start_box if told and task.start_box is not None else [None] * len(task.states)
    for (name, state), values, box in zip(task.states.items(), log.states.T, boxes, strict=True):
        if np.isfinite(values).any():
            yield _state(name, state.unit, values[np.isfinite(values)], box)
    for (name, action), values in zip(task.actions.items(), log.actions.T, strict=True):
        if np.isfinite(values).any():
            yield _action(name, action, values[np.isfinite(values)])


def _state(name: str, unit: str, values: Floats, box: Floats | None) -> Finding:
    said, numbers = _range(name, unit, values)
    if box is None:
        return Finding("ok", "coverage", said, numbers)
    low, high = (float(end) for end in box)
    if low == high:
        inside = values.min() <= low <= values.max()
        what = said if inside else f"{said}, but episodes start at {low:g}"
        return Finding("ok" if inside else "warning", "coverage", what, numbers)
    occupied = _occupied(values, low, high)
    gaps = _gaps(occupied, low, high)
    what = f"{said}; data in {occupied.sum()} of {PARTS} parts of the starts, {low:g} to {high:g}"
    if gaps:
        what += ", none in " + ", ".join(f"{a:.3g} to {b:.3g}" for a, b in gaps)
    numbers |= {"parts": int(occupied.sum()), "of": PARTS, "gaps": gaps}
    return Finding("warning" if gaps else "ok", "coverage", what, numbers)


def _action(name: str, action: Action, values: Floats) -> Finding:
    said, numbers = _range(name, action.unit, values)
    if 0 < action.count < PARTS:
        levels = to_levels(values[:, None], np.array([action.limits]), np.array([action.count]))
        parts, of = len(np.unique(levels)), action.count + 1
        what = f"{said}; data at {parts} of its {of} values"
    else:
        parts, of = int(_occupied(values, *action.limits).sum()), PARTS
        what = f"{said}; data in {parts} of {of} parts of its limits"
    numbers |= {"parts": parts, "of": of}
    return Finding("note" if parts < min(FEWEST_OF_ACTION, of) else "ok", "coverage", what, numbers)


def _range(name: str, unit: str, values: Floats) -> tuple[str, dict[str, object]]:
    low, high = float(values.min()), float(values.max())
    return f"{name} from {low:.3g} to {high:.3g} {unit}".rstrip(), {"name": name, "low": low, "high": high}


def _occupied(values: Floats, low: float, high: float) -> Flags:
    """[PARTS]: which parts of the range have data."""
    return np.histogram(values, bins=PARTS, range=(low, high))[0] > 0


def _gaps(occupied: Flags, low: float, high: float) -> list[tuple[float, float]]:
    """The intervals of neighbouring parts without data."""
    edges = np.linspace(low, high, PARTS + 1)
    changes = np.flatnonzero(np.diff(np.concatenate([[True], occupied, [True]])))
    return [(float(edges[a]), float(edges[b])) for a, b in changes.reshape(-1, 2)]
