"""The grammar of formulas has individuals with one formula of the expression language for each output.

Formulas grow from terms of a gain times a variable. Gains have the size that suits the variable, so that the
search does not depend on units: a plant in degrees is searched as one in radians.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clearloop.expression import (
    OPERATIONS,
    Call,
    Expression,
    Number,
    Program,
    Variable,
    complexity,
    decode,
    encode,
    simplify,
)
from clearloop.expression.nodes import BY_OPCODE, NUMBER, VARIABLE, Operation
from clearloop.search.gp.genome import Genome, Symbol, Vocabulary, any_of, compose, few_digits
from clearloop.search.gp.moves import Sums, added, split
from clearloop.search.gp.parity import ODD, parity
from clearloop.search.gp.templates import Frame, Template

_CONTROLLER = max(BY_OPCODE) + 1  # the root, whose arguments are the formulas of the outputs
_TUNED = _CONTROLLER + 1  # a constant of a template, which stays a number
ADD, SUB, NEG, MUL = (OPERATIONS[name].opcode for name in ("add", "sub", "neg", "mul"))
_TANH, CLIP, IF, ABS = (OPERATIONS[name].opcode for name in ("tanh", "clip", "if", "abs"))
_ALWAYS = ("add", "sub", "neg", "mul")  # cancelation writes sums with these
_MOST_TERMS = 4  # of a new sum, besides its deeper term
MORE_TERMS = 0.4  # share of the insertions that add a term to a sum
PART_OF_SUM = 0.7  # share of the other insertions into a sum that wrap some of its terms rather than all


class Formulas(Sums):
    """The grammar of formulas, one for each output."""

    def __init__(
        self,
        functions: Sequence[str],
        variables: Sequence[Variable],
        sizes: NDArray[np.float64],
        outputs: NDArray[np.float64],
        *,
        odd: bool = False,
        template: Template | None = None,
    ) -> None:
        """Choose the functions and variables of formulas.

        Args:
            functions: Names of the operations that formulas may use.
            variables: Variables that formulas may read.
            sizes: [n] usual size of each variable.
            outputs: [A] size that the result of each formula should have.
            odd: Whether only odd functions are allowed: negated variables give the negated result.
            template: What formulas must look like; programs then hold what fills it.
        """
        self.odd = odd
        chosen = [OPERATIONS[name] for name in functions]
        self.chosen = frozenset(operation.opcode for operation in chosen)
        known = [OPERATIONS[name] for name in dict.fromkeys((*functions, *_ALWAYS))]
        self.vocabulary = Vocabulary([
            Symbol(NUMBER, "number", "number", constant=True),
            Symbol(VARIABLE, "variable", "number"),
            *(Symbol(op.opcode, op.name, op.kind, op.kinds, op.weight) for op in known),
            Symbol(_TUNED, "tuned", "tuned", constant=True),
            Symbol(_CONTROLLER, "controller", "controller", _kinds(template, len(outputs)), weight=0),
        ])  # fmt: skip
        self.variables, self.sizes, self.outputs = tuple(variables), sizes.tolist(), outputs.tolist()
        self.frame = (
            Frame.build(template, self.variables.index, self._usual, self.outputs) if template else None
        )
        self._comparisons = [op for op in chosen if op.kind == "condition" and "number" in op.kinds]
        self._logic = [op for op in chosen if op.kind == "condition" and "condition" in op.kinds]
        self._numeric = [
            op for op in chosen if op.kind == "number" and (op.opcode != IF or self._comparisons)
        ]
        self.optional = tuple(op.name for op in self._numeric if op.opcode not in (ADD, SUB, NEG))

    def grow(self, rng: np.random.Generator, depth: int) -> Genome:
        if not self.frame:
            return compose(_CONTROLLER, *(self._sum(rng, size, depth) for size in self.outputs))
        holes, constants = self.frame.split(self.frame.sizes)
        filled = [self._sum(rng, size, depth) for size in holes]
        return compose(_CONTROLLER, *filled, *(self._tuned(rng, size) for size in constants))

    def regrow(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        match self.vocabulary.kind(genome, place):
            case "controller":
                return self.grow(rng, 2)
            case "condition":
                return self._condition(rng, 1)
            case "tuned":
                return self._tuned(rng, abs(genome.operand[place]))
        size = usual_size(self.vocabulary.subtree(genome, place), self.sizes)
        return self._number(rng, size, int(rng.integers(0, 3)))

    def wrap(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        old = self.vocabulary.subtree(genome, place)
        match self.vocabulary.kind(genome, place):
            case "controller" | "tuned":
                return old
            case "condition":
                return self._combined(any_of(self._logic, rng), old, 0, rng) if self._logic else old
        if rng.random() < MORE_TERMS:
            return compose(ADD, old, self.term(rng, usual_size(old, self.sizes)))
        some, others = split(self.summands(old), rng, PART_OF_SUM)
        size = usual_size(some, self.sizes)
        wrapped = self._around(any_of(self._numeric, rng), some, size, 1, rng)
        return compose(ADD, others, wrapped) if others else wrapped

    def vary(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        if genome.code[place] != VARIABLE:
            return genome
        return genome.with_operands([place], [float(rng.integers(len(self.variables)))])

    def allows(self, genome: Genome) -> bool:
        return not self.odd or bool(parity(genome) & ODD)

    def followers(self, genome: Genome) -> dict[int, int]:
        """Return the upper limits of the `clip` that must stay odd, each with its lower limit."""
        if not self.odd or CLIP not in genome.code:
            return {}
        return {
            place - 1: place - 2
            for place, code in enumerate(genome.code)
            if code == CLIP
            and genome.code[place - 2] == genome.code[place - 1] == NUMBER
            and genome.operand[place - 2] == -genome.operand[place - 1]
        }

    def simplify(self, genome: Genome) -> Genome:
        parts = self.fillings(genome)
        simple = compose(
            _CONTROLLER, *(self._canceled(one) if one.code != (_TUNED,) else one for one in parts)
        )
        known = self.vocabulary.symbols.keys() >= set(simple.code)  # min and max may have become clip
        return simple if known else genome

    def spreads(self, genome: Genome) -> NDArray[np.float64]:
        values = np.abs([genome.operand[place] for place in self.vocabulary.constants(genome)])
        return 0.3 * np.where(values > 0, values, 0.0 if self.odd else 1e-3)  # an odd sum has no constant

    def used(self, genome: Genome) -> set[str]:
        """Return the optional functions that a program uses; a gain times something is no `mul`."""
        products = (place for place, code in enumerate(genome.code) if code == MUL)
        plain = all(self._has_gain(genome, place) for place in products)
        return super().used(genome) - ({"mul"} if plain else set())

    def expressions(self, genome: Genome) -> list[Expression]:
        """Return the formula of each output."""
        return [self._expression(program) for program in self.programs(genome)]

    def fillings(self, genome: Genome) -> list[Genome]:
        """Return the arguments of the root: the formulas, or what fills a template."""
        if len(self.outputs) == 1 and not self.frame:
            return [genome.slice(0, len(genome.code) - 1)]
        slices = list(self.vocabulary.arguments(genome, len(genome.code) - 1))[::-1]
        return [genome.slice(*bounds) for bounds in slices]

    def programs(self, genome: Genome) -> list[Genome]:
        """Return the program of each output."""
        parts = self.fillings(genome)
        return self.frame.filled([_as_numbers(one) for one in parts]) if self.frame else parts

    def from_expressions(self, formulas: Sequence[Expression]) -> Genome:
        """Return the genome of formulas, one for each output, or for each hole of a template."""
        return compose(_CONTROLLER, *map(self._genome, formulas))

    def joined(self, formulas: Sequence[Genome], constants: Sequence[float] = ()) -> Genome:
        """Return the controller with these formulas, or with what fills a template."""
        tuned = (Genome((_TUNED,), (few_digits(value),)) for value in constants)
        return compose(_CONTROLLER, *formulas, *tuned)

    def _genome(self, formula: Expression) -> Genome:
        program = encode(formula, self.variables.index)
        return Genome(tuple(program.code.tolist()), tuple(program.operand.tolist()))

    def _canceled(self, genome: Genome) -> Genome:
        return self._genome(cancel(self._expression(genome), self.variables))

    def _usual(self, formula: Expression) -> float:
        return usual_size(self._genome(formula), self.sizes)

    def weighted_sum(self, terms: Sequence[tuple[int, float]], constant: float = 0.0) -> Genome:
        """Return the sum of gains times variables, given by their indices, and a constant."""
        parts = [compose(MUL, _number(few_digits(g)), Genome((VARIABLE,), (float(n),))) for n, g in terms]
        if constant or not parts:
            parts.append(_number(few_digits(constant)))
        return added(parts)

    def bent(self, part: Genome, height: float) -> list[Genome]:
        """Return a part of a formula inside tanh and inside clip, such that it is at most this high."""
        shapes = []
        if _TANH in self.chosen:
            inner = compose(MUL, _number(few_digits(1 / height)), part)
            shapes.append(compose(MUL, _number(few_digits(height)), compose(_TANH, inner)))
        if CLIP in self.chosen:
            shapes.append(compose(CLIP, part, _number(-few_digits(height)), _number(few_digits(height))))
        return shapes

    def _expression(self, genome: Genome) -> Expression:
        program = Program(np.array(genome.code, np.int32), np.array(genome.operand), 0)
        return decode(program, lambda slot: self.variables[slot])

    def _has_gain(self, genome: Genome, place: int) -> bool:
        return any(genome.code[stop - 1] == NUMBER for _, stop in self.vocabulary.arguments(genome, place))

    def summands(self, genome: Genome) -> list[Genome]:
        """Return the parts that the root adds up; subtracted parts are negated."""
        root = genome.code[-1]
        if root not in (ADD, SUB):
            return [genome]
        (right, stop), (left, _) = self.vocabulary.arguments(genome, len(genome.code) - 1)
        last = self.summands(genome.slice(right, stop))
        if root == SUB:
            last = [compose(NEG, part) for part in last]
        return self.summands(genome.slice(left, right)) + last

    def _sum(self, rng: np.random.Generator, size: float, depth: int) -> Genome:
        """Grow a sum of gains times different variables, and half of the time a deeper term."""
        chosen = rng.permutation(len(self.variables))[: int(rng.integers(1, _MOST_TERMS + 1))].tolist()
        terms = [self._gain_times(which, rng, size) for which in chosen]
        if rng.random() < 0.5:
            terms.append(self._number(rng, size, depth - 1))
        return added(terms)

    def _number(self, rng: np.random.Generator, size: float, depth: int) -> Genome:
        """Grow a number of about this size."""
        if depth <= 0 or rng.random() < 0.3:
            dice = rng.random()
            if dice < 0.75:
                return self.term(rng, size)
            return self._constant(rng, size) if dice < 0.9 else self.variable(rng)[0]
        operation = any_of(self._numeric, rng)
        inner = size if operation.name in KEEP_SIZE else 1.0
        return self._around(operation, self._number(rng, inner, depth - 1), size, depth, rng)

    def _around(
        self, operation: Operation, first: Genome, size: float, depth: int, rng: np.random.Generator
    ) -> Genome:
        """Apply an operation to `first` and new arguments such that the result has about the same size."""
        height = few_digits(max(size, _SMALLEST) * math.exp(rng.normal(0.0, 0.5)))
        match operation.name:
            case "mul" | "div":
                return compose(operation.opcode, first, self._number(rng, 1.0, depth - 1))
            case "tanh":  # height · tanh(first / height)
                inner = compose(MUL, _number(few_digits(1 / height)), first)
                return compose(MUL, _number(height), compose(_TANH, inner))
            case "clip":
                return compose(CLIP, first, _number(-height), _number(height))
            case "if":
                branches = first, self._number(rng, size, depth - 1)
                return compose(IF, self._condition(rng, 0), *branches[:: 1 if rng.random() < 0.5 else -1])
        others = [self._number(rng, size, depth - 1) for _ in operation.kinds[1:]]
        return compose(operation.opcode, first, *others)

    def _condition(self, rng: np.random.Generator, depth: int) -> Genome:
        if depth > 0 and self._logic and rng.random() < 0.3:
            return self._combined(any_of(self._logic, rng), self._condition(rng, depth - 1), depth - 1, rng)
        variable, own = self.variable(rng)
        if rng.random() < 0.5 and ABS in self.vocabulary.symbols:
            variable = compose(ABS, variable)
        return compose(any_of(self._comparisons, rng).opcode, variable, self._constant(rng, own))

    def _combined(self, logic: Operation, first: Genome, depth: int, rng: np.random.Generator) -> Genome:
        return compose(logic.opcode, first, *(self._condition(rng, depth) for _ in logic.kinds[1:]))

    def usual_size(self, genome: Genome) -> float:
        """Estimate the usual size of the result of a program."""
        return usual_size(genome, self.sizes)

    def term(self, rng: np.random.Generator, size: float) -> Genome:
        """Draw a gain times a variable of about this size."""
        return self._gain_times(int(rng.integers(len(self.variables))), rng, size)

    def _gain_times(self, which: int, rng: np.random.Generator, size: float) -> Genome:
        variable = Genome((VARIABLE,), (float(which),))
        return compose(MUL, self._constant(rng, size / self.sizes[which]), variable)

    def variable(self, rng: np.random.Generator) -> tuple[Genome, float]:
        """Draw a variable, and return it with its size."""
        which = int(rng.integers(len(self.variables)))
        return Genome((VARIABLE,), (float(which),)), self.sizes[which]

    def _constant(self, rng: np.random.Generator, size: float) -> Genome:
        """Draw a constant of about this size and either sign."""
        return _number(few_digits(size * math.exp(rng.normal(0.0, 0.7)) * rng.choice([-1.0, 1.0])))

    def _tuned(self, rng: np.random.Generator, size: float) -> Genome:
        """Draw a constant of a template, of about this size and either sign."""
        return Genome((_TUNED,), self._constant(rng, max(size, _SMALLEST)).operand)


def _kinds(template: Template | None, outputs: int) -> tuple[str, ...]:
    """Return the kinds of the root's arguments."""
    if template is None:
        return ("number",) * outputs
    return ("number",) * len(template.holes) + ("tuned",) * len(template.constants)


