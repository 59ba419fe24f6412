"""Logs to read, to check and to break."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clearloop.data import Batch
from clearloop.task import Task

CARTPOLE = Task.load("cartpole")
TANK = Task.from_toml("""
name = "tank"
dt = 1.0
discount = 0.9
horizon = 50
[states]
level = { setpoint = "target" }
flow = {}
[actions]
valve = { limits = [0, 1] }
[reward]
column = "profit"
[data]
flow = "FT 101"
""")


def clean_log(episodes: int = 200, rows: int = 15) -> pl.DataFrame:
    """Nothing is wrong with it, though no cart moves like this."""
    rng = np.random.default_rng(0)
    count = episodes * rows
    place = np.arange(count) % rows
    scale = {"theta": 0.7, "theta_dot": 2.0, "rho": 2.4, "rho_dot": 2.0, "force": 10.0}
    columns: dict[str, NDArray[Any]] = {"time": place * CARTPOLE.dt, "episode": np.arange(count) // rows}
    columns |= {name: rng.uniform(-width, width, count) for name, width in scale.items()}
    columns |= {
        "reward": rng.choice([0.0, -0.1], count),
        "terminal": (place == rows - 1) & (rng.random(count) < 0.7),
    }
    return pl.DataFrame(columns)


def same(one: Batch, other: Batch) -> bool:
    """Equal in every array, NaN included."""
    pairs = [(getattr(one, name), getattr(other, name)) for name in vars(one) if name != "columns"]
    return one.columns == other.columns and all(
        a is b is None
        or (a is not None and b is not None and np.array_equal(a, b, equal_nan=a.dtype == float))
        for a, b in pairs
    )
