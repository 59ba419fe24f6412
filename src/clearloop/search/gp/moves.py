"""Moves that make laws: a part of a formula is guarded, faded, bent, scheduled, or gets a dead zone.

Each move takes some terms of a sum anywhere in a formula and writes them as an engineer would who knows that
a linear law fails far from rest: the terms stop, weaken or change their sign there. "There" is measured by
another variable, by its size, or by a product or a sum of two variables; so these moves know no plant.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from clearloop.expression import OPERATIONS
from clearloop.expression.nodes import NUMBER, VARIABLE
from clearloop.search.gp.genome import Genome, Grammar, any_of, compose, few_digits
from clearloop.search.gp.parity import ODD, parities

_ADD, _SUB, _NEG, _MUL, _TANH, _CLIP, _IF, _ABS, _LT = (
    OPERATIONS[name].opcode for name in ("add", "sub", "neg", "mul", "tanh", "clip", "if", "abs", "lt")
)
_SUMS = (_ADD, _SUB, _NEG)
_ONE_TERM = 0.4  # share of the moves that take one term of a sum
_SOME_TERMS = 0.6  # share of the others that take some terms rather than all
_OUTERMOST = 0.4  # share of the moves that change an outermost sum
_SAME = 0.7  # share of the variables of a move that the changed terms read themselves


class Sums(Grammar):
    """A grammar whose programs are sums of terms, which moves can reshape."""

    chosen: frozenset[int]
    """codes of the operations that programs may use"""
    odd: bool
    """whether only odd functions are allowed"""
    sizes: Sequence[float]
    """usual size of each variable"""

    @abstractmethod
    def summands(self, genome: Genome) -> list[Genome]:
        """Return the parts that the root adds up."""

    @abstractmethod
    def variable(self, rng: np.random.Generator) -> tuple[Genome, float]:
        """Draw a variable, and return it with its size."""

    @abstractmethod
    def usual_size(self, genome: Genome) -> float:
        """Estimate the usual size of the result of a program."""

    @abstractmethod
    def bent(self, part: Genome, height: float) -> list[Genome]:
        """Return a part of a formula inside each function that saturates at about this height."""

    def reshape(self, genome: Genome, rng: np.random.Generator) -> Genome:
        return reshape(genome, self, rng)


def reshape(genome: Genome, grammar: Sums, rng: np.random.Generator) -> Genome:
    """Return the program after one move, or itself if none fits."""
    places = _sums(genome, grammar)
    moves = _possible(grammar.chosen)
    if not places or not moves:
        return genome
    place = places[-1] if rng.random() < _OUTERMOST else any_of(places, rng)
    start = grammar.vocabulary.start(genome, place)
    whole = genome.slice(start, place + 1)
    some, others = _parted(grammar.summands(whole), rng)
    changed = any_of(moves, rng)(some, grammar, rng)
    return genome.replace(start, place + 1, compose(_ADD, others, changed) if others else changed)


def _parted(terms: list[Genome], rng: np.random.Generator) -> tuple[Genome, Genome | None]:
    """Take one term of a sum, or several."""
    if len(terms) > 1 and rng.random() < _ONE_TERM:
        one = int(rng.integers(len(terms)))
        return terms[one], added([term for n, term in enumerate(terms) if n != one])
    return split(terms, rng, _SOME_TERMS)


def _sums(genome: Genome, grammar: Sums) -> list[int]:
    """Return the roots of the sums in a program that are no parts of larger sums and read something."""
    words, code = grammar.vocabulary, genome.code
    kinds = parities(genome) if grammar.odd else ()
    inner = {
        stop - 1 for n, gene in enumerate(code) if gene in _SUMS for _, stop in words.arguments(genome, n)
    }
    return [
        place
        for place in words.places(genome, "number")
        if place not in inner
        and code[place] not in (NUMBER, VARIABLE)
        and (not grammar.odd or kinds[place] & ODD)
        and VARIABLE in code[words.start(genome, place) : place]
    ]


def split(terms: list[Genome], rng: np.random.Generator, share: float) -> tuple[Genome, Genome | None]:
    """Split this share of the sums at random into two; the second is None for one term and for the others."""
    if len(terms) == 1 or rng.random() > share:
        return added(terms), None
    order = rng.permutation(len(terms)).tolist()
    count = int(rng.integers(1, len(terms)))
    some, others = sorted(order[:count]), sorted(order[count:])
    return added([terms[n] for n in some]), added([terms[n] for n in others])


def added(terms: list[Genome]) -> Genome:
    """Return the sum of terms."""
    total = terms[0]
    for term in terms[1:]:
        total = compose(_ADD, total, term)
    return total


def _guard(some: Genome, grammar: Sums, rng: np.random.Generator) -> Genome:
    """Stop the terms where a measure is large, and do something simple instead."""
    dice = rng.random()
    if dice < 0.6:
        variable, own = _variable(some, grammar, rng)
        instead = compose(_MUL, _gain(grammar.usual_size(some) / max(own, 1e-9), rng), variable)
    elif dice < 0.8:
        instead = _number(0.0)
    else:
        instead = compose(_MUL, _factor(rng), some)
    measure, size = _measure(some, grammar, rng)
    condition = compose(_LT, measure, _number(_spread(2 * size, rng, 0.7)))
    return compose(_IF, condition, some, instead)


def _fade(some: Genome, grammar: Sums, rng: np.random.Generator) -> Genome:
    """Multiply the terms by a gain that depends on the size of something: some · (1 ± q)."""
    measure, size = _measure(some, grammar, rng)
    share = _number(_spread(0.3 / max(size, 1e-9), rng, 1.0))
    sign = _SUB if rng.random() < 0.7 else _ADD
    return compose(_MUL, some, compose(sign, _number(1.0), compose(_MUL, share, measure)))


def _bend(some: Genome, grammar: Sums, rng: np.random.Generator) -> Genome:
    """Let the terms saturate: h · tanh(some / h) or clip(some, -h, h)."""
    return any_of(grammar.bent(some, _spread(max(grammar.usual_size(some), 1e-9), rng, 0.7)), rng)


def _dead_zone(some: Genome, grammar: Sums, rng: np.random.Generator) -> Genome:
    """Drop the terms where a measure is small."""
    measure, size = _measure(some, grammar, rng)
    condition = compose(_LT, measure, _number(_spread(0.5 * size, rng, 0.7)))
    return compose(_IF, condition, _number(0.0), some)


def _schedule(some: Genome, grammar: Sums, rng: np.random.Generator) -> Genome:
    """Give the terms two gains, one of them where a measure is large."""
    measure, size = _measure(some, grammar, rng)
    condition = compose(_LT, measure, _number(_spread(size, rng, 0.7)))
    return compose(_MUL, compose(_IF, condition, _number(1.0), _factor(rng)), some)


def _product(some: Genome, grammar: Sums, rng: np.random.Generator) -> Genome:
    """Add a term that is a gain times a variable times a measure."""
    measure, size = _measure(some, grammar, rng)
    variable, own = _variable(some, grammar, rng)
    gain = _gain(0.3 * grammar.usual_size(some) / max(own * size, 1e-9), rng)
    return compose(_ADD, some, compose(_MUL, gain, compose(_MUL, variable, measure)))


def _remeasure(some: Genome, grammar: Sums, rng: np.random.Generator) -> Genome:
    """Measure the first condition in the terms by something else; without one, guard them."""
    place = next((n for n, code in enumerate(some.code) if code == _LT), None)
    if place is None:
        return _guard(some, grammar, rng)
    measure, size = _measure(some, grammar, rng)
    condition = compose(_LT, measure, _number(_spread(2 * size, rng, 0.7)))
    return some.replace(grammar.vocabulary.start(some, place), place + 1, condition)


_Move = Callable[[Genome, Sums, np.random.Generator], Genome]
_MOVES: tuple[tuple[_Move, tuple[str, ...]], ...] = (
    *[(_guard, ("if", "lt"))] * 3, *[(_fade, ("mul",))] * 3, (_bend, ("tanh",)), (_bend, ("clip",)),
    (_dead_zone, ("if", "lt")), (_schedule, ("if", "lt", "mul")), (_product, ("mul",)),
    (_remeasure, ("if", "lt")),
)  # fmt: skip


@cache
def _possible(chosen: frozenset[int]) -> list[_Move]:
    """Return the moves that need only these operations."""
    return [move for move, names in _MOVES if chosen.issuperset(OPERATIONS[name].opcode for name in names)]


def _measure(some: Genome, grammar: Sums, rng: np.random.Generator) -> tuple[Genome, float]:
    """Draw something that tells where the plant is, and return it with its usual size.

    If only odd functions are searched, it is even: a size or a product.
    """
    (x, size), (y, other) = _variable(some, grammar, rng), _variable(some, grammar, rng)
    ratio = _spread(0.6 * size / max(other, 1e-9), rng, 0.7) * (1.0 if rng.random() < 0.5 else -1.0)
    leaning = compose(_ADD, x, compose(_MUL, _number(ratio), y))
    kinds = ["square", "product", "leaning", "leaning"] if _MUL in grammar.chosen else []
    kinds += ["size", "size of sum"] if _ABS in grammar.chosen else []
    if not grammar.odd or not kinds:
        kinds += ["value", "sum"]
    match any_of(kinds, rng):
        case "square":
            return compose(_MUL, x, x), size**2
        case "product":
            return compose(_MUL, x, y), size * other
        case "leaning":
            return compose(_MUL, x, leaning), size**2
        case "size":
            return compose(_ABS, x), size
        case "size of sum":
            return compose(_ABS, leaning), size
        case "sum":
            return leaning, size
    return x, size


def _variable(some: Genome, grammar: Sums, rng: np.random.Generator) -> tuple[Genome, float]:
    """Draw a variable, often one that the terms read, and return it with its size."""
    own = [operand for code, operand in zip(*some, strict=True) if code == VARIABLE]
    if own and rng.random() < _SAME:
        which = any_of(own, rng)
        return Genome((VARIABLE,), (which,)), grammar.sizes[int(which)]
    return grammar.variable(rng)


def _gain(size: float, rng: np.random.Generator) -> Genome:
    return _number(_spread(size, rng, 0.7) * (1.0 if rng.random() < 0.5 else -1.0))


def _factor(rng: np.random.Generator) -> Genome:
    return _number(few_digits(rng.normal(0.0, 1.0)))


def _spread(size: float, rng: np.random.Generator, deviation: float) -> float:
    return few_digits(size * math.exp(rng.normal(0.0, deviation)))


def _number(value: float) -> Genome:
    return Genome((NUMBER,), (value,))
