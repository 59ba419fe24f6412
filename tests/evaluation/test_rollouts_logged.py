"""What the log itself cost: checked against a sum by hand."""

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.evaluation.rollouts import LoggedCost
from clearloop.task import Task

WALK = """
name = "walk"
dt = 1.0
discount = 0.5
horizon = 3
[states]
place = {}
[actions]
push = { limits = [-1, 1] }
[reward]
"""
TASK = Task.from_toml(
    WALK + 'cases = [{ when = "place > 90", value = -100.0, failure = true }]\notherwise = -1.0'
)
BY_PLACE = Task.from_toml(WALK + 'expression = "-place"')


def batch_of(task: Task, *episodes: list[float]) -> Batch:
    places = np.concatenate([np.array(one, np.float64) for one in episodes])
    labels = np.repeat(np.arange(len(episodes)), [len(one) for one in episodes])
    return Batch(
        task.columns, places[:, None], np.zeros((len(places), 1)), labels, np.zeros(len(places), np.bool_)
    )


def costs(task: Task, batch: Batch) -> dict[int, float]:
    """By row."""
    logged = LoggedCost(task, batch)
    penalties = logged.penalties(np.arange(len(logged.rows)))
    return dict(zip(logged.rows.tolist(), penalties.tolist(), strict=True))


def test_the_next_rewards_are_discounted() -> None:
    batch = batch_of(BY_PLACE, [9, 1, 2, 3, 4], [9, 5, 6, 7])
    known = {0: 1 + 2 / 2 + 3 / 4, 1: 2 + 3 / 2 + 4 / 4, 5: 5 + 6 / 2 + 7 / 4}
    assert costs(BY_PLACE, batch) == pytest.approx(known)


def test_some_rows_are_enough() -> None:
    logged = LoggedCost(BY_PLACE, batch_of(BY_PLACE, [9, 1, 2, 3, 4], [9, 5, 6, 7]))
    assert logged.penalties(np.array([2])).tolist() == pytest.approx([5 + 6 / 2 + 7 / 4])


def test_failure_goes_on_paying() -> None:
    batch = batch_of(TASK, [0, 1, 99, 99], [0, 1, 2, 3, 4, 5])
    found = costs(TASK, batch)
    assert found[0] == pytest.approx(1 + 100 / 2 + 100 / 4)
    assert found[1] == pytest.approx(100 + 50 + 25)
    assert found[4] == pytest.approx(1.75)


def test_a_choice_of_failures_alone_is_no_comparison() -> None:
    batch = batch_of(TASK, [0.0, 99.0], *([0.0, 1.0] for _ in range(9)))
    assert costs(TASK, batch) == {}
