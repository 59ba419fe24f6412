"""The grammar of fuzzy rules has individuals with one rule base for each output.

A rule base is a typed program, which says which features enter each rule, the centres and widths of its
membership functions, its output, and the slope alpha of the defuzzification. So a rule uses only the features
that it needs.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.search.gp.genome import Genome, Grammar, Symbol, Vocabulary, compose, few_digits, insert

_CONTROLLER, BASE, JOIN, RULE, _AND, ABOUT, FEATURE, CENTRE, _WIDTH, OUTPUT, ALPHA = range(11)

_NARROWEST = 1e-3  # least width, as a share of the feature's size: a narrower rule fits nothing in practice

Premise = dict[int, tuple[float, float]]
"""Centre and width of each feature, by the index of the feature."""
_Rule = tuple[Premise, float]  # a premise and the output of the rule


class DecodedRules(NamedTuple):
    """The rule base of one output."""

    alpha: float
    rules: list[_Rule]


class Rules(Grammar):
    """The grammar of fuzzy rule bases, one for each output."""

    def __init__(self, sizes: NDArray[np.float64], outputs: int, *, mirrored: bool) -> None:
        """Choose the features and the number of rule bases.

        Args:
            sizes: [n] usual size of each feature that rules may read.
            outputs: The number of rule bases.
            mirrored: Whether every rule has a twin with the opposite centres and the opposite output, which
                is part of the rule base and of its complexity but is not searched.
        """
        self.sizes, self.outputs, self.mirrored = sizes.tolist(), outputs, mirrored
        twice = 2 if mirrored else 1
        self.vocabulary = Vocabulary([
            Symbol(_CONTROLLER, "controller", "controller", ("base",) * outputs, 0),
            Symbol(BASE, "base", "base", ("alpha", "rules"), 0),
            Symbol(JOIN, "join", "rules", ("rules", "rules"), 0),
            Symbol(RULE, "rule", "rules", ("premise", "output"), 0),
            Symbol(_AND, "and", "premise", ("premise", "premise"), 0),
            Symbol(ABOUT, "about", "premise", ("feature", "centre", "width"), 0),
            Symbol(FEATURE, "feature", "feature", (), twice),
            Symbol(CENTRE, "centre", "centre", (), twice, constant=True),
            Symbol(_WIDTH, "width", "width", (), twice, constant=True),
            Symbol(OUTPUT, "output", "output", (), twice, constant=True),
            Symbol(ALPHA, "alpha", "alpha", (), 1, constant=True),
        ])  # fmt: skip

    def grow(self, rng: np.random.Generator, depth: int) -> Genome:
        return compose(_CONTROLLER, *(self._base(rng, depth) for _ in range(self.outputs)))

    def regrow(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        match self.vocabulary.kind(genome, place):
            case "controller":
                return self.grow(rng, 2)
            case "base":
                return self._base(rng, 2)
            case "rules":
                return self._rule(rng, 2)
            case "premise":
                return self._premise(rng, int(rng.integers(1, 3)))
        return self.vocabulary.subtree(genome, place)

    def wrap(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        old = self.vocabulary.subtree(genome, place)
        match self.vocabulary.kind(genome, place):
            case "rules":
                return compose(JOIN, old, self._rule(rng, int(rng.integers(1, 4))))
            case "premise":
                return compose(_AND, old, self._about(rng))
        return old

    def reshape(self, genome: Genome, rng: np.random.Generator) -> Genome:
        """Insert something new: rules have no moves of their own."""
        return insert(genome, self, rng)

    def vary(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        """Return the genome with another feature in the gene `place`, and a new centre and width for it."""
        if genome.code[place] != FEATURE:
            return genome
        return genome.replace(place, place + 3, self._about(rng).slice(0, 3))

    def simplify(self, genome: Genome) -> Genome:
        """Merge the terms of a rule on the same feature, sort features, and make widths positive."""
        return compose(_CONTROLLER, *(_written(base) for base in self.bases(genome)))

    def spreads(self, genome: Genome) -> NDArray[np.float64]:
        spreads = []
        for place in self.vocabulary.constants(genome):
            code, value = genome.code[place], abs(genome.operand[place])
            if code == CENTRE:
                value = max(value, self.sizes[int(genome.operand[place - 1])])
            spreads.append(0.3 * (1.0 if code == OUTPUT else max(value, 1e-9)))
        return np.array(spreads)

    def bases(self, genome: Genome) -> list[DecodedRules]:
        """Return the rule base of each output, without twins."""
        stack: list[Any] = []
        for code, operand in zip(*genome, strict=True):
            if code >= FEATURE:
                stack.append(operand)
            elif code == ABOUT:
                feature, centre, width = stack[-3:]
                narrowest = _NARROWEST * self.sizes[int(feature)]
                stack[-3:] = [{int(feature): (centre, max(abs(width), narrowest))}]
            elif code == _AND:
                stack[-2:] = [_both(*stack[-2:])]
            elif code == RULE:
                stack[-2:] = [[(stack[-2], stack[-1])]]
            elif code == JOIN:
                stack[-2:] = [stack[-2] + stack[-1]]
            elif code == BASE:
                stack[-2:] = [DecodedRules(*stack[-2:])]
        return stack

    def whole(self, rules: list[_Rule]) -> list[_Rule]:
        """Return rules with their twins, if they have any."""
        if not self.mirrored:
            return rules
        return [rule for own in rules for rule in (own, _twin(*own))]

    def _base(self, rng: np.random.Generator, depth: int) -> Genome:
        rules = self._rule(rng, depth)
        for _ in range(int(rng.integers(0, 3)) + (not self.mirrored)):
            rules = compose(JOIN, rules, self._rule(rng, depth))
        alpha = few_digits(3 * math.exp(rng.normal(0.0, 1.0)))
        return compose(BASE, Genome((ALPHA,), (alpha,)), rules)

    def _rule(self, rng: np.random.Generator, terms: int) -> Genome:
        return compose(RULE, self._premise(rng, terms), Genome((OUTPUT,), (few_digits(rng.uniform(-1, 1)),)))

    def _premise(self, rng: np.random.Generator, terms: int) -> Genome:
        premise = self._about(rng)
        for _ in range(terms - 1):
            premise = compose(_AND, premise, self._about(rng))
        return premise

    def _about(self, rng: np.random.Generator) -> Genome:
        feature = int(rng.integers(len(self.sizes)))
        size = self.sizes[feature]
        return _about(
            feature, few_digits(size * rng.normal()), few_digits(size * math.exp(rng.normal(0.0, 0.7)))
        )


def _twin(premise: Premise, output: float) -> _Rule:
    return {feature: (-centre, width) for feature, (centre, width) in premise.items()}, -output


def _both(first: Premise, second: Premise) -> Premise:
    """Multiply premises: two Gaussians of one feature become one, narrower and between them."""
    both = dict(first)
    for feature, (centre, width) in second.items():
        if feature not in both:
            both[feature] = centre, width
            continue
        other, wide = both[feature]
        a, b = 1 / wide**2, 1 / width**2
        both[feature] = few_digits((a * other + b * centre) / (a + b)), few_digits((a + b) ** -0.5)
    return both


def _written(base: DecodedRules) -> Genome:
    rules = [compose(RULE, _terms(premise), Genome((OUTPUT,), (output,))) for premise, output in base.rules]
    return compose(BASE, Genome((ALPHA,), (base.alpha,)), _chain(JOIN, rules))


def _terms(premise: Premise) -> Genome:
    return _chain(_AND, [_about(feature, *term) for feature, term in sorted(premise.items())])


def _chain(symbol: int, parts: list[Genome]) -> Genome:
    whole = parts[0]
    for part in parts[1:]:
        whole = compose(symbol, whole, part)
    return whole


def _about(feature: int, centre: float, width: float) -> Genome:
    return Genome((FEATURE, CENTRE, _WIDTH, ABOUT), (float(feature), centre, width, 0.0))
