"""Logs to learn from, and surrogates whose every number is known."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.networks import Network, Training
from clearloop.plants.exploration import make_batch
from clearloop.surrogate import BEST, PUBLISHED, Surrogate
from clearloop.surrogate.fitting import KnownReward
from clearloop.surrogate.steps import FailureEffect
from clearloop.task import Task

BRIEF = Training(epochs=12, batch_size=32, learning_rate=1e-2)
QUICK = replace(BEST, search=2, judge=1, training=BRIEF)
QUICK_PUBLISHED = replace(PUBLISHED, training=BRIEF)

CARTPOLE = Task.load("cartpole")
CARTPOLE_BY_COLUMN = Task.from_dict(
    CARTPOLE.model_dump(mode="json", exclude={"reward", "plant"}) | {"reward": {"column": "reward"}}
)

TANK = Task.from_toml("""
name = "tank"
dt = 1.0
discount = 0.9
horizon = 10
history = 3
[states]
level = { unit = "m", setpoint = "target" }
flow = { unit = "l/s" }
[actions]
valve = { limits = [0, 1] }
[reward]
column = "profit"
""")

SLIDER = Task.from_toml("""
name = "slider"
dt = 0.1
discount = 0.9
horizon = 15
[states]
place = { unit = "m" }
speed = { unit = "m/s" }
[actions]
push = { limits = [-1, 1] }
[reward]
cases = [{ when = "abs(place) > 5", value = -1.0, failure = true }]
otherwise = 0.0
""")
PUSHED = np.array([[0.0, 0.1, 0.0], [0.0, -0.05, 0.2]])  # the slider's change of place and speed


def cartpole_log(size: int) -> Batch:
    return make_batch(CARTPOLE, rng=np.random.default_rng(0), size=size)


def tank_log() -> Batch:
    """Forty episodes of twenty rows; the profit depends on setpoint, state and actions."""
    rng = np.random.default_rng(1)
    episodes = np.repeat(np.arange(40), 20)
    states, actions = rng.uniform(0, 2, (800, 2)), rng.uniform(0, 1, (800, 1))
    target = np.repeat(rng.uniform(0.5, 1.5, 40), 20)
    profit = -np.abs(np.roll(states[:, 0], -1) - target) - 0.5 * actions[:, 0]
    terminal = np.zeros(800, np.bool_)
    return Batch(TANK.columns, states, actions, episodes, terminal, profit, setpoints=target[:, None])


def slider_log(episodes: int = 30, rows: int = 25, reach: float = 4.0) -> Batch:
    """From anywhere within reach, under random pushes; exact to rounding, and far from any failure."""
    rng = np.random.default_rng(2)
    states = np.empty((episodes, rows, 2))
    states[:, 0] = rng.uniform(-1, 1, (episodes, 2)) * [reach, 0.5]
    actions = rng.uniform(-1, 1, (episodes, rows, 1))
    for row in range(1, rows):
        before = np.concatenate([states[:, row - 1], actions[:, row - 1]], axis=1)
        states[:, row] = before[:, :2] + before @ PUSHED.T
    return Batch(
        SLIDER.columns,
        states.reshape(-1, 2),
        actions.reshape(-1, 1),
        np.repeat(np.arange(episodes), rows),
        np.zeros(episodes * rows, np.bool_),
    )


def linear_network(gains: Floats, bias: float = 0.0) -> Network:
    """gains · x + bias, exactly: x = relu(x) − relu(−x)."""
    both = np.vstack([np.eye(len(gains)), -np.eye(len(gains))])
    return Network(
        (both, np.concatenate([gains, -gains])[None]), (np.zeros(2 * len(gains)), np.array([bias]))
    )


def slider_model(*changes: Callable[[Floats], tuple[Floats, float]]) -> Surrogate:
    """A member for each function from the true gains of a state's change to its own gains and bias."""
    members = tuple(tuple(linear_network(*change(gains)) for gains in PUSHED) for change in changes)
    return Surrogate(
        task=SLIDER,
        track=replace(BEST, search=len(members), judge=0, training=Training(hidden=(6,))),
        dynamics=members,
        reward=KnownReward(SLIDER),
        failure=FailureEffect.of_all_states(2, altered=False),
        region=np.array([[-4.0, 4.0], [-1.0, 1.0], [-1.0, 1.0]]),
        batch="",
        split_seed=0,
    )
