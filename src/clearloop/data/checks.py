"""`clearloop data check` lists all that is wrong with a log, or good to know before learning from it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data.batch import Batch, prepare_log
from clearloop.data.causality import StandardisedLog, check_causality
from clearloop.data.excitation import STAND, check_excitation, is_staircase
from clearloop.data.findings import Finding, Report
from clearloop.data.log import Log, count_failing, last_rows, summarize
from clearloop.data.resampling import check_sampling
from clearloop.numbers import rough_percent
from clearloop.task import Task
from clearloop.task.tables import Action, to_levels

# Coverage: is there data where episodes start, and over the range of the actions?

_PARTS = 10  # into which a range is divided
FEWEST_OF_ACTION = 3  # parts: a controller that switches between two values must know what lies between


def check_coverage(task: Task, log: Log) -> Iterator[Finding]:
    """Compare the logged states with the starts of episodes, and the actions with their limits."""
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
    what = f"{said}; data in {occupied.sum()} of {_PARTS} parts of the starts, {low:g} to {high:g}"
    if gaps:
        what += ", none in " + ", ".join(f"{a:.3g} to {b:.3g}" for a, b in gaps)
    numbers |= {"parts": int(occupied.sum()), "of": _PARTS, "gaps": gaps}
    return Finding("warning" if gaps else "ok", "coverage", what, numbers)


def _action(name: str, action: Action, values: Floats) -> Finding:
    said, numbers = _range(name, action.unit, values)
    if 0 < action.count < _PARTS:
        levels = to_levels(values[:, None], np.array([action.limits]), np.array([action.count]))
        parts, of = len(np.unique(levels)), action.count + 1
        what = f"{said}; data at {parts} of its {of} values"
    else:
        parts, of = int(_occupied(values, *action.limits).sum()), _PARTS
        what = f"{said}; data in {parts} of {of} parts of its limits"
    numbers |= {"parts": parts, "of": of}
    return Finding("note" if parts < min(FEWEST_OF_ACTION, of) else "ok", "coverage", what, numbers)


def _range(name: str, unit: str, values: Floats) -> tuple[str, dict[str, object]]:
    low, high = float(values.min()), float(values.max())
    return f"{name} from {low:.3g} to {high:.3g} {unit}".rstrip(), {"name": name, "low": low, "high": high}


def _occupied(values: Floats, low: float, high: float) -> Flags:
    """Return which parts of the range have data [_PARTS]."""
    return np.histogram(values, bins=_PARTS, range=(low, high))[0] > 0


def _gaps(occupied: Flags, low: float, high: float) -> list[tuple[float, float]]:
    """Return the intervals of neighbouring parts without data."""
    edges = np.linspace(low, high, _PARTS + 1)
    changes = np.flatnonzero(np.diff(np.concatenate([[True], occupied, [True]])))
    return [(float(edges[a]), float(edges[b])) for a, b in changes.reshape(-1, 2)]


# Rates: a state that is the rate of another, by name or unit, must agree with the other's differences.

_SUFFIXES = ("_dot", "_rate", "_velocity", "_speed")
PREFIXES = ("d_", "dot_")
_AGREES, DISAGREES = 0.7, 0.3  # correlation of a rate with differences
OFF = 3.0  # factor between a rate and differences from which on a unit must be wrong
MOST_KIN_ROWS = 100_000


def check_rates(task: Task, log: Log) -> Iterator[Finding]:
    """Find swapped columns and wrong units among states that are rates of others."""
    inside = ~last_rows(log.episodes)[:-1] & ~log.terminal[1:]
    inside[MOST_KIN_ROWS:] = False
    for place, rate in pairs(task):
        names = task.state_names[place], task.state_names[rate]
        yield from _compare(log.states[:, place], log.states[:, rate], inside, task.dt, names)


def pairs(task: Task) -> Iterator[tuple[int, int]]:
    """Yield the index of a state and that of its rate: by name, or by unit if only one state fits."""
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
    return name in {other + suffix for suffix in _SUFFIXES} | {prefix + other for prefix in PREFIXES}


def _compare(
    place: Floats, rate: Floats, inside: Flags, dt: float, names: tuple[str, str]
) -> Iterator[Finding]:
    fits, factor = _agreement(place, rate, inside, dt)
    if fits is None:
        return
    numbers = {"name": names[0], "rate": names[1], "correlation": fits}
    backwards, _ = _agreement(rate, place, inside, dt)
    if fits < DISAGREES and backwards is not None and backwards > _AGREES:
        what = (
            f"{names[0]} is the rate of {names[1]}, not the other way round: the columns are swapped; "
            "correct [data] in the task, or the log's header"
        )
        yield Finding("problem", "swapped-columns", what, numbers)
    elif abs(fits) > _AGREES and not 1 / OFF < factor < OFF:
        what = (
            f"{names[0]} changes {factor:.3g} times as fast as {names[1]} says: "
            "correct the unit of one of them, or dt"
        )
        yield Finding("warning", "wrong-units", what, numbers | {"factor": factor})


def _agreement(place: Floats, rate: Floats, inside: Flags, dt: float) -> tuple[float | None, float]:
    """Return the correlation of differences with a rate, None if one is constant, and their ratio."""
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


# Sensors: stuck, coarse, or read more slowly than they are logged.

FINE = 0.01  # share of rows that repeat the row before, up to which a sensor never stands still by itself
JUMP = 3.0  # times the largest of a hundred usual changes: the jump of a coarse sensor that comes loose
AS_USUAL = 0.25  # of the usual movement: others must move at least so much meanwhile
_MUCH = 0.05  # share of the rows
FEW_LEVELS = 16
_REPEATED = 0.01  # share of the rows
MOST_SENSOR_ROWS = 1_000_000


def check_sensors(task: Task, log: Log) -> Iterator[Finding]:
    """Find sensors that were stuck or are coarse, and rows that repeat the row before."""
    states, actions, episodes = (
        log.states[:MOST_SENSOR_ROWS],
        log.actions[:MOST_SENSOR_ROWS],
        log.episodes[:MOST_SENSOR_ROWS],
    )
    for name in task.predicted:
        j = task.state_names.index(name)
        values = states[:, j] / max(np.abs(states[:, j]).max(), 1e-300)  # so that no difference overflows
        if np.isfinite(values).all() and np.ptp(values) > 0:
            if is_staircase(values):
                yield _steps_only(name)
                continue
            others = np.hstack([np.delete(states, j, axis=1), actions])
            yield from _stuck(name, values, others, episodes)
            yield from _coarse(name, values)
    yield from _repeated(np.hstack([states, actions]), episodes)


def _steps_only(name: str) -> Finding:
    what = (
        f"{name} moves in steps only, and stands still in between, as a setpoint does: if it is one, write "
        f'setpoint = "{name}" at the state that should follow it; if it comes from outside, external = true'
    )
    return Finding("warning", "steps-only", what, {"name": name})


def _stuck(name: str, values: Floats, others: Floats, episodes: Ints) -> Iterator[Finding]:
    begins, lengths = _runs(values, episodes)
    changes = np.abs(np.diff(values))
    short = np.repeat(lengths < STAND, lengths)[1:]
    fine = np.mean(changes[short] == 0) < FINE if short.any() else True
    large = JUMP * np.quantile(changes[short], 0.99) if short.any() else 0.0
    ends = begins + lengths
    jumps = np.append(np.where(episodes[1:] == episodes[:-1], changes, 0.0), 0.0)[ends - 1]
    loose = (jumps > large) | ((ends == len(values)) & (lengths > _MUCH * len(values)))
    long = np.flatnonzero((lengths >= STAND) & (fine | loose))
    usual = _movement(others) if len(long) else np.zeros(0)
    stuck = [k for k in long if _moving(others[begins[k] : ends[k]], usual)]
    if not stuck:
        return
    count = int(lengths[stuck].sum())
    first, last = int(begins[stuck[0]]), int(begins[stuck[-1]] + lengths[stuck[-1]])
    what = (
        f"{name} stands still in {count:,} rows, first in row {first + 1:,}, while others move: the sensor "
        "was stuck; leave those rows out and begin a new episode after them"
    )
    numbers = {"name": name, "count": count, "first_row": first + 1, "last_row": last}
    yield Finding("problem" if count > _MUCH * len(values) else "warning", "frozen-sensor", what, numbers)


def _runs(values: Floats, episodes: Ints) -> tuple[Ints, Ints]:
    """Return where stretches of one value begin, and their lengths."""
    changes = (values[1:] != values[:-1]) | (episodes[1:] != episodes[:-1])
    begins = np.append(0, np.flatnonzero(changes) + 1)
    return begins, np.diff(np.append(begins, len(values)))


def _moving(others: Floats, usual: Floats) -> bool:
    """Return True if another signal moves about as much as it usually does."""
    return bool(np.any((_movement(others) > AS_USUAL * usual) & (usual > 0)))


def _movement(signals: Floats) -> Floats:
    """Return the deviation of each column's change from row to row [columns]."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.nanstd(np.diff(signals, axis=0), axis=0))


