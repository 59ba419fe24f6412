"""The parity that is found by rules is the parity of the numbers."""

import numpy as np
import pytest

from clearloop.expression import Variable, evaluate, parse
from clearloop.search.gp.formulas import Formulas
from clearloop.search.gp.genome import Genome
from clearloop.search.gp.parity import BOTH, EVEN, NEITHER, ODD, parity
from tests.search.gp.conftest import FUNCTIONS

VARIABLES = [Variable("x"), Variable("y")]


@pytest.fixture(scope="module")
def language() -> Formulas:
    return Formulas((*FUNCTIONS, "sin", "cos", "exp"), VARIABLES, np.ones(2), np.ones(1))


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("2*x - y", ODD),
        ("x + 1", NEITHER),
        ("x*y", EVEN),
        ("x*y*x", ODD),
        ("0*x", BOTH),
        ("abs(x) - 3", EVEN),
        ("tanh(x)/(1 + y*y)", ODD),
        ("clip(x, -2, 2)", ODD),
        ("clip(x, -2, 1)", NEITHER),
        ("clip(abs(x), -2, 1)", EVEN),
        ("if(x < 1, y, 2*y)", NEITHER),
        ("if(x*y < 1, y, 2*y)", ODD),
        ("if(abs(x) < 1 and x*y > 2, 1, 2*y)", NEITHER),
        ("if(abs(x) < 1, 0, y)", ODD),
        ("max(x, y)", NEITHER),
        ("max(abs(x), 1)", EVEN),
        ("exp(x)", NEITHER),
        ("cos(x)*sin(y)", ODD),
    ],
)
def test_parity_follows_the_rules(language: Formulas, formula: str, expected: int) -> None:
    assert parity(language.from_expressions([parse(formula)])) == expected


def test_a_controller_is_odd_only_if_all_its_formulas_are() -> None:
    two = Formulas(FUNCTIONS, VARIABLES, np.ones(2), np.ones(2))
    assert parity(two.from_expressions([parse("x"), parse("x*y*y")])) == ODD
    assert parity(two.from_expressions([parse("x"), parse("x*y")])) == NEITHER


def test_what_is_called_odd_is_odd(language: Formulas) -> None:
    rng = np.random.default_rng(0)
    odd = even = 0
    for _ in range(400):
        whole = language.grow(rng, 3)
        genome = language.vocabulary.subtree(whole, int(rng.integers(len(whole.code) - 1)))
        if language.vocabulary.kind(genome, len(genome.code) - 1) != "number":
            continue
        genome = language.joined([genome])
        found = parity(genome)
        for x, y in rng.normal(size=(4, 2)):
            there, back = value(language, genome, x, y), value(language, genome, -x, -y)
            if found & ODD:
                assert back == pytest.approx(-there)
            if found & EVEN:
                assert back == pytest.approx(there)
        odd, even = odd + bool(found & ODD), even + bool(found & EVEN)
    assert odd > 40
    assert even > 40


def value(language: Formulas, genome: Genome, x: float, y: float) -> float:
    (formula,) = language.expressions(genome)
    return evaluate(formula, {VARIABLES[0]: x, VARIABLES[1]: y})
