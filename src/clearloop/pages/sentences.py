"""The result of a run in sentences, which are the same on the screen and in the report."""

from math import isfinite
from typing import TYPE_CHECKING

from clearloop.numbers import counted, format_penalty, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clearloop.runs import Before, Entry, Front, Trusted
    from clearloop.runs.front import Beside


def headline(front: "Front", rows: "Sequence[Trusted]", before: "Before") -> str:
    """Return the main result of a run: the best controller beside the log, the simplest, or published ones.

    Args:
        front: The front of the run.
        rows: The rows of `trust.csv`: how far each controller is to be believed.
        before: What controlled the plant before.
    """
    best, simplest = front.entries[front.best], front.entries[front.simplest]
    cost = cost_of(best)
    costs = "costs" if best.penalty_system is not None else "promises"
    where = " on the plant" if best.penalty_system is not None else ""
    if front.asked and not any(row.robust for row in front.entries):
        return (
            f"{_no_margins(front, rows)} The best, {best.controller}, {costs} {format_penalty(cost)}{where}."
        )
    alike = len({row.readable for row in front.judged}) == 1
    which = "The best robust controller" if best.robust and front.asked else "The best controller"
    which += "" if alike else " that can be read"
    said = f"{which}, {best.controller}, {costs} {format_penalty(cost)}{where or interval(best)}"
    others, advice = [], ""
    from_log = next((row.from_log for row in rows if row.controller == best.controller), None)
    if best.penalty_system is None and before.kind == "log" and before.penalty and from_log is not None:
        if _is_no_gain(best, from_log, before.penalty):
            others.append("no clear difference from the log, from the same rows")
        else:
            others.append(f"{relative(from_log, before.penalty)} the log, from the same rows")
        known = [row.from_log for row in rows if row.from_log is not None]
        if min(known) >= before.penalty:
            advice = " None is better than what controlled the plant when the log was made: keep that."
    elif simplest != best:
        others.append(f"{relative(cost, cost_of(simplest))} the simplest")
    rivals = [known for known in front.published if known.in_paper]
    if rivals and front.best not in front.planners:
        rival = min(rivals, key=lambda known: known.penalty_system)
        others.append(f"{relative(cost, rival.penalty_system)} the best published, the {rival.title}")
    return (f"{said}: {' and '.join(others)}." if others else f"{said}.") + advice


def _no_margins(front: "Front", rows: "Sequence[Trusted]") -> str:
    """Say that no controller is robust: because margins are too small, or because none is known."""
    asked = "the margins that [robust] of the task asks for"
    many = counted(len(front.entries), "controller")
    if any(row.robust is False for row in front.entries):
        return f"None of {many} keeps {asked}, so none is fit to be switched on."
    best = front.entries[front.best].controller
    why = next((row.margins for row in rows if row.controller == best and row.margins), None)
    because = f" ({best}: {why})" if why else ""
    return (
        f"Whether any of {many} keeps {asked} is not known{because}, so none is fit to be switched on "
        "without a closer look."
    )


def robustness(front: "Front") -> str:
    """Return a sentence on the margins of the pick and what they cost; nothing if none were asked for."""
    pick = front.entries[front.pick]
    if pick.robust is None or not front.asked:
        return ""
    if not pick.robust:
        return f"no controller keeps the margins that are asked for; the pick has {margins(pick)}"
    said = f"the pick keeps {margins(pick)}"
    others = [
        entry
        for entry, row in zip(front.entries, front.judged, strict=True)
        if row.readable and row.fit is False and cost_of(entry) < cost_of(pick)
    ]
    if not others:
        return f"{said}, and no controller without margins costs less"
    least = min(others, key=cost_of)
    return f"{said}; {least.controller}, without them, costs {relative(cost_of(least), cost_of(pick))} it"


def margins(entry: "Entry") -> str:
    """Return the margins of a controller in words: `phase 37°, gain x 2.4, delay 2.2 steps, Ms 1.7`."""
    parts = [
        (entry.phase_margin, "phase {:.0f}°"),
        (entry.gain_margin, "gain x {:.3g}"),
        (entry.delay_margin, "delay {:.2g} steps"),
        (entry.ms, "Ms {:.3g}"),
    ]
    said = [form.format(value) for value, form in parts if value is not None and isfinite(value)]
    return ", ".join(said) or "no known margin"


def interval(entry: "Entry") -> str:
    """Return the interval of a promise in words, such as ` (2.3 to 2.7)`; nothing in old runs."""
    if entry.penalty_low is None or entry.penalty_high is None:
        return ""
    return f" ({format_penalty(entry.penalty_low)} to {format_penalty(entry.penalty_high)})"


