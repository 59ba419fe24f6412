"""Guarded blocks of random controllers of every kind do what the guard in plain Python does.

`CLEARLOOP_CONTROLLERS=1000` in the environment tries as many of each kind, and breaks the sensor of every
example in every target.
"""

import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import Controller, from_json, to_json
from clearloop.controllers.routine import Routine
from clearloop.errors import ClearloopError
from clearloop.exports import PRECISIONS, export, lower
from clearloop.exports.guard import MODES, STATUS, routine_of
from clearloop.exports.lowering import with_named_gains
from clearloop.exports.safety import forgets
from clearloop.exports.structured_text import structured_text
from clearloop.exports.structured_text.printing import functions
from clearloop.exports.structured_text.units import Pou
from clearloop.exports.structured_text.writer import Writer, split_deep
from clearloop.expression import Variable
from clearloop.plants.cosimulation import CoSimulation
from clearloop.task import Task
from clearloop.verification.st import Block
from clearloop.verification.supervision import expect_guarded
from clearloop.verification.vectors import Episode
from clearloop.verification.verdict import arguments_of, run_text
from tests.controllers.kinds import CARTPOLE
from tests.controllers.kinds import KINDS as EXAMPLES
from tests.exports.batch import Actions, Case, make_guarded, run_c
from tests.exports.controllers import KINDS, controllers
from tests.exports.test_random import check

READABLE = ("equation", "linear", "pid", "fuzzy")
INVALID = sum(STATUS[sign][0] for sign in ("outside", "gradient", "frozen", "marked"))
THOROUGH = "CLEARLOOP_CONTROLLERS" in os.environ
COUNT = int(os.environ.get("CLEARLOOP_CONTROLLERS", "4"))


def sensible(controller: Controller, rng: np.random.Generator) -> Controller:
    """With a time step, and with checks and safe values on some of its states and actions."""
    table = controller.model_dump(mode="json", by_alias=True, exclude_none=True)
    table["dt"] = float(rng.choice([0.025, 0.1, 1.0]))
    read = {v.name for _, v in controller.variables()} - {*controller.actions, *controller.derived}
    checks: dict[str, Any] = {}
    for name in sorted(read):
        checks[name] = {
            **({"range": [-30.0, 25.5]} if rng.random() < 0.4 else {}),
            **({"gradient": float(rng.uniform(0.5, 50))} if rng.random() < 0.4 else {}),
            **({"frozen": float(rng.uniform(1, 4) * table["dt"])} if rng.random() < 0.4 else {}),
        }
    table["checks"] = {name: one for name, one in checks.items() if one}
    table["safe"] = {
        name: float(rng.uniform(*controller.limits[name]))
        for name in controller.actions
        if name in controller.limits and name not in controller.steps and rng.random() < 0.5
    }
    return from_json(json.dumps(table))


@cache
def guarded(kind: str, precision: str, modes: bool, count: int = COUNT) -> list[Case]:
    rng, made = np.random.default_rng(11), []
    for controller in controllers(kind, count):
        one = sensible(controller, rng)
        options = {mode for mode in MODES if modes and rng.random() < 0.5}
        if one.steps:
            options -= {"rate-limit"}
        made.append(make_guarded(one, rng, frozenset(options), precision=PRECISIONS[precision]))
    return made


@pytest.mark.parametrize("modes", [False, True], ids=["guard", "modes"])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_c_does_what_the_guard_in_python_does(kind: str, precision: str, modes: bool, tmp_path: Path) -> None:
    tried = guarded(kind, precision, modes)
    check(tried, run_c(tried, tmp_path))
    assert np.concatenate([case.expectation.compared for case in tried]).mean() > 0.1


def test_a_sensor_may_stand_still_as_long_as_a_block_can_count() -> None:
    """A longer time was cut to what it counts, and the law stopped too early."""
    law = {
        "clearloop": 1,
        "kind": "equation",
        "outputs": {"u": "-2*x"},
        "limits": {"u": [-1, 1]},
        "dt": 0.001,
    }
    routine_of(from_json(json.dumps(law | {"checks": {"x": {"frozen": 999.0}}})), guard=True)
    with pytest.raises(ClearloopError, match=r"checks\.x\.frozen: 3600 s are 3,600,000 steps"):
        routine_of(from_json(json.dumps(law | {"checks": {"x": {"frozen": 3600.0}}})), guard=True)


