"""Logs of closed loops, slow plants and dead times are not refused; what is said about them is true."""

import numpy as np
import polars as pl
import pytest

from clearloop.data import Report, check
from clearloop.data.findings import Severity
from tests.data.process_logs import FAIR, PI, Loop, ProcessLog, aimed, aimed_task, task_of


def report(name: str, seed: int = 0) -> Report:
    case = next(case for case in FAIR if case.name == name)
    return check(case.task, case.frame(seed))


def codes(found: Report, severity: Severity) -> set[str]:
    return {finding.code for finding in found.findings if finding.severity == severity}


@pytest.mark.parametrize("case", FAIR, ids=[case.name for case in FAIR])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_log_of_a_process_is_not_refused(case: ProcessLog, seed: int) -> None:
    assert [finding.message for finding in check(case.task, case.frame(seed)).refusals] == []


def test_a_setpoint_column_is_no_stuck_sensor() -> None:
    found = report("a setpoint as a state")
    (steps,) = (finding for finding in found.findings if finding.code == "steps-only")
    assert 'if it is one, write setpoint = "aim"' in steps.message
    assert "frozen-sensor" not in codes(found, "warning")


def test_a_disturbance_that_the_action_follows_is_not_swapped_with_it() -> None:
    (outside,) = (f for f in report("a measured disturbance").findings if f.code == "outside-state")
    assert outside.severity == "warning"
    assert outside.numbers == {"name": "u", "state": "feed"}


def test_a_sensor_that_is_stuck_for_most_of_the_log_still_is() -> None:
    case = FAIR[0]
    frame = case.frame()
    stuck = frame["y"].to_numpy().copy()
    stuck[300:] = stuck[300]
    assert "frozen-sensor" in {
        finding.code for finding in check(case.task, frame.with_columns(y=stuck)).refusals
    }


def test_a_loop_whose_setpoint_hardly_moves_is_refused() -> None:
    task = aimed_task(history=2)
    frame = aimed(PI, rows=2000, hold=(900, 1100), span=(40, 70))(np.random.default_rng(0))
    assert {finding.code for finding in check(task, frame).refusals} == {"determined-action"}


def test_a_slow_integral_that_follows_moving_setpoints_is_an_experiment() -> None:
    """The law is exact, and no change of the setpoint makes the action jump; but it follows all of them."""
    slow = Loop(gain=1.0, lag=20, kp=0.02, ki=0.01)
    frame = aimed(slow, rows=3000, hold=(100, 200), span=(40, 70), digits=9)(np.random.default_rng(0))
    found = check(aimed_task(history=2), frame)
    assert found.refusals == ()
    (doubt,) = (finding for finding in found.findings if finding.code == "determined-action")
    assert "only by the setpoint's" in doubt.message


def test_a_delay_beyond_the_history_is_refused_and_measured() -> None:
    rng = np.random.default_rng(1)
    u, y = np.repeat(rng.uniform(0, 100, 1000), 4), np.zeros(4000)
    for t in range(3999):
        y[t + 1] = y[t] + (u[max(t - 6, 0)] - y[t]) / 20
    frame = pl.DataFrame({"y": y + rng.normal(0, 0.2, 4000), "u": u})
    task = task_of("y = { setpoint = 50.0 }", "u = { limits = [0, 100] }", 'expression = "-abs(y.error)"')
    (delay,) = check(task, frame).refusals
    assert (delay.code, delay.numbers["history"]) == ("delay", 7)


def test_changes_of_a_setpoint_that_leads_an_action_count_as_its_moves() -> None:
    """The action passes through its range less than four times, but answers eight setpoints."""
    slow = Loop(gain=1.0, lag=20, kp=0.02, ki=0.01)
    rising = np.repeat(np.linspace(30.0, 70.0, 8), 300)
    y, u = slow.run(rising, np.random.default_rng(0))
    frame = pl.DataFrame({"y": y, "u": u, "aim": rising})
    (few,) = (
        finding for finding in check(aimed_task(history=2), frame).findings if finding.code == "few-moves"
    )
    assert (few.severity, few.numbers["moves"]) == ("warning", 7.0)
    one = frame.with_columns(aim=np.repeat([30.0, 70.0], 1200))
    assert "few-moves" in codes(check(aimed_task(history=2), one), "problem")
