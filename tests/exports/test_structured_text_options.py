"""The options of PID blocks: off or at their first values they change nothing, and each keeps its promise."""

import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import PID, Controller, from_json
from clearloop.errors import ClearloopError
from clearloop.exports.guard import OPTIONS
from clearloop.exports.spans import DOUBLE, SINGLE, Precision
from clearloop.verification.st import Block
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.exports.block import block_of, text_of, value
from tests.exports.controllers import controllers

DT = 0.1


def pid(**changes: Any) -> Controller:
    loop = {"input": "level", "kp": 2.0, "ki": 0.5, "kd": 3.0, "window": 8}
    table = {
        "clearloop": 1,
        "kind": "pid",
        "setpoint": {"level": 1.0},
        "limits": {"pump": [-5, 5]},
        "units": {"level": "m", "pump": "V"},
        "dt": DT,
        "outputs": {"pump": {"loops": [loop]}},
    }
    return from_json(json.dumps(table | changes))


def pump(block: Block, level: float, **inputs: float) -> float:
    return float(block.step({"level": level, **inputs})["pump"])


def levels(count: int, seed: int = 0) -> list[float]:
    """Steps and drifts around the setpoint of 1."""
    rng = np.random.default_rng(seed)
    drift = np.cumsum(rng.normal(size=count))
    return [float(one) for one in 1 + 0.1 * drift + 0.02 * rng.normal(size=count)]


def of_controller(controller: Controller, inputs: list[float]) -> list[float]:
    memory = controller.reset()
    return [controller.act({"level": level}, memory)["pump"] for level in inputs]


@pytest.mark.parametrize("precision", [DOUBLE, SINGLE], ids=["double", "single"])
@pytest.mark.parametrize("option", [option for option in OPTIONS if option != "anti-windup"])
def test_at_its_first_values_an_option_changes_nothing(option: str, precision: Precision) -> None:
    block, inputs = block_of(pid(), precision, option), [precision.rounded(one) for one in levels(60)]
    found = [pump(block, level) for level in inputs]
    assert found == pytest.approx(of_controller(pid(), inputs), abs=1e-12 if precision is DOUBLE else 1e-4)