def _as_numbers(genome: Genome) -> Genome:
    return Genome((NUMBER,), genome.operand) if genome.code == (_TUNED,) else genome


def _number(value: float) -> Genome:
    return Genome((NUMBER,), (value,))


_SMALLEST, _LARGEST = 1e-9, 1e9
KEEP_SIZE = frozenset({"add", "sub", "min", "max", "abs", "neg", "if", "mul", "div", "tanh", "clip"})
"""Operations that grow such that the result is as large as the first argument."""


def usual_size(genome: Genome, sizes: Sequence[float]) -> float:
    """Estimate the usual size of a program's result, so that what replaces it can have the same size.

    Args:
        genome: The program.
        sizes: The usual size of each variable.
    """
    stack: list[float] = []
    for code, operand in zip(*genome, strict=True):
        if code == NUMBER:
            stack.append(abs(operand))
        elif code == VARIABLE:
            stack.append(sizes[int(operand)])
        else:
            operation = BY_OPCODE[code]
            arguments = stack[-operation.arity :]
            stack[-operation.arity :] = [min(max(_result(operation.name, arguments), _SMALLEST), _LARGEST)]
    return stack[0]


def _result(name: str, arguments: list[float]) -> float:
    match name:
        case "add" | "sub" | "min" | "max" | "abs" | "neg":
            return max(arguments)
        case "if":
            return max(arguments[1:])
        case "mul":
            return arguments[0] * arguments[1]
        case "div":
            return arguments[0] / max(arguments[1], _SMALLEST)
        case "clip":
            return min(arguments[0], max(arguments[1:]))
    return 1.0


