"""The formula of each kind of controller, in pieces between which lines may break."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup, escape

from clearloop.controllers import PID, Controller, Equation, Fuzzy, Linear
from clearloop.controllers.controller import read_variable
from clearloop.controllers.pid import Loops
from clearloop.exports.routine import times
from clearloop.expression import OPERATIONS, Call, Expression, Number, Variable, to_latex, to_text, to_typst
from clearloop.numbers import shorten_numbers

# A piece of mathematics: for pages, for PDFs, and as text.

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


Pieces = tuple[Formula, ...]


def equations(controller: Controller) -> tuple[Pieces, ...]:
    """One for each action, and what is common to them; nothing for kinds that no formula can show."""
    if isinstance(controller, Equation):
        return tuple(_sum(action, controller.formula(action)) for action in controller.actions)
    if isinstance(controller, Linear):
        return tuple(_gains(action, row) for action, row in controller.gains.items())
    if isinstance(controller, PID):
        dt = controller.dt or 1.0
        return tuple(_loops(action, output, dt) for action, output in controller.outputs.items())
    if isinstance(controller, Fuzzy):
        bases = controller.outputs.items()
        return (*(_rules(action, base.scale, base.alpha) for action, base in bases), _membership())
    return ()


def _sum(action: str, formula: Expression) -> Pieces:
    """`force =`, then one piece for each term with its sign."""
    return (_left(action), *_signed(formula))


def _gains(action: str, row: Mapping[str, float]) -> Pieces:
    """Term by term, because one tree may have only so many levels."""
    pieces = [_left(action)]
    for name, gain in row.items():
        if gain and len(pieces) == 1:
            pieces.append(Formula.of(times(gain, read_variable(name))))
        elif gain:
            pieces.append(_with_sign("-" if gain < 0 else "+", times(abs(gain), read_variable(name))))
    return tuple(pieces) if len(pieces) > 1 else (*pieces, Formula.of(Number(0.0)))


def _signed(formula: Expression) -> list[Formula]:
    match formula:
        case Call(operation, (x, y)) if operation.name in ("add", "sub"):
            return [*_signed(x), _with_sign(operation.symbol, y)]
    return [Formula.of(formula)]


def _with_sign(sign: str, term: Expression) -> Formula:
    """As it is set after whatever stands before it."""
    before = Variable("x")
    name = {"+": "add", "-": "sub"}[sign]
    whole = Formula.of(Call(OPERATIONS[name], (before, term)))
    latex, typst, text = (text.removeprefix("x ") for text in (whole.latex, whole.typst, whole.text))
    return Formula(f"{{}} {latex}", f'"" {typst}', text)  # after nothing, a sign stands apart from its term


def _loops(action: str, output: Loops, dt: float) -> Pieces:
    """In seconds: e is setpoint - value, and the integrals are sums over the last steps."""
    pieces = [_left(action)]
    for loop in output.loops:
        name = Variable(read_variable(loop.input).name)
        latex, typst, back = to_latex(name), to_typst(name), f"{loop.window * dt:.4g}"
        error = Formula(rf"e_{{{latex}}}", f"e_({typst})", f"e({name})")
        integral = Formula(
            rf"\int_{{t-{back}\,\mathrm{{s}}}}^{{t}} {error.latex} \, \mathrm{{d}}t",
            f'integral_(t-{back} "s")^t {error.typst} thin dif t',
            f"integral of {error.text}",
        )
        rate = Formula(rf"\dot{{e}}_{{{latex}}}", f"dot(e)_({typst})", f"rate of {error.text}")
        gain = output.scale * loop.weight
        for factor, what in ((loop.kp, error), (loop.ki / dt, integral), (loop.kd * dt, rate)):
            if gain * factor:
                pieces.append(_product(gain * factor, what, first=len(pieces) == 1))
    if output.bias:
        pieces.append(_product(output.bias, Formula("", "", ""), first=len(pieces) == 1))
    return tuple(pieces)


def _product(factor: float, what: Formula, *, first: bool) -> Formula:
    sign, size = ("-" if factor < 0 else "" if first else "+"), f"{abs(factor):.4g}"
    latex, typst = ("", "") if first else ("{} ", '"" ')  # after nothing, a sign stands apart from its term
    return Formula(
        rf"{latex}{sign} {size} \, {what.latex}",
        f"{typst}{sign} {size} thin {what.typst}",
        f"{sign} {size} {what.text}".strip(),
    )


def _rules(action: str, scale: float, alpha: float) -> Pieces:
    size, steep = f"{scale:.4g}", f"{alpha:.4g}"
    return (
        _left(action),
        Formula(
            rf"{size} \, \tanh\left({steep} \, \frac{{\sum_i m_i \, o_i}}{{\sum_i m_i}}\right),",
            f"{size} thin tanh ({steep} thin frac(sum_i m_i thin o_i, sum_i m_i)),",
            f"{size} tanh({steep} sum(m o)/sum(m)),",
        ),
    )


def _membership() -> Pieces:
    return (
        Formula(
            r"m_i = \exp\left(-\sum_j \frac{(s_j - c_{ij})^2}{2 \, w_{ij}^2}\right)",
            "m_i = exp (-sum_j frac((s_j - c_(i j))^2, 2 thin w_(i j)^2))",
            "m = exp(-sum((s - c)**2/(2 w**2)))",
        ),
    )


def _left(action: str) -> Formula:
    name = Variable(action)
    return Formula(f"{to_latex(name)} =", f"{to_typst(name)} =", f"{action} =")


# Controllers as a browser shows them, in pieces between which lines may break.


def typeset(controller: Controller) -> Markup:
    """A line for each equation; kinds that no formula can show as their one line."""
    lines = equations(controller)
    if not lines:
        return Markup('<p class="plain">{}</p>').format(shorten_numbers(controller.summary))
    return Markup("").join(map(_line, lines))


def _line(pieces: Pieces) -> Markup:
    spans = Markup(" ").join(Markup("<span>{}</span>").format(piece.mathml) for piece in pieces)
    return Markup('<p title="{}">{}</p>').format(" ".join(piece.text for piece in pieces), spans)
