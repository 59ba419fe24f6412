"""The style of all figures: safe for colour-blind readers, readable in print, with nothing over the data."""

import base64
import io
import warnings
from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup

from clearloop.errors import ClearloopError
from clearloop.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any kind of colour vision tell apart.
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#666666"
SKY, BLACK = "#56B4E9", "#000000"
COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE)  # of the lines or points of one figure, in this order

SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "text.parse_math": False,  # a name with a dollar sign is a name
    "svg.hashsalt": "clearloop",
    "svg.fonttype": "none",  # names stay text, in whatever script: found by a search, drawn by any viewer
    "figure.dpi": 100,
    "savefig.dpi": 160,
}


class Mark(NamedTuple):
    """The colour and the marker of one of several things, which can be told apart in print as well."""

    colour: str
    marker: str


_MARKS = (
    Mark(BLUE, "o"),
    Mark(GREEN, "D"),
    Mark(ORANGE, "s"),
    Mark(PURPLE, "^"),
    Mark(BLACK, "X"),
    Mark(GREY, "h"),
    Mark(RED, "v"),
    Mark(SKY, "P"),
    Mark(GREY, "*"),
)
"""The marks of the methods in the order of `registry.py`; `marks.js` of the studio has the same."""


def marks(names: Iterable[str], known: Iterable[str] = ()) -> dict[str, Mark]:
    """Return a mark for each name. The names that are `known` look the same in every figure."""
    own = dict(zip(known, _MARKS, strict=False))
    wanted = list(dict.fromkeys(names))
    free = cycle([mark for name, mark in own.items() if name not in wanted] or _MARKS)
    return {name: own[name] if name in own else next(free) for name in wanted}


def logarithmic(axis: "Axis", *, within: tuple[float, ...] = (1.0,)) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks: the multiples `within` of each decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if axis is axis.axes.xaxis:
        axis.axes.set_xscale("log")
    else:
        axis.axes.set_yscale("log")
    axis.set_major_locator(LogLocator(subs=within))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def with_unit(what: str, unit: str, *, between: str = " ") -> str:
    """Return a label such as `time (s)`; without a unit, just the label."""
    return f"{what}{between}({unit})" if unit else what


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Save a figure as PNG or SVG, by the ending of its name; the same figure gives the same bytes.

    Raises:
        ClearloopError: The name has another ending, or the file cannot be written.
    """
    from matplotlib import rc_context

    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise ClearloopError(f"{path}: expected a name that ends in .png or .svg")
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with warnings.catch_warnings(), rc_context(SETTINGS), whole_file(path) as file:
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands for it
        figure.savefig(file, format=kind, metadata=metadata)


# An axis of penalties on which the good ones can be told apart, however bad the others are.

_NEAR = 1.5  # times the best penalty: penalties up to it are drawn in the large panel
_FAR = 2.0  # times the best penalty: a second panel is made only if some penalty is larger


def penalty_panels(figure: "Figure", penalties: Iterable[float], *, below: float = 0.0) -> "list[Axes]":
    """Make one panel with room for all penalties, or two if some are far from the best.

    The upper one of two is logarithmic and for the far penalties. Draw everything in each of them: each panel
    cuts off what does not belong there. Step lines look right across the break, slanted lines do not.

    Args:
        figure: The figure that gets the panels.
        penalties: All penalties that will be drawn; those that are not finite are ignored.
        below: The height of one more panel for something else, where the penalties have 3.6; 0 for none.
    """
    known = np.array([value for value in penalties if np.isfinite(value)] or [0.0])
    best, worst = float(known.min()), float(known.max())
    broken = 0 < _FAR * best < worst
    heights = [*([1.0, 2.6] if broken else [3.6]), *([below] if below else [])]
    panels: list[Axes] = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[
        :, 0
    ].tolist()
    if broken:
        upper, lower, *_ = panels
        near, far = known[known <= _NEAR * best].max(), known[known > _NEAR * best].min()
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


def as_image(figure: "Figure", title: str) -> Markup:
    """Return a figure as an HTML image that contains its own data."""
    from matplotlib import rc_context

    file = io.BytesIO()
    with rc_context(SETTINGS | {"savefig.dpi": 130}):
        figure.savefig(file, format="png", metadata={"Software": None})
    data = base64.b64encode(file.getvalue()).decode()
    return Markup('<img alt="{}" src="data:image/png;base64,{}">').format(title, data)
