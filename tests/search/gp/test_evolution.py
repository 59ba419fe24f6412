import json
from typing import Any

import numpy as np
import pytest

from clearloop.expression import Expression, Variable, fold, parse
from clearloop.search.gp.evolution import ConstantRefinement, Evolution
from clearloop.search.gp.formulas import Formulas
from clearloop.search.gp.genome import GP, Genome

VARIABLES = [Variable("x"), Variable("y")]
SMALL = GP(islands=(7, 11, 17, 7, 11, 17), population=20, offspring=40)


@pytest.fixture(scope="module")
def language() -> Formulas:
    functions = ("add", "sub", "mul", "min", "max", "tanh")
    return Formulas(functions, VARIABLES, np.ones(2), np.array([3.0]))


ARRAYS = {
    "add": np.add, "sub": np.subtract, "neg": np.negative, "mul": np.multiply,
    "min": np.minimum, "max": np.maximum, "tanh": np.tanh,
}  # fmt: skip


class Regression:
    """The mean absolute error of a formula at 50 points."""

    def __init__(self, target: str, language: Formulas) -> None:
        self.language = language
        self.points = dict(zip(VARIABLES, np.random.default_rng(5).uniform(-2, 2, (2, 50)), strict=True))
        self.target = self._values(parse(target))

    def __call__(self, genome: Genome) -> float:
        (formula,) = self.language.expressions(genome)
        return float(np.abs(np.clip(self._values(formula), -1e6, 1e6) - self.target).mean())

    def _values(self, formula: Expression) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return fold(
                formula,
                lambda leaf: self.points[leaf] if isinstance(leaf, Variable) else leaf.value,
                lambda operation, parts: ARRAYS[operation.name](*parts),
            )


def advance(evolution: Evolution, cost: Regression, rounds: int, *, explore: bool = True) -> None:
    for _ in range(rounds):
        children = evolution.ask()
        promoted = evolution.promote(children, [cost(child) for _, child in children], 4)
        tuned = refine(evolution, [genome for _, genome in promoted], cost)
        found = [(island, *best) for (island, _), best in zip(promoted, tuned, strict=True)]
        evolution.tell(found, explore=explore)
        for genome, penalty in refine(evolution, evolution.archive.to_polish(4, 3), cost):
            evolution.improve(genome, penalty)


def refine(evolution: Evolution, genomes: list[Genome], cost: Regression) -> list[tuple[Genome, float]]:
    costs = [cost(genome) for genome in genomes]
    refinement = ConstantRefinement(genomes, costs, evolution.grammar, candidates=8, rng=evolution.rng)
    for _ in range(6):
        refinement.tell([cost(genome) for genome in refinement.ask()])
    return refinement.best


@pytest.mark.parametrize("target", ["x*y + 2", "3*max(x, y)", "2*tanh(2*x) - y"])
def test_finds_a_known_formula(language: Formulas, target: str) -> None:
    cost = Regression(target, language)
    evolution = Evolution(language, SMALL, rng=np.random.default_rng(1))
    for part in range(15):
        advance(evolution, cost, 4, explore=part < 3)
        best = min(evolution.costs.values())
        if best < 0.02:
            break
    assert best < 0.02


def test_asks_for_nothing_twice_and_for_nothing_too_complex(language: Formulas) -> None:
    cost = Regression("x", language)
    evolution = Evolution(language, SMALL, rng=np.random.default_rng(2))
    asked: list[Genome] = []
    for _ in range(5):
        children = evolution.ask()
        for island, child in children:
            assert language.vocabulary.complexity(child) <= SMALL.islands[island]
        asked += [child for _, child in children]
        evolution.tell([(island, child, cost(child)) for island, child in children], explore=True)
    assert len(asked) == len(set(asked))


def test_each_ladder_explores_without_half_of_the_functions(language: Formulas) -> None:
    cost = Regression("x", language)
    evolution = Evolution(language, SMALL, rng=np.random.default_rng(2))
    assert [len(banned) for banned in evolution.banned] == [2, 2]  # of mul, min, max and tanh
    for explore in (True, True, True, False):
        children = evolution.ask()
        for island, child in children:
            assert language.used(child).isdisjoint(evolution.banned[island // 3])
        evolution.tell([(island, child, cost(child)) for island, child in children], explore=explore)
    assert evolution.banned == [set(), set()]
    assert set.union(*(language.used(child) for island, child in evolution.ask() if island < 3)) == {
        "mul", "min", "max", "tanh",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("formula", "used"), [("3*x + tanh(y)*2", {"tanh"}), ("x*y - x", {"mul"}), ("max(x, 2) + 1", {"max"})]
)
def test_a_gain_is_no_product(language: Formulas, formula: str, used: set[str]) -> None:
    assert language.used(language.from_expressions([parse(formula)])) == used


def test_simplifies_to_known_functions_only(language: Formulas) -> None:
    limited = language.from_expressions([parse("max(-1, min(x, 1))")])
    assert language.simplify(limited) == limited  # and not clip(x, -1, 1)


def test_better_constants_go_wherever_the_structure_lives(language: Formulas) -> None:
    evolution = Evolution(language, SMALL, rng=np.random.default_rng(2))
    old, new = (language.from_expressions([parse(text)]) for text in ("2*x + y", "3*x + y"))
    for island in (1, 4):
        evolution.admit(island, old, 5.0)
    evolution.improve(new, 4.0)
    assert [list(island.values()) for island in evolution.islands] == [[], [new], [], [], [new], []]
    assert evolution.archive.front() == [new]


def test_the_front_rises_in_complexity_and_falls_in_cost(language: Formulas) -> None:
    evolution = Evolution(language, SMALL, rng=np.random.default_rng(3))
    advance(evolution, Regression("x*y + tanh(y)", language), 5)
    front = evolution.archive.front()
    complexities = [language.vocabulary.complexity(genome) for genome in front]
    costs = [evolution.costs[genome] for genome in front]
    assert len(front) > 2
    assert complexities == sorted(set(complexities))
    assert costs == sorted(set(costs), reverse=True)


def plain(state: dict[str, object]) -> str:
    """The state as text, as a file would hold it."""

    return json.dumps(state, default=lambda array: array.tolist())


def test_goes_on_to_the_bit_where_its_state_was_taken(language: Formulas) -> None:
    cost = Regression("x*y + 2", language)
    whole = Evolution(language, SMALL, rng=np.random.default_rng(4))
    advance(whole, cost, 3)
    state = json.loads(plain(whole.state()))
    state["seen"] = np.array(state["seen"], np.int64)
    state["tried"] = [np.array(tried, np.int64) for tried in state["tried"]]
    resumed = Evolution(language, SMALL, rng=np.random.default_rng(99))
    resumed.restore(state)
    advance(whole, cost, 6)
    advance(resumed, cost, 6)
    assert plain(whole.state()) == plain(resumed.state())


@pytest.mark.parametrize("cost", [100.0, 0.0, -100.0])
def test_a_ladder_without_progress_starts_anew_whatever_the_sign(language: Formulas, cost: float) -> None:
    """A reward may be positive, and a penalty below 0."""
    evolution = Evolution(language, SMALL, rng=np.random.default_rng(0))
    (_, genome), *_ = evolution.ask()
    for _ in range(SMALL.patience):
        evolution.tell([(0, genome, cost)], explore=True)
        assert evolution.islands[0]
    evolution.tell([(0, genome, cost)], explore=True)
    assert not evolution.islands[0]
