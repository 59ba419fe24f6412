"""The terms add up to what the controller does before it is limited."""

import math

import pytest

from clearloop.controllers import Equation
from clearloop.controllers.pid import PID, Loop, Loops
from clearloop.studio.session import Automatic


def test_they_are_worth_what_they_were_when_the_action_was_chosen() -> None:
    """Past values and past actions included; the action itself is limited, the sum is not."""
    law = Equation(
        outputs={"u": "30*x + 2*x[t-2] - 0.5*u[t-1] + 0.25*u[t-2]"},
        limits={"u": (-10.0, 10.0)},
    )
    driver = Automatic(law)
    seen, acted = [], []
    for step in range(12):
        seen.append(math.sin(step))
        acted.append(driver.act({"x": seen[-1]}, {}, {})["u"])
        past = seen[max(step - 2, 0)]
        earlier = [0.0, 0.0, *acted]
        expected = [30 * seen[-1], 2 * past, -0.5 * earlier[step + 1], 0.25 * earlier[step]]
        assert [term["value"] for term in driver.terms()] == pytest.approx(expected)
        assert acted[-1] == pytest.approx(min(max(sum(expected), -10), 10))
    assert [term["text"] for term in driver.terms()] == ["30*x", "2*x[t-2]", "-0.5*u[t-1]", "0.25*u[t-2]"]


def test_before_the_first_action_there_is_nothing_to_say() -> None:
    assert Automatic(Equation(outputs={"u": "x + 1"})).terms() == []


def test_a_pids_parts_add_up_to_its_action() -> None:
    loops = (Loop(input="x", weight=0.5, kp=4, ki=0.3, kd=2, window=3), Loop(input="y", kp=-1))
    law = PID(outputs={"u": Loops(scale=2, bias=0.7, loops=loops)}, setpoint={"x": 0.2})
    driver = Automatic(law)
    for step in range(6):
        seen = {"x": math.sin(step), "y": math.cos(step)}
        action = driver.act(seen, {}, {})["u"]
        values = {term["text"]: term["value"] for term in driver.terms()}
        assert list(values) == ["P of x", "I of x", "D of x", "P of y", "0.7"]
        assert values["P of x"] == pytest.approx(2 * 0.5 * 4 * (0.2 - seen["x"]))
        assert sum(values.values()) == pytest.approx(action)
