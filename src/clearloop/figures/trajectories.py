"""Figures of trajectories and start maps: what controllers do over time, and from which starts they fail."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.evaluation import Evaluation, Trajectory
from clearloop.figures.style import COLOURS, GREY, RED, SETTINGS, logarithmic, with_unit
from clearloop.methods.pid_rules import Process
from clearloop.methods.tuning import Tuning
from clearloop.numbers import rough_percent
from clearloop.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_trajectories(
    trajectories: Mapping[str, Trajectory], *, names: Sequence[str] = (), width: float = 7.5
) -> "Figure":
    """Draw a panel for each state with its setpoint, and for each action with its limits.

    Args:
        trajectories: The trajectories by the name that the legend gives them, all of the same task.
        names: The states and actions that are drawn; without them, all.
        width: The width of the figure in inches.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    first = next(iter(trajectories.values()))
    task = first.task
    names = names or (*task.state_names, *task.action_names)
    with rc_context(SETTINGS):
        height = 1.15 if width > 5 else 0.8  # of a panel
        figure = Figure(figsize=(width, height * len(names) + 0.9 * height), layout="constrained")
        panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for panel, name in zip(panels, names, strict=True):
            for (label, trajectory), colour in zip(trajectories.items(), cycle(COLOURS), strict=False):
                _draw(panel, trajectory, name, label, colour)
            panel.set_ylabel(_title(task, name), rotation=0, ha="right", va="center")
            panel.margins(x=0)
        figure.align_ylabels(panels)
        panels[-1].set_xlabel("time (s)")
        if len(trajectories) > 1:
            panels[0].legend(loc="upper right", ncols=3)
    return figure


def _title(task: Task, name: str) -> str:
    unit = task.states[name].unit if name in task.states else task.actions[name].unit
    return with_unit(name, unit, between="\n")


def _draw(panel: Any, trajectory: Trajectory, name: str, label: str, colour: str) -> None:
    task = trajectory.task
    time = np.arange(trajectory.states.shape[1]) * task.dt
    if name in task.states:
        j = task.state_names.index(name)
        for number, member in enumerate(trajectory.states):
            panel.plot(time, member[:, j], color=colour, lw=1.3, label=None if number else label)
        if name in task.setpoints:
            panel.step(time[:-1], trajectory.setpoints[:, j], where="post", color=GREY, lw=1, ls="--")
        return
    a = task.action_names.index(name)
    for member in trajectory.actions:
        panel.step(time[:-1], member[:, a], where="post", color=colour, lw=1)
    for limit in task.action_limits[a]:
        panel.axhline(limit, color=GREY, lw=1, ls=":")


# Start maps: the penalty from each start, and the starts that end in failure.

COLUMNS = 3  # of maps


class Outcomes(NamedTuple):
    """The outcome of one controller from N starts."""

    penalties: Floats
    """[N]"""
    failed: NDArray[np.bool_]
    """[N]"""

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Outcomes":
        """Take the mean penalty over the members; a start fails if most of them do."""
        return cls(evaluation.penalties.mean(axis=0), evaluation.failed.mean(axis=0) > 0.5)


