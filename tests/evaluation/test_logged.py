"""What the log itself cost: checked against a sum by hand."""

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.evaluation.logged import comparable_rows, logged_penalties
from clearloop.task import Task

TASK = Task.from_toml("""
name = "walk"
dt = 1.0
discount = 0.5
horizon = 3
[states]
place = {}
[actions]
push = { limits = [-1, 1] }
[reward]
cases = [{ when = "place > 90", value = -100.0, failure = true }]
otherwise = -1.0
""")
BY_PLACE = Task.from_toml("""
name = "walk"
dt = 1.0
discount = 0.5
horizon = 3
[states]
place = {}
[actions]
push = { limits = [-1, 1] }
[reward]
expression = "-place"
""")


def batch_of(task: Task, *episodes: list[float]) -> Batch:
    places = np.concatenate([np.array(one, np.float64) for one in episodes])
    labels = np.repeat(np.arange(len(episodes)), [len(one) for one in episodes])
    return Batch(
        task.columns, places[:, None], np.zeros((len(places), 1)), labels, np.zeros(len(places), np.bool_)
    )


def test_the_next_rewards_are_discounted() -> None:
    batch = batch_of(BY_PLACE, [9, 1, 2, 3, 4], [9, 5, 6, 7])
    found = logged_penalties(BY_PLACE, batch, np.arange(9))
    known = {0: 1 + 2 / 2 + 3 / 4, 1: 2 + 3 / 2 + 4 / 4, 5: 5 + 6 / 2 + 7 / 4}
    assert {row: value for row, value in enumerate(found.tolist()) if np.isfinite(value)} == pytest.approx(
        known
    )
    assert comparable_rows(BY_PLACE, batch).tolist() == sorted(known)


def test_failure_goes_on_paying() -> None:
    batch = batch_of(TASK, [0, 1, 99, 99], [0, 1, 2, 3, 4, 5])
    found = logged_penalties(TASK, batch, np.array([0, 1, 4]))
    assert found.tolist() == pytest.approx([1 + 100 / 2 + 100 / 4, 100 + 50 + 25, 1.75])


def test_a_choice_of_failures_alone_is_no_comparison() -> None:
    batch = batch_of(TASK, [0.0, 99.0], *([0.0, 1.0] for _ in range(9)))
    assert comparable_rows(TASK, batch).size == 0
