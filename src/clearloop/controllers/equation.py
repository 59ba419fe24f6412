"""Equations: one formula for each action (sec. 3.7 of the paper), and a base class for kinds of formulas."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from clearloop.controllers.controller import Controller, Known, check_names, read_formula
from clearloop.controllers.memory import Memory
from clearloop.controllers.routine import Scope
from clearloop.controllers.views import Part, Summand
from clearloop.expression import (
    OPERATIONS,
    Call,
    Expression,
    Number,
    Program,
    Variable,
    complexity,
    encode,
    evaluate,
    fold,
    simplify,
    to_latex,
    to_text,
    variables,
)
from clearloop.expression.nodes import postorder
from clearloop.expression.pieces import Pieces, aligned, equation
from clearloop.expression.summands import split_terms, summands
from clearloop.kernels.layout import PROGRAM
from clearloop.programs import Features
from clearloop.task.tables import Formula


class FormulaController(Controller):
    """A kind of controller that has a formula for each action, from which everything else follows."""

    policy: ClassVar[int | None] = PROGRAM
    exact: ClassVar[bool] = True

    @abstractmethod
    def formula(self, action: str) -> Expression:
        """Return the formula of an action before it is limited; a bare name in it means value − setpoint."""

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for action in self.actions:
            place = f"{self.chosen_in}.{action}"
            for variable in variables(self.formula(action)):
                if known is not None:
                    check_names(place, [variable.name], "a state or an action", known)
                yield place, variable

    @property
    def complexity(self) -> int:
        return sum(complexity(self.formula(action)) for action in self.actions)

    @property
    def summary(self) -> str:
        lines = list(self._lines())
        return lines[0].partition(" = ")[2] if len(lines) == 1 else "; ".join(lines)

    def words(self) -> Iterator[str]:
        yield from self._lines()
        yield from self.limit_words()
        yield from self.setpoint_words()

    def _lines(self) -> Iterator[str]:
        for action in self.actions:
            yield f"{action} = {to_text(self.formula(action))}"

    def respond(self, memory: Memory) -> dict[str, float]:
        return {action: _value(self.formula(action), memory) for action in self.actions}

    def programs(self, features: Features) -> list[Program]:
        return [encode(self.formula(action), features.slot) for action in features.actions]

    def lower(self, scope: Scope) -> dict[str, Expression]:
        return {action: scope.formula(self.formula(action)) for action in self.actions}

    def equations(self) -> tuple[Pieces, ...]:
        return tuple(equation(action, self.formula(action)) for action in self.actions)

    def latex_rows(self) -> Iterator[str]:
        yield aligned((to_latex(Variable(name)), to_latex(self.formula(name))) for name in self.actions)

    def parts(self, action: str) -> Iterator[Part]:
        return iter(split_terms(self.formula(action)))

    def summands(self) -> Iterator[Summand]:
        for action in self.actions:
            for term in summands(self.formula(action)):
                yield Summand(action, to_text(term), partial(past_worth, term, self.actions))

    def _repr_latex_(self) -> str:
        rows = [f"{to_latex(Variable(name))} &= {to_latex(self.formula(name))}" for name in self.actions]
        return r"$\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}$"


def _value(formula: Expression, memory: Memory) -> float:
    return evaluate(formula, {variable: memory.error(variable) for variable in variables(formula)})


def past_worth(term: Expression, actions: tuple[str, ...], memory: Memory) -> float:
    """Return the value of a term when the memory's latest action was chosen.

    At that time the action was not yet part of the past, so past actions are one step further back now.
    """

    def read(variable: Variable) -> float:
        if variable.name in actions:
            return memory.value(variable.name, (variable.lag or 0) + 1)
        return memory.error(variable)

    return evaluate(term, {variable: read(variable) for variable in variables(term)})


class Equation(FormulaController):
    """A controller whose file has a formula for each action; `outputs` maps actions to formulas."""

    kind: Literal["equation"] = "equation"
    outputs: Annotated[dict[str, Formula], Field(min_length=1)]

    def formula(self, action: str) -> Expression:
        return read_formula(self.outputs[action])

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for action, text in self.outputs.items():
            place = f"outputs.{action}"
            for variable in variables(read_formula(text, place, known)):
                yield place, variable

    def with_constants(self, change: Callable[[float], float]) -> Self:
        outputs = {action: to_text(_changed(self.formula(action), change)) for action in self.actions}
        return self.model_copy(update={"outputs": outputs})

    def simpler(self) -> Iterator[tuple[Self, str]]:
        for action in self.actions:
            for formula, what in _shorter(self.formula(action)):
                yield self._with_output(action, to_text(formula)), what


def _changed(formula: Expression, change: Callable[[float], float]) -> Expression:
    changed = fold(
        formula,
        lambda leaf: Number(change(leaf.value)) if isinstance(leaf, Number) else leaf,
        lambda operation, parts: Call(operation, tuple(parts)),
    )
    return simplify(changed)


def _shorter(formula: Expression) -> Iterator[tuple[Expression, str]]:
    """Yield the formula with one call replaced by one of its arguments, such as a sum by a term."""
    for node in postorder(formula):
        if not isinstance(node, Call):
            continue
        for number, kept in enumerate(node.arguments):
            if kept.kind != node.kind:
                continue
            shorter = Call(OPERATIONS["neg"], (kept,)) if node.operation.name == "sub" and number else kept
            found = simplify(_replaced(formula, node, shorter))
            if complexity(found) < complexity(formula):
                yield found, _said(node, number)


def _replaced(formula: Expression, old: Expression, new: Expression) -> Expression:
    """Return the formula with one node replaced, which is given by identity, not by equality."""
    if formula is old:
        return new
    if not isinstance(formula, Call):
        return formula
    parts = tuple(_replaced(argument, old, new) for argument in formula.arguments)
    if all(part is argument for part, argument in zip(parts, formula.arguments, strict=True)):
        return formula
    return Call(formula.operation, parts)


def _said(node: Call, kept: int) -> str:
    others = [to_text(part) for number, part in enumerate(node.arguments) if number != kept]
    match node.operation.name:
        case "add" | "sub":
            return f"drop the term {others[0]}"
        case "mul":
            return f"drop the factor {others[0]}"
        case "div":
            return f"drop the divisor {others[0]}" if kept == 0 else f"drop the dividend {others[0]}"
    return f"{to_text(node)} becomes {to_text(node.arguments[kept])}"
