"""Figures for reports, cards, pages and notebooks."""

import io
import sys
from typing import Any


def _as_png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def show_in_notebooks() -> None:
    """Let a notebook show matplotlib figures that no window owns, as ours are; elsewhere, do nothing."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    formatter = getattr(shell, "display_formatter", None)
    if formatter is not None:
        formatter.formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", _as_png)


show_in_notebooks()
