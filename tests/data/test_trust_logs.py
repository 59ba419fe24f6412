"""Planted logs: the bad ones are refused with the right reason, the good ones are not."""

import numpy as np
import polars as pl
import pytest

from clearloop.data import check
from clearloop.plants.exploration import make_batch
from clearloop.task import Task
from tests.data.trust_logs import BAD, CART, GOOD, WHITE, Case


@pytest.mark.parametrize("case", GOOD, ids=[case.name for case in GOOD])
def test_a_good_log_is_not_refused(case: Case) -> None:
    report = check(case.task, case.batch())
    assert [finding for finding in report.findings if finding.severity == "problem"] == []


@pytest.mark.parametrize("case", BAD, ids=[case.name for case in BAD])
def test_a_bad_log_is_refused_with_the_right_reason(case: Case) -> None:
    problems = [
        finding for finding in check(case.task, case.batch()).findings if finding.severity == "problem"
    ]
    assert case.code in {finding.code for finding in problems}
    assert all(len(finding.message) > 30 for finding in problems)  # what, and what to do


def test_the_cart_poles_own_log_is_fit() -> None:
    task = Task.load("cartpole")
    report = check(task, make_batch(task, rng=np.random.default_rng(0)))
    assert report.severity in ("ok", "note")


def codes(frame: pl.DataFrame, severity: str) -> set[str]:
    return {finding.code for finding in check(CART, frame).findings if finding.severity == severity}


def test_warnings_of_sensors() -> None:
    frame = WHITE.batch().to_frame()
    repeated = frame[np.sort(np.append(np.arange(3000), np.arange(0, 3000, 20)))]
    assert "repeated-rows" in codes(repeated, "warning")
    assert "coarse-sensor" in codes(frame.with_columns(pl.col("place").round(0)), "warning")
    assert "wrong-units" in codes(frame.with_columns(place=57.3 * pl.col("place")), "warning")
    assert "short-history" in codes(frame.with_columns(speed=0.0), "warning")
    assert not codes(frame, "warning")


@pytest.mark.parametrize("rows", [[0], [0, 1, 2], [-1], "each first", "each last"])
def test_an_action_that_only_begins_or_ends_otherwise_is_constant(rows: list[int] | str) -> None:
    frame = WHITE.batch().to_frame()
    episodes = np.arange(len(frame)) // (100 if isinstance(rows, str) else len(frame))
    places = {"each first": slice(0, None, 100), "each last": slice(99, None, 100)}
    push = np.full(len(frame), 0.1)
    push[places[rows] if isinstance(rows, str) else rows] = 0.7
    report = check(CART, frame.with_columns(push=push, episode=episodes))
    assert [finding.code for finding in report.refusals] == ["constant-action"]
    assert "push never changes, except in the first or last rows of an episode" in report.verdict


def test_short_episodes_that_begin_with_a_random_action_are_not_constant() -> None:
    frame = WHITE.batch().to_frame()
    push = np.where(np.arange(len(frame)) % 4, 0.1, frame["push"].to_numpy())
    mixed = frame.with_columns(push=push, episode=np.arange(len(frame)) // 4)
    assert "constant-action" not in codes(mixed, "problem")


def test_a_delay_says_which_history_shows_it() -> None:
    case = next(case for case in BAD if case.name == "delay beyond history")
    (delay,) = (finding for finding in check(case.task, case.batch()).findings if finding.code == "delay")
    assert delay.numbers["history"] == 5
    assert "history = 5" in delay.message
