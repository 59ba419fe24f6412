"""A task's reward and failure in plain Python, step by step: for plants that the engine does not run."""

from collections import deque
from collections.abc import Mapping

from clearloop.expression import Expression, Variable, evaluate, variables
from clearloop.plants.lowering import task_window
from clearloop.task import Task

Values = Mapping[str, float]


class Judge:
    """Remembers as much of an episode as the task's formulas look back."""

    def __init__(self, task: Task, start: Values) -> None:
        depth = task_window(task)
        self._task = task
        self._states: deque[Values] = deque([start] * depth, maxlen=depth)
        self._actions: deque[Values] = deque([dict.fromkeys(task.actions, 0.0)] * depth, maxlen=depth)

    def judge(self, action: Values, after: Values, setpoints: Values) -> tuple[float | None, bool | None]:
        """Reward and failure of a step; None where the task has no formula for it."""
        self._actions.appendleft(action)
        verdicts = [
            None if formula is None else self._value(formula, after, setpoints)
            for formula in (self._task.reward_expression, self._task.failure_condition)
        ]
        self._states.appendleft(after)
        return verdicts[0], None if verdicts[1] is None else verdicts[1] != 0

    def _value(self, formula: Expression, after: Values, setpoints: Values) -> float:
        def read(variable: Variable) -> float:
            if variable.name in self._task.actions:
                return self._actions[variable.lag or 0][variable.name]
            aim = setpoints.get(variable.name, 0.0)
            if variable.part == "setpoint":
                return aim
            state = after if variable.lag is None else self._states[variable.lag]
            return state[variable.name] - (aim if variable.part == "error" else 0.0)

        return evaluate(formula, {variable: read(variable) for variable in variables(formula)})
