"""The table and the figure of `promises.py`."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clearloop.figures.style import BLUE, GREY, ORANGE, SETTINGS, logarithmic, save_figure
from reproductions.measuring import ROUGH, Record

NEAR = 0.2  # share by which gains and margins may differ from the plant's
MOST_PHASE, MOST_GAIN = 90.0, 10.0  # margins beyond these are all the same: more than enough
WIDTH = 80


def summarize(records: Sequence[Record]) -> str:
    """Return the summary of some pairs: a table by family and by logger, and what is asked for, in words."""
    crashed = [one["pair"] for one in records if "crash" in one]
    records = [one for one in records if "crash" not in one]
    groups = {name: [one for one in records if one["family"] == name] for name in _names(records, "family")}
    for name in _names(records, "logger"):
        groups[f"by {name}"] = [one for one in records if one["logger"] == name]
    head = (
        f"{'in %':<13}{'pairs':>6}{'refused':>9}{'deserved':>10}{'holds':>7}{'half':>6}{'error':>7}"
        f"{'gain':>6}{'margin':>8}{'lqr':>4}{'pid':>4}"
    )
    lines = [head, "-" * WIDTH, *(_row(name, some) for name, some in groups.items())]
    lines += ["-" * WIDTH, _row("all", records), ""]
    for sentence in (*_about_promises(records), *_about_loops(records), _about_time(records)):
        lines += textwrap.wrap(sentence, WIDTH, subsequent_indent="  ")
    if crashed:
        lines += textwrap.wrap(f"CRASHED, and left out above: {', '.join(map(str, crashed))}.", WIDTH)
    return "\n".join(lines)


def _names(records: Sequence[Record], key: str) -> list[str]:
    return list(dict.fromkeys(one[key] for one in records))


def _row(name: str, records: Sequence[Record]) -> str:
    refused = [one for one in records if is_refused(one)]
    accepted = [one for one in records if not is_refused(one) and "truth" in one]
    closable = [one for one in records if can_be_controlled(one)]
    cells = [
        f"{len(records):>6}{_share(records, is_refused):>9}{_share(refused, is_deserved):>10}",
        f"{_share(accepted, holds):>7}{_middle(accepted, half_width):>6}{_middle(accepted, error):>7}",
        f"{_share(records, gain_is_right):>6}{_share(records, margins_are_right):>8}",
        f"{_share(closable, lambda one: came_out(one, 'lqr')):>4}",
        f"{_share(closable, lambda one: came_out(one, 'pid')):>4}",
    ]
    return f"{name:<13}" + "".join(cells)


def _about_promises(records: Sequence[Record]) -> Iterator[str]:
    """Yield the sentences that compare promises and refusals with what is asked for."""
    judged = [one for one in records if "truth" in one]
    accepted = [one for one in judged if not is_refused(one)]
    refused = [one for one in records if is_refused(one)]
    kind = "provisional interval (spread of the judges)" if any(map(is_provisional, judged)) else "interval"
    above = _share(accepted, lambda one: one["truth"] > one["high"])
    below = _share(accepted, lambda one: one["truth"] < one["low"])
    yield (
        f"The {kind} holds the truth in {_share(accepted, holds)} % of {len(accepted)} accepted pairs"
        f" (wanted: 92) and in {_share(judged, holds)} % of all {len(judged)}; the truth is above it in"
        f" {above} %, below in {below} %."
    )
    yield (
        f"Its half width is {_middle(accepted, half_width)} % of the promise in the median (wanted: 15);"
        f" promise and truth differ by {_middle(accepted, error)} %."
    )
    yield (
        f"Refused: {_share(records, is_refused)} % (wanted: at most 20); deserved:"
        f" {_share(refused, is_deserved)} % of them (wanted: 80)."
    )
    worse = [one for one in accepted if one["own"] is not None and one["truth"] > one["own"]]
    yield f"Accepted, though the pick costs more than what was there: {len(worse)} of {len(accepted)}."


def _about_loops(records: Sequence[Record]) -> Iterator[str]:
    """Yield the sentences that compare gains and margins with those of the plants."""
    gains = [one for one in records if true_gain(one) is not None]
    unknown = [one for one in gains if gain_is_right(one) is None]
    yield (
        f"Static gain within 20 %: {_share(gains, gain_is_right)} %; unknown: {len(unknown)} of {len(gains)}"
        " plants that have one."
    )
    known = [one for one in _all_margins(records) if one.get("true")]
    silent = [one for one in known if is_near(one) is None]
    yield (
        f"Margins within 20 %: {_share(known, is_near)} % of loops; unknown: {len(silent)} of {len(known)}"
        " loops that have some."
    )
    own = [one["margins"]["own"] for one in records if "own" in one.get("margins", {})]
    unstable = [one for one in own if one["true_stable"] and is_called_unstable(one)]
    yield f"The log's own controller is called unstable: {len(unstable)} of {len(own)} (wanted: none)."


def _about_time(records: Sequence[Record]) -> str:
    """Return the sentence with the seconds of each phase."""
    phases: dict[str, list[float]] = {}
    for one in records:
        for name, seconds in one["seconds"].items():
            phases.setdefault(name, []).append(seconds)
    means = ", ".join(f"{name} {np.mean(some):.1f}" for name, some in phases.items())
    return f"Seconds for a pair, in the mean: {means}."


# What is asked of one pair; None where the question has no answer.


def is_refused(record: Record) -> bool:
    """Tell whether the data or the model was refused, or no model could be learned."""
    return bool(record.get("refusals")) or "error" in record


def is_deserved(record: Record) -> bool | None:
    """Tell whether a forced search gives a pick that costs more than what was there."""
    if "truth" not in record:
        return True
    return None if record["own"] is None else bool(record["truth"] > record["own"])


def is_provisional(record: Record) -> bool:
    """Tell whether the front stated no interval, so that one was made from the spread of the judges."""
    return bool(record["provisional"])


def holds(record: Record) -> bool:
    """Tell whether the truth lies in the interval."""
    return bool(record["low"] <= record["truth"] <= record["high"])


def half_width(record: Record) -> float:
    """Return half the width of the interval, as a share of the promise."""
    return float((record["high"] - record["low"]) / 2 / max(abs(record["promise"]), 1e-12))


def error(record: Record) -> float:
    """Return the distance of the truth from the promise, as a share of the promise."""
    return float(abs(record["truth"] - record["promise"]) / max(abs(record["promise"]), 1e-12))


def can_be_controlled(record: Record) -> bool:
    """Tell whether LQR and PID must come out: the plant is stable, or was logged in closed loop."""
    settles = record["family"] not in ("integrating", "friction", "unstable")
    return "methods" in record and (settles or record["logger"] != "random")


def came_out(record: Record, method: str) -> bool | None:
    """Tell whether a method gave a controller; None if it was not tried."""
    return None if method not in record["methods"] else not record["methods"][method]


def true_gain(record: Record) -> Any:
    """Return the static gain of the plant, if it has one and it is known."""
    return None if record["family"] in ROUGH else record.get("margins", {}).get("gain")


def gain_is_right(record: Record) -> bool | None:
    """Tell whether the static gains that the package states are near those of the plant; None: none given.

    A gain may be off by a fifth of the largest of its plant, so that a small cross effect does not decide.
    """
    true, found = true_gain(record), record.get("linear", {}).get("gain")
    if true is None or found is None:
        return None
    if not {"settles", "unknown"}.issuperset(record["linear"]["kind"]):
        return False  # it is said to have no static gain
    real = np.array(true, float)
    stated = np.array(found, float)  # nan where it is unknown
    known = np.isfinite(stated)
    if not known.any():
        return None
    return bool((np.abs(stated - real)[known] <= NEAR * np.abs(real).max()).all())


def is_called_unstable(margins: Record) -> bool:
    """Tell whether anything that the package says calls the loop unstable."""
    return any((margins.get(name) or {}).get("stable") is False for name in ("log", "model"))


def margins_are_right(record: Record) -> bool | None:
    """Tell whether all margins that the package gives of a pair are near those of the plant."""
    judged = [is_near(one) for one in record.get("margins", {}).values() if isinstance(one, dict)]
    known = [one for one in judged if one is not None]
    return all(known) if known else None


def is_near(margins: Record) -> bool | None:
    """Tell whether the margins that the sheet gives of a loop are near those of the plant; None: none given.

    The linear model of the log has the word; where it is silent, the models at rest have it.
    """
    true, found = margins.get("true"), margins.get("log") or margins.get("model")
    if not true or found is None:
        return None
    if not found["stable"]:
        return False
    pairs = [("phase", true["phase"], MOST_PHASE), ("gain_up", true["gain"], MOST_GAIN)]
    known = [one for one in pairs if one[0] not in found.get("unknown", ())]
    if not known:
        return None
    capped = [(min(real or most, most), min(found[name] or most, most)) for name, real, most in known]
    return all(abs(stated - real) <= NEAR * real for real, stated in capped)


def _all_margins(records: Sequence[Record]) -> list[Record]:
    return [m for one in records for m in one.get("margins", {}).values() if isinstance(m, dict)]


def _share(records: Sequence[Record], asked: Callable[[Record], bool | None]) -> str:
    answers = [answer for answer in map(asked, records) if answer is not None]
    return f"{100 * np.mean(answers):.0f}" if answers else "-"


def _middle(records: Sequence[Record], value: Callable[[Record], float]) -> str:
    return f"{100 * np.median([value(one) for one in records]):.0f}" if records else "-"


def draw(records: Sequence[Record], file: Path) -> None:
    """Draw the promises with their intervals against the truth, and write the figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    known = [one for one in records if "truth" in one and one["truth"] > 0 and one["promise"] > 0]
    if not known:
        return
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(6.3, 6.0), layout="constrained")
        axes = figure.add_subplot()
        logarithmic(axes.xaxis, within=(1.0, 3.0))
        logarithmic(axes.yaxis, within=(1.0, 3.0))
        values = [value for one in known for value in (one["truth"], one["promise"])]
        ends = [min(values) / 1.3, max(values) * 1.3]
        axes.plot(ends, ends, color=GREY, linewidth=0.8, label="promise = truth")
        groups = (
            ("the interval holds the truth", BLUE, "o", lambda one: not is_refused(one) and holds(one)),
            ("it does not", ORANGE, "D", lambda one: not is_refused(one) and not holds(one)),
            ("refused, searched nevertheless", GREY, "x", is_refused),
        )
        for label, colour, marker, belongs in groups:
            some = [one for one in known if belongs(one)]
            x, y = [one["truth"] for one in some], [one["promise"] for one in some]
            lower = [one["promise"] - max(one["low"], ends[0]) for one in some]
            upper = [max(0.0, one["high"] - one["promise"]) for one in some]
            axes.errorbar(
                x, y, yerr=[np.maximum(lower, 0.0), upper], fmt=marker, color=colour, markersize=3.5,
                linewidth=0.7, label=f"{label} ({len(some)})",
            )  # fmt: skip
        axes.set(
            xlim=ends,
            ylim=ends,
            xlabel="penalty of the pick on the plant",
            ylabel="promised penalty, 95 % interval",
        )
        axes.legend(loc="upper left")
        save_figure(figure, file)
