"""What a controller may choose for an action: limits, and for some actions only whole steps between them."""

from typing import NamedTuple

from clearloop.errors import ClearloopError
from clearloop.task.levels import to_level, whole
from clearloop.task.tables import Action


class Range(NamedTuple):
    low: float
    high: float
    step: float | None
    """None: any value will do"""

    @property
    def parts(self) -> int:
        """Steps from limit to limit (`task/levels.py`); 0: any value will do."""
        return (self.step and whole(self.high - self.low, self.step)) or 0

    def limited(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        return to_level(value, self.low, self.high, self.parts) if self.step else value

    def checked(self, name: str) -> "Range":
        """Itself, if it is a whole number of steps."""
        if self.step and not self.parts:
            what = f"expected limits that are a whole number of steps apart, not {self.low:g} … {self.high:g}"
            raise ClearloopError(f"steps.{name}: {what}")
        return self

    def words(self, unit: str) -> str:
        if self.parts == 1:
            return f"{self.low:g} or {self.high:g}{unit}"
        step = f" in steps of {self.step:g}" if self.step else ""
        return f"limited to {self.low:g} … {self.high:g}{unit}{step}"


def common(name: str, limits: tuple[float, float] | None, step: float | None, action: Action) -> Range:
    """What a controller wants to choose of what the plant can do; it may leave that to the plant."""
    low, high = action.limits
    least, most = limits or action.limits
    if not max(low, least) < min(high, most):
        raise ClearloopError(f"limits.{name}: {least:g} … {most:g} is outside the task's {low:g} … {high:g}")
    found = Range(max(low, least), min(high, most), step or action.step).checked(name)
    if action.step:
        for place, distance in (("steps", found.step), ("limits", found.low - low)):
            if distance and not whole(distance, action.step):
                raise ClearloopError(f"{place}.{name}: expected whole steps of the task's {action.step:g}")
    return found
