"""A log with jitter and gaps is resampled to rows that are `dt` apart, as the [sampling] table says.

A gap begins a new episode. Within an episode, rows are put on a grid of `dt` that begins with the first row.
States are interpolated linearly. Actions, setpoints and external states are taken from the middle of the
step; where several rows fall into one step, actions are averaged over it. A terminal row goes to the next
point of the grid.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data.findings import Finding
from clearloop.data.log import Log, first_rows, last_rows, number_runs
from clearloop.numbers import counted, percent, rough_percent
from clearloop.task import Task

# The checks: do rows come at an even pace, and at the task's?

_TOLERANCE = 0.2  # of a step; clocks that count in milliseconds jitter by a tenth at 100 Hz
MOST_UNEVEN = 0.01  # share of steps


def check_sampling(times: Floats | None, episodes: Ints, dt: float) -> list[Finding]:
    """Compare the times of rows [rows], in seconds, with the task's `dt`."""
    if times is None:
        return [Finding("note", "no-times", f"no column tells the time, so dt = {dt:g} s cannot be checked")]
    with np.errstate(over="ignore"):  # such times cannot be right, and are left out
        steps = np.diff(times)[~last_rows(episodes)[:-1]]
    forward = steps[(steps > 0) & np.isfinite(steps)]
    findings = standstill(int(np.count_nonzero(steps == 0)))
    if len(forward):
        usual = median(forward)
        findings += [*pace(usual, dt), *_unevenness(forward, usual)]
    return findings


def median(steps: Floats) -> float:
    """Return the median, without an overflow for huge numbers."""
    return 2 * float(np.median(steps / 2))


def standstill(count: int) -> list[Finding]:
    """Warn of rows that have the time of the row before."""
    if not count:
        return []
    message = f"{count:,} rows have the same time as the row before; drop them if they are copies of it"
    return [Finding("warning", "duplicate-times", message, {"count": count})]


def pace(usual: float, dt: float) -> list[Finding]:
    """Warn if the usual interval between rows is not `dt`."""
    if abs(usual - dt) <= _TOLERANCE * dt:
        return []
    interval = f"rows are {usual:g} s apart{multiple(usual, dt)}"
    message = f"{interval}, but the task says dt = {dt:g} s; {_advice(usual, dt)}"
    return [Finding("warning", "wrong-interval", message, {"interval": usual, "dt": dt})]


def multiple(usual: float, dt: float) -> str:
    """Return ` (10 dt)` or ` (dt/10)` if one interval is a whole multiple of the other; else nothing."""
    for factor, said in ((usual / dt, "{} dt"), (dt / usual, "dt/{}")):
        if 1.5 < factor < 1e6 and abs(factor - round(factor)) <= _TOLERANCE * factor / 10:
            return f" ({said.format(f'{round(factor):,}')})"
    return ""


def _advice(usual: float, dt: float) -> str:
    if abs(usual - 1000 * dt) <= _TOLERANCE * 1000 * dt:
        return 'the times seem to be in milliseconds: write time_unit = "ms" in [sampling]'
    if usual > dt:
        return "correct dt: the log does not show what happened between its rows"
    return "correct dt, or let [sampling] resample the log"


def _unevenness(steps: Floats, usual: float) -> list[Finding]:
    uneven = np.abs(steps - usual) > _TOLERANCE * usual
    share = float(uneven.mean())
    if not share:
        return []
    shortest, longest = float(steps.min()), float(steps.max())
    message = (
        f"{rough_percent(share, 2)} of the steps differ by more than {percent(_TOLERANCE, 0)} from the usual "
        f"{usual:g} s (from {shortest:g} to {longest:g} s); a [sampling] table in the task file resamples "
        "them, and splits episodes at gaps"
    )
    numbers = {"share": share, "interval": usual, "shortest": shortest, "longest": longest}
    return [Finding("warning" if share > MOST_UNEVEN else "note", "uneven-sampling", message, numbers)]


# The resampling.

