"""GPRL and FGPRL: what the search evaluates is what a person reads."""

import numpy as np
import pytest

from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.expression import complexity
from clearloop.methods import Problem
from clearloop.methods.evolving import Language
from clearloop.methods.fgprl import RuleLanguage
from clearloop.methods.gprl import GPRL, Equations
from clearloop.search.gp.genome import GP, cross, insert, mutate_point, mutate_subtree, remove
from tests.methods.linear_plants import make_log, make_model, make_problem, make_task

U, V = np.array([[1.0, 0.1], [-0.2, 0.9]]), np.array([[0.0, 0.05], [0.1, 0.0]])
TASKS = {
    "plain": make_task(2, 2),
    "symmetric": make_task(2, 2, symmetric=True),
    "setpoint": make_task(2, 2, states={"x0": {"setpoint": 0.3}, "x1": {}}),
}


@pytest.fixture(params=TASKS)
def problem(request: pytest.FixtureRequest) -> Problem:
    task = TASKS[request.param]
    return make_problem(task, make_log(task, U, V), make_model(task, U, V), starts=16, robust=False)


@pytest.fixture(params=["equations", "rules"])
def language(request: pytest.FixtureRequest, problem: Problem) -> Language:
    return Equations(problem, GPRL().functions) if request.param == "equations" else RuleLanguage(problem)


def test_penalties_of_genomes_are_those_of_their_controllers(problem: Problem, language: Language) -> None:
    rng = np.random.default_rng(1)
    genomes = [language.grow(rng, 3) for _ in range(20)]
    searched = np.full(len(genomes), np.nan)
    for which, policies in language.encode(genomes):
        searched[which] = problem.penalties(policies, starts=16)
    read = [
        evaluate(
            language.controller(genome), problem.task, surrogate=problem.surrogate,
            members=problem.surrogate.search_members, starts=problem.starts,
        ).penalty
        for genome in genomes
    ]  # fmt: skip
    # Single precision, and conditions may tip: hence almost all, and nearly.
    assert np.mean(np.abs(searched - read) < 1e-3 * np.abs(read)) > 0.9


def test_complexity_is_the_controllers(language: Language) -> None:
    rng = np.random.default_rng(2)
    for _ in range(30):
        genome = language.simplify(language.grow(rng, 3))
        assert language.vocabulary.complexity(genome) == language.controller(genome).complexity


def test_variation_keeps_programs_readable(language: Language) -> None:
    rng = np.random.default_rng(3)
    genome, other = language.grow(rng, 3), language.grow(rng, 2)
    for _ in range(60):
        genome, _ = cross(genome, other, language, rng)
        for mutate in (insert, mutate_point, mutate_subtree, remove):
            genome = mutate(genome, language, rng)
        language.controller(language.simplify(genome))
        if language.vocabulary.complexity(genome) > 60:
            genome = language.grow(rng, 2)


def test_functions_are_a_setting(problem: Problem) -> None:
    equations = Equations(problem, ("add", "mul", "max"))
    rng = np.random.default_rng(4)
    for _ in range(50):
        for formula in equations.expressions(insert(equations.grow(rng, 4), equations, rng)):
            assert complexity(formula) > 0
            assert not {"tanh", "div", "if", "min"} & set(str(formula).replace("(", " ").split())


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        (("add", "tanhh"), "no function 'tanhh'; did you mean 'tanh'"),
        ((), "expected functions that give numbers"),
        (("lt",), "expected functions that give numbers"),
    ],
)
def test_functions_that_make_no_equation_are_refused(functions: tuple[str, ...], message: str) -> None:
    with pytest.raises(ClearloopError, match=message):
        GPRL(functions=functions)


def test_no_comparison_no_choice(problem: Problem) -> None:
    equations = Equations(problem, ("add", "if"))
    rng = np.random.default_rng(5)
    for _ in range(30):
        assert "if(" not in equations.controller(insert(equations.grow(rng, 3), equations, rng)).summary


def test_a_final_without_constants_is_over(problem: Problem) -> None:
    search = GPRL().begin(problem, rng=np.random.default_rng(0))
    rng, constants = np.random.default_rng(5), search.language.vocabulary.constants
    tunable = plain = next(p for _ in range(100) if constants(p := search.language.grow(rng, 3)))
    while constants(plain):
        plain = remove(plain, search.language, rng)
        plain = mutate_subtree(plain, search.language, rng) if rng.random() < 0.5 else plain
    assert not search.done
    search.finalists = [(plain, 1.0, 0)]
    assert search.done  # refining it would cost nothing, for ever
    search.finalists += [(tunable, 2.0, 0)]
    assert not search.done


def test_islands_that_hold_no_program_are_refused(problem: Problem) -> None:
    method = GPRL(gp=GP(islands=(2, 2), offspring=5))
    search = method.begin(problem, rng=np.random.default_rng(0))

    def go_on() -> None:
        for _ in range(10):
            search.advance()

    with pytest.raises(ClearloopError, match=r"gp\.islands: no program has a complexity of 2 or less"):
        go_on()


def test_finalists_are_near_the_best_whatever_the_sign(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reward may be positive, and a penalty below 0: what is more complex and not worse may stay."""
    search = GPRL().begin(problem, rng=np.random.default_rng(0))
    rng, complexity = np.random.default_rng(5), search.language.vocabulary.complexity
    programs = [search.language.simplify(search.language.grow(rng, 3)) for _ in range(50)]
    simple, large = min(programs, key=complexity), max(programs, key=complexity)
    for genome in (simple, large):
        search.evolution.admit(0, genome, -100.0)
    monkeypatch.setattr(search, "_penalties", lambda pool, _: np.full(len(pool), -100.0))
    search._call_finalists()
    assert {genome for genome, _, _ in search.finalists} == {simple, large}
