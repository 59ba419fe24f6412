"""Objects show themselves in notebooks: as HTML when they are the value of a cell, and as figures."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clearloop.registry import resolve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Pages and figures stand above the classes that they show, so they are named here and imported when used.
_AS_HTML = "clearloop.pages.notebook:as_html"
_AS_FIGURE = "clearloop.figures.plots:draw"
_PROGRESS = "clearloop.pages.notebook:progress_bar"

ProgressBar = Callable[[float, str], None]
"""Is called with the share that is done, from 0 to 1, and what to say beside the bar."""


class Shown:
    """A class whose objects show themselves in notebooks."""

    def _repr_html_(self) -> str:
        return str(resolve(_AS_HTML)(self))

    def plot(self, **options: Any) -> "Figure":
        """Draw the object.

        Args:
            **options: What the figure of this class takes: see `clearloop.figures.plots`.

        Returns:
            A matplotlib figure, which a notebook shows and `figure.savefig(…)` saves.
        """
        figure: Figure = resolve(_AS_FIGURE)(self, **options)
        return figure


def notebook_progress(title: str) -> ProgressBar:
    """Return a progress bar that a notebook shows; elsewhere, a function that does nothing.

    Args:
        title: What is under way.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return lambda _share, _note: None
    bar: ProgressBar = resolve(_PROGRESS)(title)
    return bar
