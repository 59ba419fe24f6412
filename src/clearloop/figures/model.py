"""The figure of a model's quality: errors over the horizon above; one step, reward, disagreement below."""

from typing import TYPE_CHECKING, Any

import numpy as np

from clearloop.figures.style import BLUE, GREY, RED, SETTINGS, logarithmic, with_unit
from clearloop.numbers import rough_percent
from clearloop.surrogate.quality import UNEXPLAINED, Quality

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 4  # over the horizon, for the states with the largest errors
_MOST_ROWS = 12  # of a list, also for the states with the largest errors
_SMALLEST = 1e-9  # on a logarithmic axis


def draw_quality(quality: Quality) -> "Figure":
    """Draw the quality of a surrogate on held-out transitions."""
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
