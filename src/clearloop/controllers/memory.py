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

    Before the start of an episode, the first observation is repeated, and past actions are 0, or as given.

    Args:
        depth: The number of observations and of actions that are kept.
        actions: The names of the actions.
        before: The values of actions before the start, where they are not 0.
    """

    def __init__(self, depth: int, actions: Sequence[str], before: Values | None = None) -> None:
        self._observations: deque[Values] = deque(maxlen=depth)
        past: Values = dict.fromkeys(actions, 0.0) | dict(before or {})
        self._actions: deque[Values] = deque([past] * depth, maxlen=depth)

    def acted(self, action: Values) -> None:
        """Keep the action that was chosen for the latest observation."""
        self._actions.appendleft({name: read(value) for name, value in action.items()})

    def replaced(self, action: Values) -> None:
        """Keep another action for the latest observation than the chosen one: what was really applied."""
        self._actions[0] = {name: read(value) for name, value in action.items()}

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
        before: The values of actions before the start, where they are not 0.
    """

    def __init__(
        self, formulas: Mapping[str, Expression], actions: Sequence[str], before: Values | None = None
    ) -> None:
        lags = [v.lag or 0 for formula in formulas.values() for v in variables(formula)]
        super().__init__(1 + max(lags, default=0), actions, before)
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

    def __init__(self, depth: int, actions: Sequence[str], before: Values | None = None) -> None:
        super().__init__(depth, actions, before)
        self._setpoints: deque[Values] = deque(maxlen=depth)
        self.derivation: Derivation | None = None
        """the states that the controller computes itself, if there are any"""
        self.kept: dict[str, Any] = {}
        """what a kind keeps itself from step to step, such as an integral"""

    @classmethod
    def of_windows(
        cls,
        windows: Floats,
        names: Sequence[str],
        aims: Floats,
        depth: int = 0,
        before: Values | None = None,
    ) -> "Memory":
        """Return a memory of N plants at once, in which every value is an array [N].

        Args:
            windows: [N, H, S + A] observations and actions, a row for each lag, the present first.
            names: The names of the states, then of the actions.
            aims: [S] the constant setpoints.
            depth: The number of observations to keep, if that is more than the windows have.
            before: The values of actions before the windows, where they are not 0.
        """
        depth, n_states = max(windows.shape[1], depth), len(aims)
        states, actions = names[:n_states], names[n_states:]
        memory = cls(depth, actions, before)
        for lag, row in enumerate(windows.transpose(1, 2, 0)):
            seen: dict[str, Any] = dict(zip(states, row[:n_states], strict=True))
            done: dict[str, Any] = dict(zip(actions, row[n_states:], strict=True))
            memory._observations.append(seen)
            memory._setpoints.append(dict(zip(states, aims.tolist(), strict=True)))
            if lag:  # the present action is still to be chosen
                memory._actions[lag - 1] = done
        return memory

    def follow(self, window: Floats, names: Sequence[str], aims: Floats) -> None:
        """Go on by a step with N plants at once.

        Args:
            window: [N, 2, S + A] the present row and the one before, whose actions were taken then.
            names: The names of the states, then of the actions.
            aims: [S] the constant setpoints.
        """
        n_states = len(aims)
        self._observations.appendleft(dict(zip(names[:n_states], window[:, 0, :n_states].T, strict=True)))
        self._setpoints.appendleft(dict(zip(names[:n_states], aims.tolist(), strict=True)))
        self._actions.appendleft(dict(zip(names[n_states:], window[:, 1, n_states:].T, strict=True)))

    @property
    def rows(self) -> int:
        """The number of observations that are kept."""
        return len(self._observations)

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

    def replaced(self, action: Values) -> None:
        """Keep another action for the latest observation, also for derived states."""
        super().replaced(action)
        if self.derivation:
            self.derivation.replaced(action)

    def error(self, variable: Variable) -> float:
        """Return what a variable means in a formula: value − setpoint, or for `rho.setpoint` the setpoint."""
        aim = self._setpoints[0].get(variable.name, 0.0)
        return aim if variable.part == "setpoint" else self.value(variable.name, variable.lag or 0) - aim

    def setpoint(self, name: str, lag: int = 0) -> float:
        """Return the setpoint of a state some steps ago; 0 if it has none."""
        return self._setpoints[lag].get(name, 0.0)

    def errors(self, name: str) -> Iterator[float]:
        """Yield the errors of a PID loop, setpoint − value at each time, the latest first."""
        for lag, setpoint in enumerate(self._setpoints):
            yield setpoint.get(name, 0.0) - self.value(name, lag)
