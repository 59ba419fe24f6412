"""What needs an extra says so; and Minari datasets go both ways."""

import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from clearloop.data import Batch, read, sizes
from clearloop.data.batch import minari_name, write_minari
from clearloop.errors import ClearloopError
from tests.data.logs import CARTPOLE, TANK, clean_log


@pytest.fixture(autouse=True)
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def test_missing_extras_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    monkeypatch.setitem(sys.modules, "minari", None)
    pl.DataFrame({"a": [1]}).write_excel(tmp_path / "log.xlsx")
    with pytest.raises(
        ClearloopError, match=r"log\.xlsx: Excel files need an extra: pip install 'clearloop\[excel\]'"
    ):
        read(tmp_path / "log.xlsx")
    with pytest.raises(ClearloopError, match=r"need an extra: pip install 'clearloop\[minari\]'"):
        read("minari:some/thing-v0")


def test_minari_both_ways() -> None:
    batch = Batch.from_frame(clean_log(5, 6), CARTPOLE)
    write_minari(batch, "pole/random-v0")
    back = Batch.load("minari:pole/random-v0", CARTPOLE)
    last = np.append(np.diff(batch.episodes) > 0, True)
    assert np.array_equal(back.states, batch.states)
    assert np.array_equal(back.actions[~last], batch.actions[~last])
    assert np.array_equal(back.terminal, batch.terminal)
    assert np.array_equal(back.episodes, batch.episodes)
    assert back.times is not None
    assert batch.times is not None
    assert np.array_equal(back.times, batch.times)
    assert back.rewards is not None
    assert batch.rewards is not None
    assert np.array_equal(back.rewards[~last], batch.rewards[~last])
    with pytest.raises(ClearloopError, match="minari:pole/random-v0: cannot be written: "):
        write_minari(batch, "pole/random-v0")


def test_logged_setpoints_go_along() -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({name: rng.random(9) for name in ("level", "FT 101", "target", "valve", "profit")})
    batch = Batch.from_frame(frame, TANK)
    write_minari(batch, "tank-v0")
    back = Batch.load(Path("minari:tank-v0"), TANK)
    assert back.setpoints is not None
    assert batch.setpoints is not None
    assert np.array_equal(back.setpoints, batch.setpoints)


def test_other_people_s_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    import minari
    from gymnasium.spaces import Box, Discrete
    from minari.data_collector.episode_buffer import EpisodeBuffer

    episode = EpisodeBuffer(
        observations=np.arange(8.0).reshape(4, 2),
        actions=np.array([0, 1, 1]),
        rewards=[1.0, 2.0, 3.0],
        terminations=[False, False, True],
        truncations=[False, False, False],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        minari.create_dataset_from_buffers(
            "other/one-v0",
            [episode],
            observation_space=Box(-9, 9, (2,), np.float64),
            action_space=Discrete(2),
            data_format="arrow",
        )
    frame = read("minari:other/one-v0")
    assert frame.columns == ["episode", "obs_0", "obs_1", "action_0", "reward", "terminal"]
    assert frame["action_0"].to_list() == [0.0, 1.0, 1.0, None]
    assert frame["terminal"].to_list() == [False, False, False, True]
    with pytest.raises(ClearloopError, match="minari:other/two-v0: is not among your datasets; get it with"):
        read("minari:other/two-v0")
    monkeypatch.setattr(sizes, "MOST_CELLS", 20)
    with pytest.raises(ClearloopError, match="minari:other/one-v0: holds 4 rows of 6 columns, more than"):
        read("minari:other/one-v0")


def test_names_of_datasets() -> None:
    assert minari_name("minari:a/b-v1") == "a/b-v1"
    assert minari_name(Path("minari:a/b-v1")) == "a/b-v1"
    assert minari_name("a.csv") is None
