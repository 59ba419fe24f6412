"""What goes into a checkpoint comes out of it, to the bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clearloop.errors import ClearloopError
from clearloop.runs.directory import read_state, write_state

arrays = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.int32, np.uint8, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | arrays
# Keys that look like our own marks, or like paths, must not confuse anything.
keys = st.text() | st.sampled_from(["array", "table", "tuple", "scalar", "a/b", "", "/", "0"])
states = st.dictionaries(
    keys,
    st.recursive(plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)),
    max_size=5,
)


def same(one: Any, two: Any) -> bool:
    if type(one) is not type(two):
        return False
    if isinstance(one, np.ndarray | np.generic):
        return bool(one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes())
    if isinstance(one, dict):
        return list(one) == list(two) and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(repr(one) == repr(two))  # -0.0 is not 0.0, and NaN is NaN


@settings(deadline=None)
@given(state=states)
def test_what_goes_in_comes_out(state: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "state.safetensors"
    write_state(state, path)
    assert same(read_state(path), state)


def test_names_that_look_like_paths_are_kept_apart(tmp_path: Path) -> None:
    state = {"a/b": np.zeros(2), "a": {"b": np.ones(3)}, "__metadata__": np.ones(1)}
    write_state(state, tmp_path / "x")
    assert same(read_state(tmp_path / "x"), state)


def test_generators_go_on_where_they_were(tmp_path: Path) -> None:
    for kind in (np.random.PCG64, np.random.MT19937, np.random.Philox):
        rng = np.random.Generator(kind(3))
        rng.random(5)
        write_state({"rng": rng.bit_generator.state, "pair": (np.float32(0.1), 2)}, tmp_path / "x")
        expected = rng.random(4)
        state = read_state(tmp_path / "x")
        rng.bit_generator.state = state["rng"]
        np.testing.assert_array_equal(rng.random(4), expected)
        assert same(state["pair"], (np.float32(0.1), 2))


def test_arrays_are_ones_own(tmp_path: Path) -> None:
    numbers = np.arange(6.0).reshape(2, 3).T  # not contiguous
    write_state({"numbers": numbers}, tmp_path / "x")
    back = read_state(tmp_path / "x")["numbers"]
    np.testing.assert_array_equal(back, numbers)
    back[0, 0] = 7.0  # and writable
    assert read_state(tmp_path / "x")["numbers"][0, 0] == 0.0


@pytest.mark.parametrize("state", [{"x": object()}, {"x": {1: 2}}, {"x": {3}}])
def test_what_cannot_be_kept_is_refused(state: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_state(state, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_damage_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_state({"numbers": np.arange(100.0)}, path)
    content = path.read_bytes()
    damaged = (b"", content[:50], content[:-1], b"\0" * 40, content.replace(b"table", b"tabel"))
    for text in damaged:
        path.write_bytes(text)
        with pytest.raises(ClearloopError, match="damaged, or not a checkpoint"):
            read_state(path)
    with pytest.raises(ClearloopError, match="cannot be read"):
        read_state(tmp_path / "gone")
