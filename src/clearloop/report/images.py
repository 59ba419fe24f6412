"""Figures inside a page: as SVG in the text, or as PNG where there would be thousands of marks."""

import base64
import io
import re
from typing import TYPE_CHECKING

from markupsafe import Markup

from clearloop.report.style import SETTINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def as_image(figure: "Figure", title: str) -> Markup:
    """A picture that carries everything with it."""
    from matplotlib import rc_context

    file = io.BytesIO()
    with rc_context(SETTINGS | {"savefig.dpi": 130}):
        figure.savefig(file, format="png", metadata={"Software": None})
    data = base64.b64encode(file.getvalue()).decode()
    return Markup('<img alt="{}" src="data:image/png;base64,{}">').format(title, data)


def as_drawing(figure: "Figure", title: str) -> Markup:
    """Lines and letters, sharp at every size. Names in it are kept apart from those of other drawings."""
    from matplotlib import rc_context

    file = io.StringIO()
    salt = re.sub(r"\W+", "-", title)
    with rc_context(SETTINGS | {"svg.hashsalt": salt, "svg.id": salt}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    return Markup(text[text.index("<svg") :])  # noqa: S704  matplotlib escapes what is written in it
