"""Templates: what stands in them stays, holes are filled, and constants are tuned."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.errors import ClearloopError
from clearloop.expression import Variable, evaluate, parse, to_text
from clearloop.search.gp.formulas import Formulas
from clearloop.search.gp.genome import cross, insert, mutate_constants, mutate_point, mutate_subtree, remove
from clearloop.search.gp.templates import read_templates, split_form
from tests.search.gp.conftest import FUNCTIONS

NAMES = ("x", "y", "u", "v")


def language(**texts: str) -> Formulas:
    actions = ("u", "v")[: 1 + ("v" in texts)]
    template = read_templates(texts, actions, NAMES)
    variables = [Variable("x"), Variable("y")]
    return Formulas(
        FUNCTIONS, variables, np.array([1.0, 5.0]), np.full(len(actions), 10.0), template=template
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k1*xx + {…}", "form of u: unknown name 'xx' at column 4; did you mean 'x'?"),
        ("kk*x + {…}", "unknown name 'kk' at column 1; constants to tune are called k, k1, k2"),
        ("tanh({…}", "the end of the formula at column 9"),
        ("x + {y}", "unexpected '{' at column 5; a part to search is written {…}"),
        ("x + {…", "unexpected '{' at column 5"),
        ("x + …}", "unexpected '}' at column 6"),
        ("x + {…}[t-1]", "{…} has neither a past nor a setpoint at column 5"),
        ("k.setpoint + {}", "the constant k has neither a past nor a setpoint at column 1"),
        ("if({…}, 1, 2)", "expected a condition, found a number at column 4"),
        ("3{…}", "expected an operator, found '{…}' at column 2"),
        ("x + 2", "there is nothing to search"),
        ("", "expected a value"),
    ],
)
def test_what_is_no_template_is_refused_with_its_column(text: str, message: str) -> None:
    with pytest.raises(ClearloopError, match=re.escape(message)):
        read_templates({"u": text}, ["u"], NAMES)


def test_a_template_for_another_action_is_refused() -> None:
    with pytest.raises(ClearloopError, match="'w' is not an action of the task; the task has u, v"):
        read_templates({"w": "{}"}, ["u", "v"], NAMES)


@given(st.text(alphabet="kxy19 +-*/(),.{}…<[]t", max_size=12))
def test_any_text_is_a_template_or_one_line(text: str) -> None:
    try:
        template = read_templates({"u": text}, ["u"], NAMES)
    except ClearloopError as error:
        told = str(error)
    else:
        told = ""
        assert len(template.holes) == text.count("{")
    assert "\n" not in told


def test_the_action_may_stand_before_the_template() -> None:
    assert split_form("u = k1*x + {…}") == ("u", "k1*x + {…}")
    assert split_form("if(x <= 2, {…}, 0)") == ("", "if(x <= 2, {…}, 0)")
    assert split_form("x == 2") == ("", "x == 2")


def test_holes_are_filled_and_a_constant_with_one_name_is_one_constant() -> None:
    words = language(u="k1*x + tanh({…})", v="{}/2 - k1")
    filled = words.joined([words.weighted_sum([(1, 3.0)]), words.weighted_sum([(0, -4.0)])], [7.0])
    assert [to_text(one) for one in words.expressions(filled)] == ["7*x + tanh(3*y)", "-4*x/2 - 7"]


def test_variation_changes_nothing_but_holes_and_constants() -> None:
    words = language(u="k1*x - if(y < 1, 2*tanh({…}), k2*{…})")
    rng = np.random.default_rng(0)
    pool = [words.grow(rng, 2) for _ in range(8)]
    for _ in range(150):
        genome, other = (pool[n] for n in rng.integers(len(pool), size=2))
        genome, _ = cross(genome, other, words, rng)
        for vary in (insert, mutate_point, mutate_subtree, remove, mutate_constants):
            genome = vary(genome, words, rng)
        genome = words.simplify(words.reshape(genome, rng))
        first, second, k1, k2 = words.fillings(genome)
        parts = [to_text(words._expression(one)) for one in (first, second)]
        numbers = [f"({one.operand[0]!r})" for one in (k1, k2)]
        text = f"{numbers[0]}*x - if(y < 1, 2*tanh({parts[0]}), {numbers[1]}*({parts[1]}))"
        values = {Variable(name): value for name, value in zip("xy", rng.normal(size=2), strict=True)}
        (formula,) = words.expressions(genome)
        assert evaluate(formula, values) == pytest.approx(evaluate(parse(text), values))
        if words.vocabulary.complexity(genome) < 40:
            pool[int(rng.integers(len(pool)))] = genome


def test_fillings_have_the_size_that_suits_their_place() -> None:
    frame = language(u="k1*y + 5*tanh({…}) + {…}").frame
    assert frame is not None
    assert frame.sizes == [1.0, 10.0, 2.0]  # in tanh 1, beside it 10 as the output, and y has 5 already
    assert frame.factors == {2: Variable("y")}
