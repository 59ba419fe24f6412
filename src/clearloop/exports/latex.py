"""The LaTeX export: the formula, the gains or the table of rules, to be included in a document."""

from collections.abc import Iterator

from clearloop.controllers import Controller
from clearloop.exports.comments import commented, harmless
from clearloop.exports.printer import ascii_name
from clearloop.exports.targets import Files, Order, Target

_ESCAPES = {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_ESCAPES |= {sign: "\\" + sign for sign in "&%$#_{}"}


def latex(controller: Controller) -> str:
    """Return a controller as a snippet of LaTeX, whose first lines name the packages that it needs."""
    head = ["Needs \\usepackage{amsmath} and \\usepackage{booktabs}."]
    if controller.name:
        head.insert(0, harmless(controller.name))
    return "\n".join([*commented(head, "%"), *controller.latex_rows(), *_notes(controller)]) + "\n"


def escaped(text: str) -> str:
    """Return a line of plain text as LaTeX, with all special characters escaped."""
    return "".join(_ESCAPES.get(sign, sign) for sign in harmless(text))


def _notes(controller: Controller) -> Iterator[str]:
    notes = [*controller.limit_words()]
    if controller.names_mean_errors:
        notes += controller.setpoint_words()
    if notes:
        yield "\n".join(escaped(note) for note in notes)


class LaTeX(Target):
    """The target `latex`: one file to be included in a document."""

    name, title, endings = "latex", "LaTeX", (".tex",)

    def write(self, order: Order) -> Files:
        """Return the snippet."""
        return {f"{ascii_name(order.name)}.tex": latex(order.controller)}
