"""The parity of a program: whether negated variables give the negated result, the same result, or neither.

A symmetric plant is controlled by odd functions. The test is by the rules of parity, so it needs no numbers.
"""

from collections.abc import Sequence
from functools import lru_cache

from clearloop.expression import OPERATIONS
from clearloop.expression.nodes import BY_OPCODE, NUMBER, VARIABLE
from clearloop.search.gp.genome import Genome

NEITHER, ODD, EVEN, BOTH = range(4)
"""BOTH is the parity of 0."""

_ODD_FUNCTIONS = frozenset({"neg", "tanh", "sin", "tan", "sign"})
_EVEN_FUNCTIONS = frozenset({"abs", "cos"})
_CLIP = OPERATIONS["clip"].opcode
_NAMES = {code: (operation.name, operation.arity) for code, operation in BY_OPCODE.items()}


def parity(genome: Genome) -> int:
    """Return the parity of the program's result, or of all of them if it is a controller with several."""
    return parities(genome)[-1]


@lru_cache(maxsize=4096)  # parents are asked again and again
def parities(genome: Genome) -> Sequence[int]:
    """Return the parity of every subtree, by the gene of its root."""
    found: list[int] = []
    stack: list[int] = []
    for place, (code, operand) in enumerate(zip(*genome, strict=True)):
        if code == NUMBER:
            result = EVEN if operand else BOTH
        elif code == VARIABLE:
            result = ODD
        elif code not in _NAMES:  # the root of a controller: every formula counts
            result = _shared(stack)
        else:
            name, arity = _NAMES[code]
            arguments = stack[-arity:]
            del stack[-arity:]
            if code == _CLIP and arguments[0] & ODD and _opposite(genome, place):
                arguments = arguments[:1]
            result = _result(name, arguments)
        stack.append(result)
        found.append(result)
    return found


def _opposite(genome: Genome, place: int) -> bool:
    """Tell whether the last two arguments of the gene `place` are opposite numbers."""
    numbers = genome.code[place - 2] == genome.code[place - 1] == NUMBER
    return numbers and genome.operand[place - 2] == -genome.operand[place - 1]


def _shared(parities: list[int]) -> int:
    shared = BOTH
    for one in parities:
        shared &= one
    return shared


def _result(name: str, arguments: list[int]) -> int:
    if name in ("add", "sub"):
        return arguments[0] & arguments[1]
    if name == "if":
        return arguments[1] & arguments[2] if arguments[0] & EVEN else NEITHER
    if name in ("mul", "div"):
        first, second = arguments
        odd = (first & ODD and second & EVEN) or (first & EVEN and second & ODD)
        even = (first & ODD and second & ODD) or (first & EVEN and second & EVEN)
        return (ODD if odd else 0) | (EVEN if even else 0)
    if name in _ODD_FUNCTIONS or (name == "clip" and len(arguments) == 1):
        return arguments[0]
    if name in _EVEN_FUNCTIONS and arguments[0]:
        return EVEN
    return EVEN & _shared(arguments)
