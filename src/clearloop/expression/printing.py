"""Formulas are printed as text with no needless parentheses, and as mathematics in LaTeX and Typst.

The text parses back to the same tree.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from clearloop.expression.nodes import (
    ATOM,
    NEGATION,
    POWER,
    PRODUCT,
    Expression,
    Number,
    Operation,
    Variable,
    fold,
)

_Piece = tuple[str, int]  # a text, and the precedence of its outermost operation


def to_text(expression: Expression) -> str:
    """Return a formula as text."""
    text, _ = fold(expression, _leaf, _call)
    return text


def _leaf(node: Number | Variable) -> _Piece:
    negative = isinstance(node, Number) and node.value < 0
    return str(node), NEGATION if negative else ATOM


def _call(operation: Operation, arguments: Sequence[_Piece]) -> _Piece:
    if not operation.symbol:
        text = f"{operation.name}({', '.join(argument for argument, _ in arguments)})"
    elif operation.arity == 1:
        text = _prefix(operation, *arguments)
    else:
        text = _infix(operation, *arguments)
    return text, operation.precedence


def _prefix(operation: Operation, operand: _Piece) -> str:
    if operation.symbol.isalpha():
        return f"{operation.symbol} {_bracketed(operand, operation.precedence)}"
    if operand[1] == ATOM and operand[0][0].isdigit():
        return f"{operation.symbol}({operand[0]})"  # -3 is a number, -(3) is a number's negation
    return f"{operation.symbol}{_bracketed(operand, operation.precedence)}"


def _infix(operation: Operation, left: _Piece, right: _Piece) -> str:
    # All operations but ** associate to the left; an exponent may also start with a minus sign.
    from_left = operation.precedence + (operation.precedence == POWER)
    from_right = operation.precedence + 1 if operation.precedence < POWER else NEGATION
    space = " " if operation.precedence < PRODUCT else ""
    return f"{_bracketed(left, from_left)}{space}{operation.symbol}{space}{_bracketed(right, from_right)}"


def _bracketed(piece: _Piece, precedence: int) -> str:
    text, binds = piece
    return text if binds >= precedence else f"({text})"


# LaTeX and Typst write the same mathematics in different notations; precedence is the same in both.

ACCENTS = {"dot": "dot", "ddot": "dot.double", "dddot": "dot.triple", "hat": "hat", "bar": "macron"}
ACCENTS |= {"tilde": "tilde"}
"""Endings of names that are LaTeX's names of accents, and Typst's names of them."""

_FUNCTIONS = {"min", "max", "exp", "sin", "cos", "tan", "tanh"}  # known to both by these names
_GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda"}
_GREEK |= {"mu", "nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"}
_GREEK |= {letter.capitalize() for letter in _GREEK}


class Notation(NamedTuple):
    """The notation of LaTeX or of Typst."""

    word: Callable[[str], str]
    """a name, a part of one, or a number"""
    accent: Callable[[str, str], str]
    subscript: Callable[[str, str], str]
    power: Callable[[str, str], str]
    fraction: Callable[[str, str], str]
    size: Callable[[str], str]
    """the absolute value"""
    root: Callable[[str], str]
    brackets: Callable[[str], str]
    choice: Callable[[str, str, str], str]
    """condition, then, otherwise"""
    function: Callable[[str], str]
    signs: Mapping[str, str]
    times: str
    """between two numbers"""
    beside: str
    """between other factors"""


def _latex_word(word: str) -> str:
    """Write letters and numbers as they are, names of Greek letters as letters, and other words upright."""
    from sympy.printing.latex import translate

    letter: str = translate(_spelled(word))
    if re.fullmatch(r"\\[a-zA-Z]+", letter):
        return letter
    return word if _plain(word) else rf"\mathrm{{{word}}}".replace("_", r"\_")


def _typst_word(word: str) -> str:
    spelled = _spelled(word)
    return spelled if spelled in _GREEK or _plain(word) else f'"{word}"'


def _plain(word: str) -> bool:
    return word.isdecimal() or (len(word) == 1 and word != "_")


def _spelled(word: str) -> str:
    """Write θ as theta and Ω as Omega; everything else stays."""
    script, _, letter = unicodedata.name(word, "").partition(" LETTER ") if len(word) == 1 else ("", "", "")
    letter = letter.replace("LAMDA", "LAMBDA")
    return {"GREEK SMALL": letter.lower(), "GREEK CAPITAL": letter.capitalize()}.get(script, word)


def _latex_function(name: str) -> str:
    if name == "log":
        return r"\ln"
    return rf"\{name}" if name in _FUNCTIONS else rf"\operatorname{{{name}}}"


def _typst_function(name: str) -> str:
    if name == "log":
        return "ln "
    return f"{name} " if name in _FUNCTIONS else f'op("{name}") '


LATEX = Notation(
    word=_latex_word,
    accent=lambda accent, x: rf"\{accent}{{{x}}}",
    subscript=lambda x, below: f"{x}_{{{below}}}",
    power=lambda x, above: f"{x}^{{{above}}}",
    fraction=lambda x, y: rf"\frac{{{x}}}{{{y}}}",
    size=lambda x: rf"\left|{x}\right|",
    root=lambda x: rf"\sqrt{{{x}}}",
    brackets=lambda x: rf"\left({x}\right)",
    choice=lambda p, x, y: (
        rf"\begin{{cases}} {x} & \text{{if }} {p} \\ {y} & \text{{otherwise}} \end{{cases}}"
    ),
    function=_latex_function,
    signs={
        "<=": r"\le", ">=": r"\ge", "==": "=", "!=": r"\ne",
        "and": r"\land", "or": r"\lor", "not": r"\lnot ",
    },
    times=r"\cdot",
    beside=r"\,",
)  # fmt: skip

TYPST = Notation(
    word=_typst_word,
    accent=lambda accent, x: f"{ACCENTS[accent]}({x})",
    subscript=lambda x, below: f"{x}_({below})",
    power=lambda x, above: f"{x}^({above})",
    fraction=lambda x, y: f"frac({x}, {y})",
    size=lambda x: f"abs({x})",
    root=lambda x: f"sqrt({x})",
    brackets=lambda x: f"({x})",
    choice=lambda p, x, y: f'cases({x} & "if" {p}, {y} & "otherwise")',
    function=_typst_function,
    signs={"==": "=", "and": "and", "or": "or", "not": "not "},
    times="dot.op",
    beside="thin",
)


# Mathematics looks as the formula was written. SymPy knows the letters; the rest is ours, because SymPy's
# printer sorts the arguments of min, max, and, or, and shows -(3) as (-1) 3 even if nothing is evaluated.


def to_latex(expression: Expression) -> str:
    r"""Return a formula in LaTeX: `theta_dot[t-3]` becomes \dot{\theta}_{t-3}, `a/b` becomes a fraction."""
    return _Typesetter(LATEX).typeset(expression)


def to_typst(expression: Expression) -> str:
    """Return a formula in Typst: `theta_dot[t-3]` becomes dot(theta)_(t-3)."""
    return _Typesetter(TYPST).typeset(expression)


class _Typesetter:
    def __init__(self, notation: Notation) -> None:
        self.notation = notation

    def typeset(self, expression: Expression) -> str:
        text, _ = fold(expression, self._leaf, self._call)
        return text

    def _leaf(self, node: Number | Variable) -> _Piece:
        if isinstance(node, Variable):
            return self._variable(node), ATOM
        mantissa, _, exponent = str(node).partition("e")
        binds = NEGATION if node.value < 0 else PRODUCT if exponent else ATOM
        ten = f" {self.notation.times} {self.notation.power('10', str(int(exponent)))}" if exponent else ""
        return mantissa + ten, binds

    def _variable(self, variable: Variable) -> str:
        to, word = self.notation, self.notation.word
        first, *rest = variable.name.split("_")
        if not first:  # a leading underscore is part of the name
            first, rest = variable.name, []
        symbol = word(first)
        while rest and rest[0] in ACCENTS:
            symbol = to.accent(rest.pop(0), symbol)
        subscripts = [word(part) for part in rest if part]
        if variable.part != "value":
            subscripts.append(word(variable.part))
        if variable.lag is not None:
            subscripts.append(f"t-{variable.lag}" if variable.lag else "t")
        return to.subscript(symbol, ", ".join(subscripts)) if subscripts else symbol

    def _call(self, operation: Operation, arguments: Sequence[_Piece]) -> _Piece:
        to, texts = self.notation, [text for text, _ in arguments]
        match operation.name, texts:
            case "div", [x, y]:
                return to.fraction(x, y), POWER
            case "pow", [_, exponent]:
                return to.power(self._bracketed(arguments[0], ATOM), exponent), POWER
            case "abs", [x]:
                return to.size(x), ATOM
            case "sqrt", [x]:
                return to.root(x), ATOM
            case "if", [p, x, y]:
                return to.choice(p, x, y), 0
        if not operation.symbol:
            return to.function(operation.name) + to.brackets(", ".join(texts)), ATOM
        sign = to.signs.get(operation.symbol, operation.symbol)
        if operation.arity == 1:
            return sign + self._bracketed(arguments[0], operation.precedence + 1), operation.precedence
        return self._infix(operation, sign, *arguments), operation.precedence

    def _infix(self, operation: Operation, sign: str, left: _Piece, right: _Piece) -> str:
        after = self._bracketed(right, operation.precedence + 1)
        if after.startswith("-"):
            after = self.notation.brackets(after)
        if operation.name == "mul":
            sign = self.notation.times if after[0].isdigit() else self.notation.beside
        return f"{self._bracketed(left, operation.precedence)} {sign} {after}"

    def _bracketed(self, piece: _Piece, precedence: int) -> str:
        text, binds = piece
        return text if binds >= precedence else self.notation.brackets(text)
