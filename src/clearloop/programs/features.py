"""Where what a controller reads stands among the engine's features (`kernels/layout.py`)."""

from dataclasses import dataclass

from clearloop.expression import Variable


@dataclass(frozen=True)
class Features:
    """For each lag the states and actions of that time, then the states' setpoints."""

    states: tuple[str, ...]
    actions: tuple[str, ...]
    history: int
    """Lags, the present included."""

    @property
    def count(self) -> int:
        return len(self.states) + self.history * (len(self.states) + len(self.actions))

    def slot(self, variable: Variable) -> int:
        if variable.part == "setpoint":
            return self.count - len(self.states) + self.states.index(variable.name)
        names = (*self.states, *self.actions)
        return (variable.lag or 0) * len(names) + names.index(variable.name)
