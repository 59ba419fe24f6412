"""Figures of a card: SVG with its letters as outlines, which looks the same on a page and in a PDF."""

import io
import warnings
from typing import TYPE_CHECKING

from clearloop.report.style import SETTINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def as_svg(figure: "Figure") -> str:
    """The same figure gives the same text."""
    from matplotlib import rc_context

    file = io.StringIO()
    with warnings.catch_warnings(), rc_context(SETTINGS | {"svg.fonttype": "path"}):
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands for it
        figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return file.getvalue()
