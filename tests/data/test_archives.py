"""NumPy archives in the form of D4RL and NeoRL."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from clearloop.cli.program import app
from clearloop.data import Batch, check, read
from clearloop.data.archives import read_archive
from clearloop.errors import ClearloopError
from clearloop.task import Task

TASK = Task.from_toml(
    """
    name = "masses"
    dt = 0.2
    discount = 1.0
    horizon = 10
    [states]
    x = { setpoint = "target" }
    v = {}
    [actions]
    force = { limits = [-1.0, 1.0] }
    [reward]
    expression = "-abs(x.error)"
    """
)


def episodes(lengths: list[int], seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Observations [length + 1, 3] of each episode."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(length + 1, 3)).astype(np.float32) for length in lengths]


def arrays(seen: list[np.ndarray[Any, Any]], ended: list[bool]) -> dict[str, np.ndarray[Any, Any]]:
    """The archive of these episodes, each of which ended in the plant or was cut off."""
    steps = [len(episode) - 1 for episode in seen]
    last = np.cumsum(steps) - 1
    n = sum(steps)
    done, cut = np.zeros(n, np.float32), np.zeros(n, np.float32)
    done[last[np.array(ended)]] = 1
    cut[last[~np.array(ended)]] = 1
    return {
        "obs": np.concatenate([episode[:-1] for episode in seen]),
        "next_obs": np.concatenate([episode[1:] for episode in seen]),
        "action": np.linspace(-1, 1, n, dtype=np.float32)[:, None],
        "reward": np.arange(n, dtype=np.float32),
        "done": done,
        "truncated": cut,
    }


def write(path: Path, contents: dict[str, Any], packed: bool) -> None:
    (np.savez_compressed if packed else np.savez)(path, **contents)


def saved(folder: Path, contents: dict[str, Any]) -> Path:
    path = folder / "log.npz"
    np.savez(path, **contents)
    return path


@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    data=st.data(),
    other_names=st.booleans(),
    order=st.sampled_from("CF"),
    packed=st.booleans(),
)
def test_archive_holds_the_episodes_that_were_written(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[int],
    data: st.DataObject,
    other_names: bool,
    order: Any,
    packed: bool,
) -> None:
    ended = data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    seen = episodes(lengths)
    contents = arrays(seen, ended)
    contents["obs"] = np.asarray(contents["obs"], order=order)
    if other_names:
        names = {"obs": "observations", "action": "actions", "done": "terminals", "truncated": "timeouts"}
        contents = {names.get(name, name): array for name, array in contents.items()}
        contents["index"] = np.array([0])  # others are left alone
    path = tmp_path_factory.mktemp("archive") / "log.npz"
    write(path, contents, packed)

    batch = Batch.load(path, TASK)
    assert batch.episode_count == len(lengths)
    assert len(batch) == sum(lengths)
    np.testing.assert_array_equal(batch.states, np.concatenate(seen)[:, :2])
    assert batch.setpoints is not None
    np.testing.assert_array_equal(batch.setpoints[:, 0], np.concatenate(seen)[:, 2])
    steps = batch.transitions()
    np.testing.assert_array_equal(steps.reward, np.arange(sum(lengths)))
    np.testing.assert_array_equal(steps.window[:, 2], contents.get("action", contents.get("actions"))[:, 0])  # type: ignore[index]
    np.testing.assert_array_equal(steps.terminal, contents.get("done", contents.get("terminals")))


def test_episodes_end_where_the_next_row_begins_elsewhere(tmp_path: Path) -> None:
    contents = arrays(episodes([4, 3]), [False, False])
    del contents["done"], contents["truncated"]
    assert Batch.load(saved(tmp_path, contents), TASK).episode_count == 2


def test_rounding_does_not_end_an_episode(tmp_path: Path) -> None:
    contents = arrays(episodes([50]), [False])
    contents["next_obs"] = contents["next_obs"] * np.float32(1 + 1e-6)
    assert Batch.load(saved(tmp_path, contents), TASK).episode_count == 1


def test_without_next_observations_the_last_step_of_an_episode_is_unknown(tmp_path: Path) -> None:
    contents = arrays(episodes([4, 3]), [True, False])
    del contents["next_obs"]
    batch = Batch.load(saved(tmp_path, contents), TASK)
    assert (len(batch), batch.episode_count) == (3 + 2, 2)
    assert not batch.terminal.any()


def test_numbered_columns_can_be_mapped(tmp_path: Path) -> None:
    tables = TASK.model_dump(mode="json") | {
        "states": {"speed": {}},
        "reward": {"expression": "-speed"},
        "data": {"speed": "obs_1", "force": "action_0"},
    }
    seen = episodes([5])
    batch = Batch.load(saved(tmp_path, arrays(seen, [False])), Task.from_dict(tables))
    np.testing.assert_array_equal(batch.states[:, 0], seen[0][:, 1])


def test_other_numbers_of_observations_are_refused(tmp_path: Path) -> None:
    tables = TASK.model_dump(mode="json") | {"states": {"speed": {}}, "reward": {"expression": "-speed"}}
    path = saved(tmp_path, arrays(episodes([5]), [False]))
    with pytest.raises(ClearloopError, match=r'^.*npz: 3 observations .* names 1 .* speed = "obs_0"'):
        Batch.load(path, Task.from_dict(tables))


def test_check_and_convert_read_archives(tmp_path: Path) -> None:
    path = saved(tmp_path, arrays(episodes([40] * 10), [False] * 10))
    assert check(TASK, read(path)).summary.startswith("400 transitions in 10 episodes")
    task = tmp_path / "task.toml"
    task.write_text(
        'name = "m"\ndt = 0.2\ndiscount = 1.0\nhorizon = 9\n[states]\nx = {}\nv = {}\ntarget = {}\n'
        '[actions]\nforce = { limits = [-1.0, 1.0] }\n[reward]\nexpression = "-abs(x)"\n',
        encoding="utf-8",
    )
    out = tmp_path / "log.parquet"
    done = CliRunner().invoke(app, ["data", "convert", str(path), "--task", str(task), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert pl.read_parquet(out).columns[:5] == ["episode", "x", "v", "target", "force"]


# What is refused.


def raw(path: Path, members: dict[str, bytes], packed: bool = False) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def as_npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


GOOD = arrays(episodes([5]), [False])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"obs": None}, "holds no array 'obs' or 'observations'; its arrays are: 'next_obs', 'action'"),
        ({"action": None}, "holds no array 'action' or 'actions'"),
        ({"action": np.zeros((4, 1))}, r"array 'action' has the shape \(4, 1\), expected \(5, …\)"),
        ({"reward": np.zeros((5, 2))}, r"array 'reward' has the shape \(5, 2\), expected \(5,\)"),
        ({"next_obs": np.zeros((5, 2))}, "different shapes"),
        ({"done": np.array([0, 0, 0.5, 0, 1])}, "row 3 of 'done' is 0.5: expected 0 or 1"),
        ({"obs": np.array([["a"]] * 5)}, "array 'obs' holds <U1 and not numbers"),
        ({"obs": np.zeros((5, 1), complex)}, "array 'obs' holds complex128 and not numbers"),
        ({"obs": np.float64(1.0)}, r"has the shape \(\)"),
        ({name: array[:0] for name, array in GOOD.items()}, "holds no transition"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    contents = {name: array for name, array in (GOOD | change).items() if array is not None}
    with pytest.raises(ClearloopError, match=said):
        read(saved(tmp_path, contents))


class Trap:
    """An object that would tell if it were unpickled."""

    sprung = False

    def __reduce__(self) -> Any:
        return setattr, (Trap, "sprung", True)


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    objects = np.empty((5, 1), dtype=object)
    objects[:] = Trap()
    with pytest.raises(ClearloopError, match="array 'obs' holds object and not numbers"):
        read(saved(tmp_path, GOOD | {"obs": objects}))
    assert not Trap.sprung


@pytest.mark.parametrize(
    "header", ["{'descr': (", "{'shape': (3,), \\n", "\xff", "  {", "(" * 300, "{'descr': 'x'}"]
)
def test_odd_headers_are_refused(tmp_path: Path, header: str) -> None:
    text = header.encode("latin1").ljust(117) + b"\n"
    odd = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    members = {f"{name}.npy": as_npy(array) for name, array in GOOD.items()} | {"obs.npy": odd}
    with pytest.raises(ClearloopError, match="is damaged, or is not a NumPy archive"):
        read_archive(raw(tmp_path / "odd.npz", members))


def test_sizes_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 100)}
    )
    short = {f"{name}.npy": as_npy(array) for name, array in GOOD.items()} | {"obs.npy": header.getvalue()}
    with pytest.raises(ClearloopError, match="array 'obs' is damaged: its size and its header do not agree"):
        read_archive(raw(tmp_path / "claim.npz", short))
    wide = np.zeros((1000, 100_001), np.int8)  # a small file, but too many cells
    few = {"obs.npy": as_npy(wide), "action.npy": as_npy(np.zeros((1000, 1)))}
    with pytest.raises(ClearloopError, match="more than the 200,000,000 cells"):
        read_archive(raw(tmp_path / "bomb.npz", few, packed=True))


@given(at=st.integers(0, 3000), byte=st.integers(0, 255), cut=st.booleans(), packed=st.booleans())
def test_damaged_archives_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, cut: bool, packed: bool
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "log.npz"
    write(path, GOOD, packed)
    content = bytearray(path.read_bytes())
    at %= len(content)
    if cut:
        del content[at:]
    else:
        content[at] = byte
    path.write_bytes(content)
    try:
        said = str(read(path).shape)
    except ClearloopError as error:
        said = str(error).removeprefix(f"{path}: ")
    assert said.startswith(("(", "is damaged", "array", "holds", "row", "next"))
    assert "\n" not in said
