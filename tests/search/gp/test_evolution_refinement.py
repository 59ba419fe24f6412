import numpy as np

from clearloop.search.gp.evolution import ConstantRefinement
from clearloop.search.gp.formulas import Formulas
from clearloop.search.gp.genome import Genome


def distance(formulas: Formulas, genome: Genome, target: list[float]) -> float:
    """Of its constants, relative to the target."""
    values = [genome.operand[place] for place in formulas.vocabulary.constants(genome)]
    return float(np.abs(np.array(values) / target - 1).max())


def test_finds_the_constants_of_several_programs_at_once(formulas: Formulas) -> None:
    from clearloop.expression import parse

    texts = [("3*x + 20*y", "y"), ("tanh(7*x)", "0.4*y + 2"), ("x", "y")]
    targets = [[4.0, 13.0], [11.0, 0.3, 3.5], []]
    genomes = [formulas.from_expressions([parse(text) for text in pair]) for pair in texts]

    def cost(genome: Genome) -> float:
        target = targets[[g.code for g in genomes].index(genome.code)]
        return distance(formulas, genome, target) if target else 5.0

    first = [cost(genome) for genome in genomes]
    search = ConstantRefinement(genomes, first, formulas, candidates=10, rng=np.random.default_rng(0))
    for _ in range(40):
        search.tell([cost(genome) for genome in search.ask()])
    (_, a), (_, b), unchanged = search.best
    assert a < 0.01
    assert b < 0.01
    assert unchanged == (genomes[2], 5.0)


def test_never_gives_anything_worse(formulas: Formulas) -> None:
    rng = np.random.default_rng(1)
    genomes = [formulas.grow(rng, 3) for _ in range(5)]
    search = ConstantRefinement(genomes, [1.0] * 5, formulas, candidates=4, rng=rng)
    search.tell([2.0] * len(search.ask()))
    assert search.best == [(genome, 1.0) for genome in genomes]


def test_a_cost_that_is_no_number_hides_no_other(formulas: Formulas) -> None:
    from clearloop.expression import parse

    genome = formulas.from_expressions([parse("3*x"), parse("y")])
    rng = np.random.default_rng(0)
    search = ConstantRefinement([genome], [1.0], formulas, candidates=4, rng=rng)
    asked = search.ask()
    search.tell([np.nan, 2.0, 0.5, np.nan])
    assert search.best == [(asked[2], 0.5)]
