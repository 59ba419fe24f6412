"""Structured Text is the same function as the controller; it is legal, harmless and readable."""

import json
import math
import re
import unicodedata
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.controllers import Controller, from_json, load
from clearloop.errors import ClearloopError
from clearloop.exports.spans import DOUBLE, SINGLE, Precision
from clearloop.exports.structured_text.functions import HELPER_TEMPLATES, st_number
from clearloop.exports.structured_text.printing import functions, pous, structured_text
from clearloop.expression import is_name, nodes
from clearloop.task import Task
from clearloop.verification.st import Block, parse_st
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.exports.block import STATES, between, block_of, observation, step, text_of

READABLE = [name for name, controller in KINDS.items() if controller.readable]


def largest_difference(
    controller: Controller, precision: Precision, rng: np.random.Generator, steps: int
) -> float:
    """Over a sequence of random observations and a restart, relative to the range of the action."""
    block = block_of(controller, precision)
    worst = 0.0
    for _ in range(2):
        memory = controller.reset()
        for count in range(steps):
            seen = {name: precision.rounded(value) for name, value in observation(rng).items()}
            again = {"restart": count == 0} if "restart" in block.inputs else {}
            ours = step(block, seen | again)["force"]
            wanted = controller.act(seen, memory)["force"]
            low, high = controller.limits.get("force", (0.0, max(1.0, abs(wanted))))
            worst = max(worst, abs(ours - wanted) / (high - low))
    return worst


@pytest.mark.parametrize("kind", READABLE)
def test_the_block_is_the_controller(kind: str) -> None:
    controller = KINDS[kind].for_task(CARTPOLE)
    assert largest_difference(controller, DOUBLE, np.random.default_rng(1), 60) < 1e-12


@pytest.mark.parametrize("kind", READABLE)
def test_single_precision(kind: str) -> None:
    controller = KINDS[kind].for_task(CARTPOLE)
    block, memory, rng = block_of(controller, SINGLE), controller.reset(), np.random.default_rng(2)
    for _ in range(100):
        seen = {name: SINGLE.rounded(between(rng, -1, 1)) for name in STATES}
        assert step(block, seen)["force"] == pytest.approx(controller.act(seen, memory)["force"], abs=2e-4)


def test_several_actions_derived_states_and_setpoints_from_outside() -> None:
    table = {
        "clearloop": 1,
        "kind": "pid",
        "follows": {"level": "SP"},
        "derived": {"fast": "fast[t-1] + 0.5*(level - fast[t-1]) - 0.1*pump[t-1]"},
        "limits": {"pump": [0, 5]},
        "outputs": {
            "pump": {"scale": 2.0, "loops": [{"input": "level", "kp": 1, "ki": 0.25, "window": 3}]},
            "valve": {
                "loops": [
                    {"input": "fast", "kp": -1, "kd": 2},
                    {"input": "level", "kp": 1, "ki": 1, "window": 7},
                ]
            },
        },
    }
    controller = from_json(json.dumps(table))
    block, memory, rng = block_of(controller), controller.reset(), np.random.default_rng(3)
    for _ in range(30):
        level, aim = between(rng, 0, 2), between(rng, 0, 2)
        wanted = controller.act({"level": level}, memory, {"level": aim})
        assert block.step({"level": level, "level_setpoint": aim}) == pytest.approx(wanted, abs=1e-14)


def test_levels() -> None:
    table = {
        "kind": "equation",
        "outputs": {"force": "theta"},
        "limits": {"force": [-1, 2]},
        "steps": {"force": 0.5},
    }
    controller = from_json(json.dumps({"clearloop": 1, **table}))
    for precision in (DOUBLE, SINGLE):
        block, memory = block_of(controller, precision), controller.reset()
        for theta in (-3.0, -0.76, -0.75, -0.25, 0.2, 0.249, 0.25, 0.75, 1.7499, 1.75, 9.0):
            assert block.step({"theta": theta}) == controller.act({"theta": theta}, memory)


