"""Responses that are known by formula."""

import numpy as np
import pytest

from clearloop.controllers import Equation, Linear
from clearloop.diagnosis.response import BEFORE, StepResponse, measure, step_responses, step_size
from clearloop.task import Task
from tests.methods.linear_plants import make_log, make_model, make_task
from tests.methods.test_lqr import U, V

from .plants import FIRST_ORDER, SPRING, integrating, log


def respond(gain: float) -> StepResponse:
    (response,) = step_responses(integrating(gain), FIRST_ORDER, batch=log(FIRST_ORDER))
    return response


def test_a_first_order_loop_settles_in_three_time_constants() -> None:
    """The error is 0.9ⁿ of the step: below 5 % from n = 29 on (2.9 s)."""
    response = respond(1.0)
    assert response.size == 2.0
    assert response.overshoot == response.undershoot == 0.0
    assert response.settling_time == pytest.approx(2.9)
    assert response.rise_time == pytest.approx(0.1 * np.log(9) / -np.log(0.9), abs=0.01)
    trapezoids = 0.1 * 2.0 * (1 / (1 - 0.9) - 0.5)
    assert response.integral_error == pytest.approx(trapezoids, rel=1e-4)
    assert response.final_error == pytest.approx(2.0 * 0.9**160, rel=1e-5)


def test_it_is_seen_from_rest_to_the_end() -> None:
    response = respond(1.0)
    assert response.times[BEFORE] == 0.0
    assert response.setpoints.tolist() == [2.0] * BEFORE + [4.0] * (len(response.times) - BEFORE)
    np.testing.assert_allclose(response.values[0, : BEFORE + 1], 2.0)
    assert response.actions.shape == (1, len(response.times) - 1, 1)
    assert response.actions[0, BEFORE, 0] == pytest.approx(2.0)


def test_overshoot() -> None:
    """The error changes its sign at every step: -1/2, 1/4, …"""
    response = respond(15.0)
    assert response.overshoot == pytest.approx(50.0)
    assert response.settling_time == pytest.approx(0.5)  # 1/32


def test_a_loop_that_never_settles() -> None:
    response = respond(20.0)
    assert response.settling_time is None
    assert response.overshoot == pytest.approx(100.0)
    assert "does not settle" in repr(response)


def test_a_loop_that_stops_short_is_not_settled() -> None:
    (response,) = step_responses(
        Linear(gains={"push": {"place": -4.0, "speed": -4.0}}), SPRING, batch=log(SPRING)
    )
    assert response.final_error == pytest.approx(0.2 / 2, rel=1e-3)  # the spring pulls as much as the law
    assert response.settling_time is response.rise_time is None


def test_the_wrong_way_first() -> None:
    odd = Equation(outputs={"u": "if(u[t-1] == 0, 2*y, -5*y)"})
    (response,) = step_responses(odd, FIRST_ORDER, batch=log(FIRST_ORDER))
    assert response.undershoot == pytest.approx(20.0)


def test_the_start_can_be_given() -> None:
    (response,) = step_responses(integrating(1.0), FIRST_ORDER, batch=log(FIRST_ORDER), start=np.array([7.0]))
    assert response.values[0, 0] == 7.0


def test_the_size_without_a_box_is_a_share_of_the_log() -> None:
    tables = FIRST_ORDER.model_dump(mode="json", exclude_none=True)
    task = Task.from_dict(tables | {"starts": {"from": "batch"}})
    batch = log(FIRST_ORDER)
    assert step_size(task, batch, 0) == pytest.approx(0.1 * np.ptp(batch.states))


def test_no_setpoint_no_step() -> None:
    task = make_task(2)
    batch = make_log(task, U, V)
    assert step_responses(Linear(gains={"u0": {"x0": -1.0}}), task, batch=batch) == ()


def test_some_members_of_a_model() -> None:
    task = make_task(2, states={"x0": {"setpoint": 0.0}, "x1": {}})
    batch, model = make_log(task, U, V), make_model(task, U, V)
    controller = Linear(gains={"u0": {"x0": -0.5, "x1": -0.5}})
    (response,) = step_responses(controller, task, batch=batch, surrogate=model, members=[0, 2])
    assert response.values.shape == (2, 10 + 200 + 1)
    np.testing.assert_array_equal(response.values[0], response.values[1])


def test_figures_are_those_of_the_member_in_the_middle() -> None:
    """Courses that settle after one, three and no steps."""
    steps = np.arange(61) - BEFORE
    courses = np.array([np.where(steps >= wait, 4.0, 2.0) for wait in (1, 3, 99)])
    found = measure(FIRST_ORDER, 0, 2.0, 2.0, courses, np.zeros((3, 60, 1)))
    assert found.settling_time == pytest.approx(0.3)
    assert found.final_error == 0.0
    worse = measure(FIRST_ORDER, 0, 2.0, 2.0, courses[1:], np.zeros((2, 60, 1)))
    assert worse.settling_time is worse.rise_time is None
    assert worse.final_error == 2.0