def _coarse(name: str, values: Floats) -> Iterator[Finding]:
    levels = len(np.unique(values))
    if levels < FEW_LEVELS:
        what = f"{name} takes only {levels} different values: log it with a finer resolution"
        yield Finding("warning", "coarse-sensor", what, {"name": name, "levels": levels})


def _repeated(rows: Floats, episodes: Ints) -> Iterator[Finding]:
    same = (rows[1:] == rows[:-1]).all(axis=1) & ~last_rows(episodes)[:-1]
    # Only single repetitions between rows that move count: a plant at rest stays there for longer.
    alone = same.copy()
    alone[1:] &= ~same[:-1]
    alone[:-1] &= ~same[1:]
    share = float(alone.mean()) if len(alone) else 0.0
    if share > _REPEATED:
        what = (
            f"{rough_percent(share, 2)} of the rows repeat the row before; drop them if they were logged "
            "twice, or choose a dt at which all sensors are read anew"
        )
        yield Finding("warning", "repeated-rows", what, {"share": share})


# The whole examination. The numbers are rules of thumb: enough to train a network, and to hold a part out.
FEW_TRANSITIONS, FEWEST_TRANSITIONS = 1_000, 100
TELLS_NOTHING = {"constant-action", "saturated-action", "determined-action", "few-moves"}
FOR_EACH_INPUT = 5  # transitions at least, for each number that a model sees
FEW_FAILURES = 50
MOST_CLASSES = 10  # if there are more distinct rewards, they are learned as a value


