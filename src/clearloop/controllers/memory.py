"""The memory of a controller in plain Python: past observations, setpoints and actions of an episode."""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clearloop.arrays import Floats
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Expression, Variable, evaluate, variables
from clearloop.expression.nodes import read

Values = Mapping[str, float]


class Past:
    """The past observations and actions, the latest first, limited as formulas read them.

    Before the start of an episode, the first observation is repeated, and past actions are 0.

    Args:
        depth: The number of observations and of actions that are kept.
        actions: The names of the actions.
    """

    def __init__(self, depth: int, actions: Sequence[str]) -> None:
        self._observations: deque[Values] = deque(maxlen=depth)
        self._actions: deque[Values] = deque([dict.fromkeys(actions, 0.0)] * depth, maxlen=depth)

    def acted(self, action: Values) -> None:
        """Keep the action that was chosen for the latest observation."""
        self._actions.appendleft({name: read(value) for name, value in action.items()})

    def value(self, name: str, lag: int) -> float:
        """Return the value of a state `lag` steps ago, or of an action, for which `lag` is at least 1."""
        if name in self._actions[0]:
            return self._actions[lag - 1][name]
        seen = self._observations[min(lag, len(self._observations) - 1)]
        if name not in seen:
            raise ClearloopError(f"the observation has no {quoted(name)}; it has: {', '.join(seen)}")
        return seen[name]


class Derivation(Past):
    """The states that a controller computes itself from each observation, by the formulas of the task.

    As much of an episode is remembered as the formulas look back. At the first observation, past derived
    values are 0.

    Args:
        formulas: The formulas of the derived states, in the order in which they are computed.
        actions: The names of the actions.
    """

    def __init__(self, formulas: Mapping[str, Expression], actions: Sequence[str]) -> None:
        lags = [v.lag or 0 for formula in formulas.values() for v in variables(formula)]
        super().__init__(1 + max(lags, default=0), actions)
        self._formulas = formulas

    def complete(self, observation: Values, setpoints: Values) -> dict[str, float]:
        """Return the observation with the derived states that it does not contain itself."""
        first = not self._observations
        seen = {name: read(value) for name, value in observation.items()}
        self._observations.appendleft(seen)
        for name, formula in self._formulas.items():
            if name not in observation:
                values = {v: self._read(v, setpoints, first) for v in variables(formula)}
                seen[name] = read(evaluate(formula, values))
        return {**seen, **observation}

    def _read(self, variable: Variable, setpoints: Values, first: bool) -> float:
        """Return the value of a variable; unlike in a control law, a bare name is the value itself."""
        name, lag = variable.name, variable.lag or 0
        aim = read(setpoints.get(name, 0.0))
        if variable.part == "setpoint":
            return aim
        if lag and first and name in self._formulas:
            return 0.0
        return self.value(name, lag) - (aim if variable.part == "error" else 0.0)


class Memory(Past):
    """The past observations, setpoints and actions of an episode; `controller.reset()` gives an empty one."""

    def __init__(self, depth: int, actions: Sequence[str]) -> None:
        super().__init__(depth, actions)
        self._setpoints: deque[Values] = deque(maxlen=depth)
        self.derivation: Derivation | None = None
        """the states that the controller computes itself, if there are any"""

    @classmethod
    def of_windows(cls, windows: Floats, names: Sequence[str], aims: Floats) -> "Memory":
        """Return a memory of N plants at once, in which every value is an array [N].

        Args:
            windows: [N, H, S + A] observations and actions, a row for each lag, the present first.
            names: The names of the states, then of the actions.
            aims: [S] the constant setpoints.
        """
        depth, n_states = windows.shape[1], len(aims)
        states, actions = names[:n_states], names[n_states:]
        memory = cls(depth, actions)
        for lag, row in enumerate(windows.transpose(1, 2, 0)):
            seen: dict[str, Any] = dict(zip(states, row[:n_states], strict=True))
            done: dict[str, Any] = dict(zip(actions, row[n_states:], strict=True))
            memory._observations.append(seen)
            memory._setpoints.append(dict(zip(states, aims.tolist(), strict=True)))
            if lag:  # the present action is still to be chosen
                memory._actions[lag - 1] = done
        return memory

    def observe(self, observation: Values, setpoint: Values) -> None:
        """Keep an observation, limited as formulas read it, and its setpoints."""
        for name, value in observation.items():
            if math.isnan(value):
                raise ClearloopError(f"the observation of {quoted(name)} is not a number")
        self._observations.appendleft({name: read(value) for name, value in observation.items()})
        self._setpoints.appendleft({name: read(value) for name, value in setpoint.items()})

    def acted(self, action: Values) -> None:
        """Keep the action that was chosen for the latest observation, also for derived states."""
        super().acted(action)
        if self.derivation:
            self.derivation.acted(action)

    def error(self, variable: Variable) -> float:
        """Return what a variable means in a formula: value − setpoint, or for `rho.setpoint` the setpoint."""
        aim = self._setpoints[0].get(variable.name, 0.0)
        return aim if variable.part == "setpoint" else self.value(variable.name, variable.lag or 0) - aim

    def errors(self, name: str) -> Iterator[float]:
        """Yield the errors of a PID loop, setpoint − value at each time, the latest first."""
        for lag, setpoint in enumerate(self._setpoints):
            yield setpoint.get(name, 0.0) - self.value(name, lag)
