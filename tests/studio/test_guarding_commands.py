"""Messages: what makes sense becomes a command, all else is one line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.errors import ClearloopError
from clearloop.studio.guarding import Drive, Push, Restart, Steer, parse_command

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("action", "side", "controller", "state", "size", "value", "noise", "delay", "seed", "on", "factor")
DEEDS = ("hand", "drive", "push", "setpoint", "sensors", "restart", "pause", "speed", "record", "fly")
MESSAGES = st.builds(
    lambda do, fields: {"do": do} | fields,
    st.sampled_from(DEEDS),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3),
)


def test_what_makes_sense() -> None:
    assert parse_command('{"do": "hand", "action": {"force": -0.5}}') == Steer(
        do="hand", action={"force": -0.5}
    )
    assert parse_command(b'{"do": "drive", "side": 1, "controller": null}') == Drive(
        do="drive", side=1, controller=None
    )
    assert parse_command('{"do": "push", "size": 1}') == Push(do="push", size=1.0)
    assert parse_command('{"do": "restart"}') == Restart(do="restart")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"hand"',
        '{"do": "fly"}',
        '{"do": "hand"}',
        '{"do": "hand", "action": {"force": 1.5}}',
        '{"do": "hand", "action": {"force": NaN}}',
        '{"do": "hand", "action": {"force": "1"}}',
        '{"do": "push", "size": 1e999}',
        '{"do": "push", "size": 0.5, "state": "%s"}' % ("x" * 300),
        '{"do": "drive", "side": 2, "controller": "hand"}',
        '{"do": "drive", "side": true, "controller": "hand"}',
        '{"do": "sensors", "noise": 0.5, "delay": 11}',
        '{"do": "restart", "seed": -1}',
        '{"do": "speed", "factor": 0}',
        '{"do": "record", "on": "yes"}',
        '{"do": "pause", "on": true, "more": 1}',
        "[" * 3000,
        '{"do":' * 500,
        "\x00\xff",
    ],
)
def test_what_makes_none(text: str) -> None:
    with pytest.raises(ClearloopError) as refusal:
        parse_command(text)
    assert str(refusal.value).startswith("message: ")
    assert len(str(refusal.value)) < 350
    assert "\n" not in str(refusal.value)


@given(text=st.text() | st.binary() | JSON.map(json.dumps) | MESSAGES.map(json.dumps))
def test_nothing_else_ever_comes_of_a_message(text: Any) -> None:
    try:
        parse_command(text)
    except ClearloopError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017
