"""LaTeX: formulas, gains and tables that a document can take in."""

import re

import pytest

from clearloop.controllers import PID, Equation, Linear
from clearloop.controllers.pid import Loop, Loops
from clearloop.errors import ClearloopError
from clearloop.exports import export
from tests.controllers.kinds import CARTPOLE, KINDS

READABLE = [kind for kind, controller in KINDS.items() if controller.readable]


def written(kind: str) -> str:
    return str(export(KINDS[kind].for_task(CARTPOLE), to="latex")["controller.tex"])


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


def test_loops_with_a_bias_and_an_error_for_each_state() -> None:
    loops = {
        "u": Loops(bias=45.0, scale=-2.0, loops=(Loop(input="x", kp=1.0, ki=0.5, window=3),)),
        "v": Loops(loops=(Loop(input="y", kp=4.0), Loop(input="x", kp=-3.0, kd=2.0))),
    }
    text = export(PID(outputs=loops), to="latex")["controller.tex"]
    assert r"u &= 45 - 2 \left(\left(1 \, e_{x, t} + 0.5 \, \sum_{k=0}^{2} e_{x, t-k}\right)\right)" in text
    assert r"-3 \, e_{x, t} + 2 \, \left(e_{x, t} - e_{x, t-1}\right)" in text
    assert text.count(r"e_{x} &=") == text.count(r"e_{y} &=") == 1


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
        ClearloopError, match=f"kind '{kind}' cannot be exported to latex; export it to one of: c"
    ):
        export(KINDS[kind], to="latex")
