"""The figure of closed-loop replays: the log and the models from the same starts with the same setpoints."""

from typing import TYPE_CHECKING

import numpy as np

from clearloop.evaluation.replays import Replays
from clearloop.figures.style import BLUE, GREY, RED, SETTINGS, with_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_STRETCHES, MOST_STATES = 4, 4


def draw_replays(replays: Replays) -> "Figure":
    """Draw some stretches of the log beside what each member makes of them.

    Args:
        replays: The replays. Drawn are the predicted states, from the stretch that is repeated best to the
            one that is repeated worst.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    task = replays.task
    names = task.predicted[:MOST_STATES]
    order = np.argsort(np.abs(replays.penalties - replays.costs).mean(axis=0))
    chosen = order[np.linspace(0, len(order) - 1, min(MOST_STRETCHES, len(order))).astype(np.intp)]
    time = np.arange(replays.logged.shape[1]) * task.dt
    with rc_context(SETTINGS):
        figure = Figure(figsize=(2.9 * len(chosen) + 0.6, 1.9 * len(names) + 1.2), layout="constrained")
        panels = figure.subplots(len(names), len(chosen), sharex=True, sharey="row", squeeze=False)
        for row, name in zip(panels, names, strict=True):
            j = task.state_names.index(name)
            for panel, n in zip(row, chosen, strict=True):
                for m, repeats in enumerate(replays.repeats):
                    style = {"color": BLUE, "lw": 0.8} if repeats else {"color": RED, "lw": 0.8, "ls": ":"}
                    panel.plot(time, replays.states[m, n, :, j], **style)
                panel.plot(time, replays.logged[n, :, j], color="black", lw=1.4)
                if name in task.setpoints:
                    panel.plot(
                        time, replays.aims[n, :, j], color=GREY, lw=0.9, ls="--", drawstyle="steps-post"
                    )
                panel.margins(x=0)
            row[0].set_ylabel(with_unit(name, task.states[name].unit))
        for panel, n in zip(panels[0], chosen, strict=True):
            cost, penalty = replays.costs[n], replays.penalties[replays.repeats, n].mean()
            panel.set_title(f"from row {replays.rows[n]:,}: {cost:.3g}, models {penalty:.3g}", fontsize=8)
        for panel in panels[-1]:
            panel.set_xlabel("time (s)")
        _explain(figure, replays)
        figure.suptitle(_title(replays), fontweight="bold", fontsize=10)
    return figure


def _title(replays: Replays) -> str:
    how = "with the law that explains the log" if replays.law else "with the logged actions"
    of_all = f"some of {len(replays.rows)} stretches of the log, with their costs"
    return f"Models of {replays.task.name} repeat the log {how}: {of_all}"


def _explain(figure: "Figure", replays: Replays) -> None:
    from matplotlib.lines import Line2D

    entries = {"log": Line2D([], [], color="black", lw=1.4), "model": Line2D([], [], color=BLUE, lw=0.8)}
    if not replays.repeats.all():
        entries["model that does not repeat the log"] = Line2D([], [], color=RED, lw=0.8, ls=":")
    if replays.task.setpoints:
        entries["setpoint"] = Line2D([], [], color=GREY, lw=0.9, ls="--")
    figure.legend(
        list(entries.values()), list(entries), loc="outside lower center", ncols=len(entries), fontsize=8
    )
