"""How every figure looks: colour-blind safe, readable in print, nothing in the way of the data."""

import warnings
from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clearloop.errors import ClearloopError
from clearloop.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any kind of colour vision tell apart.
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#666666"
SKY, BLACK = "#56B4E9", "#000000"

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
    """How one of several things is told from the others, in print as well."""

    colour: str
    marker: str


_MARKS = tuple(
    map(Mark, (BLUE, GREEN, ORANGE, PURPLE, RED, SKY, BLACK, GREY), ("o", "D", "s", "^", "v", "P", "X", "*"))
)


def marks(names: Iterable[str], known: Iterable[str] = ()) -> dict[str, Mark]:
    """One for each name. Those that are `known` look the same in every figure."""
    own = dict(zip(known, _MARKS, strict=False))
    wanted = list(dict.fromkeys(names))
    free = cycle([mark for name, mark in own.items() if name not in wanted] or _MARKS)
    return {name: own[name] if name in own else next(free) for name in wanted}


def logarithmic(axis: "Axis", *, within: tuple[float, ...] = (1.0,)) -> None:
    """With plain numbers at its ticks: `within` each decade, these."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if axis is axis.axes.xaxis:
        axis.axes.set_xscale("log")
    else:
        axis.axes.set_yscale("log")
    axis.set_major_locator(LogLocator(subs=within))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def with_unit(what: str, unit: str, *, between: str = " ") -> str:
    return f"{what}{between}({unit})" if unit else what


def save_figure(figure: "Figure", path: str | Path) -> None:
    """PNG or SVG, by extension; the same figure gives the same bytes."""
    from matplotlib import rc_context

    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise ClearloopError(f"{path}: expected a name that ends in .png or .svg")
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with warnings.catch_warnings(), rc_context(SETTINGS), whole_file(path) as file:
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands for it
        figure.savefig(file, format=kind, metadata=metadata)
