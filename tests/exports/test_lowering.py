"""The intermediate form means what the controller does: run in plain Python, it gives the same numbers."""

import numpy as np
import pytest

from clearloop.controllers import PID, Controller, Equation, Fuzzy, Linear
from clearloop.controllers.routine import Let, Sum
from clearloop.exports import DOUBLE, Routine, lower
from clearloop.expression import Variable
from clearloop.verification import Amount
from clearloop.verification.bounds import Arithmetic, Shadow
from clearloop.verification.vectors import expect, vectors
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.exports.controllers import KINDS as RANDOM_KINDS
from tests.exports.controllers import controllers

FEW = Amount(episodes=2, length=6, after=2, tries=0, share=0.1)


def largest_difference(controller: Controller) -> float:
    """Between the routine and the controller, relative to the action's range."""
    routine = lower(controller)
    episodes = vectors(routine, DOUBLE, rng=np.random.default_rng(3), amount=FEW)
    expectation = expect(controller, routine, episodes, DOUBLE)
    rows = []
    for episode in episodes:
        shadow = Shadow(routine, Arithmetic(DOUBLE, exact=True))
        for inputs in episode:
            found = shadow.step(inputs)
            rows.append([found[output.action].value for output in routine.outputs])
    return float((np.abs(np.array(rows) - expectation.actions) / expectation.ranges).max())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_means_the_same(kind: str) -> None:
    assert largest_difference(KINDS[kind].for_task(CARTPOLE)) == 0


@pytest.mark.parametrize("kind", RANDOM_KINDS)
def test_random_controllers_mean_the_same(kind: str) -> None:
    worst = max(largest_difference(controller) for controller in controllers(kind, 15, seed=5))
    assert worst == 0 if kind == "equation" else worst < 1e-12


def names(routine: Routine) -> list[str]:
    return [str(one.variable) for one in routine.inputs]


def test_what_nothing_depends_on_is_left_out() -> None:
    linear = Linear(gains={"u": {"x": 2.0, "y": 0.0, "z[t-3]": 0.0}}, setpoint={"y": 1.0})
    assert names(lower(linear)) == ["x"]
    assert lower(linear).rings == ()
    loops = [{"input": "x", "kp": 0.0, "weight": 2.0}, {"input": "y", "kp": 1.0, "ki": 0.0, "window": 9}]
    pid = PID.model_validate({"outputs": {"u": {"loops": loops}}})
    assert names(lower(pid)) == ["y"]
    assert not any(isinstance(one, Sum) for one in lower(pid).body)
    rules = [{"if": {"x": {"center": 0.0, "width": 1.0}}, "then": 1.0}]
    fuzzy = Fuzzy.model_validate({"outputs": {"u": {"scale": 0.0, "alpha": 1.0, "rules": rules}}})
    assert names(lower(fuzzy)) == []


def test_setpoints_that_come_with_the_observation_and_those_that_stay() -> None:
    fields = {"setpoint": {"x": 2.0}, "follows": {"y": "a column"}}
    routine = lower(Equation.model_validate({"outputs": {"u": "x + y"}, **fields}))
    assert names(routine) == ["x", "y", "x.setpoint", "y.setpoint"]
    assert [str(one.variable) for one in routine.observed] == ["x", "y", "y.setpoint"]
    assert [(str(one.variable), one.default) for one in routine.parameters] == [("x.setpoint", 2.0)]


def test_derived_states_are_computed_by_the_routine() -> None:
    fields = {"derived": {"v": "x - x[t-1] + 0.5*v[t-1]"}, "limits": {"u": (-9.0, 9.0)}}
    equation = Equation.model_validate({"outputs": {"u": "v + v[t-2] + u[t-1]"}, **fields})
    routine = lower(equation)
    assert names(routine) == ["x"]
    assert any(isinstance(one, Let) and one.target == Variable("v") for one in routine.body)
    assert {(str(ring.name), ring.depth, ring.repeat) for ring in routine.rings} == {
        ("x", 1, True),
        ("v", 2, True),
        ("u", 1, False),
    }
    assert largest_difference(equation) == 0


def test_names_of_the_routine_never_hide_those_of_people() -> None:
    equation = Equation(outputs={"rho_error_2": "rho + rho_error"}, setpoint={"rho": 1.0})
    assert largest_difference(equation) == 0
