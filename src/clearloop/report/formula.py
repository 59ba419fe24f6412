"""A piece of mathematics: for pages, for PDFs, and as text."""

from dataclasses import dataclass

from markupsafe import Markup, escape

from clearloop.expression import Expression, to_latex, to_text, to_typst

LONGEST = 90  # characters of a piece that is typeset: a browser does not break lines within it


@dataclass(frozen=True)
class Formula:
    """Mathematics, in the languages of pages and of PDFs, and as text."""

    latex: str
    typst: str
    text: str

    @classmethod
    def of(cls, expression: Expression) -> "Formula":
        return cls(to_latex(expression), to_typst(expression), to_text(expression))

    @property
    def mathml(self) -> Markup:
        """For a browser, which needs no script and no font of ours for it."""
        from latex2mathml.converter import convert

        if len(self.text) > LONGEST:
            return escape(self.text)
        # What it is made of are names and numbers of the formula language: nothing that a page could run.
        return Markup(convert(self.latex))  # noqa: S704
