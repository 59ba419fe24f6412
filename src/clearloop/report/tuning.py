"""How a PID was tuned: the trials of each loop whose oscillations are nearest to sustained."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from clearloop.report.style import BLUE, GREY, RED, SETTINGS, with_unit
from clearloop.runs.tuning import Course
from clearloop.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 5  # trials of each loop: the chosen one, and gains around it


def draw_tuning(courses: Sequence[Course], task: Task) -> "Figure":
    """A row for each loop, a panel for each gain; the one that Ziegler and Nichols' table takes in red."""
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


def _draw_loop(panels: Any, courses: Sequence[Course], task: Task) -> None:
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


def _distance(course: Course) -> float:
    ratio = course.first.ratio
    return abs(math.log(ratio)) if ratio else math.inf


def _said(course: Course) -> str:
    if course.first.ratio is None:
        return "no oscillation"
    return f"a period: x {course.first.ratio:.2f}"
