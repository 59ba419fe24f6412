"""An axis of penalties on which the good ones can be told apart, however bad the others are."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from clearloop.report.style import logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEAR = 1.5  # times the best: what is drawn large
FAR = 2.0  # times the best: something must be worse than this to be drawn apart


def penalty_panels(figure: "Figure", penalties: Iterable[float], *, below: float = 0.0) -> "list[Axes]":
    """One panel, with room for all; or two, the upper one, logarithmic, for what is far from the best.

    Draw everything in each of them: what does not belong there is cut off. Steps go through the break as they
    should, slanted lines do not. `below`: the height of another panel, for something else; these have 3.6.
    """
    known = np.array([value for value in penalties if np.isfinite(value)] or [0.0])
    best, worst = float(known.min()), float(known.max())
    broken = 0 < FAR * best < worst
    heights = [*([1.0, 2.6] if broken else [3.6]), *([below] if below else [])]
    panels: list[Axes] = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[
        :, 0
    ].tolist()
    if broken:
        upper, lower, *_ = panels
        near, far = known[known <= NEAR * best].max(), known[known > NEAR * best].min()
        top = min(near + (0.08 * (near - best) or 0.1 * best), (near + far) / 2)
        lower.set_ylim(best - 0.08 * (top - best), top)
        logarithmic(upper.yaxis, within=(1.0, 2.0, 5.0) if worst < 1000 * best else (1.0,))
        upper.set_ylim(max(top, 0.9 * far), worst * (worst / far) ** 0.08 * 1.05)
        _mark_break(upper, lower)
    else:
        margin = 0.08 * (worst - best) or 0.1 * abs(best) or 1.0
        panels[0].set_ylim(best - margin, worst + margin)
    return panels


def _mark_break(upper: "Axes", lower: "Axes") -> None:
    upper.spines["bottom"].set_visible(False)
    upper.tick_params(axis="x", which="both", length=0)
    slash: dict[str, Any] = {
        "marker": [(-1, -0.6), (1, 0.6)],
        "markersize": 7,
        "color": "black",
        "clip_on": False,
    }
    upper.plot([0], [0], transform=upper.transAxes, linestyle="none", label="_break", **slash)
    lower.plot([0], [1], transform=lower.transAxes, linestyle="none", label="_break", **slash)
