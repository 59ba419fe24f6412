"""`act` against the formulas of the file format, written out by hand."""

import math

import numpy as np
import pytest

from clearloop.controllers import PID, Controller, Equation, Fuzzy, Linear, NetworkController, from_json
from clearloop.errors import ClearloopError
from tests.controllers.kinds import KINDS

REST = {"theta": 0.0, "theta_dot": 0.0, "rho": 0.0, "rho_dot": 0.0}


def forces(controller: Controller, observations: list[dict[str, float]], aims: list[float]) -> list[float]:
    memory = controller.reset()
    return [
        controller.act({**REST, **observation}, memory, {"rho": aim})["force"]
        for observation, aim in zip(observations, aims, strict=True)
    ]


def test_a_bare_name_is_the_distance_from_the_setpoint() -> None:
    equation = Equation(outputs={"force": "theta + 10*rho + 100*rho.error + 1000*rho.setpoint"})
    assert forces(equation, [{"theta": 0.5, "rho": 3.0}], [2.0]) == [0.5 + 10 + 100 + 2000]


def test_setpoints_the_argument_then_the_files_then_zero() -> None:
    equation = Equation(outputs={"force": "rho"}, setpoint={"rho": 2.0})
    assert equation.act({"rho": 5.0}, equation.reset()) == {"force": 3.0}
    assert equation.act({"rho": 5.0}, equation.reset(), {"rho": 1.0}) == {"force": 4.0}
    bare = Equation(outputs={"force": "rho"})
    assert bare.act({"rho": 5.0}, bare.reset()) == {"force": 5.0}


def test_before_the_start_the_first_observation_is_repeated_and_past_actions_are_0() -> None:
    equation = Equation(outputs={"force": "theta[t-2] + 10*force[t-1] + 100*force[t-2]"})
    observations = [{"theta": float(value)} for value in (1, 2, 3, 4)]
    first, second, third = 1.0, 1 + 10 * 1.0, 1 + 10 * 11 + 100 * 1.0
    assert forces(equation, observations, [0.0] * 4) == [first, second, third, 2 + 10 * third + 100 * second]


def test_a_lagging_value_is_measured_from_the_present_setpoint() -> None:
    equation = Equation(outputs={"force": "rho[t-1]"})
    assert forces(equation, [{"rho": 1.0}, {"rho": 2.0}], [0.0, 10.0]) == [1.0, -9.0]


def test_past_actions_are_the_limited_ones() -> None:
    equation = Equation(outputs={"force": "5 + force[t-1]"}, limits={"force": (-1, 7)})
    assert forces(equation, [{}] * 3, [0.0] * 3) == [5.0, 7.0, 7.0]


def test_a_linear_controller_is_a_sum_of_products() -> None:
    linear = Linear(gains={"force": {"theta": 2.0, "rho": -3.0, "rho[t-1]": 0.5, "force[t-1]": 10.0}})
    observations = [{"theta": 1.0, "rho": 4.0}, {"theta": 2.0, "rho": 6.0}]
    first = 2 * 1 - 3 * (4 - 1) + 0.5 * (4 - 1)
    assert forces(linear, observations, [1.0, 1.0]) == [first, 2 * 2 - 3 * 5 + 0.5 * 3 + 10 * first]


def test_a_pid_sums_over_its_window_and_takes_differences_of_one_step() -> None:
    loop = {"input": "rho", "weight": 0.5, "kp": 2.0, "ki": 3.0, "kd": 5.0, "window": 3}
    pid = PID.model_validate({"outputs": {"force": {"scale": 10.0, "loops": [loop]}}})
    values, aims = [1.0, 4.0, 2.0, 7.0, -1.0], [0.0, 0.0, 6.0, 6.0, 6.0]
    # Each error is with the setpoint of its own time: −1, −4, 4, −1, 7.
    expected = [
        10 * 0.5 * (2 * -1 + 3 * -1),
        10 * 0.5 * (2 * -4 + 3 * (-1 - 4) + 5 * (-4 + 1)),
        10 * 0.5 * (2 * 4 + 3 * (-1 - 4 + 4) + 5 * (4 + 4)),
        10 * 0.5 * (2 * -1 + 3 * (-4 + 4 - 1) + 5 * (-1 - 4)),
        10 * 0.5 * (2 * 7 + 3 * (4 - 1 + 7) + 5 * (7 + 1)),
    ]
    assert forces(pid, [{"rho": value} for value in values], aims) == pytest.approx(expected, rel=1e-15)


def test_the_published_pid_at_its_first_step() -> None:
    """10 (0.95 (kp e + ki e) + …): no change yet, and the integral has one sample."""
    pid = KINDS["pid"]
    force = pid.act({**REST, "theta": 0.01, "rho": -0.02}, pid.reset())["force"]
    theta, rho = -0.01 * (-8.58 - 0.15186), 0.02 * (-25.62 - 0.1548)
    assert force == pytest.approx(10 * (0.95 * theta + 0.05 * rho), rel=1e-14)


