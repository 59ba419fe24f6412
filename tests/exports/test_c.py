"""What the C looks like: the formula as a person knows it, and nothing more than it needs."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clearloop.controllers import Controller, Equation, Linear, from_json, load
from clearloop.errors import ClearloopError
from clearloop.exports import SINGLE, export
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.exports.batch import STRICT

PUBLISHED = sorted((Path(__file__).parents[2] / "examples" / "published").glob("*.json"))


def body(formula: str, *, precision: str = "double", **fields: Any) -> str:
    """What is assigned to the action."""
    equation = Equation(outputs={"force": formula}, **fields)
    source = export(equation, to="c", precision=precision, without=["guard"])["controller.c"]
    assert isinstance(source, str)
    (text,) = re.findall(r"(?:double|float) force = (.*?);", source, re.DOTALL)
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("formula", "wanted"),
    [
        ("77*theta + 23*theta_dot", "(memory->k_theta*theta) + (memory->k_theta_dot*theta_dot)"),
        ("a - (b - c)", "a - (b - c)"),
        ("a*(b + 1)/(1 + abs(c))", "a*(b + 1.0)/(1.0 + fabs(c))"),
        ("a/b", "divided(a, b)"),
        ("a/0.5", "a/0.5"),
        ("-a*-3", "-a*memory->k_2"),
        ("-(a + b)", "-(a + b)"),
        ("a**2", "pow(a, 2.0)"),
        ("a**b", "power(a, b)"),
        ("exp(a)", "saturated(exp(a))"),
        ("exp(tanh(a))", "exp(tanh(a))"),
        ("sqrt(a)", "sqrt(fmax(a, 0.0))"),
        ("sqrt(a**2 + b**2)", "sqrt(pow(a, 2.0) + pow(b, 2.0))"),
        ("log(1 + abs(a))", "log(1.0 + fabs(a))"),
        ("min(a, max(b, -1))", "fmin(a, fmax(b, -1.0))"),
        ("clip(a, -1, 1)", "clip(a, -1.0, 1.0)"),
        ("clip(sin(a), -2, 2)", "sin(a)"),
        ("wrap(a)", "wrap(a)"),
        (
            "if(a > 0.12 and not b < 0 or c == d, 1, e)",
            "((((a > 0.12) && !(b < 0.0)) || (c == d)) ? 1.0 : e)",
        ),
        ("1e308*10*a", "saturated(1.7976931348623157e+308*a)"),
        ("a*1e-300", "a*1e-300"),
        ("atan2(a, 1 + b**2)", "atan2(a, 1.0 + pow(b, 2.0))"),
        ("atan2(a, b)", "angle(a, b)"),
    ],
)
def test_formulas_look_as_they_were_written(formula: str, wanted: str) -> None:
    assert body(formula) == wanted


@pytest.mark.parametrize(
    ("formula", "wanted"),
    [
        ("0.1*a", "memory->k_a*a"),
        ("a*1e30", "saturated(a*1e+30f)"),
        ("sin(a) + 1e300", "sinf(a) + 3.4028235e+38f"),
        ("if(a > 0.1, 1, 0)", "((a > 0.099999994f) ? 1.0f : 0.0f)"),  # the largest float below 0.1
        ("if(a >= 0.1, 1, 0)", "((a >= 0.1f) ? 1.0f : 0.0f)"),
        ("if(0.1 > a, 1, 0)", "((0.1f > a) ? 1.0f : 0.0f)"),
        ("a/1e-50", "0.0f"),
    ],
)
def test_single_precision(formula: str, wanted: str) -> None:
    found = body(formula, precision=SINGLE.name)
    assert found == wanted if wanted != "0.0f" else found == "divided(a, 0.0f)"


def test_only_the_functions_that_are_needed_come_along() -> None:
    source = export(KINDS["equation"].for_task(CARTPOLE), to="c", without=["guard"])["controller.c"]
    assert re.findall(r"^static \w+ (\w+)\(", source, re.MULTILINE) == ["clip", "limited"]


def test_the_header_says_what_it_is() -> None:
    header = export(KINDS["lagging equation"].for_task(CARTPOLE), to="c", name="lagging")["lagging.h"]
    assert " * force = if(abs(theta) > 0.12, 9 + theta, 66*theta)" in header
    assert "double force; /* N, -10 to 10 */" in header
    assert "double rho_setpoint; /* m, setpoint; may be changed between steps */" in header
    assert "double theta_past[10]; /* [k]: value k steps ago */" in header
    assert "Call the controller once every 0.025 s." in header


def compiled(
    controller: Controller, folder: Path, name: str = "controller", precision: str = "double"
) -> None:
    for file, text in export(controller, to="c", name=name, precision=precision).items():
        (folder / file).write_text(text, encoding="utf-8")
    for source in folder.glob("*.c"):
        subprocess.run(["gcc", *STRICT, "-c", source.name, "-o", "x.o"], cwd=folder, check=True)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.stem)
def test_the_published_controllers_compile_with_no_warning(
    file: Path, precision: str, tmp_path: Path
) -> None:
    compiled(load(file).for_task(CARTPOLE), tmp_path, file.stem, precision)


@pytest.mark.parametrize("name", ["int", "a b", "θ", "1st", "*/", "x" * 200, "a\nb", "main", "../up"])
def test_any_name_of_a_file_will_do(name: str, tmp_path: Path) -> None:
    compiled(KINDS["equation"], tmp_path, name)


HOSTILE = ["*/ int main(void) {return 1;} /*", "??/", "\\", "a \u202e b", "*" + "/" * 3, "'\"`${x}", "#if 0"]


@pytest.mark.parametrize("words", HOSTILE)
def test_what_people_write_stays_in_comments(words: str, tmp_path: Path) -> None:
    table = {"name": words, "units": {"theta": words, "force": words}, "follows": {"theta": words}}
    equation = Equation.model_validate({"outputs": {"force": "theta"}, **table})
    compiled(equation, tmp_path)
    for to in ("javascript", "python"):
        (text,) = export(equation, to=to).values()
        (tmp_path / f"x.{'mjs' if to == 'javascript' else 'py'}").write_text(text, encoding="utf-8")
    subprocess.run(["node", "--check", "x.mjs"], cwd=tmp_path, check=True)
    compile((tmp_path / "x.py").read_text(encoding="utf-8"), "x.py", "exec")


def test_many_gains_are_summed_in_parts(tmp_path: Path) -> None:
    linear = Linear(gains={"u": {f"x{number}": number + 0.5 for number in range(500)}})
    compiled(linear, tmp_path)


def test_limits_that_single_precision_cannot_hold_are_refused() -> None:
    equation = Equation(outputs={"u": "x"}, limits={"u": (0.0, 1e300)})
    assert export(equation, to="c")
    with pytest.raises(ClearloopError, match=r"limits.u: 0 … 1e\+300 does not fit single precision"):
        export(equation, to="c", precision="single")


def test_a_planner_is_refused() -> None:
    planner = from_json('{"clearloop": 1, "kind": "planner", "run": "x", "outputs": ["u"], "horizon": 5}')
    for to in ("c", "latex"):
        with pytest.raises(
            ClearloopError, match="kind 'planner' cannot be exported: it plans with its model"
        ):
            export(planner, to=to)
