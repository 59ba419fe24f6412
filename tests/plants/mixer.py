"""A plant that is nothing like a cart-pole: other names, two actions, and rewards that look back."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clearloop.task import Task

TEXT = """
name = "mixer"
dt = 0.5
discount = 0.9
horizon = 12
history = 3
[states]
level = { unit = "m", setpoint = 1.0 }
heat  = { unit = "°C" }
[actions]
inlet  = { limits = [-1.0, 1.0] }
burner = { limits = [0.0, 2.0], unit = "kW" }
[reward]
cases = [
  { when = "abs(level.error) < 0.2137 and inlet[t-1] < 0.8765", value = 0.5 },
  { when = "heat > 3.0123 and burner[t-2] > 0.2101 and level[t] < 5", value = -2.0, failure = true },
]
otherwise = -0.25
[starts]
level = [-1.0, 2.5]
heat = [0.0, 0.5]
[exploration]
steps = 9
size = 500
[plant]
substeps = 3
derivative = { level = "inlet", heat = "burner - inlet*0.5" }
on_failure = { heat = -1.0 }
"""

MIXER = Task.from_toml(TEXT)

Steps = Sequence[tuple[float, float]]


def judge(
    levels: Sequence[float], heat: float, inlets: Sequence[float], burners: Sequence[float], setpoint: float
) -> tuple[float, bool]:
    """Reward and failure of the latest step; levels before and after it, actions up to it."""
    before = [0.0, 0.0]
    if abs(levels[-1] - setpoint) < 0.2137 and [*before, *inlets][-2] < 0.8765:
        return 0.5, False
    if heat > 3.0123 and [*before, *burners][-3] > 0.2101 and levels[-2] < 5:
        return -2.0, True
    return -0.25, False


def course(
    start: tuple[float, float], steps: Steps, setpoint: float = 1.0
) -> tuple[NDArray[np.float64], list[float], bool]:
    """States [T + 1, 2] and rewards under given actions: with constant slopes, Runge–Kutta is exact."""
    states, rewards, failed = [start], list[float](), False
    for count in range(1, len(steps) + 1):
        inlet, burner = steps[count - 1]
        level, heat = states[-1]
        if failed:
            states.append(states[-1])
            rewards.append(rewards[-1])
            continue
        level, heat = level + 0.5 * inlet, heat + 0.5 * (burner - 0.5 * inlet)
        levels = [state[0] for state in states] + [level]
        inlets, burners = zip(*steps[:count], strict=True)
        reward, failed = judge(levels, heat, inlets, burners, setpoint)
        states.append((level, -1.0 if failed else heat))
        rewards.append(reward)
    return np.array(states), rewards, failed
