"""The terms of a formula in practice: their range in a log, and their slopes at the steady state."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.data.log import setpoint_rows
from clearloop.expression import Expression, Variable, evaluate, variables
from clearloop.task import Task

_ROWS = 1_000  # rows of the log, evenly spaced, in which terms are evaluated
_SHARE = 0.9  # of these rows that lie in the usual range of a term
_SMALL = 1e-4  # length of the differences, in spreads of the variable


class Experience:
    """The values of the variables of formulas in a log and at the steady state of the loop."""

    def __init__(self, task: Task, batch: Batch, point: Floats, action: Floats, aims: Floats) -> None:
        """Take the values of the variables.

        Args:
            task: The task, which names the variables.
            batch: The log.
            point: [S] the steady state.
            action: [A] the action there.
            aims: [S] the setpoints there; 0 for states without one.
        """
        self.task = task
        s = len(task.states)
        rows = np.linspace(0, len(batch.states) - 1, min(_ROWS, len(batch.states))).astype(np.int64)
        known = setpoint_rows(task, batch.setpoints, len(batch.states))
        self._logged = {name: batch.states[rows, j] for j, name in enumerate(task.state_names)}
        self._logged |= {
            name: np.nan_to_num(batch.actions[rows, j]) for j, name in enumerate(task.action_names)
        }
        self._aims = {name: known[rows, j] for j, name in enumerate(task.state_names)}
        self._rest = dict(zip(task.scope.names, map(float, [*point, *action]), strict=True))
        self._aim = dict(zip(task.state_names, map(float, aims[:s]), strict=True))
        spread = [*batch.states.std(axis=0), *(np.ptp(task.action_limits, axis=1) / 2)]
        self._spread = dict(zip(task.scope.names, (float(x) or 1.0 for x in spread), strict=True))

    def slopes(self, formula: Expression) -> dict[Variable, float]:
        """Return the derivative of a formula by each of its variables, at the steady state."""
        rest = {variable: self._at_rest(variable) for variable in variables(formula)}
        found = {}
        for variable, value in rest.items():
            step = _SMALL * self._spread[variable.name]
            up, down = (_evaluated(formula, rest | {variable: value + d}) for d in (step, -step))
            found[variable] = (up - down) / (2 * step)
        return found

    def range(self, formula: Expression) -> tuple[float, float]:
        """Return the interval in which nine of ten logged values of a formula lie.

        Past values in a formula are taken to be equal to the present ones.
        """
        names = variables(formula)
        columns = [self._column(variable) for variable in names]
        rows = zip(*columns, strict=True) if columns else [()]
        values = [_evaluated(formula, dict(zip(names, map(float, row), strict=True))) for row in rows]
        low, high = np.quantile(values, [(1 - _SHARE) / 2, (1 + _SHARE) / 2])
        return float(low), float(high)

    def _at_rest(self, variable: Variable) -> float:
        aim = self._aim.get(variable.name, 0.0)
        return aim if variable.part == "setpoint" else self._rest[variable.name] - aim

    def _column(self, variable: Variable) -> Any:
        aims = self._aims.get(variable.name, 0.0)
        return aims if variable.part == "setpoint" else self._logged[variable.name] - aims


def _evaluated(formula: Expression, values: Mapping[Variable, float]) -> float:
    return float(evaluate(formula, dict(values)))
