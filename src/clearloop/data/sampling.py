"""Whether rows came at an even pace, and at the task's own."""

import numpy as np

from clearloop.data.cells import Floats, Ints
from clearloop.data.episodes import last_rows
from clearloop.data.report import Finding

TOLERANCE = 0.2  # of a step; clocks that count in milliseconds jitter by a tenth at 100 Hz
MOST_UNEVEN = 0.01  # share of steps


def check_sampling(times: Floats | None, episodes: Ints, dt: float) -> list[Finding]:
    if times is None:
        return [Finding("note", "no-times", f"no column tells the time: dt = {dt:g} s is taken on trust")]
    with np.errstate(over="ignore"):  # times that far apart are no times
        steps = np.diff(times)[~last_rows(episodes)[:-1]]
    forward = steps[(steps > 0) & np.isfinite(steps)]
    findings = _standstill(int(np.count_nonzero(steps == 0)))
    if len(forward):
        usual = 2 * float(np.median(forward / 2))  # of halves: the mean of two huge ones would overflow
        findings += [*_pace(usual, dt), *_unevenness(forward, usual)]
    return findings


def _standstill(count: int) -> list[Finding]:
    if not count:
        return []
    message = f"{count:,} rows have the time of the row before; drop them if they repeat it"
    return [Finding("warning", "duplicate-times", message, {"count": count})]


def _pace(usual: float, dt: float) -> list[Finding]:
    if abs(usual - dt) <= TOLERANCE * dt:
        return []
    milliseconds = abs(usual - 1000 * dt) <= TOLERANCE * 1000 * dt
    advice = "the times seem to be in milliseconds" if milliseconds else "correct dt, or resample the log"
    message = f"rows are {usual:g} s apart, but the task says dt = {dt:g} s; {advice}"
    return [Finding("warning", "wrong-interval", message, {"interval": usual, "dt": dt})]


def _unevenness(steps: Floats, usual: float) -> list[Finding]:
    uneven = np.abs(steps - usual) > TOLERANCE * usual
    share = float(uneven.mean())
    if not share:
        return []
    shortest, longest = float(steps.min()), float(steps.max())
    message = (
        f"{100 * share:.2g} % of the steps are more than {100 * TOLERANCE:.0f} % off the usual {usual:g} s "
        f"(from {shortest:g} to {longest:g} s); resample the log, or split episodes at the gaps"
    )
    numbers = {"share": share, "interval": usual, "shortest": shortest, "longest": longest}
    return [Finding("warning" if share > MOST_UNEVEN else "note", "uneven-sampling", message, numbers)]
