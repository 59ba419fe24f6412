"""Names and limits that a task does not have: one line that says where, and what was probably meant."""

import json
from typing import Any

import pytest

from clearloop.controllers import Controller, encode, from_json
from clearloop.errors import ClearloopError
from clearloop.task import Task
from tests.controllers.kinds import CARTPOLE, KINDS

WRONG: dict[str, dict[str, Any]] = {
    "outputs.force: unknown name 'thta' at column 4; did you mean 'theta'?": {
        "kind": "equation", "outputs": {"force": "2 *thta"}},
    "gains.force: unknown name 'roh' at column 1; did you mean 'rho'?": {
        "kind": "linear", "gains": {"force": {"theta": 1, "roh": 2}}},
    "outputs.force.rules[1].if: unknown name 'theta_dt' at column 1; did you mean 'theta_dot'?": {
        "kind": "fuzzy", "outputs": {"force": {"scale": 1, "alpha": 1, "rules": [
            {"if": {"theta": {"center": 0, "width": 1}}, "then": 1},
            {"if": {"theta_dt": {"center": 0, "width": 1}}, "then": 1}]}}},
    "outputs.force.loops[0].input: unknown name 'Theta' at column 1; did you mean 'theta'?": {
        "kind": "pid", "outputs": {"force": {"loops": [{"input": "Theta", "kp": 1}]}}},
    "inputs[1]: unknown name 'x' at column 1": {
        "kind": "network", "inputs": ["theta", "x"], "layers": [{"weights": [[1, 2]], "bias": [0]}],
        "outputs": {"force": {}}},
    "outputs: 'froce' is not an action of the task; did you mean 'force'?": {
        "kind": "equation", "outputs": {"froce": "1"}},
    "gains: 'u' is not an action of the task; the task has force": {
        "kind": "linear", "gains": {"u": {"theta": 1}}},
    "limits: 'forc' is not an action of the task; did you mean 'force'?": {
        "kind": "equation", "outputs": {"force": "1"}, "limits": {"forc": [0, 1]}},
    "units: 'forc' is not a state or an action of the task; did you mean 'force'?": {
        "kind": "equation", "outputs": {"force": "1"}, "units": {"forc": "N"}},
    "setpoint: 'theta' is not a state with a setpoint of the task; the task has rho": {
        "kind": "equation", "outputs": {"force": "1"}, "setpoint": {"theta": 1}},
    "outputs.force: 'theta.setpoint': theta has no setpoint in task 'cartpole'": {
        "kind": "equation", "outputs": {"force": "theta.setpoint"}},
    "limits.force: 20 … 30 is outside the task's -10 … 10": {
        "kind": "equation", "outputs": {"force": "1"}, "limits": {"force": [20, 30]}},
}  # fmt: skip


def build(table: dict[str, Any]) -> Controller:
    return from_json(json.dumps({"clearloop": 1, **table}))


@pytest.mark.parametrize("message", WRONG)
def test_what_the_task_does_not_have_is_named_with_its_place(message: str) -> None:
    controller = build(WRONG[message])
    with pytest.raises(ClearloopError) as caught:
        controller.for_task(CARTPOLE)
    assert str(caught.value) == message