def values() -> list[float]:
    rng = np.random.default_rng(4)
    edges = [
        0.0,
        1.0,
        -1.0,
        0.5,
        2.0,
        -3.0,
        1e-9,
        1e-30,
        5e-324,
        709.0,
        -745.0,
        1e12,
        -1e12,
        1e154,
        -1e300,
        1.7e308,
    ]
    return edges + [between(rng, -4, 4) for _ in range(20)] + [math.pi, -math.pi, 3 * math.pi]


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("CL_SIGN", nodes.sign),
        ("CL_EXP", nodes.exp),
        ("CL_FLOOR", lambda x: float(math.floor(x))),
        ("CL_TANH", math.tanh),
        ("CL_WRAP", nodes.wrap),
        ("CL_ADD", nodes.add),
        ("CL_MUL", nodes.mul),
        ("CL_DIV", nodes.div),
        ("CL_POWER", nodes.power),
        ("CL_ATAN2", nodes.atan2),
    ],
)
def test_functions_that_come_along(name: str, meaning: Callable[..., float]) -> None:
    inputs = HELPER_TEMPLATES[name].inputs
    declared = " ".join(f"i{one} : LREAL;" for one in inputs)
    called = f"{name}({', '.join(f'i{one}' for one in inputs)})"
    text = structured_text(functions(called, DOUBLE)) + (
        f"FUNCTION_BLOCK b VAR_INPUT {declared} END_VAR VAR_OUTPUT u : LREAL; END_VAR\n"
        f"u := {called}; END_FUNCTION_BLOCK"
    )
    block = Block(text)
    for one in values():
        for other in values() if len(inputs) == 2 else [0.0]:
            arguments = (one, other)[: len(inputs)]
            ours = block.step({f"i{key}": value for key, value in zip(inputs, arguments, strict=True)})["u"]
            assert ours == pytest.approx(meaning(*arguments), rel=2e-13, abs=1e-300), arguments


def test_names_are_legal_and_do_not_clash() -> None:
    names = (
        "time",
        "Time",
        "x__y",
        "x_y",
        "_a_",
        "θ",
        "theta",
        "é",
        "调",
        "k",
        "restart",
        "test",
        "CL_DIV",
        "SEL",
    )
    law = " + ".join(f"{number}*{name}[t-1]/{name}" for number, name in enumerate(names, 1))
    controller = from_json(json.dumps({"clearloop": 1, "kind": "equation", "outputs": {"FOR": law}}))
    text = text_of(controller)
    block, memory = Block(text), controller.reset()
    assert block.outputs == ("FOR_2",)
    assert len({name.lower() for name in block.inputs}) == len(names) + 1
    seen = {name: float(number) for number, name in enumerate(names, 1)}
    inputs = dict(zip(block.inputs, seen.values(), strict=False))
    for _ in range(3):
        assert block.step(inputs)["FOR_2"] == pytest.approx(controller.act(seen, memory)["FOR"])
    for word in re.findall(r"[A-Za-z_]\w*", re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)):
        assert "__" not in word
        assert not word.endswith("_")


IDENTIFIERS = st.from_regex(r"[A-Za-z_θé调][A-Za-z0-9_θé调]{0,40}", fullmatch=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(IDENTIFIERS.filter(is_name), min_size=2, max_size=6, unique=True))
def test_any_names_are_made_legal(names: list[str]) -> None:
    """Our scanner refuses what the standard does; NFKC makes some names the same one."""
    action, *states = dict.fromkeys(unicodedata.normalize("NFKC", name) for name in names)
    law = "+".join(["0", *(f"{place}*{name}[t-2]" for place, name in enumerate(states, 1))])
    controller = from_json(json.dumps({"clearloop": 1, "kind": "equation", "outputs": {action: law}}))
    block, memory = block_of(controller), controller.reset()
    seen = {name: float(place) for place, name in enumerate(states)}
    wanted = controller.act(seen, memory)[action]
    assert list(block.step(dict(zip(block.inputs, seen.values(), strict=False))).values()) == [wanted]


