r"""Formulas as LaTeX that looks as the formula was written.

SymPy sets the letters. The rest is ours, because SymPy's printer sorts the arguments of min, max, and, or,
and shows -(3) as (-1) 3 even where nothing is evaluated.
"""

import re
import unicodedata
from collections.abc import Sequence

from clearloop.expression.nodes import Expression, Number, Variable, fold
from clearloop.expression.operations import ATOM, NEGATION, POWER, PRODUCT, Operation

_Piece = tuple[str, int]  # LaTeX, and how tightly its outermost operation binds

_ACCENTS = {"dot", "ddot", "dddot", "hat", "bar", "tilde"}
_FUNCTIONS = {"min": r"\min", "max": r"\max", "exp": r"\exp", "log": r"\ln"}
_FUNCTIONS |= {"sin": r"\sin", "cos": r"\cos", "tan": r"\tan", "tanh": r"\tanh"}
_SIGNS = {"<=": r"\le", ">=": r"\ge", "==": "=", "!=": r"\ne"}
_SIGNS |= {"and": r"\land", "or": r"\lor", "not": r"\lnot "}


def to_latex(expression: Expression) -> str:
    r"""The formula for a maths environment: `theta_dot[t-3]` is \dot{\theta}_{t-3}, `a/b` a fraction."""
    latex, _ = fold(expression, _leaf, _call)
    return latex


def _leaf(node: Number | Variable) -> _Piece:
    if isinstance(node, Variable):
        return _variable(node), ATOM
    mantissa, _, exponent = str(node).partition("e")
    binds = NEGATION if node.value < 0 else PRODUCT if exponent else ATOM
    return mantissa + (rf" \cdot 10^{{{int(exponent)}}}" if exponent else ""), binds


def _variable(variable: Variable) -> str:
    first, *rest = variable.name.split("_")
    if not first:  # a leading underscore is part of the name
        first, rest = variable.name, []
    symbol = _word(first)
    while rest and rest[0] in _ACCENTS:
        symbol = rf"\{rest.pop(0)}{{{symbol}}}"
    subscripts = [_word(word) for word in rest if word]
    if variable.part != "value":
        subscripts.append(_word(variable.part))
    if variable.lag is not None:
        subscripts.append(f"t-{variable.lag}" if variable.lag else "t")
    return f"{symbol}_{{{', '.join(subscripts)}}}" if subscripts else symbol


def _word(word: str) -> str:
    """Letters and numbers as they are, names of Greek letters as such, other words upright."""
    from sympy.printing.latex import translate

    letter: str = translate(_spelled(word))
    if re.fullmatch(r"\\[a-zA-Z]+", letter):
        return letter
    if word.isdecimal() or (len(word) == 1 and word != "_"):
        return word
    return rf"\mathrm{{{word}}}".replace("_", r"\_")


def _spelled(word: str) -> str:
    """θ as theta, Ω as Omega; everything else as it is."""
    script, _, letter = unicodedata.name(word, "").partition(" LETTER ") if len(word) == 1 else ("", "", "")
    return {"GREEK SMALL": letter.lower(), "GREEK CAPITAL": letter.capitalize()}.get(script, word)


def _call(operation: Operation, arguments: Sequence[_Piece]) -> _Piece:
    texts = [text for text, _ in arguments]
    match operation.name, texts:
        case "div", [x, y]:
            return rf"\frac{{{x}}}{{{y}}}", POWER
        case "pow", [_, exponent]:
            return f"{_bracketed(arguments[0], ATOM)}^{{{exponent}}}", POWER
        case "abs", [x]:
            return rf"\left|{x}\right|", ATOM
        case "sqrt", [x]:
            return rf"\sqrt{{{x}}}", ATOM
        case "if", [p, x, y]:
            return rf"\begin{{cases}} {x} & \text{{if }} {p} \\ {y} & \text{{otherwise}} \end{{cases}}", 0
    if not operation.symbol:
        command = _FUNCTIONS.get(operation.name, rf"\operatorname{{{operation.name}}}")
        return rf"{command}\left({', '.join(texts)}\right)", ATOM
    sign = _SIGNS.get(operation.symbol, operation.symbol)
    if operation.arity == 1:
        return sign + _bracketed(arguments[0], operation.precedence + 1), operation.precedence
    return _infix(operation, sign, *arguments), operation.precedence


def _infix(operation: Operation, sign: str, left: _Piece, right: _Piece) -> str:
    after = _bracketed(right, operation.precedence + 1)
    if after.startswith("-"):
        after = rf"\left({after}\right)"
    if operation.name == "mul":
        sign = r"\cdot" if after[0].isdigit() else r"\,"
    return f"{_bracketed(left, operation.precedence)} {sign} {after}"


def _bracketed(piece: _Piece, precedence: int) -> str:
    text, binds = piece
    return text if binds >= precedence else rf"\left({text}\right)"
