"""Figures inside a page."""

import base64
import io
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
