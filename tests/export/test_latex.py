"""LaTeX: formulas, gains and tables that a document can take in."""

import re

import pytest

from clearloop.controllers import Equation, Linear
from clearloop.errors import ClearloopError
from clearloop.export import export
from tests.controllers.kinds import CARTPOLE, KINDS

READABLE = [kind for kind, controller in KINDS.items() if controller.readable]


def written(kind: str) -> str:
    return export(KINDS[kind].for_task(CARTPOLE), to="latex")["controller.tex"]


@pytest.mark.parametrize("kind", READABLE)
def test_brackets_and_environments_are_closed(kind: str) -> None:
    text = re.sub(r"(?m)^%.*$", "", written(kind)).replace(r"\{", "").replace(r"\}", "")
    assert text.count("{") == text.count("}")
    assert text.count(r"\left") == text.count(r"\right")
    opened = re.findall(r"\\begin\{(\w+\*?)\}", text)
    assert sorted(opened) == sorted(re.findall(r"\\end\{(\w+\*?)\}", text)) != []


@pytest.mark.parametrize("kind", READABLE)
def test_every_formula_is_understood_by_another_reader_of_latex(kind: str) -> None:
    from latex2mathml.converter import convert

    text = written(kind)
    formulas = re.findall(r"\\begin\{align\*\}(.*?)\\end\{align\*\}", text, re.DOTALL)
    formulas += re.findall(r"\$(.*?)\$", text)
    assert formulas
    for formula in formulas:
        assert "<math" in convert(rf"\begin{{aligned}}{formula}\end{{aligned}}")


def test_an_equation() -> None:
    assert r"\mathrm{force} &= 69.8 \, \theta + 20 \, \dot{\theta} + 10 \, \rho" in written("equation")


def test_gains_with_their_signs() -> None:
    text = export(Linear(gains={"u": {"x": -2.0, "y": 1.0, "z": -0.5, "w": 0.0}}), to="latex")[
        "controller.tex"
    ]
    assert r"u &= - 2 \, x + y - 0.5 \, z" in text


def test_rules_have_a_row_each() -> None:
    text = written("fuzzy")
    assert r"1 & $0.4 \pm 0.39$ & $1 \pm 1.16$ & $0.5 \pm 1.16$ & $0.5 \pm 1.2$ &  & $0.9$ \\" in text
    assert text.count(r"\\") == 1 + 3 + 1


def test_words_of_people_are_escaped() -> None:
    equation = Equation(
        outputs={"u": "x"}, limits={"u": (0, 1)}, units={"u": r"50%_\x{}$&#^~"}, name="50% %\n"[:5]
    )
    text = export(equation, to="latex")["controller.tex"]
    assert r"50\%\_/x\{\}\$\&\#\textasciicircum{}\textasciitilde{}" in text
    assert text.startswith("% 50% %\n")


@pytest.mark.parametrize("kind", ["network", "greedy-q"])
def test_networks_are_not_for_reading(kind: str) -> None:
    with pytest.raises(
        ClearloopError, match=f"kind '{kind}' cannot be exported to latex; networks can be to: c"
    ):
        export(KINDS[kind], to="latex")
