"""A template is a formula with holes that are searched and constants that are tuned: k1*theta + tanh({…}).

Holes are written `{…}`, `{...}` or `{}`. Constants are names such as k, k1 or k_rate that nothing else has; a
name that occurs twice, in one formula or in several, is one constant.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import (
    Call,
    Expression,
    FormulaError,
    Variable,
    encode,
    parse,
    substitute,
    variables,
)
from clearloop.expression.nodes import NUMBER
from clearloop.expression.parsing import scan
from clearloop.search.gp.genome import Genome

_T = TypeVar("_T")

HOLE = "{…}"
_HOLE = re.compile(r"\{\s*(?:…|\.\.\.)?\s*\}")
_CONSTANT = re.compile(r"k(?:\d+|_\w+)?", re.ASCII)
_LETTERS = "QXZJHWVYGKBFPUMDCLRSTNIOAEqxzjhwvygkbfpumdclrstnioae"
_CONSTANTS = "constants to tune are called k, k1, k2 … or k_name"


@dataclass(frozen=True)
class Template:
    """Formulas, one for each output, in which variables stand for what is searched and tuned.

    Attributes:
        formulas: The formulas.
        holes: The variables that stand for holes, in the order in which they occur.
        constants: The variables that stand for constants.
    """

    formulas: tuple[Expression, ...]
    holes: tuple[Variable, ...]
    constants: tuple[Variable, ...]

    @property
    def variables(self) -> list[Variable]:
        """The variables that the formulas read besides holes and constants, each once."""
        found = dict.fromkeys(one for formula in self.formulas for one in variables(formula))
        return [one for one in found if one not in (*self.holes, *self.constants)]


def read_templates(texts: Mapping[str, str], actions: Sequence[str], names: Collection[str]) -> Template:
    """Parse the templates of some actions; the formulas of the others are wholly searched.

    Args:
        texts: The template of each action that has one.
        actions: All actions.
        names: The names of states and actions that formulas may read.

    Raises:
        ClearloopError: A text is no template; the message says in which column.
    """
    for name in texts:
        if name not in actions:
            hint = did_you_mean(name, actions) or f"; the task has {', '.join(actions)}"
            raise ClearloopError(f"form: {quoted(name)} is not an action of the task{hint}")
    formulas, holes, constants = [], list[Variable](), dict[str, Variable]()
    prefix = "_" * (1 + max(map(len, names)))  # no name begins so
    for action in actions:
        try:
            formula, inner, named = _read(texts.get(action, HOLE), names)
        except FormulaError as error:
            raise ClearloopError(f"form of {action}: {error}") from error
        own = {stand_in: Variable(f"{prefix}{len(holes) + n}") for n, stand_in in enumerate(inner)}
        holes += own.values()
        constants |= {name: Variable(f"{prefix}{name}") for name in named}
        formulas.append(substitute(formula, {**own, **{Variable(name): constants[name] for name in named}}))
    if not holes and not constants:
        raise ClearloopError(f"form: there is nothing to search: write {HOLE} for a part, or k1 for a number")
    return Template(tuple(formulas), tuple(holes), tuple(constants.values()))


def split_form(text: str) -> tuple[str, str]:
    """Split `ACTION=TEMPLATE`; the action is empty if there is none."""
    name, equals, template = text.partition("=")
    if equals and name.strip().isidentifier() and not template.startswith("="):
        return name.strip(), template.strip()
    return "", text


def _read(text: str, names: Collection[str]) -> tuple[Expression, list[Variable], list[str]]:
    """Return a template's formula, the variables that stand for its holes, and the names of its constants."""
    whole, holes = text, list[str]()
    free = (a + b for a in _LETTERS for b in _LETTERS if a + b not in text and a + b not in names)
    while found := _HOLE.search(text):
        holes.append(next(free))  # as long as the hole, so that errors name the right column
        text = text[: found.start()] + holes[-1].ljust(len(found[0])) + text[found.end() :]
    for column, character in enumerate(text, 1):
        if character in "{}":
            raise FormulaError(
                f"unexpected {quoted(character)}", column, f"a part to search is written {HOLE}"
            )
    words = [token.text for token in scan(text) if token.kind == "name"]
    named = [word for word in dict.fromkeys(words) if _CONSTANT.fullmatch(word) and word not in names]
    try:
        formula = parse(text, (*names, *holes, *named))
    except FormulaError as error:
        raise _about(error, holes) from error
    for variable in variables(formula):
        if variable.name in (*holes, *named) and variable != Variable(variable.name):
            what = HOLE if variable.name in holes else f"the constant {variable.name}"
            column = whole.find("{") + 1 if variable.name in holes else whole.find(variable.name) + 1
            raise FormulaError(f"{what} has neither a past nor a setpoint", column)
    return formula, [Variable(hole) for hole in holes], named


