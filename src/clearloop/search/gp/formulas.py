"""Formulas of the expression language as individuals, one for each output.

Sizes, not units: what grows is a gain of the right size times a variable, so that a plant in degrees is
searched as one in radians.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clearloop.expression import OPERATIONS, Expression, Number, Program, Variable, decode, encode
from clearloop.expression.operations import BY_OPCODE, NUMBER, VARIABLE
from clearloop.search.gp.cancelation import cancel
from clearloop.search.gp.genome import Genome, Symbol, Vocabulary, call
from clearloop.search.gp.grammar import Grammar, rounded

CONTROLLER = max(BY_OPCODE) + 1  # the root: takes a formula for each output
ADD, SUB, MUL, DIV = (OPERATIONS[name].opcode for name in ("add", "sub", "mul", "div"))
TANH, CLIP, IF = (OPERATIONS[name].opcode for name in ("tanh", "clip", "if"))
_SAME_SIZE = {"add", "sub", "min", "max", "abs", "neg", "clip", "if"}


class Formulas(Grammar):
    def __init__(
        self,
        functions: Sequence[str],
        variables: Sequence[Variable],
        sizes: NDArray[np.float64],
        outputs: NDArray[np.float64],
    ) -> None:
        """`variables` are what formulas may read, [n] `sizes` how large they usually are.

        [A] `outputs`: how large the result of each formula should be.
        """
        operations = [OPERATIONS[name] for name in dict.fromkeys((*functions, "add", "sub", "neg", "mul"))]
        leaves = [
            Symbol(NUMBER, "number", "number", constant=True),
            Symbol(VARIABLE, "variable", "number"),
        ]
        inner = [Symbol(op.opcode, op.name, op.kind, tuple(op.kinds), op.weight) for op in operations]
        root = Symbol(CONTROLLER, "controller", "controller", ("number",) * len(outputs), weight=0)
        self.vocabulary = Vocabulary([*leaves, *inner, root])
        self.variables, self.sizes, self.outputs = tuple(variables), sizes.tolist(), outputs.tolist()
        self._numeric = [OPERATIONS[name] for name in functions if OPERATIONS[name].kind == "number"]
        self._conditions = [OPERATIONS[name] for name in functions if OPERATIONS[name].kind == "condition"]
        if not self._conditions:
            self._numeric = [op for op in self._numeric if op.name != "if"]

    def grow(self, rng: np.random.Generator, depth: int) -> Genome:
        formulas = [self._sum(rng, size, depth) for size in self.outputs]
        return call(CONTROLLER, *formulas)

    def regrow(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        kind = self.vocabulary.kind(genome, place)
        if kind == "controller":
            return self.grow(rng, 2)
        if kind == "condition":
            return self._condition(rng, 1)
        return self._number(rng, self._size(genome, place), int(rng.integers(0, 3)))

    def wrap(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        old = genome.slice(self.vocabulary.start(genome, place), place + 1)
        kind = self.vocabulary.kind(genome, place)
        if kind == "controller":
            return old
        if kind == "condition":
            logic = [op for op in self._conditions if op.kinds[0] == "condition"]
            if not logic:
                return old
            op = _pick(logic, rng)
            return call(op.opcode, old, *(self._condition(rng, 0) for _ in op.kinds[1:]))
        size = self._size(genome, place)
        if rng.random() < 0.4:
            return call(ADD, old, self._term(rng, size))
        op = _pick(self._numeric, rng)
        match op.name:
            case "mul":
                return call(MUL, old, self._number(rng, 1.0, 1))
            case "div":
                return call(DIV, old, self._number(rng, 1.0, 1))
            case "tanh":
                return self._squashed(rng, old, size)
            case "clip":
                return self._clipped(rng, old, size)
            case "if":
                choice = (old, self._number(rng, size, 1))
                return call(IF, self._condition(rng, 0), *(choice if rng.random() < 0.5 else choice[::-1]))
        return call(op.opcode, old, *(self._number(rng, size, 1) for _ in op.kinds[1:]))

    def vary(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        if genome.code[place] != VARIABLE:
            return genome
        return genome.with_operands([place], [float(rng.integers(len(self.variables)))])

    def simplify(self, genome: Genome) -> Genome:
        return self.from_expressions([cancel(f, self.variables) for f in self.expressions(genome)])

    def spreads(self, genome: Genome) -> NDArray[np.float64]:
        values = np.abs([genome.operand[place] for place in self.vocabulary.constants(genome)])
        return 0.3 * np.where(values > 0, values, 1e-3)

    def expressions(self, genome: Genome) -> list[Expression]:
        """The formula of each output."""
        slices = list(self.vocabulary.arguments(genome, len(genome.code) - 1))[::-1]
        return [self._expression(genome.slice(*bounds)) for bounds in slices]

    def from_expressions(self, formulas: Sequence[Expression]) -> Genome:
        programs = [encode(formula, self.variables.index) for formula in formulas]
        genomes = [Genome(tuple(p.code.tolist()), tuple(p.operand.tolist())) for p in programs]
        return call(CONTROLLER, *genomes)

    def _expression(self, genome: Genome) -> Expression:
        program = Program(np.array(genome.code, np.int32), np.array(genome.operand), 0)
        return decode(program, lambda slot: self.variables[slot])

    def _constant(self, rng: np.random.Generator, size: float) -> Genome:
        """Of about this size, of either sign."""
        value = size * math.exp(rng.normal(0.0, 0.7)) * (1 if rng.random() < 0.5 else -1)
        return Genome((NUMBER,), (Number(rounded(value)).value,))

    def _variable(self, rng: np.random.Generator) -> tuple[Genome, float]:
        which = int(rng.integers(len(self.variables)))
        return Genome((VARIABLE,), (float(which),)), self.sizes[which]

    def _term(self, rng: np.random.Generator, size: float) -> Genome:
        """A gain times a variable."""
        variable, own = self._variable(rng)
        return call(MUL, self._constant(rng, size / own), variable)

    def _sum(self, rng: np.random.Generator, size: float, depth: int) -> Genome:
        """Of terms and, where depth allows, of more."""
        total = self._number(rng, size, depth - 1)
        for _ in range(int(rng.integers(0, 4))):
            total = call(ADD, total, self._term(rng, size))
        return total

    def _number(self, rng: np.random.Generator, size: float, depth: int) -> Genome:
        if depth <= 0 or rng.random() < 0.3:
            dice = rng.random()
            if dice < 0.75:
                return self._term(rng, size)
            return self._constant(rng, size) if dice < 0.9 else self._variable(rng)[0]
        op = _pick(self._numeric, rng)
        match op.name:
            case "mul":
                return call(MUL, self._number(rng, size, depth - 1), self._number(rng, 1.0, depth - 1))
            case "div":
                return call(DIV, self._number(rng, size, depth - 1), self._number(rng, 1.0, depth - 1))
            case "tanh":
                return self._squashed(rng, self._number(rng, size, depth - 1), size)
            case "clip":
                return self._clipped(rng, self._number(rng, size, depth - 1), size)
            case "if":
                branches = [self._number(rng, size, depth - 1) for _ in range(2)]
                return call(IF, self._condition(rng, depth - 1), *branches)
        inner = size if op.name in _SAME_SIZE else 1.0
        return call(op.opcode, *(self._number(rng, inner, depth - 1) for _ in op.kinds))

    def _condition(self, rng: np.random.Generator, depth: int) -> Genome:
        op = _pick(self._conditions, rng)
        if op.kinds[0] == "condition":
            if depth <= 0:
                return self._condition(rng, depth)
            return call(op.opcode, *(self._condition(rng, depth - 1) for _ in op.kinds))
        variable, own = self._variable(rng)
        if "abs" in {o.name for o in self._numeric} and rng.random() < 0.5:
            variable = call(OPERATIONS["abs"].opcode, variable)
        return call(op.opcode, variable, self._constant(rng, own))

    def _squashed(self, rng: np.random.Generator, inner: Genome, size: float) -> Genome:
        """Size · tanh(inner / size)."""
        height = rounded(size * math.exp(rng.normal(0.0, 0.5)))
        outer, slope = Genome((NUMBER,), (height,)), Genome((NUMBER,), (rounded(1 / height),))
        return call(MUL, outer, call(TANH, call(MUL, slope, inner)))

    def _clipped(self, rng: np.random.Generator, inner: Genome, size: float) -> Genome:
        bound = rounded(size * math.exp(rng.normal(0.0, 0.5)))
        low, high = Genome((NUMBER,), (-bound,)), Genome((NUMBER,), (bound,))
        return call(CLIP, inner, low, high)

    def _size(self, genome: Genome, place: int) -> float:
        """How large the result of a subtree usually is, roughly."""
        stack: list[float] = []
        start = self.vocabulary.start(genome, place)
        for code, operand in zip(genome.code[start : place + 1], genome.operand[start : place + 1], strict=True):
            if code == NUMBER:
                stack.append(abs(operand))
            elif code == VARIABLE:
                stack.append(self.sizes[int(operand)])
            else:
                op = BY_OPCODE[code]
                arguments = stack[-op.arity :]
                del stack[-op.arity :]
                if op.name == "mul":
                    result = arguments[0] * arguments[1]
                elif op.name == "div":
                    result = arguments[0] / max(arguments[1], 1e-12)
                elif op.name == "clip":
                    result = min(arguments[0], max(arguments[1:]))
                else:
                    result = max(arguments) if op.name in _SAME_SIZE else 1.0
                stack.append(result)
        return min(max(stack[0], 1e-9), 1e9)


def _pick(choices: Sequence, rng: np.random.Generator):  # type: ignore[no-untyped-def,type-arg]
    return choices[int(rng.random() * len(choices))]
