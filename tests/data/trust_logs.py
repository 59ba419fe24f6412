"""Logs that a controller can be learned from, and logs that it cannot."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clearloop.data import Batch
from clearloop.task import Task
from tests.data.plants import (
    MakeLaw,
    Plant,
    Rng,
    bilinear,
    by_time,
    feedback,
    first_order,
    following,
    held,
    integrator,
    pendulum,
    record,
    relay,
    second_order,
    stirred,
    switched,
    unmoved,
    white,
)

Make = Callable[[Rng], Batch]


@dataclass(frozen=True)
class Case:
    name: str
    task: Task
    make: Make
    code: str = ""
    """of the refusal; none for a good log"""

    def batch(self, seed: int = 0) -> Batch:
        return self.make(np.random.default_rng(seed))


def task_of(states: str, actions: str, reward: str, history: int = 1) -> Task:
    return Task.from_toml(f"""
name = "plant"
dt = 0.1
discount = 0.97
horizon = 40
history = {history}
[states]
{states}
[actions]
{actions}
[reward]
expression = "{reward}"
""")


LEVEL_STATE = 'level = { unit = "m", setpoint = 0.5 }'
CART_STATES = 'place = { unit = "m" }\nspeed = { unit = "m/s" }'
LEVEL = task_of(LEVEL_STATE, "pump = { limits = [-1, 1] }", "-abs(level.error)")
DELAYED = task_of(LEVEL_STATE, "pump = { limits = [-1, 1] }", "-abs(level.error)", history=6)
AIMED = task_of(
    'level = { unit = "m", setpoint = "wanted" }', "pump = { limits = [-5, 5] }", "-abs(level.error)", 2
)
CART = task_of(CART_STATES, "push = { limits = [-1, 1] }", "-abs(place)")
STRONG_CART = task_of(CART_STATES, "push = { limits = [-100, 100] }", "-abs(place)")
STIRRED = task_of(
    'warm = { unit = "degC" }\nfull = { unit = "m" }',
    "heater = { limits = [0, 1] }\nvalve = { limits = [0, 1] }",
    "-abs(warm) - abs(full)",
)


def plain(name: str, task: Task, plant: Plant, law: MakeLaw, code: str = "", **how: Any) -> Case:
    start = np.array([1.0, 0.5])[: len(task.states)]
    return Case(name, task, lambda rng: record(task, plant, law(rng), start=start, rng=rng, **how), code)


def aimed(name: str, steps: int, code: str = "") -> Case:
    """Under a PI controller with so many setpoints."""

    def make(rng: Rng) -> Batch:
        targets = np.repeat(rng.uniform(0, 1, steps), 3000 // steps)[:, None]
        law = following(targets, 1.5, 0.1)
        start = np.array([0.2])
        return record(AIMED, first_order, law, start=start, rng=rng, noise=0.02, setpoints=targets)

    return Case(name, AIMED, make, code)


GOOD = (
    plain("white noise", CART, second_order, white),
    plain("random steps", LEVEL, first_order, held(15), noise=0.01),
    plain("binary signal", CART, second_order, switched(7)),
    plain("slow steps that settle", LEVEL, first_order, held(100), rows=6000),
    plain("feedback with dither", CART, second_order, feedback(0.5, 0.4, dither=0.2)),
    plain(
        "feedback, small dither", CART, second_order, feedback(0.8, 0.4, dither=0.02), episodes=60, rows=50
    ),
    plain("noisy sensors", CART, second_order, held(5), noise=0.05),
    plain("delay within history", DELAYED, integrator, held(10), delay=4, noise=0.005),
    plain("two actions", STIRRED, stirred, held(8, low=0, actions=2), noise=0.02),
    plain("nonlinear", CART, pendulum, held(4), episodes=30, rows=100),
    plain("bilinear", LEVEL, bilinear, white),
    plain("short episodes", CART, pendulum, white, episodes=100, rows=20),
    aimed("setpoint steps", steps=60),
)
WHITE, STEPS = GOOD[:2]


def spoilt(
    good: Case, name: str, code: str, spoil: Callable[[Batch, Rng], Batch], task: Task | None = None
) -> Case:
    return Case(name, task or good.task, lambda rng: spoil(good.make(rng), rng), code)


def freeze(batch: Batch, _: Rng) -> Batch:
    states = batch.states.copy()
    states[1000:1400, 1] = states[1000, 1]
    return replace(batch, states=states)


def shuffle(batch: Batch, rng: Rng) -> Batch:
    order = rng.permutation(len(batch.states))
    return replace(batch, states=batch.states[order], actions=batch.actions[order])


def swap_states(batch: Batch, _: Rng) -> Batch:
    return replace(batch, states=batch.states[:, ::-1].copy())


def swap_action(batch: Batch, _: Rng) -> Batch:
    return replace(batch, states=batch.actions, actions=batch.states)


def shorten(batch: Batch, _: Rng) -> Batch:
    arrays: dict[str, Any] = {
        name: getattr(batch, name)[:60] for name in ("states", "actions", "episodes", "terminal")
    }
    return replace(batch, **arrays)


def replay_elsewhere(batch: Batch, rng: Rng) -> Batch:
    return replace(batch, actions=rng.uniform(-1, 1, batch.actions.shape))


def in_percent(batch: Batch, _: Rng) -> Batch:
    return replace(batch, actions=100 * batch.actions)


def as_it_is(batch: Batch, _: Rng) -> Batch:
    return batch


BAD = (
    plain("no excitation", CART, second_order, by_time(lambda _: 0.3), "constant-action", noise=0.01),
    plain(
        "pure feedback", CART, second_order, feedback(0.5, 0.4), "determined-action",
        episodes=60, rows=50, noise=0.02,
    ),
    plain("relay", CART, second_order, relay, "determined-action", noise=0.05),
    aimed("PI without steps", 3, "determined-action"),
    plain("delay beyond history", LEVEL, integrator, held(10), "delay", delay=4, noise=0.005),
    plain("long delay", CART, second_order, white, "delay", delay=12),
    spoilt(WHITE, "frozen sensor", "frozen-sensor", freeze),
    spoilt(WHITE, "place and speed swapped", "swapped-columns", swap_states),
    spoilt(STEPS, "state and action swapped", "swapped-columns", swap_action),
    spoilt(WHITE, "too short", "size", shorten),
    spoilt(WHITE, "actions of another day", "no-effect", replay_elsewhere),
    plain("a disconnected drive", CART, unmoved, held(5), "no-effect", noise=0.05),
    spoilt(WHITE, "shuffled rows", "unrelated-rows", shuffle),
    plain(
        "saturated", LEVEL, first_order, by_time(lambda t: 2.0 if t % 100 else 0.9), "saturated-action",
        noise=0.01,
    ),
    spoilt(WHITE, "action in percent", "action-limits", in_percent),
    spoilt(WHITE, "action as a share", "narrow-action", as_it_is, STRONG_CART),
    plain("one step", LEVEL, first_order, by_time(lambda t: 0.2 + 0.5 * (t > 1500)), "few-moves", noise=0.01),
)  # fmt: skip
