"""The figure of fuzzy rules: the membership of each rule over each feature, and the rule's output."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from clearloop.controllers import Controller
from clearloop.controllers.views import DrawnRule
from clearloop.data import Batch
from clearloop.data.log import setpoint_rows
from clearloop.expression import Variable
from clearloop.figures.style import BLUE, GREY, RED, SETTINGS, with_unit
from clearloop.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_RULES = 30  # in one figure
_REACH = 2.5  # widths drawn on both sides of a centre, where no range is given

_Range = tuple[float, float]
Membership = tuple[float, float]
"""The centre and the width of a membership function."""


def draw_rules(controller: Controller, task: Task, ranges: Mapping[str, _Range] | None = None) -> "Figure":
    """Draw a row for each rule, with its membership over each feature that any rule uses, and its output.

    A state with a setpoint is drawn as its distance from the setpoint. Of more than 30 rules, the first 30
    are drawn.

    Args:
        controller: A controller with rules.
        task: The task that it controls.
        ranges: The range over which each state or action is drawn, such as that of `ranges_of`; where none is
            given, it is as wide as the rules.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    controller = controller.for_task(task)
    every = list(controller.rules())
    rows = every[:MOST_RULES]
    features = _features(task, rows)
    with rc_context(SETTINGS):
        size = max(7.5, 1.3 * len(features) + 2.2), 0.68 * len(rows) + 0.8
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), len(features) + 1, squeeze=False)
        for j, feature in enumerate(features):
            terms = [row.premise.get(feature) for row in rows]
            low, high = (ranges or {}).get(feature.name, (0.0, 0.0))
            span = (low, high) if low < high and feature.part == "value" else _reach(terms)
            for axes, term in zip(grid[:, j], terms, strict=True):
                _draw_term(axes, term, span)
            _label(grid[:, j], _meaning(feature, controller), controller.units.get(feature.name, ""))
        for axes, row in zip(grid[:, -1], rows, strict=True):
            low, high = controller.limits[row.action]
            _draw_output(axes, min(max(row.output, low), high), (low, high))
        for action in controller.actions:
            mine = [axes for axes, row in zip(grid[:, -1], rows, strict=True) if row.action == action]
            _label(mine, action, controller.units.get(action, ""))
        _number(grid[:, 0], rows)
        figure.supylabel("membership, from 0 to 1", fontsize="small")
        if len(every) > len(rows):
            figure.suptitle(f"The first {len(rows)} of {len(every)} rules", fontsize="medium")
    return figure


def ranges_of(task: Task, batch: Batch) -> dict[str, _Range]:
    """Return the range of each state less its setpoint in the log, and the limits of each action."""
    errors = batch.states - setpoint_rows(task, batch.setpoints, len(batch.states))
    lowest, highest = errors.min(axis=0).tolist(), errors.max(axis=0).tolist()
    ranges = dict(zip(task.state_names, zip(lowest, highest, strict=True), strict=True))
    return ranges | {name: action.limits for name, action in task.actions.items()}


def _features(task: Task, rows: Sequence[DrawnRule]) -> list[Variable]:
    """Return the features of the rules in the order of the task, each from the present to the past."""
    names = [*task.state_names, *task.action_names]
    used = {feature for row in rows for feature in row.premise}
    return sorted(used, key=lambda v: (names.index(v.name), v.part, v.lag or 0))


def _meaning(feature: Variable, controller: Controller) -> str:
    aimed = feature.name in controller.setpoint and feature.part == "value"
    return f"{feature} - setpoint" if aimed else str(feature)


def _reach(terms: Sequence[Membership | None]) -> _Range:
    used = [term for term in terms if term is not None]
    reach = [max(_REACH * width, 1e-6 * abs(center)) for center, width in used]
    ends = [(center - far, center + far) for (center, _), far in zip(used, reach, strict=True)]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _draw_term(axes: "Axes", term: Membership | None, span: _Range) -> None:
    """Draw one membership function; the panel stays empty if the rule does not read the feature."""
    axes.set(xlim=span, ylim=(0, 1.5), yticks=[])
    axes.spines["left"].set_visible(False)
    if term is None:
        axes.spines["bottom"].set_visible(False)
        axes.grid(False)
        return
    center, width = term
    x = np.union1d(np.linspace(*span, 400), np.clip(center + width * np.linspace(-4, 4, 81), *span))
    y = np.exp(-((x - center) ** 2) / (2 * width**2))  # Eq. (14)
    axes.fill_between(x, y, color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(x, y, color=BLUE, linewidth=1.2)
    if span[0] <= center <= span[1]:
        axes.vlines(center, 0, 1, color=BLUE, linewidth=0.8, linestyle=":")
    _say(axes, f"{center:.3g} ± {width:.3g}")


def _draw_output(axes: "Axes", output: float, limits: _Range) -> None:
    low, high = min(limits[0], 0.0), max(limits[1], 0.0)
    margin = 0.05 * (high - low)
    axes.set(xlim=(low - margin, high + margin), ylim=(0, 1.5), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.barh(0.45, output, height=0.5, color=RED)
    axes.vlines(0, 0, 0.9, color=GREY, linewidth=0.8)
    _say(axes, f"{output:+.3g}")


def _say(axes: "Axes", what: str) -> None:
    axes.text(0.5, 1, what, transform=axes.transAxes, ha="center", va="top", fontsize="x-small", color=GREY)


def _label(panels: "Iterable[Axes]", what: str, unit: str) -> None:
    """Label a column of panels, with numbers below the last panel only."""
    from matplotlib.ticker import FuncFormatter

    column = list(panels)
    if not column:
        return
    for axes in column[:-1]:
        axes.tick_params(axis="x", labelbottom=False, length=0)
    column[-1].spines["bottom"].set_visible(True)
    column[-1].locator_params(axis="x", nbins=3)
    column[-1].tick_params(axis="x", labelsize="small")
    column[-1].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    column[-1].set_xlabel(with_unit(what, unit), fontsize="small")
    column[0].set_title(what, fontsize="small")


def _number(column: "Iterable[Axes]", rows: Sequence[DrawnRule]) -> None:
    several = len({row.action for row in rows}) > 1
    for axes, row in zip(column, rows, strict=True):
        said = f"{row.action},\nrule {row.number}" if several else f"rule {row.number}"
        axes.set_ylabel(said, rotation=0, ha="right", va="center", fontsize="small")
