"""The figure of NeoRL-2: our equations against nine methods of deep offline reinforcement learning."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clearloop.figures.style import BLUE, GREY, ORANGE, SETTINGS, save_figure


class Row(NamedTuple):
    """The scores on one task."""

    data: float
    """of the episodes that were learned from"""
    others: Mapping[str, float]
    """of the published methods"""
    ours: Sequence[float]
    """of our picks, a score for each seed"""


def draw(rows: Mapping[str, Row], file: Path) -> None:
    """Draw a line for each task that has scores of ours, and write the figure; nothing if there is none."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = {name: row for name, row in rows.items() if row.ours}
    if not shown:
        return
    least = min(value for row in shown.values() for value in (*row.others.values(), *row.ours, 0.0))
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(6.3, 1.7 + 0.75 * len(shown)), layout="constrained")
        axes = figure.add_subplot()
        for place, row in enumerate(shown.values()):
            first = place == 0
            others = list(row.others.values())
            axes.plot(
                others, [place] * len(others), "o", color=GREY, markersize=6, markerfacecolor="none",
                label="nine deep methods, as published" if first else None,
            )  # fmt: skip
            if others:
                best = max(row.others, key=lambda method: row.others[method])
                axes.annotate(
                    best, (row.others[best], place), xytext=(0, 9), textcoords="offset points",
                    ha="center", color=GREY, fontsize=8,
                )  # fmt: skip
            axes.plot(
                [row.data], [place], "|", color=ORANGE, markersize=13, markeredgewidth=2.5,
                label="the data that all learn from" if first else None,
            )  # fmt: skip
            axes.plot(
                row.ours, [place] * len(row.ours), "D", color=BLUE, markersize=7,
                label="equations of clearloop, a mark for each seed" if first else None,
            )  # fmt: skip
            mean = math.fsum(row.ours) / len(row.ours)
            axes.annotate(
                f"{mean:.1f}", (mean, place), xytext=(0, -15), textcoords="offset points",
                ha="center", color=BLUE, fontsize=9,
            )  # fmt: skip
        axes.set(
            yticks=range(len(shown)),
            yticklabels=list(shown),
            ylim=(len(shown) - 0.4, -0.6),
            xlim=(least - 5, 105),
            xlabel="score: 0 is the worst policy of the benchmark, 100 its expert",
        )
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside upper left", ncols=1, fontsize=8)
        save_figure(figure, file)
