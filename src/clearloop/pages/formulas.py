"""The equations of controllers, as a browser shows them."""

from markupsafe import Markup, escape

from clearloop.controllers import Controller
from clearloop.expression.pieces import Piece, Pieces
from clearloop.numbers import shorten_numbers

LONGEST = 90  # characters of a piece that is typeset: a browser does not break lines within it


def mathml(piece: Piece) -> Markup:
    """Return a piece of a formula as MathML, which a browser shows without scripts or fonts of ours."""
    from latex2mathml.converter import convert

    if len(piece.text) > LONGEST:
        return escape(piece.text)
    # A piece consists of names and numbers of the formula language, so nothing in it can run in a page.
    return Markup(convert(piece.latex))  # noqa: S704


def typeset(controller: Controller) -> Markup:
    """Return a line for each equation of a controller; a kind without equations is its one-line summary."""
    lines = controller.equations()
    if not lines:
        return Markup('<p class="plain">{}</p>').format(shorten_numbers(controller.summary))
    return Markup("").join(map(_line, lines))


def _line(pieces: Pieces) -> Markup:
    spans = Markup(" ").join(Markup("<span>{}</span>").format(mathml(piece)) for piece in pieces)
    return Markup('<p title="{}">{}</p>').format(" ".join(piece.text for piece in pieces), spans)