def promised(pick: "Entry") -> str:
    """Return a sentence on the promise of a pick that no plant can test; nothing in old runs."""
    if pick.penalty_low is None or pick.penalty_high is None:
        return ""
    low, high = format_penalty(pick.penalty_low), format_penalty(pick.penalty_high)
    return (
        f"the pick promises {format_penalty(pick.penalty_model)}; "
        f"the true penalty is between {low} and {high} in 95 of 100 cases"
    )


def _is_no_gain(entry: "Entry", from_log: float, logged: float) -> bool:
    """Tell whether a difference from the log is less than the uncertainty of the promise.

    Args:
        entry: The controller, with the interval of its promise.
        from_log: What it promises from rows of the log.
        logged: What the log cost from the same rows.
    """
    if entry.penalty_low is None or entry.penalty_high is None:
        return False
    below, above = entry.penalty_low - entry.penalty_model, entry.penalty_high - entry.penalty_model
    scale = abs(from_log / entry.penalty_model) if entry.penalty_model else 1.0
    return from_log + scale * below <= logged <= from_log + scale * above


def planned(front: "Front", planner: int) -> str:
    """Return a sentence on the cost of a planner beside the best other controllers, from the same starts."""
    rows = {row.controller: row for row in front.planned}
    own, best = rows[front.entries[planner].controller], front.entries[front.best].controller
    titles = {} if rows[best].planner else {best: best}
    titles |= {known.controller: known.title for known in front.published if known.in_paper}
    others = [f"{title} {format_penalty(cost_of(rows[name]))}" for name, title in titles.items()]
    return (
        f"{own.controller} makes a new plan at every step; its figures are from the first {own.starts} starts"
        + (f"; from the same starts, others cost: {', '.join(others)}" if others else "")
    )


def compared(pick: "Trusted | None", before: "Before", entry: "Entry | None" = None) -> str:
    """Return a phrase on what controlled the plant before, and on what the pick promises instead.

    Args:
        pick: The row of the pick in `trust.csv`, if there is one.
        before: What controlled the plant before.
        entry: The pick's row of the front, whose interval tells whether the difference is clear.
    """
    if before.penalty is None:
        return before.text
    said = f"{format_penalty(before.penalty)}: {before.text}"
    promise = None
    if pick is not None:
        promise = pick.from_log if before.kind == "log" else pick.promise
    if promise is None:
        return said
    less = relative(promise, before.penalty).removesuffix(" than")
    if entry is not None and _is_no_gain(entry, promise, before.penalty):
        less = "which is no clear difference"
    return f"{said}; the pick promises {format_penalty(promise)} there, {less}"


def beware(rows: "Sequence[Trusted]") -> list[str]:
    """Return the warnings about controllers that are not to be believed."""
    return [f"{row.controller}: {' and '.join(row.warnings)}" for row in rows if row.warnings]


def kept(front: "Front") -> str:
    """Return a sentence on the difference between the plant and the promise of the model."""
    pick = front.entries[front.pick]
    pairs = [(e.penalty_model, e.penalty_system) for e in front.entries if e.penalty_system is not None]
    promised, cost = format_penalty(pick.penalty_model), format_penalty(cost_of(pick))
    said = f"the pick promises {promised}{interval(pick)} and costs {cost} on the plant"
    if not all(promised > 0 for promised, _ in pairs):
        return said
    apart = max(abs(cost / promised - 1) for promised, cost in pairs)
    more = cost_of(pick) / pick.penalty_model - 1
    return (
        f"{said}, {percent(abs(more))} {'more' if more >= 0 else 'less'};"
        f" over the front, plant and promise are at most {percent(apart)} apart"
    )


def sentences(*parts: str) -> str:
    """Join phrases as sentences, each with a capital letter and a full stop."""
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)


def cost_of(entry: "Entry | Beside") -> float:
    """Return the penalty on the plant, or on the model if there is no plant."""
    return entry.penalty_model if entry.penalty_system is None else entry.penalty_system


def relative(cost: float, other: float) -> str:
    """Compare two costs in a phrase such as `12 % less than`, in absolute terms where shares mean nothing."""
    if cost > 0 and other > 0:
        change = cost / other - 1
        size = percent(abs(change), places=0 if abs(change) >= 0.1 else 1)
    else:
        change, size = cost - other, format_penalty(abs(cost - other))
    return f"{size} {'less' if change <= 0 else 'more'} than"
