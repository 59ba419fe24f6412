"""Controllers as a browser shows them: equations as MathML, which needs no script and no font of ours."""

from markupsafe import Markup, escape

from clearloop.controllers import Controller, Equation, Linear
from clearloop.expression import Variable, parse, to_latex
from clearloop.report.sentences import rounded


def typeset(controller: Controller) -> Markup:
    """The formula of each output, with numbers that a person can take in; other kinds as their one line."""
    if isinstance(controller, Equation | Linear):
        return Markup("").join(_equation(*line.split(" = ", 1)) for line in _lines(controller))
    return Markup('<p class="plain">{}</p>').format(rounded(controller.summary))


def _lines(controller: Equation | Linear) -> list[str]:
    """`force = 38.8*theta + …` for each output."""
    lines = controller.summary.split("; ")
    return lines if len(controller.actions) > 1 else [f"{controller.actions[0]} = {controller.summary}"]


def _equation(output: str, formula: str) -> Markup:
    from latex2mathml.converter import convert

    latex = f"{to_latex(Variable(output))} = {to_latex(parse(rounded(formula)))}"
    # What it is made of are names and numbers of the formula language: nothing that a page could run.
    return Markup('<div title="{}">{}</div>').format(escape(rounded(formula)), Markup(convert(latex)))  # noqa: S704
