"""An individual of genetic programming, and how much room a picture of it takes, in inches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from clearloop.controllers import Equation
from clearloop.expression import OPERATIONS
from clearloop.figures.style import BLUE
from clearloop.search.gp.formulas import Formulas
from clearloop.search.gp.genome import Genome, Slice, Vocabulary
from reproductions.layout import Node, place_tree

TITLE, LEVEL, NODE, CELL = 0.35, 0.42, 0.24, 0.2  # heights: a title, a level of a tree, a node, a cell
LETTER, LEAST = 0.068, 0.26  # widths of a letter, and of the smallest node or cell
LINE = CELL + 0.26  # a line of the array, with the codes below
WRITTEN = {"mul": "×", "div": "÷", "sub": "−", "neg": "−"}  # noqa: RUF001 - as one writes it


class Specimen(NamedTuple):
    title: str
    genome: Genome
    part: Slice | None = None
    """a subtree to show in colour"""
    colour: str = BLUE
    cut: bool = False
    """whether it is to be cut off here"""


@dataclass(frozen=True)
class Panel:
    """A specimen with the size of its picture."""

    specimen: Specimen
    labels: list[str]
    root: Node
    tree: tuple[float, float]
    lines: list[list[int]]
    """the genes in each line of the array"""
    size: tuple[float, float]
    complexity: int

    def length(self, line: Sequence[int]) -> float:
        return sum(width_of(self.labels[place]) for place in line)


def from_equations(equations: Sequence[Equation]) -> tuple[list[Genome], Vocabulary, list[str]]:
    """Controllers of the same actions as genomes, their vocabulary, and the names of the variables."""
    read = list(dict.fromkeys(variable for equation in equations for _, variable in equation.variables()))
    actions = equations[0].actions
    grammar = Formulas(list(OPERATIONS), read, np.ones(len(read)), np.ones(len(actions)))
    genomes = [
        grammar.from_expressions([equation.formula(action) for action in actions]) for equation in equations
    ]
    return genomes, grammar.vocabulary, [str(variable) for variable in read]


def label_of(genome: Genome, place: int, vocabulary: Vocabulary, variables: Sequence[str]) -> str:
    """What a person calls a gene."""
    symbol, operand = vocabulary.symbols[genome.code[place]], genome.operand[place]
    if symbol.constant:
        return f"{operand:.4g}"
    if not symbol.takes:
        return variables[int(operand)]
    if symbol.name in WRITTEN or symbol.name not in OPERATIONS:
        return WRITTEN.get(symbol.name, symbol.name)
    return OPERATIONS[symbol.name].symbol or symbol.name


def measure(specimen: Specimen, vocabulary: Vocabulary, variables: Sequence[str], room: float) -> Panel:
    genome = specimen.genome
    labels = [label_of(genome, place, vocabulary, variables) for place in range(len(genome.code))]
    root = len(labels) - 1
    if (
        vocabulary.symbols[genome.code[root]].weight == 0
        and len(list(vocabulary.arguments(genome, root))) == 1
    ):
        root -= 1  # what only says that this is a controller of one action
    node = _node(genome, root, vocabulary, labels)
    tree = place_tree(node)
    lines: list[list[int]] = [[]]
    used = 0.0
    for place in range(root + 1):
        if lines[-1] and used + width_of(labels[place]) > max(room, tree[0]):
            lines.append([])
            used = 0.0
        lines[-1].append(place)
        used += width_of(labels[place])
    widest = max(sum(width_of(labels[place]) for place in line) for line in lines)
    size = max(tree[0], widest), TITLE + tree[1] * LEVEL + LINE * len(lines)
    return Panel(specimen, labels, node, tree, lines, size, vocabulary.complexity(genome))


def _node(genome: Genome, place: int, vocabulary: Vocabulary, labels: Sequence[str]) -> Node:
    arguments = [
        _node(genome, stop - 1, vocabulary, labels) for _, stop in vocabulary.arguments(genome, place)
    ][::-1]
    return Node(place, width_of(labels[place]) + 0.06, arguments)


def width_of(label: str) -> float:
    return max(LEAST, LETTER * len(label) + 0.1)
