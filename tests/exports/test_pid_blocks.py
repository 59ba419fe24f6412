"""PID controllers as blocks have them give the same in the engine, in plain Python and in every export.

One of them is put into manual mode and back for 10,000 steps, the others for fewer;
`CLEARLOOP_STEPS=10000` in the environment does it to all of them for so long.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import Controller, encode, from_json
from clearloop.exports import DOUBLE, export, lower
from clearloop.exports.guard import routine_of
from clearloop.expression import Variable
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job
from clearloop.plants.cosimulation import CoSimulation
from clearloop.plants.plant import lower_plant
from clearloop.task import Task
from clearloop.verification import verify
from clearloop.verification.supervision import Supervisor, expect_guarded
from clearloop.verification.vectors import Episode, Expectation
from tests.exports.batch import Actions, Case, run_c, run_javascript, run_python
from tests.exports.block import block_of, text_of
from tests.exports.test_guard import in_structured_text

STEPS = 10_000
LIMITED = 5  # the pump's limit, which the setpoints make it reach
FEW = int(
    os.environ.get("CLEARLOOP_STEPS", "800")
)  # by hand and back, of those that are not looked at for long

TASK = Task.from_dict(
    {
        "name": "two tanks",
        "dt": 0.5,
        "discount": 0.99,
        "horizon": 100,
        "states": {
            "level": {"setpoint": 0.0},
            "flow": {"setpoint": 0.0},
            "feed": {"external": True},
        },
        "actions": {"pump": {"limits": [-LIMITED, LIMITED]}},
        "reward": {"expression": "-abs(level.error)"},
        "starts": {"level": [-1, 1]},
        "plant": {
            "derivative": {"level": "0.3*flow - 0.1*level + 0.05*feed", "flow": "pump - flow"},
            "substeps": 2,
        },
    }
)

PI = {"input": "level", "kp": 2.0, "ki": 0.08, "integral": True}
NEGATIVE = PI | {"kp": -2.0, "ki": -0.08}
FULL = PI | {"kd": 3.0, "filter": 2.0}
WEAK = {"input": "flow", "kp": 0.1, "ki": 0.002, "integral": True}
FLOW = {"input": "flow", "kp": 1.5, "ki": 0.6, "integral": True}
SCHEDULE = {"at": [-2, 0, 3], "kp": [2, 3, 1.5], "ki": [0.1, 0.05, 0.1], "kd": [1, 0, 2]}
OUTPUTS: dict[str, dict[str, Any]] = {
    "PI": {"loops": [PI]},
    "PI of negative gain with a bias": {"scale": -1.0, "bias": 0.4, "loops": [NEGATIVE]},
    "PI that changes slowly": {"loops": [PI], "rate": 0.15},
    "PI fed forward": {"loops": [PI], "feedforward": {"feed": -0.2, "level.setpoint": 0.3}},
    "PID": {"loops": [FULL]},
    "PID without a filter": {"loops": [PI | {"kd": 1.0}]},
    "PID of the measurement": {"loops": [FULL | {"derivative_of": "measurement", "setpoint_weight": 0.4}]},
    "PID with everything": {
        "loops": [FULL | {"derivative_of": "measurement", "setpoint_weight": 0.0}, WEAK],
        "rate": 0.3,
        "bias": -0.2,
        "feedforward": {"feed": -0.2, "flow": 0.1},
    },
    "two loops, one over a window": {"loops": [FULL, {"input": "flow", "kp": 0.5, "ki": 0.1, "window": 7}]},
    "cascade": {
        "outer": PI | {"limits": [-6, 5.5], "bias": 0.1},
        "inner": FLOW | {"kd": 0.2, "filter": 1.0, "setpoint_weight": 0.7, "derivative_of": "measurement"},
    },
    "scheduled": {
        "loops": [
            {"input": "level", "integral": True, "filter": 1.5}
            | {"schedule": {"by": "flow", **SCHEDULE}}
        ]
    },
}  # fmt: skip


def controller(name: str) -> Controller:
    table = {"clearloop": 1, "kind": "pid", "outputs": {"pump": OUTPUTS[name]}}
    return from_json(json.dumps(table)).for_task(TASK)


@cache
def in_the_engine(name: str) -> tuple[Episode, Actions]:
    """What the controller saw and did on the plant for 10,000 steps, and the setpoints of the level."""
    rng = np.random.default_rng(1)
    one = controller(name)
    aims = np.zeros((STEPS, 3))
    aims[:, 0] = np.repeat(rng.uniform(-20, 20, STEPS // 100), 100)
    feed = np.repeat(rng.normal(0, 2, STEPS // 50 + 1), 50)[: STEPS + 1]
    run = roll_out(
        encode([one], TASK, history=one.history),
        lower_plant(TASK, np.float64, one.history),
        Job(np.array([[0.5, 0.0, feed[0]]]), aims, 0.99, one.history, script=feed[None, :, None]),
        trajectories=True,
    )
    states, actions = np.asarray(run.states)[0, 0, 0, :-1], np.asarray(run.actions)[0, 0, 0]
    names = [Variable("level"), Variable("flow"), Variable("feed"), Variable("level", "setpoint")]
    names.append(Variable("flow", "setpoint"))
    columns = [*states.T, aims[:, 0], np.zeros(STEPS)]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows], actions


def as_case(name: str) -> Case:
    """The engine's run as what an export is compared with; it sees only what it reads."""
    episode, actions = in_the_engine(name)
    routine = lower(controller(name))
    seen: Episode = [{one.variable: step[one.variable] for one in routine.inputs} for step in episode]
    ones = np.ones_like(actions)
    return Case(controller(name), routine, Expectation([seen], actions, ones, ones[:, 0] > 0, 1e-12), DOUBLE)


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_run_saturates_and_plain_python_does_the_same(name: str) -> None:
    episode, actions = in_the_engine(name)
    one = controller(name)
    share = np.mean(np.abs(actions) == LIMITED)
    assert 0.02 < share < 0.9
    memory, chosen = one.reset(), []
    for step in episode:
        seen = {v.name: value for v, value in step.items() if v.part == "value"}
        aims = {v.name: value for v, value in step.items() if v.part == "setpoint"}
        chosen.append([one.act(seen, memory, aims)["pump"]])
    assert np.abs(np.array(chosen) - actions).max() < 1e-12


