"""States that are rates of others, by names or units: a rate must be what the other's differences say."""

from collections.abc import Iterator

import numpy as np

from clearloop.data.cells import Flags, Floats
from clearloop.data.episodes import last_rows
from clearloop.data.log import Log
from clearloop.data.report import Finding
from clearloop.task import Task

SUFFIXES = ("_dot", "_rate", "_velocity", "_speed")
PREFIXES = ("d_", "dot_")
AGREES, DISAGREES = 0.7, 0.3  # correlation of a rate with differences
OFF = 3.0  # factor between both from which on a unit is wrong
MOST_ROWS = 100_000


def check_rates(log: Log, task: Task) -> Iterator[Finding]:
    inside = ~last_rows(log.episodes)[:-1] & ~log.terminal[1:]
    inside[MOST_ROWS:] = False
    for place, rate in pairs(task):
        names = task.state_names[place], task.state_names[rate]
        yield from _compare(log.states[:, place], log.states[:, rate], inside, task.dt, names)


def pairs(task: Task) -> Iterator[tuple[int, int]]:
    """Which state is the rate of which: by name; or by unit, if only one of them fits."""
    names = list(task.state_names)
    units = [state.unit if name in task.predicted else "" for name, state in task.states.items()]
    for j, name in enumerate(names):
        if name not in task.predicted:
            continue
        by_name = [k for k, other in enumerate(names) if other in task.predicted and _is_rate(name, other)]
        by_unit = [k for k, unit in enumerate(units) if unit and units[j] == f"{unit}/s"]
        twins = units.count(units[j])
        if len(by_name) == 1:
            yield by_name[0], j
        elif not by_name and len(by_unit) == 1 and twins == 1:
            yield by_unit[0], j


def _is_rate(name: str, other: str) -> bool:
    return name in {other + suffix for suffix in SUFFIXES} | {prefix + other for prefix in PREFIXES}


def _compare(
    place: Floats, rate: Floats, inside: Flags, dt: float, names: tuple[str, str]
) -> Iterator[Finding]:
    fits, factor = _agreement(place, rate, inside, dt)
    if fits is None:
        return
    numbers = {"name": names[0], "rate": names[1], "correlation": fits}
    backwards, _ = _agreement(rate, place, inside, dt)
    if fits < DISAGREES and backwards is not None and backwards > AGREES:
        what = (
            f"{names[0]} is the rate of {names[1]}, not the other way round: the columns are swapped; "
            "correct [data] in the task, or the log's header"
        )
        yield Finding("problem", "swapped-columns", what, numbers)
    elif abs(fits) > AGREES and not 1 / OFF < factor < OFF:
        what = (
            f"{names[0]} changes {factor:.3g} times as fast as {names[1]} says: "
            "correct the unit of one of them, or dt"
        )
        yield Finding("warning", "wrong-units", what, numbers | {"factor": factor})


def _agreement(place: Floats, rate: Floats, inside: Flags, dt: float) -> tuple[float | None, float]:
    """The correlation of differences with a rate, and the factor between them; None if one of them rests."""
    with np.errstate(over="ignore", invalid="ignore"):
        change, mean = (np.diff(place) / dt)[inside], (rate[1:] / 2 + rate[:-1] / 2)[inside]
        known = np.isfinite(change) & np.isfinite(mean)
        change, mean = change[known], mean[known]
        if len(change) < 10:
            return None, 1.0
        change, mean = change - change.mean(), mean - mean.mean()
        sizes = float(np.sqrt(np.square(change).sum())), float(np.sqrt(np.square(mean).sum()))
        if not all(0 < size < np.inf for size in sizes):
            return None, 1.0
        fits = float(np.sum((change / sizes[0]) * (mean / sizes[1])))
    return fits, fits * sizes[0] / sizes[1]
