"""Scenarios from a log."""

import numpy as np
import polars as pl
import pytest

from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.plants.scenarios import Scenarios
from clearloop.surrogate.steps import BEST, Lesson
from clearloop.task import Task

TEXT = """
name = "tank"
dt = 1.0
discount = 1.0
horizon = 4
history = 2
[states]
level = {}
[actions]
valve = { limits = [0, 1] }
[reward]
expression = "-abs(level)"
[starts]
from = "episodes"
"""


def log(episodes: int = 6, rows: int = 5) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "episode": np.repeat(np.arange(episodes), rows),
            "level": np.arange(float(episodes * rows)),
            "valve": np.full(episodes * rows, 0.5),
        }
    )


def test_starts_from_episodes_are_their_first_rows_without_a_past() -> None:
    task = Task.from_toml(TEXT)
    batch = Batch.from_frame(log(), task)
    starts = Scenarios.drawn(task, batch, 100, np.random.default_rng(0)).starts
    assert {*starts[:, 0]} == {0.0, 5.0, 10.0, 15.0, 20.0, 25.0}
    np.testing.assert_array_equal(starts[:, 2], starts[:, 0])  # the first row is repeated
    assert not starts[:, 3].any()

    anywhere = Task.from_toml(TEXT.replace("episodes", "batch"))
    assert len({*Scenarios.drawn(anywhere, batch, 500, np.random.default_rng(0)).starts[:, 0]}) == 6 * 4


def test_models_then_learn_how_episodes_begin() -> None:
    """Rollouts begin with windows that repeat the first row, so these are learned, too."""
    task = Task.from_toml(TEXT)
    batch = Batch.from_frame(log(20), task)
    lesson = Lesson.of(task, batch, BEST, seed=0)
    assert len(lesson.training) + len(lesson.held_out) == len(batch)
    remembered = Lesson.of(Task.from_toml(TEXT.replace("episodes", "batch")), batch, BEST, seed=0)
    assert len(remembered.training) + len(remembered.held_out) == len(batch) - 20


def test_long_logs_keep_whole_episodes() -> None:
    batch = Batch.from_frame(log(50), Task.from_toml(TEXT))
    part = batch.thinned(100, 3, whole=True)
    assert len(part) == 100
    assert part.episode_count == 25
    np.testing.assert_array_equal(part.states[::5, 0] % 5, 0)


def test_from_episodes_stands_alone() -> None:
    with pytest.raises(ClearloopError, match='from = "episodes" allows no other keys'):
        Task.from_toml(TEXT + "level = [0, 1]")