def test_every_export_that_runs_does_the_same(tmp_path: Path) -> None:
    cases = [as_case(name) for name in OUTPUTS]
    languages = {"c": run_c(cases, tmp_path), "python": run_python(cases)}
    languages["javascript"] = run_javascript(cases, tmp_path)
    for language, answers in languages.items():
        for name, case, found in zip(OUTPUTS, cases, answers, strict=True):
            off = np.abs(found - case.expectation.actions).max()
            assert off < 1e-12, f"{name} in {language}: {off}"


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_structured_text_does_the_same(name: str) -> None:
    case = as_case(name)
    block = block_of(controller(name))
    given = {v: v.name if v.part == "value" else f"{v.name}_setpoint" for v in case.episodes[0][0]}
    steps = case.episodes[0][:1500]
    found = [block.step({given[v]: value for v, value in step.items()})["pump"] for step in steps]
    assert np.abs(np.array(found) - case.expectation.actions[: len(steps), 0]).max() < 1e-12


def test_an_inner_loop_that_only_damps_holds_no_integral_of_the_outer_one(tmp_path: Path) -> None:
    """More of the outer loop means neither more nor less of the action then, in every form of it."""
    output = {"outer": PI, "inner": {"input": "flow", "kp": 0.0, "kd": 0.8}}
    table = {"clearloop": 1, "kind": "pid", "outputs": {"pump": output}}
    one = from_json(json.dumps(table)).for_task(TASK)
    verdict = verify(one, to="python", folder=tmp_path, rng=np.random.default_rng(0))
    assert verdict.equal
    assert verdict.vectors > 500


# By hand and back: an operator takes over now and then, with actions that may be beyond the limits.

BY_HAND = frozenset({"manual"})


