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
    findings = standstill(int(np.count_nonzero(steps == 0)))
    if len(forward):
        usual = median(forward)
        findings += [*pace(usual, dt), *_unevenness(forward, usual)]
    return findings


def median(steps: Floats) -> float:
    return 2 * float(np.median(steps / 2))  # of halves: the mean of two huge ones would overflow


def standstill(count: int) -> list[Finding]:
    if not count:
        return []
    message = f"{count:,} rows have the time of the row before; drop them if they repeat it"
    return [Finding("warning", "duplicate-times", message, {"count": count})]


def pace(usual: float, dt: float) -> list[Finding]:
    if abs(usual - dt) <= TOLERANCE * dt:
        return []
    interval = f"rows are {usual:g} s apart{multiple(usual, dt)}"
    message = f"{interval}, but the task says dt = {dt:g} s; {_advice(usual, dt)}"
    return [Finding("warning", "wrong-interval", message, {"interval": usual, "dt": dt})]


def multiple(usual: float, dt: float) -> str:
    """` (10 dt)` where one is a whole multiple of the other."""
    for factor, said in ((usual / dt, "{} dt"), (dt / usual, "dt/{}")):
        if 1.5 < factor < 1e6 and abs(factor - round(factor)) <= TOLERANCE * factor / 10:
            return f" ({said.format(f'{round(factor):,}')})"
    return ""


def _advice(usual: float, dt: float) -> str:
    if abs(usual - 1000 * dt) <= TOLERANCE * 1000 * dt:
        return 'the times seem to be in milliseconds: say time_unit = "ms" in [sampling]'
    if usual > dt:
        return "correct dt: what happened between rows is not in the log"
    return "correct dt, or let [sampling] resample the log"


def _unevenness(steps: Floats, usual: float) -> list[Finding]:
    uneven = np.abs(steps - usual) > TOLERANCE * usual
    share = float(uneven.mean())
    if not share:
        return []
    shortest, longest = float(steps.min()), float(steps.max())
    message = (
        f"{100 * share:.2g} % of the steps are more than {100 * TOLERANCE:.0f} % off the usual {usual:g} s "
        f"(from {shortest:g} to {longest:g} s); a [sampling] table in the task file resamples them, and "
        "splits episodes at gaps"
    )
    numbers = {"share": share, "interval": usual, "shortest": shortest, "longest": longest}
    return [Finding("warning" if share > MOST_UNEVEN else "note", "uneven-sampling", message, numbers)]