REGULAR = 0.01  # of dt: a row that is closer to the grid is on it
USUAL_GAP = 5  # steps
COARSE = 0.1  # share of rows with the time of the row before, above which the clock is useless


def resample(task: Task, log: Log) -> Log:
    """Put a log on the task's grid; return it as it is if the task does not ask for it, or has no times."""
    times = log.times
    if task.sampling is None or times is None or log.problems:
        return log
    gap = task.sampling.gap or USUAL_GAP * task.dt
    log, count = _split(log, times, gap)
    steps = np.diff(times)[~last_rows(log.episodes)[:-1]]
    if not (steps > 0).any():
        return replace(log, problems=(_only_gaps(times, gap, task.dt),))
    done = _said_gaps(count, gap, int(log.episodes[-1]) + 1)
    if task.sampling.resample == "none" or (np.abs(steps - task.dt) <= REGULAR * task.dt).all():
        return replace(log, done=tuple(done))
    still = np.count_nonzero(steps == 0) / len(steps)
    if still > COARSE:
        return replace(log, problems=(_coarse(still),))
    return _on_grid(task, log, times, steps, done)


def _split(log: Log, times: Floats, gap: float) -> tuple[Log, int]:
    is_gap = (np.diff(times) > gap * (1 + 1e-9)) & ~last_rows(log.episodes)[:-1]
    labels = log.episodes + np.concatenate([[0], np.cumsum(is_gap)])
    return replace(log, episodes=number_runs(labels, log.terminal)), int(np.count_nonzero(is_gap))


class Grid(NamedTuple):
    """The points in time at which rows are wanted."""

    episodes: Ints
    """[points]"""
    times: Floats
    """[points], seconds since the episode's first row."""
    first: Ints
    """[points], the first row of the episode."""
    last: Ints
    """[points], its last row."""


def _on_grid(task: Task, log: Log, times: Floats, steps: Floats, done: list[Finding]) -> Log:
    dt, unit, usual = task.dt, task.columns.time_unit, median(steps[steps > 0])
    since = times - times[first_rows(log.episodes)]
    grid = _grid(since, log.episodes, log.terminal, dt)
    # Episodes one after the other on one axis, so that a single search finds all places.
    length = np.bincount(log.episodes, weights=np.append(np.diff(since), 0) * ~last_rows(log.episodes))
    begin = np.concatenate([[0.0], np.cumsum(length + 3 * dt)])
    axis = begin[log.episodes] + since

    def row_at(times: Floats) -> Ints:
        """Return the last row that is not after these times [points]."""
        found = np.searchsorted(axis, begin[grid.episodes] + times + 1e-6 * dt, side="right") - 1
        return np.clip(found, grid.first, grid.last)

    before = row_at(grid.times)
    after = np.minimum(before + 1, grid.last)
    span = since[after] - since[before]
    weight = np.clip((grid.times - since[before]) / np.where(span > 0, span, 1.0), 0.0, 1.0)
    middle = row_at(grid.times + dt / 2)
    near = np.minimum(np.abs(grid.times - since[before]), np.abs(since[after] - grid.times))
    share = float((near > REGULAR * dt).mean())
    actions = log.actions[middle]
    if usual <= dt / 2 * (1 + REGULAR):
        actions = _means(log.actions, since, grid, before, row_at(grid.times + dt), dt)
    states = log.states[before] + weight[:, None] * (log.states[after] - log.states[before])
    outside = [state.external for state in task.states.values()]
    states[:, outside] = log.states[middle][:, outside]
    return replace(
        log,
        states=states,
        actions=actions,
        setpoints=None if log.setpoints is None else log.setpoints[middle],
        rewards=None if log.rewards is None else log.rewards[middle],
        times=(times[grid.first] + grid.times) / unit * unit,  # what a file can hold
        episodes=grid.episodes,
        terminal=log.terminal[grid.last] & last_rows(grid.episodes),
        done=(*done, *_said(steps, usual, share, dt)),
    )


