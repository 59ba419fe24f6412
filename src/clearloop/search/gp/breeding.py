"""Children: by crossover or mutation of parents that won a tournament, or grown anew."""

from collections.abc import Mapping, Sequence

import numpy as np

from clearloop.search.gp.genome import Genome
from clearloop.search.gp.grammar import Grammar
from clearloop.search.gp.settings import GP
from clearloop.search.gp.variation import (
    cross,
    insert,
    mutate_constants,
    mutate_point,
    mutate_subtree,
    remove,
)


def breed(
    pool: Sequence[Genome],
    costs: Mapping[Genome, float],
    grammar: Grammar,
    settings: GP,
    rng: np.random.Generator,
) -> tuple[Genome, ...]:
    """One or two children of programs that live together; grown anew where none does."""

    def parent() -> Genome:
        rivals = (rng.random(settings.tournament) * len(pool)).tolist()
        return min([pool[int(rival)] for rival in rivals], key=costs.__getitem__)

    def fresh() -> Genome:
        return grammar.grow(rng, int(rng.integers(1, 5)))

    if not pool:
        return (fresh(),)
    dice = rng.random()
    for share, make in (
        (settings.crossover, lambda: cross(parent(), parent(), grammar, rng)),
        (settings.fresh, lambda: (fresh(),)),
        (settings.subtree, lambda: (mutate_subtree(parent(), grammar, rng),)),
        (settings.insertion, lambda: (insert(parent(), grammar, rng),)),
        (settings.removal, lambda: (remove(parent(), grammar, rng),)),
        (settings.constants, lambda: (mutate_constants(parent(), grammar, rng),)),
    ):
        if dice < share:
            return make()
        dice -= share
    return (mutate_point(parent(), grammar, rng),)
