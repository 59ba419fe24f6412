"""LaTeX: the formula, the gains or the table of rules, to be put into a document."""

from collections.abc import Iterator

from clearloop.controllers import Controller
from clearloop.exports.printer import ascii_name, commented, harmless
from clearloop.exports.targets import Files, Order, Target

_ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_ESCAPES |= {sign: "\\" + sign for sign in "&%$#_{}"}


def latex(controller: Controller) -> str:
    """A snippet; the preamble that it needs is in its first lines."""
    head = ["Needs \\usepackage{amsmath} and \\usepackage{booktabs}."]
    if controller.name:
        head.insert(0, harmless(controller.name))
    return "\n".join([*commented(head, "%"), *controller.latex_rows(), *_notes(controller)]) + "\n"


def escaped(text: str) -> str:
    """Words of a person as text of a document."""
    return "".join(_ESCAPES.get(sign, sign) for sign in harmless(text))


def _notes(controller: Controller) -> Iterator[str]:
    notes = [*controller.limit_words()]
    if controller.names_mean_errors:
        notes += controller.setpoint_words()
    if notes:
        yield "\n".join(escaped(note) for note in notes)


class LaTeX(Target):
    name, title, endings = "latex", "LaTeX", (".tex",)

    def write(self, order: Order) -> Files:
        return {f"{ascii_name(order.name)}.tex": latex(order.controller)}
