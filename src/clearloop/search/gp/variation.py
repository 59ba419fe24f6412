"""How new programs come from old ones. Every operator keeps kinds, so every child is a program."""

import numpy as np

from clearloop.search.gp.genome import Genome, Vocabulary, any_of
from clearloop.search.gp.grammar import Grammar, rounded

Slice = tuple[int, int]
"""Where a subtree starts and stops in its genome."""


def cross(first: Genome, second: Genome, grammar: Grammar, rng: np.random.Generator) -> tuple[Genome, Genome]:
    """Exchange two subtrees of the same kind: two offspring, as in the paper's figure 6."""
    cuts = choose_cuts(first, second, grammar.vocabulary, rng)
    if cuts is None:
        return first, second
    mine, theirs = cuts
    return first.replace(*mine, second.slice(*theirs)), second.replace(*theirs, first.slice(*mine))


def choose_cuts(
    first: Genome, second: Genome, words: Vocabulary, rng: np.random.Generator
) -> tuple[Slice, Slice] | None:
    """A subtree of each, of the same kind; None if there is no such pair with the first one's."""
    cut = any_of(range(len(first.code)), rng)
    places = words.places(second, words.kind(first, cut))
    if not places:
        return None
    other = any_of(places, rng)
    return (words.start(first, cut), cut + 1), (words.start(second, other), other + 1)


def mutate_subtree(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """A new subtree in the place of an old one."""
    place = any_of(range(len(genome.code)), rng)
    return genome.replace(
        grammar.vocabulary.start(genome, place), place + 1, grammar.regrow(genome, place, rng)
    )


def insert(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """Something new around a subtree, which becomes one of its arguments."""
    place = any_of(range(len(genome.code)), rng)
    return genome.replace(
        grammar.vocabulary.start(genome, place), place + 1, grammar.wrap(genome, place, rng)
    )


def remove(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """One of a gene's arguments in the place of the gene."""
    words = grammar.vocabulary
    place = any_of(range(len(genome.code)), rng)
    kind = words.kind(genome, place)
    fitting = [
        (start, stop)
        for start, stop in words.arguments(genome, place)
        if words.kind(genome, stop - 1) == kind
    ]
    if not fitting:
        return genome
    start, stop = any_of(fitting, rng)
    return genome.replace(words.start(genome, place), place + 1, genome.slice(start, stop))


def mutate_point(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """Another symbol with the same arguments, or another variable."""
    place = any_of(range(len(genome.code)), rng)
    others = grammar.vocabulary.alike(genome.code[place])
    if not others:
        return grammar.vary(genome, place, rng)
    code = (*genome.code[:place], any_of(others, rng), *genome.code[place + 1 :])
    return Genome(code, genome.operand)


def mutate_constants(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """Every constant a little, and sometimes one of them a lot."""
    places = grammar.vocabulary.constants(genome)
    if not places:
        return genome
    spreads = grammar.spreads(genome)
    steps = 0.5 * spreads * rng.normal(size=len(places))
    if rng.random() < 0.3:
        steps[rng.integers(len(places))] *= 10.0
    values = [rounded(genome.operand[place] + step) for place, step in zip(places, steps, strict=True)]
    return genome.with_operands(places, values)