def test_a_controller_file_keeps_what_a_guard_needs() -> None:
    controller = sensible(controllers("linear", 3)[2], np.random.default_rng(0))
    assert from_json(to_json(controller)) == controller


@pytest.mark.parametrize("modes", [False, True], ids=["guard", "modes"])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", READABLE)
def test_structured_text_does_what_the_guard_in_python_does(kind: str, precision: str, modes: bool) -> None:
    tried = guarded(kind, precision, modes)
    check(tried, [in_structured_text(case) for case in tried])


HANDS = frozenset({"enable", "manual", "tracking"})
SUMMING = Task.from_dict(
    {
        "name": "tank",
        "dt": 0.5,
        "discount": 0.9,
        "horizon": 10,
        "states": {
            "level": {"setpoint": 1.0},
            "level_sum": {"formula": "clip(level_sum[t-1] + 0.5*level.error, -40, 40)"},
            "volume": {"formula": "volume[t-1] + 0.1*level"},
        },
        "actions": {"pump": {"limits": [-5, 5]}},
        "reward": {"expression": "-abs(level.error)"},
    }
)


def summing() -> Controller:
    """A law with an integral that the task computes, and with another sum, which is none of an error."""
    law = {"pump": "-2*level - 0.3*level_sum - 0.01*volume"}
    return from_json(json.dumps({"clearloop": 1, "kind": "equation", "outputs": law})).for_task(SUMMING)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_so_do_the_examples_of_every_kind_while_hands_change_their_modes(
    precision: str, tmp_path: Path
) -> None:
    """Integrals as blocks have them are among them, and cascades, and integrals that a task computes."""
    rng, exact = np.random.default_rng(3), PRECISIONS[precision]
    examples = [*(one.for_task(CARTPOLE) for one in EXAMPLES.values()), summing()]
    tried = [make_guarded(one, rng, HANDS, precision=exact, episodes=6) for one in examples]
    check(tried, run_c(tried, tmp_path))
    readable = [case for case in tried if case.controller.readable]
    check(readable, [in_structured_text(case) for case in readable])
    assert min(case.expectation.compared.mean() for case in tried) > 0.25


def in_structured_text(case: Case) -> Actions:
    text = structured_text([*functions_and_block(case)])
    return run_text(text, case.routine, case.episodes)


def functions_and_block(case: Case) -> list[Pou]:
    block = Writer(split_deep(case.routine), "test", case.precision).block([])
    return [*functions(block.body, case.precision), block]


# A single broken sensor: what the action does while it is broken, and afterwards.

CALM, AFTER = 30, 120
FAULTS = ("nan", "inf", "frozen", "spike")


def disturbed(controller: Controller, fault: str, length: int) -> tuple[Case, list[dict[Variable, float]]]:
    """A block whose first sensor breaks for so many steps, and what its sensors would have shown."""
    routine = routine_of(controller, guard=True)
    rng, first = np.random.default_rng(1), routine.law.inputs[0].variable
    rest = {one.variable: one.default or 0.0 for one in routine.inputs if one.default is not None}
    states = [one.variable for one in routine.inputs if one.default is None]
    phases = {name: rng.uniform(0, 6) for name in states}
    whole = [
        {**rest, **{name: 0.05 * float(np.sin(0.07 * k + phases[name])) for name in states}}
        for k in range(CALM + length + AFTER)
    ]
    seen = [dict(step) for step in whole]
    for k in range(CALM, CALM + length):
        seen[k][first] = {
            "nan": math.nan,
            "inf": math.inf,
            "frozen": whole[CALM - 1][first],
            "spike": whole[k][first] + 0.6,
        }[fault]
    expectation = expect_guarded(controller, routine, [[*seen]], PRECISIONS["double"])
    return Case(controller, routine, expectation, PRECISIONS["double"]), whole


@cache
def watched(kind: str) -> Controller:
    """With all checks on its first sensor; a slower change than a spike, and no standing still."""
    controller = EXAMPLES[kind].for_task(CARTPOLE)
    first = routine_of(controller, guard=True).law.inputs[0].variable.name
    checks = {first: {"range": [-1.0, 1.0], "gradient": 1.0, "frozen": 0.025}}
    table = {**json.loads(to_json(controller)), "checks": checks, "safe": {"force": 1.5}}
    return from_json(json.dumps(table))