# Automatic cancelation collects the terms of formulas as on paper, with real numbers. Unlike
# `expression.simplify`, it may change the last digits of a result, so its result is a new individual, which
# is evaluated like any other.

_ADD, _SUB, _MUL, _DIV, _NEG = (OPERATIONS[name] for name in ("add", "sub", "mul", "div", "neg"))
_ONE = Number(1.0)

_Terms = dict[Expression, float]  # a sum: the factor of each part; the part 1 is the constant


def cancel(formula: Expression, order: Sequence[Variable] = ()) -> Expression:
    """Return the formula with its terms and constant factors collected, if that is not more complex.

    Args:
        formula: The formula.
        order: The variables in the order of their terms: short terms come first, and among terms of the same
            complexity those with earlier variables.
    """
    gathered = simplify(_Gathering(order).gathered(formula))
    return gathered if complexity(gathered) <= complexity(formula) else formula


class _Gathering:
    def __init__(self, order: Sequence[Variable]) -> None:
        self._rank = {variable: number for number, variable in enumerate(order)}

    def gathered(self, formula: Expression) -> Expression:
        """Write a number as a sum; conditions keep their operation, and their arguments are collected."""
        if isinstance(formula, Call) and formula.kind == "condition":
            return Call(formula.operation, tuple(self.gathered(argument) for argument in formula.arguments))
        return self._rebuilt(self._terms(formula))

    def _terms(self, formula: Expression) -> _Terms:
        match formula:
            case Number(value):
                return {_ONE: value}
            case Call(operation, (left, right)) if operation in (_ADD, _SUB):
                return _sum(self._terms(left), self._terms(right), 1.0 if operation is _ADD else -1.0)
            case Call(operation, (inner,)) if operation is _NEG:
                return _sum({}, self._terms(inner), -1.0)
            case Call(operation, (left, right)) if operation is _MUL:
                return self._product(self._terms(left), self._terms(right))
            case Call(operation, (left, right)) if operation is _DIV:
                return self._quotient(self._terms(left), self._terms(right))
            case Call(operation, arguments):
                return {Call(operation, tuple(self.gathered(argument) for argument in arguments)): 1.0}
        return {formula: 1.0}

    def _product(self, first: _Terms, second: _Terms) -> _Terms:
        for constant, other in ((first, second), (second, first)):
            if set(constant) <= {_ONE}:
                return self._scaled(other, constant.get(_ONE, 0.0))
        (left, a), (right, b) = self._factored(first), self._factored(second)
        return {Call(_MUL, (left, right)): a * b}

    def _quotient(self, first: _Terms, second: _Terms) -> _Terms:
        if set(second) <= {_ONE} and second.get(_ONE):
            return self._scaled(first, 1.0 / second[_ONE])
        (left, a), (right, b) = self._factored(first), self._factored(second)
        return {Call(_DIV, (left, right)): a / b}

    def _scaled(self, terms: _Terms, factor: float) -> _Terms:
        """Multiply each term by a factor, unless it is simpler to leave the sum in brackets."""
        out = {part: value * factor for part, value in terms.items()}
        inner = self._rebuilt(terms)
        if len(terms) > 1 and complexity(inner) + 2 < complexity(self._rebuilt(out)):
            return {inner: factor}
        return out

    def _factored(self, terms: _Terms) -> tuple[Expression, float]:
        """Split a sum into a formula and a constant factor."""
        if len(terms) == 1:
            ((part, factor),) = terms.items()
            if factor:
                return part, factor
        return self._rebuilt(terms), 1.0

    def _rebuilt(self, terms: _Terms) -> Expression:
        total: Expression | None = None
        for part in sorted(terms, key=self._place):
            size = few_digits(abs(terms[part]))
            if not size or not math.isfinite(size):
                continue
            positive = terms[part] > 0
            if total is None:
                total = _times(size if positive else -size, part)
            else:
                total = Call(_ADD if positive else _SUB, (total, _times(size, part)))
        return Number(0.0) if total is None else total

    def _place(self, part: Expression) -> tuple[bool, int, list[int], list[float]]:
        """Return the key that orders the terms of a sum, whatever their names; the constant is the last."""
        words = encode(part, lambda variable: self._rank.setdefault(variable, len(self._rank)))
        return part == _ONE, complexity(part), words.code.tolist(), words.operand.tolist()


def _sum(first: _Terms, second: _Terms, sign: float) -> _Terms:
    total = dict(first)
    for part, factor in second.items():
        total[part] = total.get(part, 0.0) + sign * factor
    return total


def _times(factor: float, part: Expression) -> Expression:
    if part == _ONE:
        return Number(factor)
    if factor == -1:
        return Call(_NEG, (part,))
    return part if factor == 1 else Call(_MUL, (Number(factor), part))