def test_without_saturation_anti_windup_changes_nothing() -> None:
    controller = pid(limits={"pump": [-500, 500]})
    block = block_of(controller, DOUBLE, "anti-windup")
    assert [pump(block, one) for one in levels(60)] == pytest.approx(of_controller(controller, levels(60)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_the_integral_does_not_grow_while_the_action_is_at_its_limit(sign: float, scale: float) -> None:
    loop = {"input": "level", "kp": 2.0, "ki": 0.5, "window": 30}
    controller = pid(outputs={"pump": {"scale": scale, "loops": [loop]}})
    plain, block = block_of(controller), block_of(controller, DOUBLE, "anti-windup")
    inputs = [1 - sign * 0.5] * 5 + [1 - sign * 4.0] * 20 + [1 + sign * 0.3] * 15
    past, ours, theirs = [], [], []
    for level in inputs:
        theirs.append(pump(plain, level))
        ours.append(pump(block, level))
        past.append(abs(sum(block.value("level_window"))))
    assert set(ours[6:25]) == {sign * scale * 5.0}
    assert all(later <= earlier for earlier, later in pairwise(past[5:25]))
    assert abs(sum(plain.value("level_window"))) > 20 * past[24]
    # Back on the other side, the block leaves the limit at once; the plain one stays for the whole window.
    assert abs(ours[25]) < 5.0
    assert set(theirs[25:40]) == {sign * scale * 5.0}


def test_an_error_that_leads_away_from_the_limit_counts() -> None:
    loops = [{"input": "level", "kp": -10.0, "ki": 0.5, "window": 5}]
    block = block_of(pid(outputs={"pump": {"loops": loops}}), DOUBLE, "anti-windup")
    for _ in range(3):
        assert pump(block, 2.0) == 5.0
    assert block.value("level_window")[:3] == [-1.0, -1.0, -1.0]


def test_where_two_actions_integrate_an_error_both_must_be_at_their_limits() -> None:
    loop = {"input": "level", "kp": 1.0, "ki": 0.5, "window": 5}
    outputs = {"pump": {"loops": [loop]}, "valve": {"scale": 2.0, "loops": [loop]}}
    controller = pid(outputs=outputs, limits={"pump": [-5, 5], "valve": [-50, 50]})
    block = block_of(controller, DOUBLE, "anti-windup")
    block.step({"level": -9.0})
    assert block.value("level_window")[0] == 10.0
    block.step({"level": -99.0})
    assert block.value("level_window")[0] == 0.0


@pytest.mark.parametrize("time", [0.05, 0.3, 2.0])
def test_the_filtered_derivative_is_a_first_order_lag(time: float) -> None:
    loop = {"input": "level", "kp": 0.0, "kd": 3.0}
    block = block_of(
        pid(outputs={"pump": {"loops": [loop]}}, limits={"pump": [-50, 50]}), DOUBLE, "derivative-filter"
    )
    inputs = levels(50)
    y = 0.0
    for before, level in pairwise([inputs[0], *inputs]):
        y += DT / (time + DT) * ((before - level) - y)
        assert pump(block, level, filter_time=time) == pytest.approx(3.0 * y, abs=1e-12)


def test_no_jump_from_manual_to_automatic() -> None:
    block, controller, rng = block_of(pid(), DOUBLE, "manual"), pid(), np.random.default_rng(5)
    inputs = levels(220)
    wanted = of_controller(controller, inputs)
    manual, last, bias = False, 0.0, 0.0
    for number, (level, law) in enumerate(zip(inputs, wanted, strict=True)):
        was, manual = manual, number % 40 > 25
        hand = float(rng.uniform(-8, 8))
        found = pump(block, level, manual=manual, pump_manual=hand, transfer_time=0.4)
        if manual:
            assert found == min(max(hand, -5.0), 5.0)
        elif was:
            assert found == pytest.approx(last, abs=1e-15)  # it goes on from where the hand left it
            bias = last - law
        else:
            bias *= 0.4 / (0.4 + DT)
            assert found == pytest.approx(min(max(law + bias, -5.0), 5.0), abs=1e-12)
        last = found
    assert found == pytest.approx(law, abs=0.2)


def test_the_action_changes_no_faster_than_allowed() -> None:
    block, rate = block_of(pid(), DOUBLE, "rate-limit", "manual"), 7.0
    rng, found = np.random.default_rng(6), []
    inputs = levels(300) + [1.0] * 60
    for number, level in enumerate(inputs):
        hand = {"manual": number % 50 > 40 and number < 300, "pump_manual": float(rng.uniform(-5, 5))}
        found.append(pump(block, level, pump_rate=rate, **hand))
    changes = [abs(later - earlier) for earlier, later in pairwise(found)]
    assert max(changes) <= rate * DT * (1 + 1e-12)
    assert max(changes) > 0.99 * rate * DT
    assert found[-1] == pytest.approx(of_controller(pid(), inputs)[-1], abs=1e-2)


def test_the_first_action_is_not_held_back() -> None:
    block = block_of(pid(), DOUBLE, "rate-limit")
    assert pump(block, -1.0, pump_rate=0.1) == 5.0
    assert pump(block, 9.0, pump_rate=0.1) == pytest.approx(4.99)


def test_in_the_deadband_the_error_is_0_and_outside_it_counts_from_the_edge() -> None:
    loop = {"input": "level", "kp": 2.0, "ki": 0.5, "kd": 1.0, "window": 4}
    controller = pid(outputs={"pump": {"loops": [loop]}}, limits={"pump": [-90, 90]})
    block, band = block_of(controller, DOUBLE, "deadband"), 0.25
    inputs = levels(80)
    moved = [1 - (1 - one - min(max(1 - one, -band), band)) for one in inputs]
    assert any(one == 1.0 for one in moved)
    assert any(one != 1.0 for one in moved)
    found = [pump(block, one, level_deadband=band) for one in inputs]
    assert found == pytest.approx(of_controller(controller, moved), abs=1e-12)


def test_a_negative_parameter_counts_as_0() -> None:
    block, inputs = block_of(pid(), DOUBLE, *OPTIONS), levels(40)
    negative = {"level_deadband": -1.0, "filter_time": -1.0, "transfer_time": -1.0, "pump_rate": -1.0}
    assert [pump(block, one, **negative) for one in inputs] == pytest.approx(
        of_controller(pid(), inputs), abs=1e-9
    )


@pytest.mark.parametrize("precision", [DOUBLE, SINGLE], ids=["double", "single"])
def test_nothing_fails_with_all_options(precision: Precision) -> None:
    """The interpreter refuses whatever overflows or has no value."""
    rng, tried = np.random.default_rng(7), 0
    for controller in controllers("pid", 60):
        with suppress(ClearloopError):  # no integral, no derivative, no limits, or steps
            block = block_of(controller.model_copy(update={"dt": 0.025}), precision, *OPTIONS)
            tried += 1
            for number in range(6):
                inputs = {name: precision.rounded(value(rng)) for name in block.inputs}
                flags = {"manual": number in (2, 3), "track": number == 4, "enable": number != 5}
                answer = block.step({**inputs, **flags, "restart": False})
                limits = controller.limits.values()
                for (low, high), action in zip(limits, answer.values(), strict=True):
                    assert precision.rounded(low) <= action <= precision.rounded(high)
    assert tried > 5


@pytest.mark.parametrize(
    ("controller", "options", "message"),
    [
        (
            KINDS["linear"].for_task(CARTPOLE),
            ("deadband",),
            "--with deadband: this is for a controller of kind 'pid', not of kind 'linear'",
        ),
        (pid(dt=None), ("manual",), "--with manual: the time between two steps is not known: give --task"),
        (pid(limits={}), ("anti-windup",), "--with anti-windup: pump has no limits: give --task"),
        (
            pid(outputs={"pump": {"loops": [{"input": "level", "kp": 1.0}]}}),
            ("anti-windup",),
            "has no integral part",
        ),
        (
            pid(outputs={"pump": {"loops": [{"input": "level", "kp": 1.0}]}}),
            ("derivative-filter",),
            "has no derivative part",
        ),
        (pid(steps={"pump": 1.0}), ("rate-limit",), "--with rate-limit: pump takes only some values"),
    ],
)
def test_what_cannot_be_is_refused(controller: Controller, options: tuple[str, ...], message: str) -> None:
    with pytest.raises(ClearloopError, match=message):
        text_of(controller, DOUBLE, *options)


def test_levels_by_hand() -> None:
    block = block_of(pid(steps={"pump": 1.0}), DOUBLE, "manual")
    assert pump(block, 1.0, manual=True, pump_manual=2.6) == 3.0
    assert pump(block, 1.0, manual=False) == 3.0


def test_the_published_pid_has_all_options() -> None:
    controller = KINDS["pid"].for_task(CARTPOLE)
    assert isinstance(controller, PID)
    text = text_of(controller, DOUBLE, *OPTIONS)
    assert f"Options: {', '.join(OPTIONS)}." in " ".join(text.split())


def test_names_that_options_take_may_be_taken() -> None:
    """By states; and a deep formula of a derived state is cut into parts."""
    deep = "level"
    for number in range(20):
        deep = f"1/(2 + abs({deep} - {number}))"
    controller = pid(
        derived={"level_deadband": deep},
        outputs={
            "pump": {
                "loops": [
                    {"input": "level", "kp": 2.0, "ki": 0.5, "kd": 3.0, "window": 8},
                    {"input": "level_deadband", "kp": 1.0, "ki": 0.1, "kd": 0.3, "window": 3},
                    {"input": "filter_time", "kp": 0.5},
                ]
            }
        },
    )
    block, memory, inputs = block_of(controller, DOUBLE, *OPTIONS), controller.reset(), levels(20)
    assert block.inputs[:3] == ("level", "filter_time", "level_setpoint")
    assert {"level_deadband_2", "filter_time_2"} < set(block.inputs)
    for level in inputs:
        wanted = controller.act({"level": level, "filter_time": 0.1}, memory)["pump"]
        assert block.step({"level": level, "filter_time": 0.1})["pump"] == pytest.approx(wanted, abs=1e-9)


def test_what_is_wanted_has_one_name() -> None:
    assert "pump_wanted_2" not in text_of(pid(), DOUBLE, "anti-windup")