def in_fmu(cases: list[Case], folder: Path) -> list[Actions]:
    """A simulator steps the FMU of the controller that all cases have."""
    content = export(cases[0].controller, to="fmu", name="law")["law.fmu"]
    assert isinstance(content, bytes)
    (folder / "law.fmu").write_bytes(content)
    inputs = [one.variable for one in cases[0].routine.inputs]
    answers, outputs = [], ("force", "status", "steps")
    with CoSimulation(folder / "law.fmu", inputs=[*map(str, inputs)], outputs=outputs, step=0.025) as unit:
        for case in cases:
            unit.begin()
            rows = [unit.advance([step[one] for one in inputs]) for step in case.episodes[0]]
            answers.append(np.array(rows))
    return answers


@pytest.mark.parametrize("length", [1, 10, 1000])
@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_broken_sensor_holds_the_action_and_leaves_no_trace(kind: str, length: int, tmp_path: Path) -> None:
    controller = watched(kind)
    made = [disturbed(controller, fault, length) for fault in FAULTS]
    cases = [case for case, _ in made]
    runs = [run_c(cases, tmp_path)]
    if controller.readable and (THOROUGH or length <= 10 or kind in ("lagging equation", "pid")):
        runs.append([in_structured_text(case) for case in cases])
    if THOROUGH or kind in ("lagging equation", "cascade"):
        runs.append(in_fmu(cases, tmp_path))
    for answers in runs:
        check(cases, answers)
        for (case, whole), found, fault in zip(made, answers, FAULTS, strict=True):
            force, status = found[:, 0], found[:, 1].astype(int)
            wanted = of_the_controller(controller, case.routine, whole)
            assert (np.abs(force) <= 10).all()
            assert force[:CALM] == pytest.approx(wanted[:CALM], abs=1e-12)
            broken = np.flatnonzero(status & INVALID)
            assert (length == 1 and fault == "frozen") or len(broken)
            for k in broken:  # only the last action of the law, or the safe value
                assert force[k] in (force[k - 1], 1.5)
                assert bool(status[k] & (STATUS["held"][0] | STATUS["safe"][0]))
            well = max(CALM + length, broken[-1] + 1 if len(broken) else 0)
            again = well + controller.history + depth(controller)
            if forgets(case.routine.law):
                assert force[again:] == pytest.approx(wanted[again:], abs=1e-9)
            else:  # it goes on without a jump, each time
                for last in set(broken.tolist()) - {one - 1 for one in broken.tolist()}:
                    assert force[last + 1] == pytest.approx(force[last], abs=1e-9)


def depth(controller: Controller) -> int:
    return max((loop.window for loop in controller.loops()), default=0)


def of_the_controller(
    controller: Controller, routine: Routine, steps: list[dict[Variable, float]]
) -> list[float]:
    memory, actions = controller.reset(), []
    for step in steps:
        observation, aims = arguments_of({one.variable: step[one.variable] for one in routine.law.inputs})
        actions.append(controller.act(observation, memory, aims)["force"])
    return actions