def test_words_of_people_stay_in_their_comments() -> None:
    table = {
        "clearloop": 1,
        "kind": "equation",
        "name": "a *) force := 1.0; (* b",
        "units": {"theta": "*)(*", "force": "(*)"},
        "outputs": {"force": "2*theta"},
    }
    text = text_of(from_json(json.dumps(table)))
    assert Block(text).step({"theta": 3.0}) == {"force": 6.0}
    assert text.count("*)") == text.count("(*")


@pytest.mark.parametrize("kind", ["network", "greedy-q"])
def test_networks_are_refused(kind: str) -> None:
    with pytest.raises(ClearloopError, match="cannot express a network: export it to c, javascript"):
        text_of(KINDS[kind])


@pytest.mark.parametrize(
    ("exponent", "printed"),
    [
        ("2", "2"),
        ("7", "7"),
        ("1e7", "10000000"),
        ("3e9", "LINT#3000000000"),
        ("1e300", "LINT#9223372036854775806"),
        ("2.5", None),
        ("-2", None),
    ],
)
def test_powers(exponent: str, printed: str | None) -> None:
    """A whole exponent is printed as one where the base may be negative and nothing can overflow."""
    law = f"sin(theta)**{exponent} + 2*(sin(theta) + 2)**({exponent})"
    controller = from_json(json.dumps({"clearloop": 1, "kind": "equation", "outputs": {"force": law}}))
    text = text_of(controller)
    assert printed is None or f"EXPT(SIN(theta_now), {printed})" in text
    for theta in (-1.6, -math.pi / 2, -0.3, 0.0, 0.5, math.pi / 2):
        wanted = controller.act({"theta": theta}, controller.reset())["force"]
        assert Block(text).step({"theta": theta})["force"] == pytest.approx(wanted, rel=1e-9)


def test_a_deep_formula_is_cut_into_parts() -> None:
    law = "theta"
    for level in range(45):
        law = f"1/(1 + abs({law} - {level}))"
    controller = from_json(json.dumps({"clearloop": 1, "kind": "equation", "outputs": {"force": law}}))
    text = text_of(controller)
    assert "part_4 := " in text
    assert max(line.count("(") for line in text.splitlines()) < 60
    wanted = controller.act({"theta": 0.3}, controller.reset())
    assert Block(text).step({"theta": 0.3}) == pytest.approx(wanted, rel=1e-14)


def test_the_published_equation_is_recognised() -> None:
    controller = load("examples/published/gprl.json").for_task(Task.load("cartpole"))
    text = text_of(controller)
    assert controller.summary in text
    assert "CL_" not in text
    assert parse_st(text)[0].spelling == "test"


def test_comments_can_be_read_and_the_text_is_narrow() -> None:
    for kind in READABLE:
        for line in text_of(KINDS[kind].for_task(CARTPOLE)).splitlines():
            assert len(line) <= 110


@pytest.mark.parametrize(
    ("value", "double", "single"),
    [
        (0.0, "0.0", "0.0"),
        (-69.8, "-69.8", "-69.8"),
        (1e12, "1.0E12", "1.0E12"),
        (1e-5, "1.0E-5", "1.0E-5"),
        (0.0001, "0.0001", "0.0001"),
        (1234567.0, "1234567.0", "1234567.0"),
        (12345678.5, "1.23456785E7", "1.2345678E7"),
        (1e300, f"{8 * 'CL_UP('}1.0261342003245941E11{8 * ')'}", "3.4028235E38"),
        (1 / 3, "0.3333333333333333", "0.33333334"),
    ],
)
def test_numbers_have_digits_on_both_sides_of_the_point(value: float, double: str, single: str) -> None:
    assert (st_number(value, DOUBLE), st_number(value, SINGLE)) == (double, single)


def test_names_of_blocks() -> None:
    for name, wanted in (("pid", "pid_controller"), ("003", "controller_003"), ("my law", "my_law")):
        assert pous(KINDS["linear"], name, DOUBLE)[-1].name == wanted
