"""How every figure looks: colour-blind safe, readable in print, nothing in the way of the data."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearloop.errors import ClearloopError
from clearloop.files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any kind of colour vision tell apart.
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#666666"

SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "svg.hashsalt": "clearloop",
    "svg.fonttype": "none",  # names stay text, in whatever script: found by a search, drawn by any viewer
    "figure.dpi": 100,
    "savefig.dpi": 160,
}


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
