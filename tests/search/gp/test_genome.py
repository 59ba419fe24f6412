from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.expression import complexity
from clearloop.search.gp.formulas import Formulas
from clearloop.search.gp.genome import (
    Genome,
    Grammar,
    cross,
    insert,
    mutate_constants,
    mutate_point,
    mutate_subtree,
    remove,
)

MUTATIONS = [insert, remove, mutate_point, mutate_subtree, mutate_constants]
Mutation = Callable[[Genome, Grammar, np.random.Generator], Genome]

seeds = st.integers(0, 10_000)


def weight(formulas: Formulas, genome: Genome) -> int:
    """Decoding fails unless every operation finds arguments of the right number and kind."""
    return sum(complexity(formula) for formula in formulas.expressions(genome))


@given(seed=seeds, depth=st.integers(1, 5))
def test_what_grows_is_a_program_with_a_formula_for_each_output(
    formulas: Formulas, seed: int, depth: int
) -> None:
    genome = formulas.grow(np.random.default_rng(seed), depth)
    assert len(formulas.expressions(genome)) == 2
    assert weight(formulas, genome) == formulas.vocabulary.complexity(genome)


@given(seed=seeds)
@pytest.mark.parametrize("mutate", MUTATIONS)
def test_mutants_are_programs(formulas: Formulas, mutate: Mutation, seed: int) -> None:
    rng = np.random.default_rng(seed)
    genome = formulas.grow(rng, 3)
    for _ in range(3):
        genome = mutate(genome, formulas, rng)
    assert weight(formulas, genome) == formulas.vocabulary.complexity(genome)


@given(seed=seeds)
def test_crossover_exchanges_so_that_nothing_is_lost(formulas: Formulas, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parents = formulas.grow(rng, 3), formulas.grow(rng, 4)
    children = cross(*parents, formulas, rng)
    genes = [sorted(zip(a.code + b.code, a.operand + b.operand, strict=True)) for a, b in (parents, children)]
    assert genes[0] == genes[1]
    assert sum(weight(formulas, child) for child in children) == sum(weight(formulas, p) for p in parents)


@given(seed=seeds)
def test_constants_change_and_nothing_else(formulas: Formulas, seed: int) -> None:
    rng = np.random.default_rng(seed)
    genome = formulas.grow(rng, 3)
    mutant = mutate_constants(genome, formulas, rng)
    assert mutant.code == genome.code
    constants = formulas.vocabulary.constants(genome)
    others = [place for place in range(len(genome.code)) if place not in constants]
    assert [mutant.operand[place] for place in others] == [genome.operand[place] for place in others]
    assert not constants or mutant != genome


def test_every_mutation_does_something_often(formulas: Formulas) -> None:
    rng = np.random.default_rng(0)
    for mutate in MUTATIONS:
        changed = 0
        for _ in range(100):
            genome = formulas.grow(rng, 3)
            changed += mutate(genome, formulas, rng) != genome
        assert changed > 25, mutate