def draw_start_maps(
    task: Task, starts: Floats, outcomes: Mapping[str, Outcomes], *, over: Sequence[str] = ()
) -> "Figure":
    """Draw a map for each controller over two states, all with the same colours.

    If only one state varies, the penalty is drawn over it. Further states that vary are not told apart.

    Args:
        task: The task, which gives names and units.
        starts: [N, S] the starts.
        outcomes: The outcomes by the name of the controller.
        over: The two states of the map; without them, the first two that vary.
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
            lost = rough_percent(outcome.failed.mean())
            title = f"{_shortened(name)}\npenalty {outcome.penalties.mean():.4g}, {lost} fail"
            axes.set_title(title, fontsize="small")
            if len(plane) == 2:
                mapped = _draw_map(axes, starts[:, plane], outcome, norm) or mapped
            else:
                _draw_line(axes, starts[:, plane[0]] if plane else np.zeros(len(starts)), outcome)
        _label(grid, task, plane)
        for axes in list(grid.flat)[len(outcomes) :]:
            axes.set_axis_off()
        if mapped is not None:
            figure.colorbar(mapped, ax=grid, label="penalty, unless it fails (no unit)", shrink=0.8, pad=0.01)
        _explain(figure)
    return figure


def _free(starts: Floats) -> list[int]:
    return np.flatnonzero(np.ptp(starts, axis=0) > 0).tolist()


def _norm(outcomes: Any) -> Any:
    """Return the colour scale of all starts that do not fail; failures cost so much more that they would
    leave no colours for the others.
    """
    from matplotlib.colors import Normalize

    saved = np.concatenate([outcome.penalties[~outcome.failed] for outcome in outcomes])
    return Normalize(saved.min(), saved.max()) if saved.size else Normalize(0, 1)


def _draw_map(axes: "Axes", points: Floats, outcome: Outcomes, norm: Any) -> Any:
    """Draw one map and return its coloured points, or None if every start fails."""
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
    figure.legend(handles, ["the start ends in failure"], loc="outside lower center", fontsize="small")


def _shortened(name: str) -> str:
    return name if len(name) <= 32 else f"{name[:31]}…"


# A tuning: step responses to the setpoint and to the load, and the Bode plot of each loop.

_MOST = 5  # loops in one figure


def draw_tuning(tuning: Tuning) -> "Figure":
    """Draw the present loop, the proposed one and the rules.

    Args:
        tuning: What `tune` found.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from scipy.signal import lfilter

    bench, task = tuning.bench, tuning.task
    wanted = [tuning.picked, *range(len(tuning.rows))]
    chosen = [tuning.rows[k] for k in dict.fromkeys(wanted) if tuning.rows[k].found.stable][:_MOST]
    unit = task.states[tuning.state].unit
    long = [4 * row.found.settling for row in chosen if np.isfinite(row.found.settling)]
    steps = int(np.clip(np.median(long) / bench.dt if long else bench.steps, 30, bench.steps))
    times = np.arange(steps) * bench.dt
    with rc_context(SETTINGS):
        figure = Figure(figsize=(8.0, 5.6), layout="constrained")
        (setpoint, size), (load, angle) = figure.subplots(2, 2)
        for row, colour in zip(chosen, cycle(COLOURS), strict=False):
            style = {"color": colour, "lw": 1.9 if row is chosen[0] else 1.1}
            num, den, bottom = bench.closed(row.gains)
            setpoint.plot(times, bench.step(row.gains)[:steps], label=row.name, **style)
            pushed = lfilter(np.convolve(bench.process.b, den), bottom, np.ones(steps))
            load.plot(times, pushed, **style)
            loop = bench.plant * Process(den, num).response(bench.z)
            rates = np.angle(bench.z) / bench.dt
            size.plot(rates, np.abs(loop), **style)
            angle.plot(rates, np.degrees(np.unwrap(np.angle(loop))), **style)
        for axis in (size.xaxis, size.yaxis, angle.xaxis):
            logarithmic(axis)
        setpoint.axhline(1.0, color=GREY, lw=0.8, ls="--")
        size.axhline(1.0, color=GREY, lw=0.8, ls="--")
        angle.axhline(-180.0, color=GREY, lw=0.8, ls="--")
        size.set_ylim(1e-2, None)
        angle.set_ylim(-400, 0)
        setpoint.set_ylabel(with_unit(f"{tuning.state}, setpoint + 1", unit))
        load.set_ylabel(with_unit(f"{tuning.state}, load + 1", unit))
        size.set_ylabel("gain of the loop")
        angle.set_ylabel("phase of the loop (degrees)")
        load.set_xlabel("time (s)")
        angle.set_xlabel("frequency (rad/s)")
        figure.legend(loc="outside upper center", ncols=3, fontsize=8)
    return figure
