"""Controllers as a browser shows them, in pieces between which lines may break."""

from markupsafe import Markup

from clearloop.controllers import Controller
from clearloop.report.equations import Pieces, equations
from clearloop.report.sentences import rounded


def typeset(controller: Controller) -> Markup:
    """A line for each equation; kinds that no formula can show as their one line."""
    lines = equations(controller)
    if not lines:
        return Markup('<p class="plain">{}</p>').format(rounded(controller.summary))
    return Markup("").join(map(_line, lines))


def _line(pieces: Pieces) -> Markup:
    spans = Markup(" ").join(Markup("<span>{}</span>").format(piece.mathml) for piece in pieces)
    return Markup('<p title="{}">{}</p>').format(" ".join(piece.text for piece in pieces), spans)
