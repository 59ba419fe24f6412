"""What a controller in plain Python remembers of an episode."""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from clearloop.controllers.derivation import Derivation
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Variable
from clearloop.expression.meanings import read

Values = Mapping[str, float]


class Memory:
    """Observations, setpoints and actions, the latest first; `controller.reset()` gives an empty one.

    Before the start: the first observation repeated, past actions 0.
    """

    def __init__(self, depth: int, actions: Sequence[str]) -> None:
        self._observations: deque[Values] = deque(maxlen=depth)
        self._setpoints: deque[Values] = deque(maxlen=depth)
        self._actions: deque[Values] = deque([dict.fromkeys(actions, 0.0)] * depth, maxlen=depth)
        self.derivation: Derivation | None = None
        """what computes states that are not shown"""

    def observe(self, observation: Values, setpoint: Values) -> None:
        """Keep what is seen, limited as formulas read it, and what is aimed at."""
        for name, value in observation.items():
            if math.isnan(value):
                raise ClearloopError(f"the observation of {quoted(name)} is not a number")
        self._observations.appendleft({name: read(value) for name, value in observation.items()})
        self._setpoints.appendleft({name: read(value) for name, value in setpoint.items()})

    def acted(self, action: Values) -> None:
        self._actions.appendleft(action)
        if self.derivation:
            self.derivation.acted(action)

    def error(self, variable: Variable) -> float:
        """What a name in a formula means: value − setpoint; `rho.setpoint` is the setpoint itself."""
        aim = self._setpoints[0].get(variable.name, 0.0)
        return aim if variable.part == "setpoint" else self.value(variable.name, variable.lag or 0) - aim

    def errors(self, name: str) -> Iterator[float]:
        """What a PID loop sees: setpoint − value of each time, the latest first."""
        for lag, setpoint in enumerate(self._setpoints):
            yield setpoint.get(name, 0.0) - self.value(name, lag)

    def value(self, name: str, lag: int) -> float:
        """Of a state `lag` steps ago, or of an action, at least one step ago."""
        if name in self._actions[0]:
            return read(self._actions[lag - 1][name])
        seen = self._observations[min(lag, len(self._observations) - 1)]
        if name not in seen:
            raise ClearloopError(f"the observation has no {quoted(name)}; it has: {', '.join(seen)}")
        return seen[name]
