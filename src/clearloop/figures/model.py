"""Figures of a model: its quality on held-out data, and closed-loop replays of the log."""

from typing import TYPE_CHECKING, Any

import numpy as np

from clearloop.evaluation.replays import Replays
from clearloop.figures.style import BLUE, GREY, RED, SETTINGS, logarithmic, with_unit
from clearloop.numbers import rough_percent
from clearloop.surrogate.quality import UNEXPLAINED, Quality

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 4  # over the horizon, for the states with the largest errors
_MOST_ROWS = 12  # of a list, also for the states with the largest errors
_SMALLEST = 1e-9  # on a logarithmic axis
MOST_STRETCHES, MOST_STATES = 4, 4  # of replays


def draw_quality(quality: Quality) -> "Figure":
    """Draw the quality on held-out data: errors over the horizon; below, one step, reward, disagreement."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with rc_context(SETTINGS):
        figure = Figure(figsize=(11, 6.8), layout=ConstrainedLayoutEngine(hspace=0.08, wspace=0.06))
        upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=[1.0, 1.15])[:, 0]
        _draw_horizon(upper, quality)
        one_step, reward, apart = lower.subplots(1, 3)
        _draw_one_step(one_step, quality)
        _draw_reward(reward, quality)
        _draw_disagreement(apart, quality)
        figure.suptitle(_title(quality), fontweight="bold")
    return figure


def _title(quality: Quality) -> str:
    title = f"Model of {quality.task.name}: {quality.verdict}, on {quality.steps:,} held-out transitions"
    if quality.verdict == "good":
        return title
    reason, *others = quality.reasons
    return f"{title}\n{reason}" + (f" (and {len(others)} more)" if others else "")


def _draw_horizon(figure: Any, quality: Quality) -> None:
    loop = quality.open_loop
    states = _worst_first(loop.drift[-1:].sum(axis=0))[:MOST_PANELS]
    panels = figure.subplots(1, states.size, squeeze=False)[0]
    steps = np.arange(1, len(loop.median) + 1)
    median, ninety = np.maximum(loop.median, _SMALLEST), np.maximum(loop.ninety, _SMALLEST)
    for axes, j in zip(panels, np.sort(states), strict=True):
        name = quality.task.state_names[j]
        axes.fill_between(
            steps,
            median[:, j],
            ninety[:, j],
            color=BLUE,
            alpha=0.25,
            linewidth=0,
            label="nine of ten errors are below",
        )
        axes.plot(steps, median[:, j], color=BLUE, label="median error")
        axes.axhline(
            loop.spread[j], color=GREY, linestyle="--", linewidth=0.8, label="spread of the state in the log"
        )
        axes.set(title=name, xlabel="steps ahead", ylabel=with_unit("error", quality.task.states[name].unit))
        logarithmic(axes.yaxis)
        axes.margins(x=0)
    entries = panels[0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside lower center", ncols=3, fontsize=8)


def _draw_one_step(axes: "Axes", quality: Quality) -> None:
    unexplained = 1.0 - quality.states.r_squared
    rows = _worst_first(unexplained)[:_MOST_ROWS]
    shown = np.maximum(unexplained[rows], _SMALLEST)
    axes.scatter(shown, np.arange(rows.size), color=BLUE, zorder=2)
    for limit, said in zip(UNEXPLAINED, ("good", "fair"), strict=True):
        axes.axvline(limit, color=GREY, linewidth=0.8, linestyle="--", zorder=1)
        place = axes.get_xaxis_transform()
        axes.text(limit, 1.0, f"{said} ", transform=place, ha="right", va="top", color=GREY, fontsize=8)
    axes.set(title="One step ahead", xlabel="unexplained share of a state's change")
    _list_states(axes, [quality.task.state_names[j] for j in rows], np.append(shown, [0.002, 0.5]))


def _draw_reward(axes: "Axes", quality: Quality) -> None:
    reward = quality.reward
    axes.set_title("Reward")
    if not reward.levels.size:
        _say(axes, f"{rough_percent(reward.score, 4)} of the reward's\nvariance is explained")
        return
    shares = reward.confusion / np.maximum(reward.confusion.sum(axis=1, keepdims=True), 1)
    axes.grid(False)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        colour = "white" if share > 0.5 else "black"
        axes.text(column, row, rough_percent(share), ha="center", va="center", color=colour, fontsize=8)
    ticks, labels = np.arange(reward.levels.size), [f"{level:g}" for level in reward.levels]
    axes.set_xticks(ticks, labels)
    axes.set_yticks(ticks, labels)
    axes.hlines(ticks[1:] - 0.5, -0.5, ticks.size - 0.5, color="white")
    axes.set(xlabel="predicted", ylabel="logged")


def _draw_disagreement(axes: "Axes", quality: Quality) -> None:
    axes.set_title("How far the members are apart")
    if quality.disagreement is None:
        _say(axes, "a single member\ncannot disagree")
        return
    spread = np.where(quality.open_loop.spread > 0, quality.open_loop.spread, np.nan)
    inside, outside = (
        np.maximum(deviation / spread, _SMALLEST)
        for deviation in (quality.disagreement.inside, quality.disagreement.outside)
    )
    rows = _worst_first(inside)[:_MOST_ROWS]
    places = np.arange(rows.size)
    axes.hlines(places, inside[rows], outside[rows], color=GREY, linewidth=1, zorder=1)
    axes.scatter(inside[rows], places, color=BLUE, label="in the data", zorder=2)
    axes.scatter(outside[rows], places, color=RED, marker="D", label="outside", zorder=2)
    axes.set_xlabel("deviation after one step / state's spread")
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    _list_states(axes, [quality.task.state_names[j] for j in rows], np.append(inside[rows], outside[rows]))


def _say(axes: "Axes", words: str) -> None:
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes)
    axes.set_axis_off()


def _list_states(axes: "Axes", names: list[str], shown: Any) -> None:
    """Give each state a row, on a logarithmic axis of whole decades that holds all values `shown`."""
    finite = shown[np.isfinite(shown)]
    decades = np.log10(finite) if finite.size else np.array([-2.0, 0.0])
    logarithmic(axes.xaxis)
    axes.set_xlim(10 ** np.floor(decades.min() - 0.05), 10 ** np.ceil(decades.max() + 0.05))
    axes.set_yticks(np.arange(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.75)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _worst_first(errors: Any) -> Any:
    """Return the numbers of the states, sorted by their error; states without an error come last."""
    return np.argsort(-np.nan_to_num(errors, nan=-1.0), kind="stable")


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
        figure.suptitle(_replays_title(replays), fontweight="bold", fontsize=10)
    return figure


def _replays_title(replays: Replays) -> str:
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
