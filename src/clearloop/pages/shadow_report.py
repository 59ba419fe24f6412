"""The report of a shadow: what a controller would have done beside the plant, as a page with a figure."""

import base64
import io
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clearloop.figures.style import BLUE, RED, SETTINGS
from clearloop.files import whole_file
from clearloop.numbers import percent, quantity
from clearloop.pages.report import render
from clearloop.runs.shadow import LEFT, SURE, Shadow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEMPLATE = Path(__file__).parent / "templates" / "shadow.html"
_A_DATE = 1e8  # seconds; larger times are seconds since 1970
_NO_DATE = 253_402_300_800  # the end of the year 9999; so large are milliseconds that are taken for seconds


def write_shadow_report(shadow: Shadow) -> Path:
    """Write `shadow.html` and `shadow.png` into the folder of a shadow, and return the path of the page."""
    image = io.BytesIO()
    draw_actions(shadow).savefig(image, format="png", dpi=140)
    with whole_file(shadow.folder / "shadow.png") as file:
        file.write(image.getvalue())
    page = shadow.folder / "shadow.html"
    url = f"data:image/png;base64,{base64.b64encode(image.getvalue()).decode()}"
    with whole_file(page) as file:
        file.write(render(_TEMPLATE, {**_contents(shadow), "figure": url}).encode())
    return page


def draw_actions(shadow: Shadow) -> "Figure":
    """Return a figure with a panel for each action: what was applied and what the controller would do."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    names, points = shadow.task.action_names, shadow.course.points
    times = np.array([point[0] for point in points])
    unit, scale = "s", 1.0
    if len(times):
        times = times - times[0]
        unit, scale = ("h", 3600.0) if times[-1] > 7200 else ("min", 60.0) if times[-1] > 300 else ("s", 1.0)
    with rc_context(SETTINGS):
        figure = Figure(figsize=(8, 1 + 2.2 * len(names)), layout="constrained")
        panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for number, (panel, name) in enumerate(zip(panels, names, strict=True)):
            for column, label, colour in ((2 * number, "applied", BLUE), (2 * number + 1, "controller", RED)):
                low = np.array([point[1][column] for point in points])
                high = np.array([point[2][column] for point in points])
                panel.fill_between(times / scale, low, high, color=colour, alpha=0.3, linewidth=0)
                panel.plot(times / scale, (low + high) / 2, color=colour, linewidth=0.9, label=label)
            panel.set_ylabel(f"{name}{shadow.controller.unit(name)}")
            panel.legend(loc="upper right", ncols=2)
        panels[-1].set_xlabel(f"time since the first sample, {unit}")
    return figure


def clock_time(seconds: float) -> str:
    """Return a time for people: a date for seconds since 1970, otherwise the seconds themselves."""
    if math.isnan(seconds):
        return "never"
    if not _A_DATE <= seconds < _NO_DATE:
        return f"{seconds:,.6g} s"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def verdicts(shadow: Shadow) -> Iterator[tuple[bool, str]]:
    """Yield sentences about a shadow, each with a flag that says whether it is good news."""
    counts = shadow.counts
    if shadow.promise is None:
        yield True, "Whether the plant keeps the promise is not known: no run with a model was given (--run)."
    elif not counts.checked:
        yield (
            True,
            "Whether the plant keeps the promise is not known yet: there are too few samples in a row.",
        )
    else:
        ahead = shadow.promise.ahead * shadow.task.dt
        share, limit = percent(counts.kept / counts.checked, 0), percent(LEFT, 0)
        text = (
            f"{share} of {counts.checked:,} predictions over {ahead:g} s were within the promised interval, "
            f"which holds {percent(SURE, 0)} on the held-out part of the log."
        )
        if shadow.has_left:
            yield False, f"The plant has left the promise. {text} More than {limit} of the latest were not."
        elif counts.left:
            yield False, f"The plant left the promise {_times(counts.left)}, and is back. {text}"
        else:
            yield True, f"The plant keeps the promise. {text}"
    if shadow.region is not None and counts.samples:
        beyond = counts.outside / counts.samples
        yield (
            beyond <= 0.05,
            f"{percent(beyond)} of the states were outside the region of the log, where the controller was "
            "learned; 1 % is usual.",
        )
    if counts.guarded:
        yield False, f"A guard fired at {counts.guarded:,} of {counts.samples:,} samples."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _contents(shadow: Shadow) -> dict[str, Any]:
    counts, task = shadow.counts, shadow.task
    name = shadow.controller.name or "the controller"
    return {
        "title": f"{task.name}: clearloop shadow",
        "task": task.name,
        "headline": f"{name} beside the plant",
        "law": shadow.controller.summary,
        "verdicts": [{"good": good, "text": text} for good, text in verdicts(shadow)],
        "differences": [_difference(shadow, action) for action in task.action_names],
        "facts": [
            ("samples", f"{counts.samples:,}"),
            ("first sample", clock_time(counts.first)),
            ("latest sample", clock_time(counts.last)),
            ("gaps", f"{counts.gaps:,}, {counts.missing:,.4g} s together" if counts.gaps else "none"),
            ("guards that fired", ", ".join(f"{k} ({n:,})" for k, n in counts.guards.items()) or "none"),
        ],
        "events": [{"time": clock_time(one.time), "text": one.text} for one in shadow.events],
    }


def _difference(shadow: Shadow, action: str) -> dict[str, str]:
    count, total, squares, largest = shadow.counts.differences.get(action, [0.0, 0.0, 0.0, 0.0])
    unit = shadow.controller.units.get(action, "")
    if not count:
        return {"name": action, "count": "0", "mean": "", "rms": "", "largest": ""}
    return {
        "name": action,
        "count": f"{int(count):,}",
        "mean": quantity(total / count, unit),
        "rms": quantity(math.sqrt(squares / count), unit),
        "largest": quantity(largest, unit),
    }
