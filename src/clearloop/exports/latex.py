"""LaTeX: the formula, the gains or the table of rules, to be put into a document."""

from collections.abc import Iterator

from clearloop.controllers import PID, Controller, Equation, Fuzzy, Linear
from clearloop.controllers.controller import read_variable
from clearloop.controllers.fuzzy import RuleBase
from clearloop.controllers.pid import Loop
from clearloop.exports.printer import ascii_name, commented, harmless
from clearloop.exports.routine import weighted
from clearloop.exports.targets import Files, Order, Target
from clearloop.expression import Number, Variable, to_latex

_ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_ESCAPES |= {sign: "\\" + sign for sign in "&%$#_{}"}


def latex(controller: Controller) -> str:
    """A snippet; the preamble that it needs is in its first lines."""
    head = ["Needs \\usepackage{amsmath} and \\usepackage{booktabs}."]
    if controller.name:
        head.insert(0, harmless(controller.name))
    rows = list(_body(controller))
    return "\n".join([*commented(head, "%"), *rows, *_notes(controller)]) + "\n"


def escaped(text: str) -> str:
    """Words of a person as text of a document."""
    return "".join(_ESCAPES.get(sign, sign) for sign in harmless(text))


def _body(controller: Controller) -> Iterator[str]:
    match controller:
        case Equation():
            yield from _aligned({name: to_latex(controller.formula(name)) for name in controller.actions})
        case Linear():
            yield from _aligned({name: _gains(row) for name, row in controller.gains.items()})
        case PID():
            yield from _loops(controller)
        case Fuzzy():
            for name, base in controller.outputs.items():
                yield from _rules(name, base)


def _aligned(rows: dict[str, str]) -> Iterator[str]:
    lines = [f"  {to_latex(Variable(name))} &= {text}" for name, text in rows.items()]
    yield "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"


def _gains(row: dict[str, float]) -> str:
    """In several trees, because one may have only so many levels."""
    parts: list[str] = []
    for negative, tree in weighted((gain, read_variable(name)) for name, gain in row.items()):
        sign = "-" if negative else "+" if parts else ""
        parts.append(f"{sign} {to_latex(tree)}".strip())
    return " ".join(parts) or "0"


def _loops(controller: PID) -> Iterator[str]:
    """An error has its state as index, so that loops on the same state share it."""
    rows, errors = {}, {}
    for name, output in controller.outputs.items():
        sums = []
        for loop in output.loops:
            state = read_variable(loop.input)
            index = to_latex(state)
            errors[f"e_{{{index}}}"] = f"{to_latex(Variable(state.name, 'setpoint'))} - {index}"
            weight = "" if loop.weight == 1 else _number(loop.weight)
            sums.append(f"{weight} \\left({_loop(loop, index)}\\right)".strip())
        driven = f"{_number(output.scale)} \\left({' + '.join(sums)}\\right)"
        bias = f"{_number(output.bias)} + " if output.bias else ""
        rows[name] = f"{bias}{driven}".replace("+ -", "- ")
    yield from _aligned(rows)
    lines = [f"  {name} &= {text}" for name, text in errors.items()]
    yield "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"


def _loop(loop: Loop, index: str) -> str:
    """Kp e + ki Σ e + kd Δe, per step."""
    error = f"e_{{{index}, t}}"
    terms = [
        (loop.kp, error),
        (loop.ki, f"\\sum_{{k=0}}^{{{loop.window - 1}}} e_{{{index}, t-k}}"),
        (loop.kd, f"\\left({error} - e_{{{index}, t-1}}\\right)"),
    ]
    text = " + ".join(f"{_number(gain)} \\, {what}" for gain, what in terms if gain)
    return text.replace("+ -", "- ") or "0"


def _rules(name: str, base: RuleBase) -> Iterator[str]:
    """A row for each rule, a column for each state, with centre ± width of its membership."""
    states = list(dict.fromkeys(text for rule in base.rules for text in rule.premise))
    columns = [f"${to_latex(read_variable(text))}$" for text in states]
    yield f"\\begin{{tabular}}{{r{'c' * len(states)}r}}\n  \\toprule"
    yield "  Rule & " + " & ".join(columns) + " & Output \\\\\n  \\midrule"
    for number, rule in enumerate(base.rules, 1):
        cells = []
        for text in states:
            m = rule.premise.get(text)
            cells.append(f"${_number(m.center)} \\pm {_number(m.width)}$" if m else "")
        yield f"  {number} & {' & '.join(cells)} & ${_number(rule.then)}$ \\\\"
    yield "  \\bottomrule\n\\end{tabular}"
    action = to_latex(Variable(name))
    mean = "\\frac{\\sum_i m_i o_i}{\\sum_i m_i}"
    fit = "\\exp\\left(-\\frac{(s_j - c_{ij})^2}{2 w_{ij}^2}\\right)"
    yield "\\begin{align*}"
    yield f"  {action} &= {_number(base.scale)} \\tanh\\left({_number(base.alpha)} {mean}\\right) \\\\"
    yield f"  m_i &= \\prod_j {fit}\n\\end{{align*}}"


def _number(value: float) -> str:
    return to_latex(Number(value))


def _notes(controller: Controller) -> Iterator[str]:
    notes = [*controller.limit_words()]
    if controller.kind != "pid":
        notes += controller.setpoint_words()
    if notes:
        yield "\n".join(escaped(note) for note in notes)


class LaTeX(Target):
    name, title, endings = "latex", "LaTeX", (".tex",)

    def write(self, order: Order) -> Files:
        return {f"{ascii_name(order.name)}.tex": latex(order.controller)}