def by_hand(name: str, steps: int) -> Case:
    """The block with its guard and its manual mode, and what the guard in plain Python makes of a log."""
    one, rng = controller(name), np.random.default_rng(5)
    routine = routine_of(one, BY_HAND, guard=True)
    roles = {known.role: known.variable for known in routine.inputs if known.role}
    rest = {known.variable: known.default or 0.0 for known in routine.inputs}
    taken = np.repeat(rng.random(STEPS // 50) < 0.4, 50)
    wished = np.repeat(rng.uniform(-8, 8, STEPS // 50), 50)
    episode: Episode = [
        {**rest, **{v: value for v, value in step.items() if v in rest}}
        | {roles["manual"]: float(taken[k]), roles["manual pump"]: float(wished[k])}
        for k, step in enumerate(in_the_engine(name)[0][:steps])
    ]
    return Case(one, routine, expect_guarded(one, routine, [episode], DOUBLE, BY_HAND), DOUBLE)


def in_fmus(case: Case, folder: Path) -> np.ndarray:
    """The FMU with the options of the case, stepped by a simulator."""
    unguarded = case.routine.law is case.routine
    content = export(case.controller, to="fmu", name="law", options=[] if unguarded else [*BY_HAND],
                     without=["guard"] if unguarded else [])["law.fmu"]  # fmt: skip
    assert isinstance(content, bytes)
    (folder / "law.fmu").write_bytes(content)
    names = [known.variable for known in case.routine.inputs]
    outputs = ["pump"] if unguarded else ["pump", "status", "steps"]
    given = [str(name) for name in names]
    with CoSimulation(folder / "law.fmu", inputs=given, outputs=outputs, step=TASK.dt) as unit:
        unit.begin()
        return np.array([unit.advance([step[name] for name in names]) for step in case.episodes[0]])


def test_by_hand_and_back_for_long_every_target_that_has_modes_does_the_same(tmp_path: Path) -> None:
    case = by_hand("PID with everything", STEPS)
    expected = case.expectation.actions
    assert 0.02 < np.mean(np.abs(expected[:, 0]) == LIMITED) < 0.9
    (in_c,) = run_c([case], tmp_path)
    for found in (in_c, in_structured_text(case), in_fmus(case, tmp_path)):
        assert np.abs(found - expected).max() < 1e-12


def test_by_hand_and_back_with_every_option(tmp_path: Path) -> None:
    cases = [by_hand(name, FEW) for name in OUTPUTS]
    for name, case, in_c in zip(OUTPUTS, cases, run_c(cases, tmp_path), strict=True):
        for found in (in_c, in_structured_text(case)):
            off = np.abs(found - case.expectation.actions).max()
            assert off < 1e-12, f"{name}: {off}"


def test_an_fmu_does_the_same_for_long(tmp_path: Path) -> None:
    case = as_case("PID with everything")
    assert np.abs(in_fmus(case, tmp_path) - case.expectation.actions).max() < 1e-12


@pytest.mark.parametrize("name", [name for name in OUTPUTS if name != "cascade"])
def test_an_integral_does_not_wind_up_by_hand(name: str) -> None:
    """The action goes on from what the operator gave, and integrates from there."""
    one = controller(name)
    routine = routine_of(one, BY_HAND, guard=True)
    block = Supervisor(one, routine.law, DOUBLE, True, BY_HAND)
    still = {Variable("level"): 0.2, Variable("flow"): 0.0, Variable("feed"): 0.0}
    aims = {Variable("level", "setpoint"): 0.5, Variable("flow", "setpoint"): 0.0}
    actions = [
        block.step(still | aims, {"manual": float(5 <= k < 205), "manual pump": 1.0, "transfer_time": 0.5})
        .actions[0]
        for k in range(225)
    ]  # fmt: skip
    assert actions[5:205] == [1.0] * 200
    assert actions[205] == pytest.approx(1.0, abs=0.05)
    step = np.diff(actions[210:])
    assert (np.abs(step) < 0.05).all()  # no more than the error pushes
    assert actions[-1] > 1.1


GAINS = ("level_kp", "level_ki", "level_kd", "level_share", "level_b", "pump_bias")


def test_an_operator_finds_each_number_by_its_name_and_changes_it_online(tmp_path: Path) -> None:
    """From a step on, an FMU with other gains does what a controller with these gains does."""
    table = OUTPUTS["PID of the measurement"] | {"bias": 0.3}
    loops = {"loops": [table["loops"][0] | {"kp": 1.1, "kd": 5.0, "setpoint_weight": 0.8}], "bias": -0.2}
    one, other = (
        from_json(json.dumps({"clearloop": 1, "kind": "pid", "outputs": {"pump": each}})).for_task(TASK)
        for each in (table, loops)
    )
    text = text_of(one)
    for name in GAINS:
        assert f"{name} : LREAL := " in text
    assert "level_kp : LREAL := 2.0; (* proportional gain of the loop on level; may be tuned *)" in text
    steps = in_the_engine("PID")[0][:40]
    content = export(one, to="fmu", name="law", without=["guard"])["law.fmu"]
    assert isinstance(content, bytes)
    (tmp_path / "law.fmu").write_bytes(content)
    given = ["level", "level.setpoint", "level_kp", "level_kd", "level_b", "pump_bias"]
    memory = one.reset()
    with CoSimulation(tmp_path / "law.fmu", inputs=given, outputs=["pump"], step=TASK.dt) as unit:
        unit.begin()
        for k, step in enumerate(steps):
            seen = {v.name: value for v, value in step.items() if v.part == "value"}
            aims = {v.name: value for v, value in step.items() if v.part == "setpoint"}
            if k == 10:  # what it remembers stays
                memory.kept["pump"].output = other.outputs["pump"]  # type: ignore[attr-defined]
            numbers = [1.1, 5.0, 0.8, -0.2] if k >= 10 else [2.0, 3.0, 0.4, 0.3]
            found = unit.advance([seen["level"], aims["level"], *numbers])
            assert found == pytest.approx([one.act(seen, memory, aims)["pump"]], abs=1e-12)