def check(task: Task, data: Any) -> Report:
    """Examine a batch: is it fit to learn a controller from?

    Args:
        task: What is to be controlled.
        data: A batch or any dataframe, even one that `Batch` refuses.

    Returns:
        The problems, warnings and notes that were found, each with its numbers.

    Raises:
        TypeError: The first argument is not a task.
    """
    if not isinstance(task, Task):
        raise TypeError(f"check(task, data): expected a Task first, not {type(task).__name__}")
    with threadpool_limits(limits=1, user_api="blas"):  # more threads wait for each other
        return _report(task, prepare_log(task, data.to_frame() if isinstance(data, Batch) else data))


def _report(task: Task, log: Log) -> Report:
    episodes = int(log.episodes[-1]) + 1 if len(log.episodes) else 0
    transitions = len(log.episodes) - episodes
    failing = count_failing(log.episodes, log.terminal)
    findings = [*log.problems, *log.done]
    if transitions:
        course = StandardisedLog.of(log)
        excitation = list(check_excitation(task, log, course))
        doubtful = {
            finding.numbers["name"]
            for finding in excitation
            if finding.severity == "problem" and finding.code in TELLS_NOTHING
        }
        findings += [
            _size(transitions, episodes, task),
            *_failures(task, log, failing, transitions),
            *check_sampling(log.times, log.episodes, task.dt),
            *excitation,
            *check_causality(task, log, course, doubtful),
            *check_rates(task, log),
            *check_sensors(task, log),
            *check_coverage(task, log),
        ]
    return Report.of(summarize(transitions, episodes, failing, task.columns.ends), findings)


def _size(transitions: int, episodes: int, task: Task) -> Finding:
    needed = max(FEWEST_TRANSITIONS, FOR_EACH_INPUT * task.history * (len(task.states) + len(task.actions)))
    numbers = {"transitions": transitions, "episodes": episodes}
    if transitions >= max(FEW_TRANSITIONS, needed):
        return Finding("ok", "size", f"{transitions:,} transitions", numbers)
    if transitions >= needed:
        message = f"only {transitions:,} transitions: most plants need thousands"
        return Finding("warning", "size", message, numbers)
    message = (
        f"only {transitions:,} transitions, too few for any model: log at least {needed:,}, better thousands"
    )
    return Finding("problem", "size", message, numbers)


def _failures(task: Task, log: Log, failing: int, transitions: int) -> list[Finding]:
    """Warn if a model would have to learn failure from few examples, or cannot learn where episodes end.

    Where the task gives the condition as a formula, models compute it and nothing has to be learned.
    """
    if task.end_mark is not None or not log.terminal.any():
        return []
    if task.reward.column is not None and _is_value(log.rewards):
        message = (
            f"{failing:,} episodes ended in a terminal row, but a reward that is learned as a value does not "
            "tell where: models go on, and promises count rewards up to the horizon; if an end matters, "
            "give the reward and its failure as formulas"
        )
        return [Finding("warning", "unknown-ends", message, {"ends": failing})]
    if failing >= FEW_FAILURES:
        return []
    message = f"only {failing:,} of {transitions:,} transitions fail: too few to learn what failure is"
    return [Finding("warning", "few-failures", message, {"failing": failing, "needed": FEW_FAILURES})]


def _is_value(rewards: Floats | None) -> bool:
    """Tell whether rewards [rows] are too many to be learned as classes."""
    return rewards is not None and len(np.unique(rewards[np.isfinite(rewards)])) > MOST_CLASSES