def test_fuzzy_rules_are_weighted_by_how_well_they_fit() -> None:
    rules = [
        {"if": {"theta": {"center": 0.2, "width": 0.4}, "rho": {"center": 0.5, "width": 1.0}}, "then": 0.9},
        {"if": {"theta": {"center": -0.2, "width": 0.4}}, "then": -0.7},
    ]
    fuzzy = Fuzzy.model_validate({"outputs": {"force": {"scale": 10.0, "alpha": 3.1, "rules": rules}}})
    theta, rho, aim = 0.1, 0.7, 0.3
    first = math.exp(-((0.2 - theta) ** 2) / (2 * 0.4**2)) * math.exp(-((0.5 - (rho - aim)) ** 2) / 2)
    second = math.exp(-((-0.2 - theta) ** 2) / (2 * 0.4**2))
    expected = 10 * math.tanh(3.1 * (first * 0.9 - second * 0.7) / (first + second))
    assert forces(fuzzy, [{"theta": theta, "rho": rho}], [aim]) == pytest.approx([expected], rel=1e-14)


def test_fuzzy_stays_exact_where_every_membership_underflows() -> None:
    rules = [
        {"if": {"theta": {"center": 0.0, "width": 1.0}}, "then": 0.5},
        {"if": {"theta": {"center": 1e-3, "width": 1.0}}, "then": -0.5},
    ]
    fuzzy = Fuzzy.model_validate({"outputs": {"force": {"scale": 2.0, "alpha": 1.0, "rules": rules}}})
    # Each membership alone is exp(−5000) = 0; their ratio is exp(θ c − c²/2).
    ratio = math.exp(100 * 1e-3 - 1e-6 / 2)
    expected = 2 * math.tanh((0.5 - 0.5 * ratio) / (1 + ratio))
    assert forces(fuzzy, [{"theta": 100.0}], [0.0]) == pytest.approx([expected], rel=1e-10)
    assert abs(expected) > 0.01


def test_a_network_layer_by_layer() -> None:
    network = KINDS["network"]
    assert isinstance(network, NetworkController)
    x = np.array([0.1, -0.5, 0.7 - 0.2, 0.3, 0.1])
    x = np.tanh(
        np.array([[3.1, 0.9, 0.4, 0.3, 1.2], [-2.0, -0.8, -0.5, -0.4, 0.1], [1, 2, 3, 4, 5]]) @ x
        + [0.1, -0.2, 0.05]
    )
    x = np.maximum(np.array([[1.5, -1.2, 0.1], [0.3, 0.2, -0.1]]) @ x + [0.0, 0.3], 0)
    x = 1 / (1 + np.exp(-(np.array([[2.0, 0.5], [0.1, 0.2]]) @ x + [-0.9, 0.1])))
    expected = 10 * float(np.array([3.0, 0.1]) @ x - 1.4)
    observation = {"theta": 0.1, "theta_dot": -0.5, "rho": 0.7, "rho_dot": 0.3}
    assert forces(network, [observation], [0.2]) == pytest.approx([expected], rel=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_an_observation_without_a_needed_state_is_refused(kind: str) -> None:
    controller = KINDS[kind]
    with pytest.raises(ClearloopError, match="the observation has no 'theta'; it has: rho"):
        controller.act({"rho": 0.0, "rho_dot": 0.0, "theta_dot": 0.0}, controller.reset())


@pytest.mark.parametrize("kind", KINDS)
def test_an_observation_that_is_no_number_is_refused(kind: str) -> None:
    controller = KINDS[kind]
    with pytest.raises(ClearloopError, match="'rho' is not a number"):
        controller.act({**REST, "rho": math.nan}, controller.reset())


def test_a_log_row_with_the_action_in_it_does_not_pass_for_what_was_done() -> None:
    equation = Equation(outputs={"force": "force[t-1] + 1"})
    memory = equation.reset()
    assert [equation.act({"force": 99.0}, memory)["force"] for _ in range(3)] == [1.0, 2.0, 3.0]


def test_infinite_observations_are_limited_as_formulas_read_them() -> None:
    equation = Equation(outputs={"force": "theta - rho"})
    assert equation.act({"theta": math.inf, "rho": -math.inf}, equation.reset()) == {"force": 2e12}


def test_setpoints_and_past_actions_are_limited_as_formulas_read_them() -> None:
    linear = Linear(gains={"u": {"x.setpoint": 1e12, "u[t-1]": 1e12}}, follows={"x": "a column"})
    memory = linear.reset()
    assert linear.act({"x": 0.0}, memory, {"x": 1e300}) == {"u": 1e24}
    assert linear.act({"x": 0.0}, memory, {"x": 0.0}) == {"u": 1e24}


def test_several_actions_each_by_their_name() -> None:
    text = (
        """{"clearloop": 1, "kind": "linear", "gains": {"b": {"x": 2.0}, "a": {"x": 3.0, "b[t-1]": 1.0}}}"""
    )
    linear = from_json(text)
    memory = linear.reset()
    assert linear.act({"x": 1.0}, memory) == {"b": 2.0, "a": 3.0}
    assert linear.act({"x": 1.0}, memory) == {"b": 2.0, "a": 5.0}
