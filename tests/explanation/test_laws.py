"""The file that is written does what was logged."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from clearloop.controllers import PID, Controller, Equation, Linear, from_json, to_json
from clearloop.data import Batch
from clearloop.evaluation import evaluate
from clearloop.explanation import explain
from clearloop.task import Task
from tests.explanation.planted import CARTPOLE, TANK, Law, make_log, tank, white

GAINS = (38.8, 10.1, 2.8, 3.9)


def replay(controller: Controller, log: Batch, task: Task) -> np.ndarray:
    """The actions that a controller gives where those of the log were given, in the first episode."""
    rows = np.flatnonzero(log.episodes == 0)
    memory, actions = controller.reset(), []
    for row in rows:
        aims = {} if log.setpoints is None else {task.state_names[0]: float(log.setpoints[row, 0])}
        moved = controller.model_copy(update={"setpoint": controller.setpoint | aims})
        observation = dict(zip(task.state_names, log.states[row].tolist(), strict=True))
        actions.append(moved.act(observation, memory)[task.action_names[0]])
    return np.array(actions)


def test_a_linear_law_is_a_linear_file_that_can_be_evaluated() -> None:
    controller = explain(CARTPOLE, make_log(Law(kp=GAINS), white(0.3), episodes=80)).controller()
    assert isinstance(controller, Linear)
    again = from_json(to_json(controller))
    assert evaluate(again, CARTPOLE).penalty == pytest.approx(3.116, abs=0.05)  # of the published LQR


def test_a_pd_law_is_a_pid_file() -> None:
    law = Law(kp=(40.0, 0.0, 3.0, 0.0), kd=(10.0, 0.0, 4.0, 0.0))
    log = make_log(law, white(0.0), episodes=40)
    controller = explain(CARTPOLE, log).controller()
    assert isinstance(controller, PID)
    assert replay(controller, log, CARTPOLE) == pytest.approx(log.actions[log.episodes == 0, 0], abs=1e-3)


@pytest.mark.parametrize(
    "law",
    [Law(kp=GAINS, delay=1), Law(kp=(40.0, 0.0, 3.0, 0.0), kd=(10.0, 0.0, 4.0, 0.0), pole=0.6)],
    ids=["delayed", "filtered"],
)
def test_a_law_with_memory_reads_its_past(law: Law) -> None:
    log = make_log(law, white(0.0), episodes=40)
    controller = explain(CARTPOLE, log).controller()
    answers, logged = replay(controller, log, CARTPOLE), log.actions[log.episodes == 0, 0]
    assert answers[20:] == pytest.approx(logged[20:], abs=0.02)  # a file begins at an action of 0


def test_a_filtered_pid_law_begins_as_the_log_did() -> None:
    law = Law(kp=(45.0, 0.0, 4.0, 0.0), ki=(15.0, 0.0, 2.0, 0.0), kd=(10.0, 0.0, 4.0, 0.0), pole=0.3)
    log = make_log(law, white(0.0), episodes=60, reach=100.0)
    controller = explain(replace_limits(100.0), log).controller()
    assert isinstance(controller, PID)
    loops = controller.outputs["force"].loops
    assert all(loop.integral and loop.filter for loop in loops)
    assert loops[0].filter == pytest.approx(0.3 / 0.7, rel=0.05)
    answers, logged = replay(controller, log, CARTPOLE), log.actions[log.episodes == 0, 0]
    assert answers == pytest.approx(logged, abs=0.5)
    assert answers[2:] == pytest.approx(logged[2:], abs=0.3)


def replace_limits(reach: float) -> Task:
    return CARTPOLE.model_copy(
        update={
            "actions": {"force": CARTPOLE.actions["force"].model_copy(update={"limits": (-reach, reach)})}
        }
    )


def test_sums_over_a_window_and_the_log_agree() -> None:
    law = Law(kp=(-8.0,), ki=(-1.5,), window=30)
    log = make_log(law, white(0.0), episodes=20, steps=150, task=TANK, plant=tank, reach=20.0)
    controller = explain(TANK, log).controller()
    assert isinstance(controller, PID)
    assert controller.outputs["valve"].loops[0].window == 30


def test_an_action_of_zero_is_not_taken_for_a_start() -> None:
    law = Law(kp=(-8.0,), ki=(-1.5,), delay=1)
    log = make_log(law, white(0.0), episodes=20, steps=150, task=TANK, plant=tank, reach=20.0)
    controller = explain(TANK, log).controller().model_copy(update={"limits": {"valve": (0.0, 20.0)}})
    assert isinstance(controller, Equation)
    memory = controller.reset()
    falling = [
        controller.act({"level": level}, memory, {"level": 0.0})["valve"]
        for level in np.linspace(2.0, 0.0, 41)
    ]
    assert falling[0] == 0.0
    assert falling[-1] > 1.0  # near the end the proportional part rises faster than the integral falls


def test_a_constant_is_the_bias() -> None:
    law = Law(kp=(40.0, 0.0, 3.0, 0.0), kd=(10.0, 0.0, 4.0, 0.0), constant=1.0)
    log = make_log(law, white(0.0), episodes=40)
    controller = explain(CARTPOLE, log).controller()
    assert isinstance(controller, PID)
    assert controller.outputs["force"].bias == pytest.approx(1.0, abs=0.01)
    assert replay(controller, log, CARTPOLE) == pytest.approx(log.actions[log.episodes == 0, 0], abs=0.01)


def log_with_a_sum(formula: str, *, episodes: int, steps: int) -> tuple[Task, Batch]:
    """The tank under a PID, for a task that computes a sum of the error."""
    log = make_log(
        Law(kp=(-8.0,), ki=(-1.5,), kd=(-6.0,)), white(0.0), episodes=episodes, steps=steps, task=TANK,
        plant=tank, reach=50.0,
    )  # fmt: skip
    table = TANK.model_dump(exclude_unset=True)
    table["states"]["level_sum"] = {"formula": formula}
    task = Task.from_dict(table)
    assert log.setpoints is not None
    logged = (log.states[:, 0], log.setpoints[:, 0], log.actions[:, 0], log.episodes)
    frame = pl.DataFrame(dict(zip(("level", "aim", "valve", "episode"), logged, strict=True)))
    return task, Batch.from_frame(frame, task)


def test_a_computed_sum_is_the_integral() -> None:
    formula = "clip(level_sum[t-1] - 2*dt*level.error, -900.0, 900.0)"
    explanation = explain(*log_with_a_sum(formula, episodes=20, steps=150))
    law = explanation.accounts[0].law
    assert law.kind == "PID"
    assert {(term.kind, term.state) for term in law.terms} == {
        ("value", "level"), ("value", "level_sum"), ("rate", "level"),
    }  # fmt: skip
    (form,) = explanation.accounts[0].loops()
    assert (form.kp, form.ti, form.td) == pytest.approx((8.0, 8.0 / 1.5, 6.0 / 8.0), rel=1e-3)
    controller = explanation.controller()
    assert isinstance(controller, PID)
    assert not any(loop.integral for loop in controller.outputs["valve"].loops)  # nothing is summed twice


def test_an_integral_that_a_task_limits_otherwise_is_summed_anew() -> None:
    """The computed sum stops at a limit that the logged controller did not have."""
    formula = "clip(level_sum[t-1] + dt*level.error, -1.0, 1.0)"
    account = explain(*log_with_a_sum(formula, episodes=4, steps=300)).accounts[0]
    assert ("sum", "level") in {(term.kind, term.state) for term in account.law.terms}
    (form,) = account.loops()
    assert (form.kp, form.ti, form.td) == pytest.approx((8.0, 8.0 / 1.5, 6.0 / 8.0), rel=1e-3)


def test_the_name_says_what_it_explains() -> None:
    found = explain(CARTPOLE, make_log(replace(Law(kp=GAINS), constant=1.0), white(0.3), episodes=40))
    assert str(found.controller().name).startswith("as logged; explains 9")


def test_a_state_that_only_drifts_with_the_rounding_is_no_part_of_the_law() -> None:
    rng, rows = np.random.default_rng(7), 4000
    goal = np.repeat(rng.choice([200.0, 250.0, 300.0, 350.0], rows // 200), 200)
    total, y, table = 30.0, 250.0, []
    for aim in goal.tolist():
        seen = y + rng.normal(0, 0.3)
        u = round(0.12 * (aim - seen) + total, 1)
        total += 0.005 * (aim - seen)
        table.append((round(seen, 1), aim, u, round(3.1 + rng.normal(0, 0.05), 2)))
        y += 0.02 * (25 + 7.5 * u - y)
    oven = Task.from_toml("""
        name = "oven"
        dt = 20.0
        discount = 0.99
        horizon = 100
        [states]
        y = { unit = "degC", setpoint = "aim" }
        pressure = {}
        [actions]
        u = { limits = [0.0, 100.0] }
        [reward]
        expression = "-abs(y.error)"
        [starts]
        y = [200.0, 300.0]
        pressure = [3.0, 3.2]
        """)
    log = pl.DataFrame(table, schema=["y", "aim", "u", "pressure"], orient="row")
    (account,) = explain(oven, Batch.from_frame(log, oven)).accounts
    assert {term.state for term in account.law.terms} == {"y"}
    assert account.law.explained > 0.9999