UNREADABLE: dict[str, dict[str, Any]] = {
    "controller: outputs.force: expected a value, found the end of the formula at column 8": {
        "kind": "equation", "outputs": {"force": "theta +"}},
    "controller: outputs.force: 'force' is being chosen; read a past value, such as force[t-1]": {
        "kind": "equation", "outputs": {"force": "0.5*force"}},
    "controller: outputs.force: 'theta[t-1001]' looks back too far: at most 1,000 steps": {
        "kind": "equation", "outputs": {"force": "theta[t-1001]"}},
    "controller: gains.force: expected a name such as theta or theta[t-2], found '2*theta'": {
        "kind": "linear", "gains": {"force": {"2*theta": 1}}},
    "controller: outputs.force.loops[0].input: expected the name of a state, found 'theta[t-1]'": {
        "kind": "pid", "outputs": {"force": {"loops": [{"input": "theta[t-1]", "kp": 1}]}}},
    "controller: outputs.force.rules[0].if: 'rho.error' occurs twice in one rule": {
        "kind": "fuzzy", "outputs": {"force": {"scale": 1, "alpha": 1, "rules": [
            {"if": {"rho": {"center": 0, "width": 1}, "rho.error": {"center": 0, "width": 1}}, "then": 1}]}}},
    "controller: layers[0]: expected rows of 2 weights, and a bias for each row": {
        "kind": "network", "inputs": ["theta", "rho"], "layers": [{"weights": [[1]], "bias": [0]}],
        "outputs": {"force": {}}},
    "controller: layers[0]: expected 1 rows, one for each output": {
        "kind": "network", "inputs": ["theta"], "layers": [{"weights": [[1], [2]], "bias": [0, 0]}],
        "outputs": {"force": {}}},
    "controller: layers[0]: expected rows of 3 weights, and a bias for each row": {
        "kind": "greedy-q", "inputs": ["theta", "rho"], "layers": [{"weights": [[1, 2]], "bias": [0]}],
        "outputs": {"force": [-1, 1]}},
    "controller: layers[0]: expected 1 rows, one for the value": {
        "kind": "greedy-q", "inputs": ["theta"], "layers": [{"weights": [[1, 2], [3, 4]], "bias": [0, 0]}],
        "outputs": {"force": [-1, 1]}},
    "controller: outputs: expected at most 4,096 combinations of actions": {
        "kind": "greedy-q", "inputs": ["theta"], "layers": [{"weights": [[1, 2, 3]], "bias": [0]}],
        "outputs": {"u": [*range(65)], "w": [*range(65)]}},
    "controller: inputs[1]: 'force' is being chosen; read a past value, such as force[t-1]": {
        "kind": "greedy-q", "inputs": ["theta", "force"], "layers": [{"weights": [[1, 2, 3]], "bias": [0]}],
        "outputs": {"force": [-1, 1]}},
    "controller: outputs: 'the force' cannot be the name of an action": {
        "kind": "equation", "outputs": {"the force": "1"}},
    "controller: outputs.force.loops[0]: missing key 'kp'": {
        "kind": "pid", "outputs": {"force": {"loops": [{"input": "theta"}]}}},
    "controller: outputs.force.loops[0]: unknown key 'Kp'; did you mean 'kp'?": {
        "kind": "pid", "outputs": {"force": {"loops": [{"input": "theta", "Kp": 1}]}}},
    "controller: outputs.force.loops[0].window: expected a whole number of steps from 1 to 10,000": {
        "kind": "pid", "outputs": {"force": {"loops": [{"input": "theta", "kp": 1, "window": 0}]}}},
    "controller: gains.force.theta: expected a number from -1e+12 to 1e+12": {
        "kind": "linear", "gains": {"force": {"theta": 1e13}}},
    "controller: outputs.force.rules[0].if.theta.width: expected a number from 1e-06 to 1e+12": {
        "kind": "fuzzy", "outputs": {"force": {"scale": 1, "alpha": 1, "rules": [
            {"if": {"theta": {"center": 0, "width": 0}}, "then": 1}]}}},
    "controller: limits.force: expected two numbers, the smaller first": {
        "kind": "equation", "outputs": {"force": "1"}, "limits": {"force": [1, -1]}},
    "controller: name: expected one line of text, of 1 to 200 characters": {
        "kind": "equation", "name": "\x1b[2J", "outputs": {"force": "1"}},
    "controller: kind: no kind of controller 'equatoin'; did you mean 'equation'?": {"kind": "equatoin"},
    "controller: missing key 'kind'; the kinds are: equation, linear, fuzzy, pid, network, greedy-q,"
    " planner": {},
}  # fmt: skip


@pytest.mark.parametrize("message", UNREADABLE)
def test_what_makes_no_sense_is_refused_when_it_is_read(message: str) -> None:
    with pytest.raises(ClearloopError) as caught:
        build(UNREADABLE[message])
    assert str(caught.value) == message


def test_an_action_that_the_task_needs_must_be_given() -> None:
    text = CARTPOLE.model_dump(mode="json", exclude_none=True)
    text["actions"]["brake"] = {"limits": [0.0, 1.0]}
    with pytest.raises(ClearloopError, match="outputs: missing action 'brake' of task 'cartpole'"):
        KINDS["pid"].for_task(Task.from_dict(text))


def test_own_limits_hold_within_what_the_plant_can_do() -> None:
    wide = build({"kind": "equation", "outputs": {"force": "99"}, "limits": {"force": [-5, 50]}})
    complete = wide.for_task(CARTPOLE)
    assert complete.limits == {"force": (-5, 10)}
    assert complete.act({"theta": 0.0}, complete.reset()) == {"force": 10.0}


def test_a_population_has_one_kind_one_shape_and_a_window_that_suffices() -> None:
    with pytest.raises(ClearloopError, match="same kind, shape, limits and steps"):
        encode([KINDS["linear"], KINDS["pid"]], CARTPOLE, history=10)
    with pytest.raises(ClearloopError, match="looks further back than the 3 observations"):
        encode([KINDS["lagging equation"]], CARTPOLE, history=3)
