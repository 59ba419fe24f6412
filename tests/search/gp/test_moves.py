"""Moves make readable laws, keep a symmetric language symmetric, and use only the chosen functions."""

import numpy as np
import pytest

from clearloop.expression import Variable, parse, to_text
from clearloop.search.gp.evolution import ConstantRefinement
from clearloop.search.gp.formulas import Formulas
from clearloop.search.gp.genome import Genome, mutate_constants
from clearloop.search.gp.moves import reshape
from clearloop.search.gp.parity import ODD, parity
from tests.search.gp.conftest import FUNCTIONS

VARIABLES = [Variable("x"), Variable("y"), Variable("z")]
SIZES, OUTPUTS = np.array([0.1, 1.0, 100.0]), np.array([10.0])


@pytest.fixture(scope="module")
def odd() -> Formulas:
    return Formulas(FUNCTIONS, VARIABLES, SIZES, OUTPUTS, odd=True)


def read(language: Formulas, text: str) -> Genome:
    return language.from_expressions([parse(text)])


def moved(language: Formulas, text: str, count: int) -> list[str]:
    rng, genome = np.random.default_rng(1), read(language, text)
    programs = [language.simplify(reshape(genome, language, rng)) for _ in range(count)]
    return [to_text(*language.expressions(program)) for program in programs]


def test_odd_programs_stay_odd(odd: Formulas) -> None:
    rng = np.random.default_rng(0)
    for text in ("3*x + y", "5*tanh(x + 2*y) - z", "if(x*y < 2, clip(x + y, -3, 3), z)"):
        genome = read(odd, text)
        for _ in range(200):
            child = reshape(genome, odd, rng)
            assert parity(child) & ODD
            assert odd.allows(child)


def test_there_are_guards_fades_bends_dead_zones_and_schedules(odd: Formulas) -> None:
    found = moved(odd, "3*x + 2*y", 600)
    for part in ("if(", "tanh(", "clip(", "x*x", "abs(", ", 0)", "x*(x ", "abs(x "):
        assert any(part in text for text in found), part
    assert len(set(found)) > 300


def test_a_guard_may_stand_around_one_term_of_a_sum(odd: Formulas) -> None:
    found = moved(odd, "3*x + 2*y + 5*tanh(y)", 600)
    assert any(text.startswith("3*x + 2*y + if(") and "5*tanh(y)" in text for text in found)


def test_conditions_are_measured_anew(odd: Formulas) -> None:
    found = moved(odd, "if(abs(x) < 2, 3*y, 0)", 600)
    assert any(text.startswith("if(") and "abs(x)" not in text and text.endswith("3*y, 0)") for text in found)


def test_only_chosen_functions_are_used() -> None:
    few = Formulas(("add", "mul"), VARIABLES, SIZES, OUTPUTS)
    for text in moved(few, "3*x + 2*y", 100):
        assert not {"if(", "tanh(", "clip(", "abs("} & {part + "(" for part in text.split("(")[:-1]}
    none = Formulas(("add", "max"), VARIABLES, SIZES, OUTPUTS)
    assert set(moved(none, "3*x + 2*y", 10)) == {"3*x + 2*y"}


def test_the_limits_of_an_odd_clip_stay_opposite(odd: Formulas) -> None:
    rng, genome = np.random.default_rng(2), read(odd, "2*x + clip(3*y, -4, 4)")
    assert parity(mutate_constants(genome, odd, rng)) & ODD
    refinement = ConstantRefinement([genome], [1.0], odd, candidates=4, rng=rng)
    for _ in range(3):
        asked = refinement.ask()
        assert all(parity(one) & ODD for one in asked)
        assert len({one.operand for one in asked}) == 4
        refinement.tell([0.5, 0.6, 0.7, 0.8])


def test_nothing_else_is_asked_for_in_an_odd_language(odd: Formulas) -> None:
    free = Formulas(FUNCTIONS, VARIABLES, SIZES, OUTPUTS)
    assert not odd.allows(read(odd, "x + 1"))
    assert free.allows(read(free, "x + 1"))
