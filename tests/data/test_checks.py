"""The check: one planted fault, one finding; and none in a clean log."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.data import Batch, Report, check
from clearloop.data.causality import has_effect
from clearloop.data.log import read_log
from clearloop.errors import ClearloopError
from clearloop.task import Task
from tests.data.logs import CARTPOLE, TANK, clean_log
from tests.data.trust_logs import BAD


def moving_log() -> pl.DataFrame:
    """A clean log in which one row leads to the next."""
    log, rows = clean_log(), 15
    states = {name: log[name].to_numpy().reshape(-1, rows).copy() for name in CARTPOLE.state_names}
    force = log["force"].to_numpy().reshape(-1, rows)
    for t in range(rows - 1):
        for place, rate, gain in (("theta", "theta_dot", -3.0), ("rho", "rho_dot", 1.0)):
            states[rate][:, t + 1] = states[rate][:, t] + CARTPOLE.dt * gain * force[:, t]
            means = (states[rate][:, t] + states[rate][:, t + 1]) / 2
            states[place][:, t + 1] = states[place][:, t] + CARTPOLE.dt * means
    return log.with_columns(**{name: pl.Series(values.ravel()) for name, values in states.items()})


CLEAN = moving_log()
ROW = pl.int_range(pl.len())


NOTED = {
    "coarse-sensor", "repeated-rows", "short-history", "few-failures", "outside-state", "steps-only",
    "unknown-ends",
}  # fmt: skip


def found(frame: pl.DataFrame, task: Task = CARTPOLE) -> list[str]:
    """Severity and code of all that is not well."""
    return [f"{severity} {code}" for severity, code, _ in check(task, frame).rows() if severity != "ok"]


def with_cells(name: str, rows: range, value: object) -> pl.DataFrame:
    cells = CLEAN[name].to_list()
    cells[rows.start : rows.stop] = [value] * len(rows)
    return CLEAN.with_columns(pl.Series(name, cells, strict=False))


def test_the_task_comes_first() -> None:
    with pytest.raises(TypeError, match=r"^check\(task, data\): expected a Task first, not DataFrame$"):
        check(CLEAN, CARTPOLE)  # type: ignore[arg-type]


def test_nothing_is_wrong_with_a_clean_log() -> None:
    report = check(CARTPOLE, CLEAN)
    assert found(CLEAN) == []
    assert report.severity == "ok"
    assert report.verdict == f"This log is fit to learn from: {Batch.from_frame(CLEAN, CARTPOLE)}."
    assert {row[1] for row in report.rows()} == {"size", "coverage"}


def test_a_batch_can_be_checked_too() -> None:
    assert check(CARTPOLE, Batch.from_frame(CLEAN, CARTPOLE)) == check(CARTPOLE, CLEAN)


def altered(**columns: pl.Expr) -> pl.DataFrame:
    return CLEAN.with_columns(**columns)


step, theta, force, terminal = (pl.col(name) for name in ("time", "theta", "force", "terminal"))
late = pl.when(ROW.is_between(7, 14)).then(1.0).otherwise(0.0)  # the second half of the first episode

FAULTS = [
    ("column", CLEAN.drop("rho"), ["problem missing-column"]),
    ("text", with_cells("rho", range(7, 9), "broken"), ["problem text"]),
    ("infinite", with_cells("rho", range(7, 9), float("inf")), ["problem infinite"]),
    ("huge", with_cells("rho", range(7, 9), -1.1e12), ["problem huge"]),
    ("huge action", with_cells("force", range(7, 9), 1e300), ["problem huge"]),
    ("largest", with_cells("rho", range(7, 9), 1e12), []),
    ("empty", with_cells("rho", range(7, 9), None), ["problem missing-values"]),
    ("NaN", with_cells("rho", range(7, 9), float("nan")), ["problem missing-values"]),
    ("empty action", with_cells("force", range(7, 9), None), ["problem missing-values"]),
    ("no flag", with_cells("terminal", range(7, 9), 2), ["problem text"]),
    ("torn", altered(episode=pl.col("episode") % 199), ["problem torn-episode"]),
    ("backwards", altered(time=step - late), ["problem unsorted-times"]),
    ("standstill", altered(time=step - late * CARTPOLE.dt), ["warning duplicate-times"]),
    ("no times", CLEAN.drop("time"), ["note no-times"]),
    ("slow", altered(time=2 * step), ["warning wrong-interval"]),
    ("uneven", altered(time=step + 0.008 * (ROW % 2)), ["warning uneven-sampling"]),
    ("gap", altered(time=step + late), ["note uneven-sampling"]),
    ("constant", altered(theta_dot=pl.lit(0.0)), ["warning constant-column"]),
    ("constant action", altered(force=pl.lit(4.0)), ["problem constant-action", "note coverage"]),
    ("outside", with_cells("force", range(7, 27), 10.5), ["warning action-limits"]),
    ("outside once", with_cells("force", range(7, 9), 10.5), ["note action-limits"]),
    ("law", altered(force=3 * theta - 2 * pl.col("rho_dot") + 1), ["problem determined-action"]),
    ("small", CLEAN.head(900), ["warning size"]),
    ("uncovered", altered(theta=theta.clip(-0.7, 0.3)), ["warning coverage"]),
    ("start outside", altered(rho_dot=pl.col("rho_dot").abs() + 0.1), ["warning coverage"]),
    ("two actions", altered(force=force.sign()), ["note coverage"]),
]


@pytest.mark.parametrize(
    ("frame", "findings"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS]
)
def test_a_planted_fault_is_found_and_nothing_else(frame: pl.DataFrame, findings: list[str]) -> None:
    assert found(frame) == findings


LEARNED = Task.from_dict(
    CARTPOLE.model_dump(mode="json", exclude_none=True) | {"reward": {"column": "reward"}}
)


def test_failures_need_not_be_learned_where_the_task_gives_the_formula() -> None:
    rare = altered(terminal=terminal & (ROW < 100), reward=theta.sign())
    assert found(rare) == []
    assert found(rare, LEARNED) == ["warning few-failures"]


def test_rewards_that_are_learned_as_a_value_do_not_tell_ends() -> None:
    ended = altered(reward=theta)
    assert found(ended) == []
    assert found(ended, LEARNED) == ["warning unknown-ends"]
    assert found(altered(reward=theta, terminal=pl.lit(False)), LEARNED) == []


SAMPLED = Task.from_dict(CARTPOLE.model_dump(mode="json", exclude_none=True) | {"sampling": {}})
ambiguous = pl.format("01/02/2024 00:00:{}", step)
SAMPLED_FAULTS = [
    ("regular", CLEAN, []),
    ("gap", altered(time=step + late), ["note gaps"]),
    ("uneven", altered(time=step + 0.008 * (ROW % 2)), ["note resampled"]),
    ("slow", altered(time=2 * step), ["warning wrong-interval", "note resampled"]),
    ("very slow", altered(time=20 * step), ["problem no-transitions"]),
    ("coarse", altered(time=(ROW % 15 // 2) * 0.025), ["problem duplicate-times", "warning duplicate-times"]),
    ("dates", altered(time=ambiguous), ["problem ambiguous-dates"]),
]


@pytest.mark.parametrize(
    ("frame", "findings"), [fault[1:] for fault in SAMPLED_FAULTS], ids=[fault[0] for fault in SAMPLED_FAULTS]
)
def test_a_task_that_resamples_says_what_it_did(frame: pl.DataFrame, findings: list[str]) -> None:
    assert found(frame, SAMPLED) == findings


def test_the_page_lists_all_codes() -> None:
    page = Path(__file__).parents[2] / "docs" / "data.md"
    documented = re.findall(
        r"^\| `([a-z-]+)` \| (?:ok|note|warning|problem)", page.read_text(encoding="utf-8"), re.M
    )
    planted = {finding.split()[1] for _, _, findings in FAULTS + SAMPLED_FAULTS for finding in findings}
    refused = {case.code for case in BAD}
    assert set(documented) == planted | refused | {"no-transitions", "wrong-units", "action-steps", *NOTED}


def test_all_problems_are_listed_the_worst_first() -> None:
    frame = with_cells("rho", range(7, 9), None).drop("theta").with_columns(theta_dot=1.0)
    report = check(CARTPOLE, frame)
    codes = [finding.code for finding in report.findings if finding.severity != "ok"]
    assert codes == ["missing-column", "missing-values", "constant-column", "coverage"]
    assert report.verdict.startswith("This log cannot be used as it is: no column 'theta'; did you mean")
    assert report.verdict.endswith("(and 1 more).")


@pytest.mark.parametrize("frame", [CLEAN.clear(), CLEAN.head(1), CLEAN.gather_every(15)])
def test_logs_without_a_transition(frame: pl.DataFrame) -> None:
    assert found(frame) == ["problem no-transitions"]


def test_messages_count_and_locate() -> None:
    def message(frame: pl.DataFrame) -> str:
        return check(CARTPOLE, frame).findings[0].message

    assert message(with_cells("force", range(7, 12), None)).startswith(
        "column 'force' has 5 empty cells between rows 8 and 12; drop those rows"
    )
    assert message(with_cells("force", range(7, 12), 1e30)) == (
        "column 'force' has 5 cells beyond ±1e+12 between rows 8 and 12, first '1e+30'; drop those rows and "
        "begin a new episode there, or log it in a larger unit"
    )
    assert message(altered(theta=theta.clip(-0.7, 0.3))) == (
        "theta from -0.7 to 0.3 rad; data in 8 of 10 parts of the starts, -0.6 to 0.6, none in 0.36 to 0.6"
    )
    assert message(altered(time=1000 * step)) == (
        "rows are 25 s apart (1,000 dt), but the task says dt = 0.025 s; the times seem to be in "
        'milliseconds: write time_unit = "ms" in [sampling]'
    )


def test_actions_in_whole_steps() -> None:
    tables = CARTPOLE.model_dump(mode="json")
    tables["actions"]["force"]["step"] = 20.0
    switch = Task.from_dict(tables)
    on_or_off = altered(force=10 * force.sign())
    assert found(on_or_off, switch) == []
    (said,) = [f.message for f in check(switch, on_or_off).findings if f.message.startswith("force")]
    assert said == "force from -10 to 10 N; data at 2 of its 2 values"
    between = on_or_off.with_columns(force=pl.when(ROW < 3).then(4.0).otherwise("force"))
    assert found(between, switch) == ["warning action-steps"]
    assert check(switch, between).findings[0].message == (
        "force is between its steps of 20 in 3 rows; correct the step or the log"
    )


def test_a_law_may_follow_the_setpoint() -> None:
    rng = np.random.default_rng(0)
    target, level = rng.uniform(0, 1, (2, 2000))
    columns = {"level": level, "FT 101": rng.uniform(0, 1, 2000), "target": target, "profit": level}
    follow = pl.DataFrame(columns | {"valve": 0.5 + 0.4 * (target - level)})
    steady = follow.with_columns(target=0.4, valve=0.5 + 0.4 * (0.4 - pl.col("level")))
    assert "warning determined-action" in found(follow, TANK)  # setpoints that vary are an experiment, too
    assert "problem determined-action" in found(steady, TANK)
    assert "problem determined-action" not in found(follow.with_columns(valve=target * level), TANK)


def test_the_report_is_json() -> None:
    report = check(CARTPOLE, with_cells("rho", range(7, 9), None))
    document = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert document["severity"] == "problem"
    assert document["verdict"] == report.verdict
    assert document["findings"][0] == {
        "severity": "problem",
        "code": "missing-values",
        "message": report.findings[0].message,
        "numbers": {"column": "rho", "count": 2, "first_row": 8, "last_row": 9},
    }


ODD = st.sampled_from([None, "", "x", "nan", 0, 1, -1e308, 1e308, 5e-324, float("inf"), float("nan")])


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_whatever_a_log_holds_it_is_refused_for_a_reason(data: st.DataObject) -> None:
    log = clean_log(2, 10)
    for name in data.draw(st.lists(st.sampled_from(log.columns), max_size=3)):
        first = data.draw(st.integers(0, 19))
        cells = log[name].to_list()
        cells[first:] = [data.draw(ODD)] * data.draw(st.integers(1, 20 - first)) + cells[first:]
        log = log.with_columns(pl.Series(name, cells[:20], strict=False))
    report = check(CARTPOLE, log)
    json.dumps(report.to_dict(), allow_nan=False)
    problems = read_log(log, CARTPOLE.columns).problems
    assert all(problem in report.findings for problem in problems)
    try:
        Batch.from_frame(log, CARTPOLE)
    except ClearloopError as error:
        refused = str(error)
    else:
        refused = ""
    assert refused.startswith(f"data: {problems[0].message}") if problems else not refused


def test_an_empty_report_is_well() -> None:
    assert Report.of("nothing", []).severity == "ok"


DRIFT = Task.from_toml("""
name = "drift"
dt = 1.0
discount = 0.99
horizon = 100
[states]
level = {}
[actions]
dose = { limits = [-1, 1] }
[reward]
expression = "-abs(level)"
""")


def drifting_log(effect: float, rows: int) -> Batch:
    """A level under strong noise, which doses move little and late."""
    rng = np.random.default_rng(0)
    dose = rng.uniform(-1, 1, rows // 20 + 1).repeat(20)[:rows]
    push = np.convolve(dose, np.r_[np.zeros(5), np.full(20, effect / 20)])[:rows] + rng.normal(0, 1, rows)
    level = np.zeros(rows)
    for row in range(rows - 1):
        level[row + 1] = 0.98 * level[row] + push[row]
    return Batch.from_frame(pl.DataFrame({"level": level, "dose": dose}), DRIFT)


def test_a_weak_effect_is_looked_for_in_all_rows_of_a_long_log() -> None:
    assert not has_effect(DRIFT, drifting_log(0.075, 12_000), 0)
    assert has_effect(DRIFT, drifting_log(0.075, 40_000), 0)
    assert not has_effect(DRIFT, drifting_log(0.0, 40_000), 0)
