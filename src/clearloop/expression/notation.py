"""How LaTeX and Typst write the same mathematics. What binds how tightly is `typesetting`'s business."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import NamedTuple

ACCENTS = {"dot": "dot", "ddot": "dot.double", "dddot": "dot.triple", "hat": "hat", "bar": "macron"}
ACCENTS |= {"tilde": "tilde"}
"""Endings of names, and what Typst calls them; LaTeX calls them so itself."""

_FUNCTIONS = {"min", "max", "exp", "sin", "cos", "tan", "tanh"}  # known to both by these names
_GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda"}
_GREEK |= {"mu", "nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"}
_GREEK |= {letter.capitalize() for letter in _GREEK}


class Notation(NamedTuple):
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
    """Letters and numbers as they are, names of Greek letters as such, other words upright."""
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
    """θ as theta, Ω as Omega; everything else as it is."""
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
