"""The linear law of a PID is what it does for small deviations; its margins are those of python-control."""

import json
from typing import Any

import control
import numpy as np
import pytest

from clearloop.controllers import Controller, from_json
from clearloop.diagnosis.margins import find_margins
from clearloop.evaluation.linearisation import linearise
from clearloop.task import Task

DT = 0.2
TASK = Task.from_dict(
    {
        "name": "heater",
        "dt": DT,
        "discount": 0.99,
        "horizon": 100,
        "states": {"y": {"setpoint": 3.0}, "x": {"setpoint": 0.0}},
        "actions": {"u": {"limits": [-100, 100]}},
        "reward": {"expression": "-abs(y.error)"},
        "starts": {"y": [-1, 1]},
        "plant": {"derivative": {"y": "(x - y)/4", "x": "2*u - x"}, "substeps": 8},
    }
)

PI = {"input": "y", "kp": 1.2, "ki": 0.06, "integral": True}
PID = PI | {"kd": 4.0, "filter": 1.5}
INNER = {"input": "x", "kp": 0.3, "ki": 0.05, "integral": True}
OUTPUTS: dict[str, dict[str, Any]] = {
    "windows": {"loops": [{"input": "y", "kp": 1.0, "ki": 0.05, "kd": 2.0, "window": 6}], "scale": 0.5},
    "PI": {"loops": [PI]},
    "PID": {"loops": [PID]},
    "two filters": {"loops": [PID, {"input": "x", "kp": 0.1, "kd": 0.3, "filter": 4}], "scale": 0.7},
    "integral and window": {"loops": [PI, {"input": "x", "kp": 0.05, "ki": 0.01, "window": 3}]},
    "cascade": {"outer": PID, "inner": INNER | {"kd": 0.1, "filter": 0.5, "setpoint_weight": 0.6}},
    "cascade, inner integral": {"outer": {"input": "y", "kp": 2.0}, "inner": INNER},
    "cascade, outer integral": {"outer": PI, "inner": {"input": "x", "kp": 0.8}},
    "fed forward": {"loops": [PI], "feedforward": {"x": -0.05, "y.setpoint": 2.0}},
    "scheduled": {
        "loops": [{"input": "y", "integral": True}
            | {"schedule": {"by": "x", "at": [0, 10], "kp": [1.0, 2.0], "ki": [0.05, 0.06], "kd": [1, 2]}}]
    },
}  # fmt: skip


def controller(name: str) -> Controller:
    table = {"clearloop": 1, "kind": "pid", "outputs": {"u": OUTPUTS[name]}}
    return from_json(json.dumps(table)).for_task(TASK)


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("state", ["y", "x"])
def test_a_small_push_is_answered_as_the_linear_law_says(name: str, state: str) -> None:
    one, rest = controller(name), {"y": 3.0, "x": 3.0}
    law, _ = one.recursions(rest, {"y": 3.0})["u"]
    answers, size = [], 1e-6
    for push in (0.0, size):
        memory = one.reset()
        answers.append(
            [one.act(rest | {state: 3.0 + push * (k == 2)}, memory, {"y": 3.0})["u"] for k in range(40)]
        )
    found = (np.array(answers[1]) - answers[0]) / size
    taps = law.gains.get(state, np.zeros(1))
    expected = np.zeros(40)
    for t in range(40):
        expected[t] = taps[t - 2] if 2 <= t < 2 + len(taps) else 0.0
        expected[t] -= sum(law.past[k] * expected[t - k] for k in range(1, min(len(law.past), t + 1)))
    assert found == pytest.approx(expected, abs=1e-6 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_steady_state_is_where_a_long_simulation_ends(name: str) -> None:
    one = controller(name)
    linear = linearise(one, TASK, spread=np.full(2, 5.0))
    assert linear is not None
    assert linear.at_rest
    memory, y, x = one.reset(), 3.0, 3.0
    for _ in range(6000):
        u = one.act({"y": y, "x": x}, memory)["u"]
        for _ in range(10):
            y, x = y + DT / 10 * (x - y) / 4, x + DT / 10 * (2 * u - x)
    if linear.stable:
        assert linear.point == pytest.approx([y, x], abs=1e-4)
        assert linear.action == pytest.approx([u], abs=1e-4)


@pytest.mark.parametrize("name", ["PI", "PID", "windows"])
def test_the_margins_are_those_of_python_control(name: str) -> None:
    loop = OUTPUTS[name]["loops"][0]
    linear = linearise(controller(name), TASK, spread=np.full(2, 5.0))
    assert linear is not None
    margins = find_margins(linear)
    assert margins is not None
    assert margins.stable
    plant = control.c2d(control.tf([2], np.convolve([4, 1], [1, 1])), DT, "zoh")
    z = control.tf([1, 0], [1], DT)
    a = loop.get("filter", 0.0) / (1 + loop.get("filter", 0.0))
    summed = z / (z - 1) if loop.get("integral") else sum(z**-k for k in range(loop.get("window", 1)))
    law = loop["kp"] + loop["ki"] * summed + loop.get("kd", 0.0) * (1 - a) * (z - 1) / (z - a)
    loop_gain = OUTPUTS[name].get("scale", 1.0) * law * plant
    w = np.geomspace(1e-4, 1, 20_000) * np.pi / DT
    gain, phase, *_ = control.stability_margins(control.FRD(loop_gain, w, smooth=True))
    (found,) = margins.actions
    assert found.gain_up == pytest.approx(gain, rel=1e-3)
    assert found.phase == pytest.approx(phase, rel=1e-3)
