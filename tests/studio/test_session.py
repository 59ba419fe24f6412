"""The live session is the plant that `simulate` runs, for both sides, whatever is done to it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.controllers import Controller, Equation
from clearloop.errors import ClearloopError
from clearloop.evaluation import SetpointChange, simulate
from clearloop.plants.scenarios import Scenarios
from clearloop.published import CARTPOLE
from clearloop.studio import course
from clearloop.studio.course import SharedCourse
from clearloop.studio.session import Automatic, Faults, Session
from clearloop.studio.stage import Stage
from clearloop.task import Task

TASKS = ("cartpole", "cartpole-hardware", "pendulum", "motor", "tank")
STAGES = {name: Stage(name, Task.load(name)) for name in TASKS}
PUBLISHED = {one.file: one.load().for_task(STAGES["cartpole"].task) for one in CARTPOLE}
LAWS = {
    "cartpole-hardware": Equation(outputs={"force": "40*theta + 120*(theta_dot + theta_dot[t-1]) + 3*rho"}),
    "pendulum": Equation(outputs={"torque": "2*y + theta_dot"}),
    "motor": Equation(outputs={"voltage": "-3*angle - 0.5*speed - angle_sum + 0.1*voltage[t-1]"}),
    "tank": Equation(outputs={"pump": "45 - 2*level - 0.012*level_sum + 0.1*level[t-3]"}),
}


def driven(name: str, controller: Controller, seed: int = 0) -> Session:
    session = Session(STAGES[name], seed)
    session.drive(0, Automatic(controller.for_task(session.task)))
    session.restart(seed)
    return session


def states(session: Session, steps: int) -> np.ndarray:
    """[steps + 1, S]"""
    rows = [list(session.sides[0].state.values())]
    for _ in range(steps):
        session.step()
        rows.append(list(session.sides[0].state.values()))
    return np.array(rows)


@pytest.mark.parametrize("name", ["gprl", "pid", "lqr", "none"])
def test_it_is_the_plant_that_simulate_runs(name: str) -> None:
    session = driven("cartpole", PUBLISHED[name], seed=3)
    run = simulate(PUBLISHED[name], session.task, start=session.sides[0].state, steps=100)
    failed = np.flatnonzero((run.rewards[0] == -1.0).cumsum() > 1)
    steps = int(failed[0]) if len(failed) else 100
    np.testing.assert_allclose(states(session, steps), run.states[0, : steps + 1], atol=1e-9)
    discounts = session.task.discount ** np.arange(steps)
    assert session.sides[0].penalty == pytest.approx(-(run.rewards[0, :steps] @ discounts), abs=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_so_it_is_with_hidden_states_delays_signals_and_what_is_computed(name: str) -> None:
    session, law = driven(name, LAWS[name], seed=5), LAWS[name]
    task = session.task
    chance = np.random.default_rng([5, 0])
    point = task.unveiled.random_starts(1, chance)
    scenario = Scenarios.explored(task, point, chance, 120)
    run = simulate(law, task, scenario=scenario)
    side = session.sides[0]
    seen = [[side.seen[name] for name in task.states]]
    while len(seen) <= 120 and not side.failed:
        session.step()
        assert list(side.action.values()) == pytest.approx(run.actions[0, len(seen) - 1].tolist(), abs=1e-7)
        seen.append([side.seen[name] for name in task.states])
    assert len(seen) > 20
    np.testing.assert_allclose(seen, run.states[0, : len(seen)], rtol=1e-7, atol=1e-7)


def test_a_setpoint_is_aimed_at_from_the_step_on_at_which_it_is_changed() -> None:
    session = driven("cartpole", PUBLISHED["gprl"], seed=3)
    start = session.sides[0].state
    run = simulate(PUBLISHED["gprl"], session.task, start=start, setpoints=[SetpointChange("rho", 0.5, 30)])
    first = states(session, 30)
    session.aim("rho", 0.5)
    both = np.vstack([first, states(session, 70)[1:]])
    np.testing.assert_allclose(both, run.states[0], atol=1e-9)
    assert session.frame()["setpoint"] == {"rho": 0.5}


def test_a_course_without_end_begins_as_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    task = STAGES["tank"].task
    point = task.unveiled.random_starts(1, np.random.default_rng(1))[0]
    monkeypatch.setattr(course, "PIECE", 50)
    long = SharedCourse(task, point, np.random.default_rng(0))
    short = Scenarios.explored(task, point[None], np.random.default_rng(0), 20)
    for step in range(19):
        outside = long.at(step)
        np.testing.assert_array_equal(outside.aims, short.setpoints[0, step : step + 2])
        np.testing.assert_array_equal(outside.script, short.script[:, step : step + 2])
    scripts = [long.at(step).script[0, 1, 0] for step in range(19, 200)]
    assert np.std(scripts[130:]) > 0.05  # the noise of the sensor goes on
    assert long.at(200).aims.shape == (2, len(task.unveiled.states))


def two(name: str = "cartpole", second: str = "gprl") -> Session:
    session = driven(name, PUBLISHED["gprl"])
    session.drive(1, Automatic(PUBLISHED[second]))
    return session


def test_two_sides_with_the_same_controller_run_alike_whatever_disturbs_them() -> None:
    session = two()
    session.disturb(Faults(noise=0.3, delay=2))
    pushes, first = np.random.default_rng(0), session.episode
    for step in range(300):
        if step % 40 == 0:
            session.push(None, pushes.uniform(-1, 1))
        session.step()
        one, other = session.frame()["sides"]
        assert one == other
    assert session.episode > first  # it fell, and began anew


def test_other_controllers_start_alike_and_part() -> None:
    session = two(second="none")
    assert session.sides[0].state == session.sides[1].state
    session.step()
    assert session.sides[0].state != session.sides[1].state


def test_who_falls_waits_for_the_other_and_then_both_begin_together() -> None:
    session = two(second="none")
    first = session.episode
    while not session.sides[1].failed:
        session.step()
    lying = session.sides[1].state
    for _ in range(200):
        session.step()
    assert session.episode == first
    assert session.sides[1].state == lying
    assert lying["theta_dot"] == 0
    assert not session.sides[0].failed
    session.drive(1, None)
    assert len(session.frame()["sides"]) == 1


def test_a_player_who_falls_beside_a_controller_goes_on() -> None:
    session = Session(STAGES["cartpole"])
    session.drive(1, Automatic(PUBLISHED["gprl"]))
    while not session.sides[0].failed:
        session.step()
    up, first = session.sides[1].steps, session.episode
    for _ in range(39):
        session.step()
    assert (session.episode, session.sides[1].steps) == (first, up + 39)
    session.step()
    assert session.episode == first + 1
    assert session.sides[0].state == session.sides[1].state


def test_what_falls_alone_rests_a_second_and_begins_anew() -> None:
    session = Session(STAGES["cartpole"])
    while not session.sides[0].failed:
        session.step()
    up = session.frame()["sides"][0]["up"]
    for _ in range(39):
        session.step()
    assert session.episode == 0
    assert session.frame()["sides"][0]["up"] == up
    session.step()
    assert session.episode == 1
    assert not session.sides[0].failed


def test_a_seed_is_a_beginning() -> None:
    session = Session(STAGES["tank"], 7)
    session.disturb(Faults(noise=1.0))
    session.restart(7)
    one = states(session, 30)
    session.restart(8)
    other = states(session, 30)
    session.restart(7)
    np.testing.assert_array_equal(states(session, 30), one)
    assert not np.array_equal(one, other)


def test_a_hand_starts_near_the_middle_and_holds_what_it_holds() -> None:
    session = Session(STAGES["cartpole"])
    for seed in range(20):
        session.restart(seed)
        assert abs(session.sides[0].state["theta"]) <= 0.15 * 0.6
    session.restart(0, spread=1.0)
    assert abs(session.sides[0].state["theta"]) > 0.09
    session.steer({"force": -0.5})
    session.step()
    session.step()
    assert session.sides[0].action == {"force": -5.0}
    tank = Session(STAGES["tank"])
    tank.step()
    assert tank.sides[0].action == {"pump": 50.0}
    with pytest.raises(ClearloopError, match="'pull' is not an action of the task"):
        session.steer({"pull": 1.0})


def test_sensors_show_what_was_and_noise() -> None:
    session = driven("cartpole", PUBLISHED["none"])
    session.disturb(Faults(delay=3))
    truth = [session.sides[0].state]
    for _ in range(8):
        session.step()
        truth.append(session.sides[0].state)
    assert session.sides[0].seen == truth[-4]
    session.disturb(Faults(noise=1.0))
    errors = []
    for seed in range(400):
        session.restart(seed)
        errors.append(session.sides[0].seen["theta"] - session.sides[0].state["theta"])
    assert np.std(errors) == pytest.approx(0.05 * 1.4, rel=0.2)


def test_what_is_hidden_is_drawn_and_not_seen() -> None:
    session = Session(STAGES["tank"])
    session.step()
    side = session.frame()["sides"][0]
    assert set(side["state"]) >= {"upper", "lower", "noise", "level"}
    assert set(side["seen"]) == {"level", "level_sum"}


def test_a_push_is_felt_by_what_the_plant_moves() -> None:
    session = driven("cartpole", PUBLISHED["none"])
    before = session.sides[0].state["theta_dot"]
    session.push(None, 0.5)
    low, high = STAGES["cartpole"].ranges["theta_dot"]
    assert session.sides[0].state["theta_dot"] == pytest.approx(before + 0.125 * (high - low))
    with pytest.raises(ClearloopError, match="only lower, upper can be pushed"):
        Session(STAGES["tank"]).push("level", 1.0)


def test_sides_have_the_drivers_that_make_sense() -> None:
    session = Session(STAGES["cartpole"])
    with pytest.raises(ClearloopError, match="side 0 needs"):
        session.drive(0, None)
    with pytest.raises(ClearloopError, match="the hand can drive side 0 only"):
        session.drive(1, session.hand)
    session.drive(1, None)
    assert len(session.sides) == 1


@given(seed=st.integers(0, 2**32), shares=st.lists(st.floats(-1, 1), min_size=1, max_size=5))
@settings(max_examples=20, deadline=None)
def test_whatever_a_hand_does_frames_stay_finite(seed: int, shares: list[float]) -> None:
    session = Session(STAGES["pendulum"], seed)
    for share in shares:
        session.steer({"torque": share})
        session.push(None, share)
        session.step()
        assert np.isfinite(list(session.sides[0].state.values())).all()
