"""Jitter and gaps: what comes of them is what the rule says, and a regular log is not touched."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from clearloop.data import Batch, check
from clearloop.data.resampling import in_unit
from clearloop.errors import ClearloopError
from clearloop.task import Task
from tests.data.logs import same


def task(sampling: str = "", dt: float = 0.1) -> Task:
    return Task.from_toml(f"""
    name = "tank"
    dt = {dt}
    discount = 0.9
    horizon = 50
    [states]
    level = {{ setpoint = "target" }}
    outside = {{ external = true }}
    [actions]
    valve = {{ limits = [0, 100] }}
    [reward]
    expression = "-abs(level.error)"
    [sampling]
    {sampling}
    """)


def log(times: np.ndarray, **others: object) -> pl.DataFrame:
    """The level is twice the time; what is set counts the rows."""
    count = np.arange(len(times), dtype=float)
    columns = {"time": times, "level": 2 * times, "target": count, "outside": count, "valve": count}
    return pl.DataFrame(columns | others)


def found(frame: pl.DataFrame, the_task: Task) -> dict[str, str]:
    return {finding.code: finding.message for finding in check(the_task, frame).findings}


@settings(max_examples=60, deadline=None)
@given(
    jitter=arrays.arrays(float, st.integers(20, 60), elements=st.floats(-0.03, 0.03)),
    breaks=st.lists(st.integers(2, 18), max_size=2, unique=True),
)
def test_a_straight_line_stays_one(jitter: np.ndarray, breaks: list[int]) -> None:
    times = 0.1 * np.arange(len(jitter)) + jitter
    times[1:] = np.maximum(times[1:], times[:-1] + 1e-3)
    for row in breaks:
        times[row:] += 10.0
    batch = Batch.from_frame(log(times), task())
    assert batch.times is not None
    assert batch.setpoints is not None
    # A row up to 1e-6 of a step after a point of the grid stands for it: 2 * 0.1 * 1e-6 off at most.
    np.testing.assert_allclose(batch.states[:, 0], 2 * batch.times, atol=2.1e-7)
    inside = np.diff(batch.episodes) == 0
    np.testing.assert_allclose(np.diff(batch.times)[inside], 0.1, atol=1e-3)
    assert np.diff(batch.times)[~inside].min(initial=10.0) > 5
    assert len(np.unique(batch.episodes)) == 1 + len(breaks)
    # What is set is never mixed, and is what was in force in the middle of the step.
    for held in (batch.actions[:, 0], batch.setpoints[:, 0], batch.states[:, 1]):
        assert (held == np.round(held)).all()
        assert (times[held.astype(int)] <= batch.times + 0.05 + 1e-6).all()


def test_a_regular_log_is_not_touched() -> None:
    times = 0.1 * np.arange(50) + 0.0004 * (np.arange(50) % 2)
    frame = log(times)
    batch = Batch.from_frame(frame, task())
    assert batch.times is not None
    assert np.array_equal(batch.times, times)
    assert np.array_equal(batch.states[:, 0], 2 * times)
    assert "resampled" not in found(frame, task())


def test_what_was_done_is_said() -> None:
    times = 0.1 * np.arange(2000) + np.where(np.arange(2000) % 2, 0.02, 0.0)
    times[1000:] += 7
    said = found(log(times), task())
    assert said["gaps"] == "1 gap of more than 0.5 s: split there, into 2 episodes"
    assert said["resampled"].startswith("rows came 0.08 to 0.12 s apart (usually 0.")
    assert "largest jitter 0.04 s): resampled to dt = 0.1 s" in said["resampled"]
    assert said["resampled"].endswith("50 % of the rows are interpolated")


def test_only_gaps_are_split_without_resampling() -> None:
    times = np.array([0.0, 0.1, 0.23, 0.3, 1.0, 1.1])
    batch = Batch.from_frame(log(times), task('resample = "none"\ngap = 0.5'))
    assert batch.times is not None
    assert np.array_equal(batch.times, times)
    assert batch.episodes.tolist() == [0, 0, 0, 0, 1, 1]


def test_a_fast_log_gives_means_of_actions() -> None:
    times = 0.02 * np.arange(101)
    valve = np.where(np.arange(101) % 5 < 2, 10.0, 0.0)  # two fifths of each step
    valve[-1] = np.nan
    batch = Batch.from_frame(log(times, valve=valve).fill_nan(None), task())
    assert batch.times is not None
    np.testing.assert_allclose(batch.times, 0.1 * np.arange(21))
    np.testing.assert_allclose(batch.actions[:-1, 0], 4.0)
    assert np.isnan(batch.actions[-1, 0])
    assert "actions by their mean over each step" in found(log(times, valve=valve), task())["resampled"]


def test_a_slow_log_is_told_so() -> None:
    said = found(log(0.3 * np.arange(2000)), task())
    assert said["wrong-interval"].startswith(
        "rows are 0.3 s apart (3 dt), but the task says dt = 0.1 s; correct dt"
    )
    with pytest.raises(ClearloopError, match=r"rows are 1 s apart, but \[sampling\] counts more than 0\.5 s"):
        Batch.from_frame(log(np.arange(20.0)), task())


def test_the_final_state_comes_to_the_next_point() -> None:
    times = np.array([0.0, 0.1, 0.2, 0.25, 0.0, 0.11, 0.2])
    terminal = np.array([0, 0, 0, 1, 0, 0, 0])
    frame = log(times, terminal=terminal, episode=np.array([0, 0, 0, 0, 1, 1, 1]))
    batch = Batch.from_frame(frame, task())
    assert batch.episodes.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert batch.terminal.tolist() == [False, False, False, True, False, False, False]
    np.testing.assert_allclose(batch.states[:, 0], [0.0, 0.2, 0.4, 0.5, 0.0, 0.2, 0.4])


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s", "min", "h"])
@settings(max_examples=30, deadline=None)
@given(values=arrays.arrays(float, 30, elements=st.floats(-1e12, 1e12)))
def test_times_survive_files_in_any_unit(unit: str, values: np.ndarray) -> None:
    seconds = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}[unit]
    times = values * seconds
    assert np.array_equal(in_unit(times, seconds) * seconds, times)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_resampled_batch_is_loaded_as_it_was_saved(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(7.0, 14.0, 500)) + np.where(np.arange(500) > 200, 1e4, 0.0)
    the_task = task('time_unit = "ms"', dt=0.01)
    batch = Batch.from_frame(log(times), the_task)
    batch.save(tmp_path / f"batch{suffix}")
    loaded = Batch.load(tmp_path / f"batch{suffix}", the_task)
    assert same(loaded, batch)
    assert loaded.fingerprint() == batch.fingerprint()
