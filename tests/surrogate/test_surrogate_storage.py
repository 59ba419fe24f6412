import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from clearloop.errors import ClearloopError
from clearloop.surrogate import Surrogate
from clearloop.task import Task

from .models import CARTPOLE, CARTPOLE_BY_COLUMN, TANK

TEXT, NUMBERS = "surrogate.json", "surrogate.safetensors"


@pytest.fixture
def folder(best: Surrogate, tmp_path: Path) -> Path:
    best.save(tmp_path / "deep" / "surrogate")
    return tmp_path / "deep" / "surrogate"


def same_system(one: Surrogate, other: Surrogate) -> bool:
    def flat(system: Any) -> list[Any]:
        return [
            leaf
            for part in system
            for leaf in (flat(part) if isinstance(part, tuple) else [np.asarray(part)])
        ]

    pairs = zip(flat(one.system(np.float64)), flat(other.system(np.float64)), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype == float) for a, b in pairs)


def test_round_trip_is_exact(surrogate: Surrogate, tmp_path: Path) -> None:
    surrogate.save(tmp_path)
    loaded = Surrogate.load(tmp_path, surrogate.task)
    assert same_system(surrogate, loaded)
    for name in ("task", "track", "batch", "split_seed"):
        assert getattr(loaded, name) == getattr(surrogate, name)
    assert np.array_equal(loaded.region, surrogate.region)
    assert np.array_equal(loaded.failure.altered, surrogate.failure.altered)
    assert repr(loaded) == repr(surrogate)
    loaded.save(tmp_path / "again")
    for file in (TEXT, NUMBERS):
        assert (tmp_path / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", TEXT, NUMBERS]


@pytest.mark.parametrize("file", [TEXT, NUMBERS])
def test_a_missing_file_is_named(folder: Path, file: str) -> None:
    (folder / file).unlink()
    with pytest.raises(ClearloopError, match=rf"{file}: cannot be read: No such file"):
        Surrogate.load(folder, CARTPOLE)


@pytest.mark.parametrize("file", [TEXT, NUMBERS])
@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_damage_is_noticed(folder: Path, file: str, damage: str) -> None:
    content = bytearray((folder / file).read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    else:
        content[0] ^= 1
    (folder / file).write_bytes(content)
    with pytest.raises(ClearloopError, match=f"{file}: the file is damaged"):
        Surrogate.load(folder, CARTPOLE)


def test_numbers_of_another_surrogate_are_noticed(folder: Path, published: Surrogate) -> None:
    published.save(folder.parent / "other")
    shutil.copy(folder.parent / "other" / NUMBERS, folder / NUMBERS)
    with pytest.raises(ClearloopError, match=f"does not belong to {TEXT}"):
        Surrogate.load(folder, CARTPOLE)


def test_numbers_that_are_not_tensors_are_refused(folder: Path) -> None:
    replace_numbers(folder, b"no tensors")
    with pytest.raises(ClearloopError, match=f"{NUMBERS}: the file is damaged"):
        Surrogate.load(folder, CARTPOLE)


@pytest.mark.parametrize("change", ["no region", "fewer inputs", "fewer members", "nan"])
def test_networks_that_do_not_fit_are_refused(folder: Path, change: str) -> None:
    arrays = load_file(folder / NUMBERS)
    if change == "no region":
        del arrays["region"]
    elif change == "fewer inputs":
        arrays["dynamics.weights.0"] = arrays["dynamics.weights.0"][..., 1:].copy()
    elif change == "fewer members":
        arrays = {name: array if name == "region" else array[1:] for name, array in arrays.items()}
    else:
        arrays["dynamics.weights.0"][0, 0, 0, 0] = np.nan
    replace_numbers(folder, save(arrays))
    with pytest.raises(ClearloopError, match=r"do not fit the task|do not fit its layers|NaN"):
        Surrogate.load(folder, CARTPOLE)


def replace_numbers(folder: Path, content: bytes) -> None:
    """With a digest that is right: whoever made this file meant it."""
    (folder / NUMBERS).write_bytes(content)
    edit(folder, numbers=hashlib.sha256(content).hexdigest())


def edit(folder: Path, **changes: Any) -> None:
    table = json.loads((folder / TEXT).read_text()) | changes
    (folder / TEXT).write_text(json.dumps(table))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clearloop": 2}, "clearloop: Input should be 1"),
        ({"weight": 3}, "weight: Extra inputs"),
        ({"track": {"search": 0}}, "at least 1 member"),
        ({"altered": {"theta": "inf"}}, "altered.theta"),
        ({"history": 2}, "states, actions or history differ"),
        ({"levels": [0.0, 1.0], "failing": None}, "no array reward.weights"),
    ],
)
def test_wrong_entries_are_named(folder: Path, change: dict[str, Any], said: str) -> None:
    edit(folder, **change)
    with pytest.raises(ClearloopError, match=said):
        Surrogate.load(folder, CARTPOLE)


@pytest.mark.parametrize("task", [TANK, CARTPOLE_BY_COLUMN])
def test_another_task_is_refused(folder: Path, task: Task) -> None:
    with pytest.raises(ClearloopError, match=r"differ from those of 'tank'|needs a formula"):
        Surrogate.load(folder, task)


def test_a_learned_reward_must_fit(published: Surrogate, tmp_path: Path) -> None:
    published.save(tmp_path)
    edit(tmp_path, levels=[0.0, -1.0], failing=[False, True])
    with pytest.raises(ClearloopError, match="do not fit"):
        Surrogate.load(tmp_path, CARTPOLE)


def test_a_folder_that_cannot_be_made_is_named(best: Surrogate, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ClearloopError, match=r"file.*cannot be made"):
        best.save(tmp_path / "file" / "surrogate")
