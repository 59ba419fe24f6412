import pytest
from hypothesis import Phase, given, settings

from clearloop.expression import Expression, parse, to_latex, to_typst
from tests.expression.strategies import any_kind


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("69.8*theta + 20*theta_dot - 3*rho", r"69.8 \, \theta + 20 \, \dot{\theta} - 3 \, \rho"),
        ("theta[t]/(0.65 + theta_dot[t-8])", r"\frac{\theta_{t}}{0.65 + \dot{\theta}_{t-8}}"),
        ("max(x, 0)", r"\max\left(x, 0\right)"),
        ("min(3, x)", r"\min\left(3, x\right)"),
        ("x - (y - z)", r"x - \left(y - z\right)"),
        ("a + -3", r"a + \left(-3\right)"),
        ("a*-b", r"a \, \left(-b\right)"),
        ("-3*x", r"-3 \, x"),
        ("x*3", r"x \cdot 3"),
        ("2*3**x", r"2 \cdot 3^{x}"),
        ("-x**2", "-x^{2}"),
        ("(-x)**2", r"\left(-x\right)^{2}"),
        ("(a/b)**2", r"\left(\frac{a}{b}\right)^{2}"),
        ("--x", r"-\left(-x\right)"),
        ("1.5e-7*x", r"1.5 \cdot 10^{-7} \, x"),
        ("abs(sqrt(log(x)))", r"\left|\sqrt{\ln\left(x\right)}\right|"),
        ("wrap(x)", r"\operatorname{wrap}\left(x\right)"),
        ("rho.error[t-1]", r"\rho_{\mathrm{error}, t-1}"),
        ("T_in_2", r"T_{\mathrm{in}, 2}"),
        ("tank_level", r"\mathrm{tank}_{\mathrm{level}}"),
        ("force_dot", r"\dot{\mathrm{force}}"),
        ("θ*Ω_1", r"\theta \, \Omega_{1}"),
        ("what + _1", r"\mathrm{what} + \mathrm{\_1}"),
        (
            "if(a < b and not (a >= 3 or b == 0), 1, 2)",
            r"\begin{cases} 1 & \text{if } a < b \land \lnot \left(a \ge 3 \lor b = 0\right)"
            r" \\ 2 & \text{otherwise} \end{cases}",
        ),
        (
            "2*if(a <= b, 1, 2)",
            r"2 \, \left(\begin{cases} 1 & \text{if } a \le b \\ 2 & \text{otherwise} \end{cases}\right)",
        ),
    ],
)
def test_latex_looks_as_written(formula: str, latex: str) -> None:
    assert to_latex(parse(formula)) == latex


@given(any_kind(5))
def test_braces_and_brackets_are_balanced(expression: Expression) -> None:
    latex = to_latex(expression)
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\left") == latex.count(r"\right")


@pytest.mark.parametrize(
    ("formula", "typst"),
    [
        ("69.8*theta + 20*theta_dot[t-3]", "69.8 thin theta + 20 thin dot(theta)_(t-3)"),
        ("abs(x)/(2*3) - sqrt(log(y))", "frac(abs(x), 2 dot.op 3) - sqrt(ln (y))"),
        ("tank_level**2*-b", '"tank"_("level")^(2) thin (-b)'),
        ("PSI + Psi + psI", '"PSI" + Psi + "psI"'),
        ("wrap(θ) + 1e-7", 'op("wrap") (theta) + 1 dot.op 10^(-7)'),
        ("if(a <= b and not c < 1, 1, 2)", 'cases(1 & "if" a <= b and not c < 1, 2 & "otherwise")'),
    ],
)
def test_typst_looks_as_written(formula: str, typst: str) -> None:
    assert to_typst(parse(formula)) == typst


def test_typst_knows_every_greek_letter() -> None:
    import typst

    letters = "αβγδεζηθικλμνξοπρστυφχψωΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ"
    formula = " + ".join(to_typst(parse(letter)) for letter in letters)
    assert '"' not in formula
    assert typst.compile(f"$ {formula} $".encode(), format="svg")


@settings(max_examples=60, deadline=None, phases=[Phase.generate])
@given(any_kind(4))
def test_typst_takes_every_formula(expression: Expression) -> None:
    import typst

    source = f"#set page(width: auto, height: auto)\n$ {to_typst(expression)} $"
    assert typst.compile(source.encode(), format="svg")
