"""The reward as one expression: cases become nested `if`, the first that holds; terms a sum of costs."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from clearloop.errors import ClearloopError
from clearloop.expression import OPERATIONS, Call, Expression, Number, parse, simplify, variables
from clearloop.expression.operations import Kind
from clearloop.task import tables
from clearloop.task.faults import Fault
from clearloop.task.scope import MOST_STEPS_BACK, Scope
from clearloop.task.tables import Flag, Formula, Table, Text
from clearloop.task.terms import Term, Terms, When

MOST_CASES = 64  # no real task comes near


class Case(Table):
    when: Formula
    value: tables.Number
    failure: Flag = False


class Reward(Table):
    """The first case that holds, or ready terms, or an expression, or a logged column to learn it from."""

    cases: Annotated[tuple[Case, ...], Field(max_length=MOST_CASES)] = ()
    otherwise: tables.Number | None = None
    terms: Terms = ()
    expression: Formula | None = None
    column: Text | None = None
    failure: Formula | None = None
    """Beside terms or an expression: when the failing case holds, which comes before them."""
    failure_value: tables.Number | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [bool(self.cases), bool(self.terms), self.expression is not None, self.column is not None]
        if sum(kinds) != 1 or bool(self.cases) != (self.otherwise is not None):
            message = "expected exactly one of: cases with otherwise, terms, expression, column"
            raise PydanticCustomError("reward_kind", message)
        if sum(case.failure for case in self.cases) > 1:
            message = "expected one case with failure = true; join the conditions with 'or'"
            raise PydanticCustomError("failure_cases", message)
        if (self.failure is None) != (self.failure_value is None):
            missing = "failure" if self.failure is None else "failure_value"
            raise PydanticCustomError("failure", "missing key '{key}'", {"key": missing})
        if self.failure is not None and not (self.terms or self.expression):
            message = "failure stands beside terms or an expression; a case fails with failure = true"
            raise PydanticCustomError("failure", message)
        return self


def lower_reward(reward: Reward, scope: Scope) -> Expression | None:
    """None where the reward is learned from a column."""
    if reward.column is not None:
        return None
    if reward.expression is not None:
        lowered = _parse(reward.expression, scope, "number")
    elif reward.terms:
        lowered = _lower_terms(reward.terms, scope)
    else:
        lowered = Number(reward.otherwise or 0.0)
    failing = [] if reward.failure is None else [(reward.failure, reward.failure_value or 0.0)]
    for when, value in reversed([*failing, *((case.when, case.value) for case in reward.cases)]):
        lowered = Call(OPERATIONS["if"], (_parse(when, scope, "condition"), Number(value), lowered))
    return lowered


def _lower_terms(terms: tuple[Term, ...], scope: Scope) -> Expression:
    """Minus the sum of weights times costs."""
    lowered: Expression | None = None
    for term in terms:
        cost = simplify(_parse(term.cost(scope), scope, "number"))
        if lowered is None:
            lowered = Call(OPERATIONS["neg"], (cost,)) if term.weight == 1 else _times(-term.weight, cost)
        else:
            cost = cost if term.weight == 1 else _times(term.weight, cost)
            lowered = Call(OPERATIONS["sub"], (lowered, cost))
    return lowered or Number(0.0)


def _times(weight: float, cost: Expression) -> Expression:
    return Call(OPERATIONS["mul"], (Number(weight), cost))


def lower_failure(reward: Reward, scope: Scope) -> Expression | None:
    """Holds where the failure case does and none before it; None if nothing is a failure."""
    failure = None if reward.failure is None else _parse(reward.failure, scope, "condition")
    for case in reversed(reward.cases):
        condition = _parse(case.when, scope, "condition")
        if case.failure:
            failure = condition
        elif failure is not None:
            failure = Call(OPERATIONS["and"], (Call(OPERATIONS["not"], (condition,)), failure))
    return failure


def reward_faults(reward: Reward, scope: Scope) -> Iterator[Fault]:
    texts: list[tuple[tuple[str | int, ...], str, Kind]]
    texts = [(("cases", index, "when"), case.when, "condition") for index, case in enumerate(reward.cases)]
    texts += [
        (("terms", index, "when"), term.when, "condition")
        for index, term in enumerate(reward.terms)
        if isinstance(term, When)
    ]
    if reward.expression is not None:
        texts.append((("expression",), reward.expression, "number"))
    if reward.failure is not None:
        texts.append((("failure",), reward.failure, "condition"))
    faulty = False
    for where, text, kind in texts:
        try:
            _parse(text, scope, kind)
        except ClearloopError as error:
            faulty = True
            yield Fault(("reward", *where), str(error))
    for index, term in enumerate(reward.terms):
        for key, what in term.complaints(scope):
            faulty = True
            yield Fault(("reward", "terms", index, key), what)
    if not faulty:
        yield from _together(reward, scope)


def _together(reward: Reward, scope: Scope) -> Iterator[Fault]:
    """What is right by itself may still be too deep, or too large, in one expression."""
    try:
        lower_reward(reward, scope)
    except ClearloopError as error:
        yield Fault(("reward",), str(error))


def _parse(text: str, scope: Scope, kind: Kind) -> Expression:
    expression = parse(text, scope.names, kind=kind)
    for variable in variables(expression):
        if variable.part != "value" and variable.name not in scope.setpoints:
            raise ClearloopError(f"'{variable}': {variable.name} has no setpoint; give it one in [states]")
        if variable.lag is not None and variable.lag > MOST_STEPS_BACK:
            raise ClearloopError(f"'{variable}' looks back too far: at most {MOST_STEPS_BACK} steps")
    return expression
