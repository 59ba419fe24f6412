"""States that a controller computes itself from what it is shown, step by step, by the task's formulas."""

from collections import deque
from collections.abc import Mapping, Sequence

from clearloop.controllers.reading import read_formula
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Variable, evaluate, to_text, variables
from clearloop.expression.meanings import read
from clearloop.task import Task

Values = Mapping[str, float]


class Derivation:
    """Remembers as much of an episode as the formulas look back.

    Before the start: the first observation repeated, past actions 0; for the first observation, derived
    values of 0.
    """

    def __init__(self, formulas: Mapping[str, str], actions: Sequence[str]) -> None:
        self._formulas = {name: read_formula(text) for name, text in formulas.items()}
        lags = [v.lag or 0 for formula in self._formulas.values() for v in variables(formula)]
        depth = 1 + max(lags, default=0)
        self._seen: deque[dict[str, float]] = deque(maxlen=depth)
        self._actions: deque[Values] = deque([dict.fromkeys(actions, 0.0)] * depth, maxlen=depth)

    def complete(self, observation: Values, setpoints: Values) -> dict[str, float]:
        """The observation with what is derived from it; what it shows itself is taken as it is."""
        first = not self._seen
        self._seen.appendleft(dict(observation))
        for name, formula in self._formulas.items():
            if name not in observation:
                values = {v: self._value(v, setpoints, first) for v in variables(formula)}
                self._seen[0][name] = read(evaluate(formula, values))
        return dict(self._seen[0])

    def acted(self, action: Values) -> None:
        self._actions.appendleft(action)

    def _value(self, variable: Variable, setpoints: Values, first: bool) -> float:
        name, lag = variable.name, variable.lag or 0
        aim = read(setpoints.get(name, 0.0))
        if variable.part == "setpoint":
            return aim
        if name in self._actions[0]:
            return self._actions[lag - 1][name]
        if lag and first and name in self._formulas:
            return 0.0
        seen = self._seen[min(lag, len(self._seen) - 1)]
        if name not in seen:
            raise ClearloopError(f"the observation has no {quoted(name)}; it has: {', '.join(seen)}")
        return read(seen[name]) - (aim if variable.part == "error" else 0.0)


def needed_formulas(task: Task, read_names: set[str]) -> dict[str, str]:
    """Of the derived states that are read, and of those that these are derived from; in their order."""
    needed = set(read_names)
    for name in reversed(task.derived):
        if name in needed:
            needed |= {variable.name for variable in variables(task.derived[name])}
    return {name: to_text(formula) for name, formula in task.derived.items() if name in needed}
