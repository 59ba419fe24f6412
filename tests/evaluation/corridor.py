"""A corridor of six places and a pit at its end: a problem whose value function a table holds."""

import numpy as np
import polars as pl

from clearloop.controllers import Equation
from clearloop.data import Batch
from clearloop.task import Task

TEXT = """
name = "corridor"
dt = 1.0
discount = 0.9
horizon = 12

[states]
place = {}

[actions]
move = { limits = [-1.0, 1.0] }

[reward]
cases = [
  { when = "place > 4.5", value = -1.0, failure = true },
  { when = "place < 0.5", value = 0.0 },
]
otherwise = -0.3

[starts]
place = [0.0, 4.0]
"""
CORRIDOR = Task.from_toml(TEXT)
PLACES, MOVES = range(5), (-1, 0, 1)
WARY = Equation(outputs={"move": "if(place < 2.5, -1, if(place > 3.5, 1, 0))"})
"""Flees from 1 and 2, waits at 3, and falls into the pit from 4."""


def move(place: int, by: int) -> int:
    return max(0, place + by)


def batch() -> Batch:
    """Every move from every place, once."""
    rows: list[tuple[int, int, int | None, bool]] = []
    for place in PLACES:
        for by in MOVES:
            episode = len(rows) // 2
            rows += [(episode, place, by, False), (episode, move(place, by), None, move(place, by) == 5)]
    schema = {"episode": int, "place": float, "move": float, "terminal": bool}
    return Batch.from_frame(pl.DataFrame(rows, schema=schema, orient="row"), CORRIDOR)


def penalty(place: int, steps: int) -> float:
    """Of the wary controller, by hand; the pit costs 1 at every step that is left."""
    if not steps:
        return 0.0
    if place == 5:
        return 1.0 + CORRIDOR.discount * penalty(place, steps - 1)
    after = move(place, -1 if place < 2.5 else 1 if place > 3.5 else 0)
    cost = 1.0 if after == 5 else 0.0 if after == 0 else 0.3
    return cost + CORRIDOR.discount * penalty(after, steps - 1)


STARTS = np.array([[float(place)] for place in PLACES])
PENALTIES = [penalty(place, CORRIDOR.horizon) for place in PLACES]