def _about(error: FormulaError, holes: Sequence[str]) -> FormulaError:
    """Return the error in the user's words."""
    text = str(error)
    for hole in holes:
        text = text.replace(hole, HOLE)
    unknown = text.startswith("unknown name") and "did you mean" not in text
    return FormulaError(f"{text}; {_CONSTANTS}" if unknown else text)


# What the search makes of a template: programs with gaps, and the size that each filling should have.


@dataclass
class Frame:
    """A template as programs, with the usual sizes of what fills it.

    Attributes:
        template: The template.
        programs: For each output the genes of its program, and where fillings stand the number of each.
        sizes: The usual size of each hole and constant.
        factors: The variable that a constant multiplies, by the number of the constant's filling.
        outputs: The output in whose formula each hole or constant stands first.
    """

    template: Template
    programs: list[list[tuple[int, float] | int]] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    factors: dict[int, Variable] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)

    @classmethod
    def build(
        cls,
        template: Template,
        slot: Callable[[Variable], int],
        usual: Callable[[Expression], float],
        heights: Sequence[float],
    ) -> "Frame":
        """Encode a template.

        Args:
            template: The template.
            slot: The number of a variable.
            usual: The usual size of an expression without holes or constants.
            heights: The usual size of each output.
        """
        numbers = {variable: n for n, variable in enumerate((*template.holes, *template.constants))}
        sizing = _Sizing(template, numbers, usual)
        frame = cls(template, factors=sizing.factors)
        for output, (formula, height) in enumerate(zip(template.formulas, heights, strict=True)):
            sizing.place(formula, height, output)
            program = encode(formula, lambda one: -1 - numbers[one] if one in numbers else slot(one))
            genes = zip(program.code.tolist(), program.operand.tolist(), strict=True)
            frame.programs.append(
                [int(-1 - x) if x < 0 and code != NUMBER else (code, x) for code, x in genes]
            )
        found = [sizing.found[n] for n in range(len(numbers))]
        frame.sizes, frame.outputs = [size for size, _ in found], [output for _, output in found]
        return frame

    def split(self, values: Sequence[_T]) -> tuple[Sequence[_T], Sequence[_T]]:
        """Split what belongs to fillings into what belongs to holes and what to constants."""
        count = len(self.template.holes)
        return values[:count], values[count:]

    def filled(self, fillings: Sequence[Genome]) -> list[Genome]:
        """Return the program of each output with its holes and constants filled."""
        programs = []
        for program in self.programs:
            code: list[int] = []
            operand: list[float] = []
            for gene in program:
                if isinstance(gene, int):
                    code += fillings[gene].code
                    operand += fillings[gene].operand
                else:
                    code.append(gene[0])
                    operand.append(gene[1])
            programs.append(Genome(tuple(code), tuple(operand)))
        return programs


class _Sizing:
    """The usual sizes of what fills a template, found from the root of each formula to its leaves.

    Args:
        template: The template.
        numbers: The number of each filling.
        usual: The usual size of an expression without holes or constants.
    """

    def __init__(
        self, template: Template, numbers: Mapping[Variable, int], usual: Callable[[Expression], float]
    ) -> None:
        self._template, self._numbers, self._usual = template, numbers, usual
        self.found: dict[int, tuple[float, int]] = {}
        """the size of each filling, and the output in whose formula it stands first"""
        self.factors: dict[int, Variable] = {}
        """see `Frame`"""

    def _is_open(self, node: Expression) -> bool:
        """Tell whether there are holes or constants in an expression."""
        return any(variable in self._numbers for variable in variables(node))

    def place(self, node: Expression, size: float, output: int) -> None:
        """Note the sizes of what fills an expression that should have this size."""
        if isinstance(node, Variable) and node in self._numbers:
            self.found.setdefault(self._numbers[node], (size, output))
        if not isinstance(node, Call) or not self._is_open(node):
            return
        match node.operation.name, node.arguments:
            case "mul", (left, right) if self._is_open(left) and self._is_open(right):
                scaling = right if right in self._template.constants else left
                self.place(scaling, size, output)
                self.place(left if scaling is right else right, 1.0, output)
            case "mul", (left, right):
                inner, factor = (left, right) if self._is_open(left) else (right, left)
                self.place(inner, size / self._usual(factor), output)
                if isinstance(inner, Variable) and isinstance(factor, Variable):
                    self.factors.setdefault(self._numbers[inner], factor)
            case "div", (left, right):
                self.place(left, size if self._is_open(right) else size * self._usual(right), output)
                self.place(right, 1.0, output)
            case (("add" | "sub" | "neg" | "min" | "max" | "abs" | "clip" | "if"), arguments):
                for argument in arguments:
                    self.place(argument, size, output)
            case _, arguments:
                for argument in arguments:
                    self.place(argument, 1.0, output)
