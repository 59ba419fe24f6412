"""Batches: what the rows of a log mean."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from clearloop.data import Batch
from clearloop.errors import ClearloopError
from tests.data.logs import CARTPOLE, TANK, clean_log, same


@pytest.fixture(scope="module")
def batch() -> Batch:
    return Batch.from_frame(clean_log(), CARTPOLE)


def plain_windows(batch: Batch, history: int) -> list[list[float]]:
    """The definition, row by row."""
    windows = []
    for row in range(len(batch.states) - 1):
        if batch.episodes[row] != batch.episodes[row + 1]:
            continue
        first = row
        while first > 0 and batch.episodes[first - 1] == batch.episodes[row]:
            first -= 1
        window: list[float] = []
        for past in range(row, row - history, -1):
            window += (
                [*batch.states[past], *batch.actions[past]] if past >= first else [*batch.states[first], 0.0]
            )
        windows.append(window)
    return windows


@pytest.mark.parametrize("history", [1, 3, 20])
def test_windows_equal_a_plain_loop(history: int) -> None:
    lengths = np.random.default_rng(1).integers(1, 8, 30)
    frame = clean_log(30, 8).filter(pl.Series(np.concatenate([np.arange(8) < length for length in lengths])))
    batch = Batch.from_frame(frame, CARTPOLE)
    np.testing.assert_array_equal(batch.transitions(history).window, plain_windows(batch, history))


def test_transitions_join_neighbouring_rows() -> None:
    frame = pl.DataFrame(
        {
            "episode": ["a", "a", "a", "b", "b"],
            "level": [1.0, 2.0, 3.0, 4.0, 5.0],
            "FT 101": [0.1, 0.2, 0.3, 0.4, 0.5],
            "target": [9.0, 9.0, 8.0, 8.0, 8.0],
            "valve": [0.5, 0.6, None, 0.7, 0.8],
            "profit": [10.0, 11.0, None, 12.0, 13.0],
            "terminal": [False, False, True, False, False],
        }
    )
    batch = Batch.from_frame(frame, TANK)
    steps = batch.transitions()
    assert len(batch) == 3
    assert steps.window.tolist() == [[1.0, 0.1, 0.5], [2.0, 0.2, 0.6], [4.0, 0.4, 0.7]]
    assert steps.next.tolist() == [[2.0, 0.2], [3.0, 0.3], [5.0, 0.5]]
    assert steps.reward is not None
    assert steps.reward.tolist() == [10.0, 11.0, 12.0]
    assert steps.terminal.tolist() == [False, True, False]
    assert steps.episode.tolist() == [0, 0, 1]
    assert batch.setpoints is not None
    assert batch.setpoints.tolist() == [[9.0], [9.0], [8.0], [8.0], [8.0]]


def test_it_summarizes_itself() -> None:
    frame = clean_log()
    batch = Batch.from_frame(frame, CARTPOLE)
    share = 100 * frame["terminal"].sum() / 2800
    assert repr(batch) == f"2,800 transitions in 200 episodes, {share:.1f} % of them failing"
    one = Batch.from_frame(frame.drop("episode", "terminal", "time"), CARTPOLE)
    assert repr(one) == "2,999 transitions in 1 episode, none of them failing"


def test_a_terminal_row_ends_its_episode() -> None:
    frame = (
        clean_log(4, 5)
        .drop("episode", "time")
        .with_columns(terminal=pl.Series([False, True, False, False] * 5))
    )
    assert Batch.from_frame(frame, CARTPOLE).episodes.tolist() == [0, 0, *np.repeat([1, 2, 3, 4], 4), 5, 5]


@pytest.mark.parametrize("column", [[0, 0, 1, 0], ["FALSE", "false", " True", ""], [None, None, True, None]])
def test_terminal_may_be_written_in_many_ways(column: list[Any]) -> None:
    frame = clean_log(1, 4).with_columns(pl.Series("terminal", column))
    assert Batch.from_frame(frame, CARTPOLE).terminal.tolist() == [False, False, True, False]


def test_every_dataframe_library_gives_the_same_batch(batch: Batch) -> None:
    frame = clean_log()
    assert same(Batch.from_frame(frame.to_pandas(), CARTPOLE), batch)
    assert same(Batch.from_frame(frame.to_arrow(), CARTPOLE), batch)


def test_dates_are_seconds() -> None:
    frame = clean_log(1, 4).with_columns(
        time=pl.datetime(2024, 1, 1) + pl.duration(milliseconds=25 * pl.int_range(4))
    )
    times = Batch.from_frame(frame, CARTPOLE).times
    assert times is not None
    np.testing.assert_allclose(np.diff(times), 0.025, atol=1e-6)


def test_arrays_are_read_only(batch: Batch) -> None:
    with pytest.raises(ValueError, match="read-only"):
        batch.states[0, 0] = 1.0


@pytest.mark.parametrize("share", [0.1, 0.25, 0.9])
def test_split_keeps_episodes_whole(batch: Batch, share: float) -> None:
    labelled = replace(batch, rewards=batch.episodes.astype(float))
    train, held_out = labelled.split(share, np.random.default_rng(0))
    assert train.rewards is not None
    assert held_out.rewards is not None
    assert not set(train.rewards) & set(held_out.rewards)
    assert len(train) + len(held_out) == len(batch)
    assert len(held_out) == pytest.approx(share * len(batch), abs=14)


def test_split_is_as_random_as_its_generator(batch: Batch) -> None:
    first, again, other = (
        batch.split(0.2, np.random.default_rng(seed))[1].fingerprint() for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_single_episode_is_split_in_time() -> None:
    batch = Batch.from_frame(clean_log(1, 101), CARTPOLE)
    train, held_out = batch.split(0.2, np.random.default_rng(0))
    assert (len(train), len(held_out)) == (80, 20)
    np.testing.assert_array_equal(train.states[-1], held_out.states[0])
    np.testing.assert_array_equal(held_out.states, batch.states[80:])


def test_a_long_log_is_thinned_to_pieces() -> None:
    batch = Batch.from_frame(clean_log(4, 100), CARTPOLE)
    part = batch.thinned(120, 40)
    assert (part.episode_count, len(part.states)) == (4, 120)  # an episode ends in the second of three pieces
    assert len(part) == 116
    known = {tuple(row): number for number, row in enumerate(batch.states.tolist())}
    rows = np.array([known[tuple(row)] for row in part.states.tolist()])
    begins = np.flatnonzero(np.diff(rows) != 1) + 1
    assert rows[[0, *begins]].tolist() == [0, 180, 360]
    assert (np.diff(part.episodes)[begins - 1] == 1).all()
    assert batch.thinned(len(batch), 30) is batch


def test_what_cannot_be_split() -> None:
    batch = Batch.from_frame(clean_log(1, 2), CARTPOLE)
    for share in (0.5, 0.0, 1.0):
        with pytest.raises(ClearloopError, match="split: expected a share between 0 and 1"):
            batch.split(share, np.random.default_rng(0))


def test_the_fingerprint_is_of_the_content(batch: Batch) -> None:
    other = batch.states.copy()
    other[7, 2] += 1e-12
    assert replace(batch, states=other).fingerprint() != batch.fingerprint()
    assert replace(batch, rewards=None).fingerprint() != batch.fingerprint()
    assert replace(batch, states=batch.states.copy(order="F")).fingerprint() == batch.fingerprint()
    zeros = batch.states * 0.0  # of both signs
    assert replace(batch, states=zeros).fingerprint() == replace(batch, states=np.abs(zeros)).fingerprint()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"actions": np.zeros((3000, 2))}, r"actions has the shape \(3000, 2\), expected \(3000, 1\)"),
        ({"times": np.zeros(7)}, r"times has the shape \(7,\), expected \(3000,\)"),
        ({"states": np.full((3000, 4), np.nan)}, "states has no finite number in row 1"),
        ({"actions": np.full((3000, 1), np.nan)}, "actions has no finite number in row 1"),
        ({"rewards": np.full(3000, np.inf)}, "rewards has no finite number in row 1"),
        ({"episodes": np.arange(3000)}, "no two rows follow each other"),
    ],
)
def test_arrays_that_are_no_batch(batch: Batch, change: dict[str, Any], expected: str) -> None:
    with pytest.raises(ClearloopError, match=expected):
        replace(batch, **change)


def test_logged_setpoints_must_be_given() -> None:
    with pytest.raises(ClearloopError, match="this task reads setpoints from log columns"):
        Batch(TANK.columns, np.zeros((2, 2)), np.zeros((2, 1)), np.zeros(2, int), np.zeros(2, bool))


def test_no_dataframe() -> None:
    with pytest.raises(ClearloopError, match="expected a dataframe"):
        Batch.from_frame({"theta": [1]}, CARTPOLE)
