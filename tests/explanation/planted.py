"""Logs of plants under laws that are known, so that what `explain` finds can be compared."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.task import Task
from tests.twin import integrate

Plant = Callable[[Floats, Floats], Floats]
"""States [N, S] after a step, from states and an action [N]."""
Noise = Callable[[np.random.Generator, tuple[int, int]], Floats]
"""[T, N] what is added to the actions."""

CARTPOLE = Task.load("cartpole")
TANK = Task.from_dict(
    {
        "name": "tank",
        "dt": 0.5,
        "discount": 0.99,
        "horizon": 100,
        "states": {"level": {"unit": "m", "setpoint": "aim"}},
        "actions": {"valve": {"limits": [-10.0, 10.0]}},
        "reward": {"expression": "-abs(level.error)"},
        "starts": {"level": [-1.0, 1.0]},
    }
)


@dataclass(frozen=True, kw_only=True)
class Law:
    """c + Kp x + Ki dt Σ x + Kd d/dt x, x = value - setpoint, in seconds; a gain for each state."""

    kp: tuple[float, ...]
    ki: tuple[float, ...] = (0.0,)
    kd: tuple[float, ...] = (0.0,)
    pole: float = 0.0
    """of the derivative's filter"""
    window: int = 0
    """rows of the sum; 0: all"""
    constant: float = 0.0
    delay: int = 0

    def ask(self, past: list[Floats], rate: Floats, dt: float) -> tuple[Floats, Floats]:
        """[N] the action, and [N, S] the filtered rate, from all errors [N, S] up to now."""
        known = past[: len(past) - self.delay] or past[:1]
        change = known[-1] - known[-2] if len(past) > self.delay + 1 else np.zeros_like(past[0])
        rate = self.pole * rate + (1 - self.pole) * change / dt
        total = dt * np.sum(known[-self.window :], axis=0)
        gains = [np.broadcast_to(gain, past[0].shape[1]) for gain in (self.kp, self.ki, self.kd)]
        return self.constant + known[-1] @ gains[0] + total @ gains[1] + rate @ gains[2], rate


def white(size: float) -> Noise:
    return lambda rng, shape: rng.normal(0, size, shape)


def held(size: float, steps: int) -> Noise:
    """Uniform, the same for some steps."""
    return lambda rng, shape: np.repeat(rng.uniform(-size, size, shape), steps, axis=0)[: shape[0]]


def drifting(size: float, keep: float) -> Noise:
    """v[t] = keep v[t-1] + w[t]."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        new = rng.normal(0, size * np.sqrt(1 - keep**2), shape)
        new[0] /= np.sqrt(1 - keep**2)
        for t in range(1, len(new)):
            new[t] += keep * new[t - 1]
        return new

    return draw


def tank(state: Floats, action: Floats) -> Floats:
    """Fills and leaks: a time constant of 10 s."""
    return 0.95 * state + 0.05 * action[:, None]


def make_log(
    law: Law, noise: Noise, seed: int = 0, *, episodes: int = 200, steps: int = 60, reach: float = 10.0,
    task: Task = CARTPOLE, plant: Plant = integrate,
) -> Batch:  # fmt: skip
    """Rows of each episode up to where the cart-pole fails; setpoints, if any, change twice in an episode."""
    rng = np.random.default_rng(seed)
    count = len(task.states)
    state = rng.uniform(-1, 1, (episodes, count)) * ([0.3, 0.5, 1.0, 0.5] if count == 4 else 1.0)
    aims = np.repeat(rng.uniform(-1, 1, (3, episodes)), -(-steps // 3), axis=0)[:steps]
    aims = aims if task is TANK else np.zeros((steps, episodes))
    added = noise(rng, (steps, episodes))
    past: list[Floats] = []
    rate = np.zeros_like(state)
    states, actions = [], []
    for t in range(steps):
        past.append(state - aims[t][:, None])
        asked, rate = law.ask(past, rate, task.dt)
        states.append(state)
        actions.append(np.clip(asked + added[t], -reach, reach))
        state = plant(state, actions[-1])
    limits = np.array([0.7, np.inf, 2.4, np.inf])[:count] if task is CARTPOLE else np.inf
    kept = np.logical_and.accumulate((np.abs(states) < limits).all(axis=2)).T.ravel()
    number = np.repeat(np.arange(episodes), steps)[kept]
    return Batch(
        task.columns,
        np.swapaxes(states, 0, 1).reshape(-1, count)[kept],
        np.transpose(actions).reshape(-1, 1)[kept],
        np.unique(number, return_inverse=True)[1],
        np.zeros(len(number), np.bool_),
        setpoints=aims.T.reshape(-1, 1)[kept] if task is TANK else None,
    )
