"""Whatever stands in a controller file: a controller, or one line that says what is wrong with it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.controllers import from_json, load, save
from clearloop.errors import ClearloopError
from tests.controllers import strategies
from tests.controllers.kinds import KINDS, TEXTS

EXAMPLES = settings(max_examples=150, deadline=None)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("pid"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def read(text: str) -> None:
    """It is a controller, or a ClearloopError of one line; anything else is our fault."""
    try:
        from_json(text, source="file.json")
    except ClearloopError as error:
        assert str(error).startswith("file.json: ")  # noqa: PT017
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        str(error).encode()


@EXAMPLES
@given(st.text())
def test_random_text(text: str) -> None:
    read(text)


@EXAMPLES
@given(VALUES)
def test_random_json(value: Any) -> None:
    read(json.dumps(value))
    read(json.dumps({"clearloop": 1, "kind": "equation", "outputs": value}))


@EXAMPLES
@given(st.data(), st.sampled_from(list(strategies.BODIES)))
def test_one_value_replaced_by_any_other(data: st.DataObject, kind: str) -> None:
    table = data.draw(strategies.tables(kind))
    place: Any = table
    while isinstance(place, dict | list) and len(place):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if data.draw(st.booleans()) or not isinstance(place[key], dict | list):
            place[key] = data.draw(VALUES)
            break
        place = place[key]
    read(json.dumps(table))


@pytest.mark.parametrize("kind", TEXTS)
def test_truncated_anywhere(kind: str) -> None:
    text = " ".join(TEXTS[kind].split())
    for length in range(len(text)):
        with pytest.raises(ClearloopError, match=r"^file\.json: "):
            from_json(text[:length], source="file.json")


VERSION = 'expected a JSON object with "clearloop": 1, the version of the format'
EQUATION = '{"clearloop": 1, "kind": "equation", "outputs": {"force": "1"}, '
LINEAR = '{"clearloop": 1, "kind": "linear", "gains": {"force": '
DAMAGED = {
    "": "broken JSON in line 1, column 1: Expecting value",
    "[]": VERSION,
    '{"kind": "pid"}': VERSION,
    '{"clearloop": 2, "kind": "tree"}': VERSION,
    '{"clearloop": 1, "kind": ["pid"]}': "kind: no kind of controller",
    '{"clearloop": 1,\n "kind": "pid" "x"}': "broken JSON in line 2, column 16: Expecting ',' delimiter",
    LINEAR + '{"theta": NaN}}}': "NaN is not allowed",
    LINEAR + '{"theta": -Infinity}}}': "-Infinity is not allowed",
    LINEAR + '{"theta": 1e999}}}': "gains.force.theta: expected a number",
    LINEAR + '{"theta": 1, "rho": 2, "theta": 3}}}': "the key 'theta' occurs twice in one object",
    EQUATION + '"name": "\\ud800"}': "name: expected one line",
    EQUATION + '"\\u001b[2J": 1}': r"unknown key '\x1b[2J'",
    EQUATION + '"dt": 0}': "dt: expected a number greater than 0",
    '{"clearloop": 1, "kind": "equation", "outputs": {"\\ud800": "1"}}': "outputs",
    '{"clearloop": 1, "kind": "equation", "outputs": {"force": 1}}': "expected a formula in quotes",
    '{"clearloop": 1, "kind": "equation", "outputs": {}}': "outputs: expected at least one entry",
}


@pytest.mark.parametrize("text", DAMAGED)
def test_known_damages_are_explained(text: str) -> None:
    with pytest.raises(ClearloopError) as caught:
        from_json(text, source="file.json")
    assert DAMAGED[text] in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("digits", [19, 20, 400, 5_000, 100_000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_huge_whole_numbers(sign: str, digits: int) -> None:
    number = sign + "1" + "0" * digits
    for key in ("weight", "window"):
        loop = f'{{"input": "theta", "kp": 1, "{key}": {number}}}'
        text = f'{{"clearloop": 1, "kind": "pid", "outputs": {{"force": {{"loops": [{loop}]}}}}}}'
        with pytest.raises(ClearloopError, match=rf"loops\[0\].{key}: expected a (whole )?number"):
            from_json(text)


@pytest.mark.parametrize("depth", [10, 5_000, 300_000])
def test_deep_nesting(depth: int) -> None:
    read("[" * depth + "]" * depth)
    read('{"clearloop": 1, "kind": "equation", "outputs": ' + '{"force": ' * depth + "1" + "}" * (depth + 1))


def test_bytes_that_are_no_text_and_files_that_are_none(tmp_path: Path) -> None:
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'{"clearloop": 1, "name": "\xe9"}')
    with pytest.raises(ClearloopError, match=r"latin.json: not UTF-8 text \(byte 26\)"):
        load(latin)
    with pytest.raises(ClearloopError, match=r"none.json: cannot be read: No such file"):
        load(tmp_path / "none.json")
    with pytest.raises(ClearloopError, match="cannot be read"):
        load(tmp_path)
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (16 * 1024 * 1024 + 1))
    with pytest.raises(ClearloopError, match="larger than the 16,384 KiB"):
        load(large)


def test_a_byte_order_mark_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "windows.json"
    path.write_bytes(b"\xef\xbb\xbf" + TEXTS["pid"].encode())
    assert load(path) == KINDS["pid"]


def test_nothing_is_written_where_it_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ClearloopError, match=r"gone.x.json: cannot be written: No such file"):
        save(KINDS["pid"], tmp_path / "gone" / "x.json")
    with pytest.raises(ClearloopError, match="cannot be written"):
        save(KINDS["pid"], tmp_path)
    assert list(tmp_path.iterdir()) == []