def test_an_integral_goes_on_from_where_it_was() -> None:
    loop = {"input": "level", "kp": 2.0, "ki": 0.01, "window": 5000}
    table = {
        "clearloop": 1,
        "kind": "pid",
        "dt": 1.0,
        "setpoint": {"level": 1.0},
        "limits": {"pump": [-50, 50]},
        "outputs": {"pump": {"loops": [loop]}},
    }
    controller = from_json(json.dumps(table))
    routine = routine_of(controller, guard=True)
    rest = {one.variable: one.default or 0.0 for one in routine.inputs if one.default is not None}
    levels = [0.5] * 50 + [math.nan] * 1000 + [0.5] * 5
    steps = [{**rest, Variable("level"): level} for level in levels]
    expectation = expect_guarded(controller, routine, [[*steps]], PRECISIONS["double"])
    found = in_structured_text(Case(controller, routine, expectation, PRECISIONS["double"]))[:, 0]
    assert found[49] == pytest.approx(2 * 0.5 + 0.01 * 0.5 * 50)
    assert set(found[50:60]) == {found[49]}  # held
    assert set(found[60:1050]) == {0.0}  # at rest, at the setpoint
    assert found[1050] == pytest.approx(found[49] + 0.01 * 0.5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rounding_may_decide_whether_an_action_is_at_its_limit_after_a_hand(precision: str) -> None:
    """The law plus its distance to the last action is that action, but for a rounding."""
    table = {"clearloop": 1, "kind": "equation", "outputs": {"pump": "tanh(level)"}}
    law = from_json(json.dumps({**table, "dt": 0.5, "limits": {"pump": [-0.1, 3.0]}}))
    routine = routine_of(law, frozenset({"manual"}), guard=True)
    rest = {one.variable: one.default or 0.0 for one in routine.inputs}
    names = {one.role or "level": one.variable for one in routine.inputs}
    levels = np.random.default_rng(0).uniform(-1, 1, 200)
    by_hand = {names["manual"]: 1.0, names["manual pump"]: -5.0}
    episodes: list[Episode] = [
        [{**rest, names["level"]: PRECISIONS[precision].rounded(level)} | hand for hand in (by_hand, {})]
        for level in levels
    ]
    expectation = expect_guarded(law, routine, episodes, PRECISIONS[precision], frozenset({"manual"}))
    case = Case(law, routine, expectation, PRECISIONS[precision])
    found = in_structured_text(case)
    check([case], [found])
    assert expectation.compared[::2].all()
    if precision == "single":
        assert (found[1::2, 1] != expectation.actions[1::2, 1]).any()  # so it may miss the limit


# Integrals while a hand gives the action.

PI = {"input": "level", "kp": 2.0, "ki": 0.1, "integral": True}


def block(controller: Controller, *options: str) -> Block:
    return Block(export(controller, to="st", options=options)["controller.st"])


def tank(outputs: dict[str, Any]) -> Controller:
    table = {"clearloop": 1, "kind": "pid", "outputs": {"pump": outputs}}
    return from_json(json.dumps(table)).for_task(SUMMING)


@pytest.mark.parametrize("flag", ["manual", "track"])
@pytest.mark.parametrize(
    "outputs",
    [{"loops": [PI]}, {"scale": -0.5, "bias": 1.0, "loops": [PI | {"kp": -2.0, "ki": -0.1}]}],
    ids=["PI", "of negative gain"],
)
def test_an_integral_follows_the_hand(flag: str, outputs: dict[str, Any]) -> None:
    """So a law at its setpoint goes on as the hand left it, however long the plant was elsewhere."""
    law = block(tank(outputs), "manual" if flag == "manual" else "tracking")
    given = f"pump_{flag}"
    for level, hand in [(-1.0, 4.0)] * 500 + [(1.0, 1.5)] * 3:
        assert law.step({"level": level, flag: True, given: hand})["pump"] == hand
    found = [law.step({"level": 1.0, flag: False, given: 0.0})["pump"] for _ in range(100)]
    assert found == pytest.approx([1.5] * 100, abs=1e-9)


def test_gains_can_be_tuned_but_not_the_factor_by_which_an_integral_follows() -> None:
    """With another factor in the law, the integral would be led too far, or away from the action."""
    other = {"input": "volume", "kp": 1.5, "weight": 2.0}
    law = lower(tank({"scale": -0.5, "loops": [PI | {"weight": 0.4}, other]}))
    found = {(gain.variable.name, gain.value) for gain in with_named_gains(law).gains}
    assert found >= {("level_kp", 2.0), ("level_ki", 0.1), ("volume_kp", 1.5)}
    assert not {0.2, -0.2} & {value for _, value in found}


def test_an_integral_that_cannot_follow_waits() -> None:
    """That of an outer loop, and one that the task computes; a sum that is none of an error goes on."""
    outer = {"input": "level", "kp": 1.0, "ki": 0.1, "integral": True}
    cascade = block(tank({"outer": outer, "inner": {"input": "volume", "kp": 1.0}}), "manual")
    task = block(summing(), "manual")
    for law, name in ((cascade, "level_integral"), (task, "level_sum_past")):
        for _ in range(10):
            law.step({"level": 0.5})
        before = law.value(name)[0]
        assert before != 0.0
        for _ in range(50):
            law.step({"level": 0.5, "manual": True, "pump_manual": 0.0})
        assert law.value(name)[0] == before
        law.step({"level": 0.5, "manual": False})
        assert law.value(name)[0] != before
    assert task.value("volume_past")[0] == pytest.approx(61 * 0.05)
