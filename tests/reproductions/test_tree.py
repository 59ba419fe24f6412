"""Trees and arrays of individuals: every gene is there, nothing overlaps, cuts are where they are."""

from itertools import combinations
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reproductions.layout import Node, place_tree
from reproductions.specimen import Specimen, from_equations, label_of
from reproductions.tree import draw_crossover, draw_individuals

from clearloop.controllers import Equation
from clearloop.expression import OPERATIONS, Variable
from clearloop.figures.style import BLUE, ORANGE, save_figure
from clearloop.search.gp.formulas import Formulas
from clearloop.search.gp.genome import Genome, choose_cuts, cross
from clearloop.search.gp.rules import Rules

FIRST = Equation(outputs={"force": "4.2*theta + 2*theta_dot"})
SECOND = Equation(outputs={"force": "theta*(rho - 1.5)"})
(ONE, TWO), WORDS, NAMES = from_equations([FIRST, SECOND])

TREES = st.recursive(
    st.floats(0.2, 2).map(lambda width: Node(0, width, ())),
    lambda below: st.builds(Node, st.just(0), st.floats(0.2, 2), st.lists(below, min_size=1, max_size=3)),
    max_leaves=25,
)


@given(TREES)
def test_nodes_never_overlap_and_parents_stand_over_their_children(root: Node) -> None:
    width, levels = place_tree(root)
    nodes = list(root.all())
    for a, b in combinations(nodes, 2):
        assert a.depth != b.depth or abs(a.x - b.x) >= (a.width + b.width) / 2 - 1e-9
    for node in nodes:
        assert node.x - node.width / 2 >= -1e-9
        assert node.x + node.width / 2 <= width + 1e-9
        assert node.depth < levels
        if node.children:
            assert abs(node.x - (node.children[0].x + node.children[-1].x) / 2) < 1e-9


def texts(genome: Genome) -> list[str]:
    figure = draw_individuals([Specimen("One", genome)], WORDS, NAMES)
    return [text.get_text() for text in figure.axes[0].texts]


def test_every_gene_stands_in_the_tree_and_with_its_code_in_the_array() -> None:
    labels = ["4.2", "theta", "×", "2", "theta_dot", "×", "+"]  # noqa: RUF001
    assert [label_of(ONE, place, WORDS, NAMES) for place in range(7)] == labels
    title, *rest = texts(ONE)
    assert title == "One, complexity 7"
    tree, array = rest[:7], rest[7:-1]
    assert sorted(tree) == sorted(labels)
    assert array[::2] == labels
    assert array[1::2] == [str(code) for code in ONE.code[:-1]]


def test_a_crossover_shows_the_parts_that_are_exchanged() -> None:
    cuts = (0, 3), (1, 4)
    figure = draw_crossover((ONE, TWO), cuts, WORDS, NAMES)
    titles = [text.get_text() for text in figure.axes[0].texts if "complexity" in text.get_text()]
    assert titles == [
        "First parent, complexity 7",
        "Second parent, complexity 5",
        "First child, complexity 7",
        "Second child, complexity 5",
    ]
    faces = [patch.get_facecolor() for patch in figure.axes[0].patches]
    from matplotlib.colors import to_rgba

    cells = [[c == to_rgba(colour) for c in faces].count(True) for colour in (BLUE, ORANGE)]
    assert cells == [3 + 3, 3 + 3]


@given(st.integers(0, 200))
def test_cuts_are_those_that_crossing_makes(seed: int) -> None:
    grammar = Formulas(list(OPERATIONS), [Variable("a"), Variable("b")], np.ones(2), np.ones(1))
    rng = np.random.default_rng(seed)
    first, second = grammar.grow(rng, 3), grammar.grow(rng, 3)
    cuts = choose_cuts(first, second, grammar.vocabulary, np.random.default_rng(seed))
    children = cross(first, second, grammar, np.random.default_rng(seed))
    if cuts is None:
        assert children == (first, second)
    else:
        (a, b), (c, d) = cuts
        assert children[0].slice(a, a + d - c) == second.slice(c, d)
        assert children[1].slice(c, c + b - a) == first.slice(a, b)


def test_long_programs_of_any_grammar_are_drawn(tmp_path: Path) -> None:
    grammar = Rules(np.ones(3), 2, mirrored=True)
    genome = grammar.grow(np.random.default_rng(0), 3)
    names = ["a $ name^", "温度", "c"]
    figure = draw_individuals([Specimen("Rules", genome)], grammar.vocabulary, names)
    save_figure(figure, tmp_path / "tree.png")
    save_figure(figure, tmp_path / "tree.svg")
    assert len(figure.axes[0].patches) == len(genome.code)
