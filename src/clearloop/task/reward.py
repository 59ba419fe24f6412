"""The reward as one expression: cases become nested `if`, the first that holds."""

from collections.abc import Iterator, Sequence

from clearloop.errors import ClearloopError
from clearloop.expression import OPERATIONS, Call, Expression, Number, parse, variables
from clearloop.expression.operations import Kind
from clearloop.task.faults import Fault
from clearloop.task.scope import Scope
from clearloop.task.tables import Case, Reward

MOST_STEPS_BACK = 1_000


def lower_reward(reward: Reward, scope: Scope) -> Expression | None:
    """None where the reward is learned from a column."""
    if reward.expression is not None:
        return _parse(reward.expression, scope, "number")
    if reward.otherwise is None:
        return None
    lowered: Expression = Number(reward.otherwise)
    for case in reversed(reward.cases):
        condition = _parse(case.when, scope, "condition")
        lowered = Call(OPERATIONS["if"], (condition, Number(case.value), lowered))
    return lowered


def lower_failure(cases: Sequence[Case], scope: Scope) -> Expression | None:
    """Holds where the failure case does and none before it; None if no case is a failure."""
    failure: Expression | None = None
    for case in reversed(cases):
        condition = _parse(case.when, scope, "condition")
        if case.failure:
            failure = condition
        elif failure is not None:
            failure = Call(OPERATIONS["and"], (Call(OPERATIONS["not"], (condition,)), failure))
    return failure


def reward_faults(reward: Reward, scope: Scope) -> Iterator[Fault]:
    texts: list[tuple[tuple[str | int, ...], str, Kind]]
    texts = [(("cases", index, "when"), case.when, "condition") for index, case in enumerate(reward.cases)]
    if reward.expression is not None:
        texts.append((("expression",), reward.expression, "number"))
    for where, text, kind in texts:
        try:
            _parse(text, scope, kind)
        except ClearloopError as error:
            yield Fault(("reward", *where), str(error))


def _parse(text: str, scope: Scope, kind: Kind) -> Expression:
    expression = parse(text, scope.names, kind=kind)
    for variable in variables(expression):
        if variable.part != "value" and variable.name not in scope.setpoints:
            raise ClearloopError(f"'{variable}': {variable.name} has no setpoint; give it one in [states]")
        if variable.lag is not None and variable.lag > MOST_STEPS_BACK:
            raise ClearloopError(f"'{variable}' looks back too far: at most {MOST_STEPS_BACK} steps")
    return expression
