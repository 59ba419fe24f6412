"""Where a task fails and where it is content, along each state: for lines on the floor.

They are found by trying, so that a reward may be written in any way: one state is moved away from the
setpoint, all others stay there, at rest.
"""

from collections.abc import Callable

from clearloop.expression import Expression, Variable, evaluate, variables
from clearloop.task import Task

FARTHEST = 1e4
ROUNDS = 60  # of bisection

Bounds = tuple[float, float]


def limits_of(task: Task) -> dict[str, Bounds]:
    """Of the states that alone can make it fail, to both sides."""
    condition = task.failure_condition
    return {} if condition is None else _bounds(task, condition, lambda value: value == 0)


def goal_of(task: Task) -> dict[str, Bounds]:
    """Where the reward is as at the setpoint, if it goes down in steps."""
    reward = task.reward_expression
    if reward is None or task.reward_levels is None:
        return {}
    best = max(task.reward_levels)
    return _bounds(task, reward, lambda value: value == best)


def _bounds(task: Task, formula: Expression, holds: Callable[[float], bool]) -> dict[str, Bounds]:
    used = variables(formula)
    aims = {name: aim if isinstance(aim, float) else 0.0 for name, aim in task.setpoints.items()}
    found = {}
    for name in task.states:
        low, high = (_edge(formula, used, aims, name, holds, sign) for sign in (-1.0, 1.0))
        if low is not None and high is not None:
            found[name] = (low, high)
    return found


def _edge(
    formula: Expression,
    used: tuple[Variable, ...],
    aims: dict[str, float],
    name: str,
    holds: Callable[[float], bool],
    sign: float,
) -> float | None:
    """Where it ceases to hold, going one way from the setpoint; None if it does not, or never holds."""
    middle = aims.get(name, 0.0)

    def good(distance: float) -> bool:
        values = {v: _value(v, aims, name, middle + sign * distance) for v in used}
        return holds(evaluate(formula, values))

    far = 1e-3
    if not good(0.0):
        return None
    while good(far):
        far *= 2
        if far > FARTHEST:
            return None
    near = 0.0
    for _ in range(ROUNDS):
        between = (near + far) / 2
        near, far = (between, far) if good(between) else (near, between)
    return float(f"{middle + sign * near:.9g}")


def _value(variable: Variable, aims: dict[str, float], moved: str, to: float) -> float:
    aim = aims.get(variable.name, 0.0)
    value = to if variable.name == moved else aim
    return aim if variable.part == "setpoint" else value - aim if variable.part == "error" else value
