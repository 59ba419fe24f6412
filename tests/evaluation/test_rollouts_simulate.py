"""One trajectory, as arrays and as a table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.controllers import from_json
from clearloop.errors import ClearloopError
from clearloop.evaluation import SetpointChange, simulate
from tests import twin
from tests.controllers import strategies
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.evaluation.test_rollouts import MIXING
from tests.plants.mixer import MIXER, course


def test_a_setpoint_that_changes_twice() -> None:
    changes = [SetpointChange("rho", -0.5, 40), SetpointChange("rho", 0.9, 10)]
    trajectory = simulate(KINDS["pid"], CARTPOLE, start={"theta": 0.2}, setpoints=changes, steps=60)
    aims = [0.0] * 10 + [0.9] * 30 + [-0.5] * 20
    expected = twin.roll_out(KINDS["pid"].for_task(CARTPOLE), np.array([[0.2, 0, 0, 0]]), aims)
    assert trajectory.setpoints[:, 2].tolist() == aims
    np.testing.assert_allclose(trajectory.states, expected.states, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(trajectory.rewards, expected.rewards)


def test_a_table_with_a_row_for_each_time() -> None:
    frame = simulate(KINDS["pid"], CARTPOLE, start={"theta": 0.2}, steps=5).to_frame()
    names = ["step", "time", "theta", "theta_dot", "rho", "rho_dot", "rho.setpoint", "force", "reward"]
    assert frame.columns == names
    assert frame["step"].to_list() == [0, 1, 2, 3, 4, 5]
    assert frame["time"].to_list() == [0.0, 0.025, 0.05, 0.075, 0.1, 0.125]
    assert frame["force"].null_count() == frame["reward"].null_count() == 1
    assert frame.row(-1)[-2:] == (None, None)


@pytest.mark.parametrize("dt", [1e-9, 0.1, 3600.0])
def test_times_are_round_at_every_scale(dt: float) -> None:
    task = CARTPOLE.model_copy(update={"dt": dt})
    times = simulate(KINDS["equation"], task, steps=3).to_frame()["time"].to_list()
    assert times == [0.0, dt, 2 * dt, float(f"{3 * dt:.12g}")]


def test_the_horizon_is_the_tasks_if_none_is_given() -> None:
    assert simulate(KINDS["pid"], CARTPOLE).actions.shape == (1, 100, 1)


def test_another_task_with_two_actions() -> None:
    trajectory = simulate(MIXING, MIXER, start={"level": 0.5, "heat": 0.25}, steps=15)
    steps = [(inlet, burner) for inlet, burner in trajectory.actions[0]]
    states, rewards, _ = course((0.5, 0.25), steps, setpoint=0.75)
    np.testing.assert_allclose(trajectory.states[0], states, rtol=0, atol=1e-12)
    assert trajectory.rewards[0].tolist() == rewards
    assert trajectory.to_frame().columns[-4:] == ["level.setpoint", "inlet", "burner", "reward"]


@pytest.mark.parametrize("kind", strategies.BODIES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_no_controller_leads_the_engine_out_of_its_limits(kind: str, data: st.DataObject) -> None:
    controller = from_json(data.draw(strategies.files(kind))).for_task(CARTPOLE)
    trajectory = simulate(controller, CARTPOLE, start=data.draw(strategies.states(largest=1e12)), steps=2)
    low, high = controller.limits["force"]
    assert np.isfinite(trajectory.states).all()
    assert (low <= trajectory.actions).all()
    assert (trajectory.actions <= high).all()


def test_what_is_too_large_for_the_engine_is_refused() -> None:
    with pytest.raises(ClearloopError, match=r"starts: expected numbers from -1e\+12 to 1e\+12"):
        simulate(KINDS["pid"], CARTPOLE, start={"theta": 1e300}, steps=1)
    with pytest.raises(ClearloopError, match=r"setpoints: expected numbers from -1e\+12 to 1e\+12"):
        simulate(KINDS["pid"], CARTPOLE, setpoints=[SetpointChange("rho", -1e13, 0)], steps=1)


def test_names_that_the_task_does_not_have_are_refused() -> None:
    with pytest.raises(ClearloopError, match="start: 'thta' is not a state of the task; did you mean"):
        simulate(KINDS["pid"], CARTPOLE, start={"thta": 0.1})
    with pytest.raises(ClearloopError, match="setpoint: 'theta' is not a state with a setpoint of the task"):
        simulate(KINDS["pid"], CARTPOLE, setpoints=[SetpointChange("theta", 0.1, 0)])
