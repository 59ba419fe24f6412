"""Small plants, and ways to choose actions while a log of them is recorded."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.task import Task

Rng = np.random.Generator


class Past(NamedTuple):
    """What a law may look at in row t."""

    t: int
    states: Floats
    """[t + 1, S] as they were observed"""
    actions: Floats
    """[t, A]"""


Plant = Callable[[Floats, Floats], Floats]
"""(state, action) -> next state"""
Law = Callable[[Past], Floats]
MakeLaw = Callable[[Rng], Law]


def record(
    task: Task,
    plant: Plant,
    law: Law,
    *,
    start: Floats,
    rng: Rng,
    rows: int = 3000,
    episodes: int = 1,
    delay: int = 0,
    noise: float = 0.0,
    setpoints: Floats | None = None,
) -> Batch:
    """`delay`: rows until an action arrives, beyond the usual one. `noise`: of the sensors."""
    n_states, n_actions = len(task.states), len(task.actions)
    states, actions = np.empty((episodes, rows, n_states)), np.zeros((episodes, rows, n_actions))
    for k in range(episodes):
        state = start * rng.uniform(0.5, 1.5, n_states)
        for t in range(rows):
            states[k, t] = state + noise * rng.standard_normal(n_states)
            chosen = law(Past(t, states[k, : t + 1], actions[k, :t]))
            actions[k, t] = np.clip(chosen, *task.action_limits.T)
            state = plant(state, actions[k, t - delay] if t >= delay else np.zeros(n_actions))
    return Batch(
        task.columns,
        states.reshape(-1, n_states),
        actions.reshape(-1, n_actions),
        np.repeat(np.arange(episodes), rows),
        np.zeros(episodes * rows, np.bool_),
        setpoints=setpoints,
    )


def first_order(x: Floats, u: Floats) -> Floats:
    return 0.9 * x + 0.2 * u


def integrator(x: Floats, u: Floats) -> Floats:
    return 0.999 * x + 0.05 * u


def bilinear(x: Floats, u: Floats) -> Floats:
    """The action only stirs: without the state it does nothing."""
    return 0.9 * x + 0.1 + 0.3 * u * x


def second_order(x: Floats, u: Floats) -> Floats:
    return np.array([x[0] + 0.1 * x[1], x[1] + 0.1 * (-2 * x[0] - 0.8 * x[1] + 4 * u[0])])


def pendulum(x: Floats, u: Floats) -> Floats:
    return np.array([x[0] + 0.1 * x[1], x[1] + 0.1 * (-9 * np.sin(x[0]) - 0.5 * x[1] + 6 * u[0])])


def stirred(x: Floats, u: Floats) -> Floats:
    return np.array([0.95 * x[0] + 0.4 * u[0] - 0.2 * u[1], 0.97 * x[1] + 0.1 * u[1]])


def unmoved(x: Floats, _: Floats) -> Floats:
    return second_order(x, np.zeros(1))


def white(rng: Rng) -> Law:
    return lambda _: rng.uniform(-1, 1, 1)


def held(hold: int, low: float = -1.0, actions: int = 1) -> MakeLaw:
    """Random steps."""

    def make(rng: Rng) -> Law:
        return lambda now: rng.uniform(low, 1, actions) if now.t % hold == 0 else now.actions[-1]

    return make


def switched(hold: int) -> MakeLaw:
    """A pseudo-random binary signal."""

    def make(rng: Rng) -> Law:
        return lambda now: rng.choice([-1.0, 1.0], 1) if now.t % hold == 0 else now.actions[-1]

    return make


def feedback(*gains: float, dither: float = 0.0) -> MakeLaw:
    """With a random signal added."""

    def make(rng: Rng) -> Law:
        return lambda now: -now.states[-1:] @ np.array(gains) + dither * rng.standard_normal(1)

    return make


def relay(_: Rng) -> Law:
    return lambda now: -np.sign(now.states[-1, :1] + 0.3 * now.states[-1, 1:])


def by_time(value: Callable[[int], float]) -> MakeLaw:
    """Whatever the states."""
    return lambda _: lambda now: np.array([value(now.t)])


def following(targets: Floats, gain: float, reset: float) -> Law:
    """A PI controller whose setpoint moves."""

    def law(now: Past) -> Floats:
        errors = targets[: now.t + 1] - now.states
        return np.asarray(gain * errors[-1] + reset * errors.sum(axis=0))

    return law
