"""Trajectories of one or more controllers: states with their setpoints, actions with their limits."""

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from clearloop.evaluation import Trajectory
from clearloop.report.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SETTINGS, with_unit
from clearloop.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE)


def draw_trajectories(trajectories: Mapping[str, Trajectory]) -> "Figure":
    """One panel for each state and action; `trajectories` by what to call them."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    first = next(iter(trajectories.values()))
    task = first.task
    names = (*task.state_names, *task.action_names)
    with rc_context(SETTINGS):
        figure = Figure(figsize=(7.5, 1.15 * len(names) + 0.9), layout="constrained")
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
