"""Which starts each controller saves, at what cost, and which it loses."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.evaluation import Evaluation
from clearloop.report.style import RED, SETTINGS, with_unit
from clearloop.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
Floats = NDArray[np.float64]


class Outcomes(NamedTuple):
    """Of one controller, from N starts."""

    penalties: Floats
    """[N]"""
    failed: NDArray[np.bool_]
    """[N]"""

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Outcomes":
        """The mean over members; failed where most of them do."""
        return cls(evaluation.penalties.mean(axis=0), evaluation.failed.mean(axis=0) > 0.5)


def draw_start_maps(
    task: Task, starts: Floats, outcomes: Mapping[str, Outcomes], *, over: Sequence[str] = ()
) -> "Figure":
    """A map for each controller, with the same colours, over two states: `over`, or the first two that vary.

    `starts`: [N, S]. Where only one state varies, its penalties; other states that vary are not told apart.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    plane = [task.state_names.index(name) for name in over] or _free(starts)[:2]
    columns = 2 if len(outcomes) == 4 else min(COLUMNS, len(outcomes))
    rows = -(-len(outcomes) // columns)
    with rc_context(SETTINGS):
        figure = Figure(figsize=(min(7.5, 3.2 * columns + 1.1), 2.6 * rows + 0.5), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        norm = _norm(outcomes.values())
        mapped = None
        for axes, (name, outcome) in zip(grid.flat, outcomes.items(), strict=False):
            lost = 100 * outcome.failed.mean()
            title = f"{_shortened(name)}\npenalty {outcome.penalties.mean():.4g}, {lost:.3g} % lost"
            axes.set_title(title, fontsize="small")
            if len(plane) == 2:
                mapped = _draw_map(axes, starts[:, plane], outcome, norm) or mapped
            else:
                _draw_line(axes, starts[:, plane[0]] if plane else np.zeros(len(starts)), outcome)
        _label(grid, task, plane)
        for axes in list(grid.flat)[len(outcomes) :]:
            axes.set_axis_off()
        if mapped is not None:
            figure.colorbar(mapped, ax=grid, label="penalty where saved (no unit)", shrink=0.8, pad=0.01)
        _explain(figure)
    return figure


def _free(starts: Floats) -> list[int]:
    return np.flatnonzero(np.ptp(starts, axis=0) > 0).tolist()


def _norm(outcomes: Any) -> Any:
    """Of what is saved, by any: what is lost costs so much more that nothing else could be told apart."""
    from matplotlib.colors import Normalize

    saved = np.concatenate([outcome.penalties[~outcome.failed] for outcome in outcomes])
    return Normalize(saved.min(), saved.max()) if saved.size else Normalize(0, 1)


def _draw_map(axes: "Axes", points: Floats, outcome: Outcomes, norm: Any) -> Any:
    """What the colour bar is for; None where nothing is saved."""
    size = float(np.clip(9_000 / len(points), 3, 60))  # square points, of which so many cover a panel
    saved, lost = points[~outcome.failed], points[outcome.failed]
    axes.scatter(lost[:, 0], lost[:, 1], s=1.5 * size, color=RED, marker="x", linewidth=0.8, zorder=3)
    if not len(saved):
        return None
    penalties = outcome.penalties[~outcome.failed]
    return axes.scatter(
        saved[:, 0], saved[:, 1], s=size, c=penalties, norm=norm, cmap="viridis", linewidth=0, zorder=2
    )


def _draw_line(axes: "Axes", starts: Floats, outcome: Outcomes) -> None:
    saved, lost = ~outcome.failed, outcome.failed
    axes.plot(starts[saved], outcome.penalties[saved], ".", color="black", markersize=4)
    axes.plot(starts[lost], outcome.penalties[lost], "x", color=RED, markersize=4)


def _label(grid: Any, task: Task, plane: Sequence[int]) -> None:
    titles = [with_unit(task.state_names[j], task.states[task.state_names[j]].unit) for j in plane]
    across, up = [*(titles or ["the one start (no unit)"]), "penalty (no unit)"][:2]
    for axes in grid.flat:
        axes.tick_params(labelsize="small")
    for axes in grid[:, 0]:
        axes.set_ylabel(up, fontsize="small")
    for axes in grid[-1]:
        axes.set_xlabel(across, fontsize="small")


def _explain(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linestyle": "none", "markersize": 5}
    handles = [Line2D([], [], marker="x", color=RED, **style)]
    figure.legend(handles, ["lost: the start ends in failure"], loc="outside lower center", fontsize="small")


def _shortened(name: str) -> str:
    return name if len(name) <= 32 else f"{name[:31]}…"
