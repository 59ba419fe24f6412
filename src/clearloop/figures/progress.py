"""Figures of a search: the best penalty over its model steps, a whole population, the tuning of a PID."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    SETTINGS,
    Mark,
    logarithmic,
    marks,
    penalty_panels,
    with_unit,
)
from clearloop.registry import METHODS
from clearloop.runs.learning import ProgressRow, TrialCourse
from clearloop.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PENALTY = "penalty, as the search sees it (no unit)"
_STEPS = "steps of the model (number)"
BELOW: dict[str, Any] = {"loc": "outside lower center", "ncols": 4, "fontsize": "small"}


class Generation(NamedTuple):
    """A population after one round of a search."""

    steps: int
    """model steps so far"""
    evaluated: int
    """programs that have been evaluated so far"""
    penalties: NDArray[np.float64]
    """[n] of all programs in the population"""


def draw_progress(rows: Sequence[ProgressRow]) -> "Figure":
    """Draw the rows of `progress.csv`: for each method, the best penalty so far.

    A thin line shows the best of each round where that may be worse. A method that does not search is a
    dashed horizontal line.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=(7.5, 4.2), layout="constrained")
        seen = [value for row in rows for value in (row.best, row.latest) if value is not None]
        panels = penalty_panels(figure, seen)
        ends = _scale(panels[-1], rows)
        for method, mark in marks((row.method for row in rows), METHODS).items():
            own = [row for row in rows if row.method == method]
            for axes in panels:
                _draw_course(axes, own, mark, ends)
        panels[-1].set_xlabel(_STEPS)
        figure.supylabel(PENALTY, fontsize="medium")
        figure.legend(*panels[-1].get_legend_handles_labels(), **BELOW)
    return figure


def _draw_course(axes: "Axes", rows: Sequence[ProgressRow], mark: Mark, ends: tuple[float, float]) -> None:
    style: dict[str, Any] = {"color": mark.colour, "marker": mark.marker, "markersize": 5, "markevery": [-1]}
    method, best = rows[0].method, [row.best for row in rows]
    if len(rows) == 1:
        axes.plot(ends, best * 2, linestyle="--", linewidth=1, label=method, **style)
        return
    axes.step([row.steps for row in rows], best, where="post", linewidth=1.4, label=method, **style)
    latest = [(row.steps, row.latest) for row in rows if row.latest is not None]
    if latest:
        rounds = f"{method}, each round"
        axes.step(
            *zip(*latest, strict=True),
            where="post",
            color=mark.colour,
            linewidth=0.5,
            alpha=0.7,
            label=rounds,
        )


def _scale(axes: "Axes", rows: Sequence[ProgressRow]) -> tuple[float, float]:
    """Scale the axis of steps from the first row of the methods that search to the last; return both ends."""
    counts = Counter(row.method for row in rows)
    searched = [row.steps for row in rows if counts[row.method] > 1 and row.steps > 0] or [1, 10]
    low, high = min(searched), max(*searched, min(searched) + 1)
    if high > 30 * low:
        logarithmic(axes.xaxis)
        axes.set_xlim(low, high * 1.1)
    else:
        axes.set_xlim(low, high + 0.02 * (high - low))
    return low, high


def draw_population(generations: Sequence[Generation]) -> "Figure":
    """Draw the penalties of a population over the model steps, and the number of evaluated programs."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    steps = [generation.steps for generation in generations]
    living = [generation.penalties[np.isfinite(generation.penalties)] for generation in generations]
    levels = np.array([np.quantile(p, [0, 0.1, 0.5, 0.9]) if p.size else [np.nan] * 4 for p in living])
    best, low, median, high = levels.reshape(-1, 4).T
    with rc_context(SETTINGS):
        figure = Figure(figsize=(7.5, 4.8), layout="constrained")
        *panels, count = penalty_panels(figure, [*best, *median, *high], below=1.1)
        band: dict[str, Any] = {"color": BLUE, "alpha": 0.2, "linewidth": 0}
        for axes in panels:
            axes.fill_between(steps, low, high, step="post", label="8 of 10 programs", **band)
            axes.step(
                steps, median, where="post", color=BLUE, linewidth=1.2, label="median of the population"
            )
            axes.step(
                steps,
                np.fmin.accumulate(best),
                where="post",
                color=ORANGE,
                linewidth=1.6,
                label="best so far",
            )
        panels[-1].set_ylabel("penalty, as the search\nsees it (no unit)")
        count.step(steps, [generation.evaluated for generation in generations], where="post", color=GREY)
        count.set(xlabel=_STEPS, ylabel="evaluated\n(programs)")
        figure.align_ylabels([panels[-1], count])
        figure.legend(*panels[-1].get_legend_handles_labels(), **BELOW)
    return figure


# The tuning of a PID: the trials of each loop whose oscillations are nearest to sustained ones.

SHOWN = 5  # trials of each loop: the chosen one, and its neighbours in gain


def draw_tuning(courses: Sequence[TrialCourse], task: Task) -> "Figure":
    """Draw the trials of Ziegler and Nichols' second method: a row for each loop, a panel for each gain.

    The trial whose gain enters their table is red.

    Args:
        courses: The trials of all loops.
        task: The task, which gives units and the time step.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    loops = list(dict.fromkeys((course.first.input, course.first.action) for course in courses))
    with rc_context(SETTINGS):
        figure = Figure(figsize=(7.5, 1.9 * len(loops) + 0.5), layout="constrained")
        grid = figure.subplots(len(loops), SHOWN, squeeze=False)
        for panels, loop in zip(grid, loops, strict=True):
            mine = [course for course in courses if (course.first.input, course.first.action) == loop]
            _draw_loop(panels, mine, task)
    return figure


def _draw_loop(panels: Any, courses: Sequence[TrialCourse], task: Task) -> None:
    ordered = sorted(courses, key=lambda course: abs(course.first.gain))
    best = min(range(len(ordered)), key=lambda n: _distance(ordered[n]))
    first = max(0, min(best - SHOWN // 2, len(ordered) - SHOWN))
    for panel in panels[len(ordered[first : first + SHOWN]) :]:
        panel.set_axis_off()
    for panel, course in zip(panels, ordered[first : first + SHOWN], strict=False):
        chosen = course is ordered[best]
        shown = np.where(np.abs(course.errors) <= 20 * abs(course.errors[0]), course.errors, np.nan)
        panel.plot(np.arange(len(shown)) * task.dt, shown, color=RED if chosen else BLUE, lw=1.1)
        panel.axhline(0, color=GREY, lw=0.8, ls=":")
        title = f"gain {course.first.gain:.3g}{', critical' if chosen else ''}"
        panel.set_title(f"{title}\n{_said(course)}", fontsize=7)
        panel.tick_params(labelsize=7)
        panel.set_xlabel("time (s)", fontsize=7)
    name, action = courses[0].first.input, courses[0].first.action
    unit = task.states[name].unit
    panels[0].set_ylabel(f"{with_unit(f'error of {name}', unit)}\nby {action}", fontsize=8)


def _distance(course: TrialCourse) -> float:
    ratio = course.first.ratio
    return abs(math.log(ratio)) if ratio else math.inf


def _said(course: TrialCourse) -> str:
    if course.first.ratio is None:
        return "no oscillation"
    return f"x {course.first.ratio:.2f} per period"