def _grid(since: Floats, episodes: Ints, terminal: Flags, dt: float) -> Grid:
    ends = np.flatnonzero(last_rows(episodes))
    begins = np.concatenate([[0], ends[:-1] + 1])
    length = since[ends] / dt
    whole = np.floor(length + 1e-6)
    points = (whole + 1 + (terminal[ends] & (length - whole > REGULAR))).astype(np.int64)
    number = np.repeat(np.arange(len(ends)), points)
    place = np.arange(len(number)) - np.repeat(np.cumsum(points) - points, points)
    return Grid(number, np.float64(dt) * place, begins[number], ends[number])


def _means(actions: Floats, since: Floats, grid: Grid, here: Ints, there: Ints, dt: float) -> Floats:
    """Average actions that hold from row to row over the step from each point [points, A]."""
    empty = np.asarray(np.isnan(actions).any(axis=1))  # an episode's last row needs no action
    held = np.where(empty[:, None], np.roll(actions, 1, axis=0), actions)
    spans = np.maximum(np.diff(since), 0.0)[:, None]  # negative where the next episode begins
    area = np.concatenate([np.zeros((1, actions.shape[1])), np.cumsum(held[:-1] * spans, axis=0)])

    def until(rows: Ints, times: Floats) -> Floats:
        return area[rows] + held[rows] * (times - since[rows])[:, None]

    means = (until(there, grid.times + dt) - until(here, grid.times)) / dt
    means = np.clip(
        means, np.nanmin(actions, axis=0), np.nanmax(actions, axis=0)
    )  # rounding must not exceed the extremes
    means[last_rows(grid.episodes) & empty[grid.last]] = np.nan
    return means


def in_unit(times: Floats, unit: float) -> Floats:
    """Convert seconds to the unit of a file's time column, so that reading gives the same seconds."""
    if unit == 1.0:
        return times
    values = times / unit
    for near in (np.nextafter(values, -np.inf), np.nextafter(values, np.inf)):
        values = np.where((values * unit != times) & (near * unit == times), near, values)
    return values


def _said_gaps(count: int, gap: float, episodes: int) -> list[Finding]:
    if not count:
        return []
    what = f"{counted(count, 'gap')} of more than {gap:g} s: split there, into {episodes:,} episodes"
    return [Finding("note", "gaps", what, {"count": count, "gap": gap, "episodes": episodes})]


def _said(steps: Floats, usual: float, share: float, dt: float) -> list[Finding]:
    jitter = float(np.abs(steps - usual).max())
    how = "actions by their mean over each step" if usual <= dt / 2 * (1 + REGULAR) else "actions held"
    what = (
        f"rows came {steps.min():g} to {steps.max():g} s apart (usually {usual:g} s{multiple(usual, dt)}, "
        f"largest jitter {jitter:.2g} s): resampled to dt = {dt:g} s, states by linear interpolation, {how}; "
        f"{rough_percent(share)} of the rows are interpolated"
    )
    numbers = {"interval": usual, "jitter": jitter, "interpolated": share, "dt": dt}
    findings = [Finding("note", "resampled", what, numbers), *standstill(int(np.count_nonzero(steps == 0)))]
    return findings + (pace(usual, dt) if usual > dt else [])


def _only_gaps(times: Floats, gap: float, dt: float) -> Finding:
    steps = np.diff(times)
    usual = median(steps[steps > 0]) if (steps > 0).any() else 0.0
    what = (
        f"rows are {usual:g} s apart, but [sampling] counts more than {gap:g} s as a gap, so no two rows "
        f"follow each other: correct dt ({dt:g} s), time_unit or gap"
    )
    return Finding("problem", "no-transitions", what, {"interval": usual, "gap": gap})


def _coarse(share: float) -> Finding:
    what = (
        f"{rough_percent(share, 2)} of the rows have the same time as the row before: the clock is too "
        "coarse for resampling; log fractions of a second, or leave the time column out"
    )
    return Finding("problem", "duplicate-times", what, {"share": share})
