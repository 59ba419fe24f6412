"""`memory` in a task file gives every measured state ready features, which are computed states."""

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.errors import ClearloopError
from clearloop.programs import derive_rows
from clearloop.surrogate.dynamics import physical_columns
from clearloop.task import Task

TEXT = """
name = "basin"
dt = 0.5
discount = 0.99
horizon = 80
history = 2
memory = ["integral", "filter", "setpoint"]
[states]
level = { unit = "m", setpoint = "wanted" }
flow = {}
speed = { formula = "(level - level[t-1])/dt" }
[actions]
valve = { limits = [0.0, 1.0] }
pump = { limits = [-1.0, 1.0] }
gate = { limits = [0.0, 1.0], step = 1.0 }
[reward]
expression = "-abs(level.error)"
"""
TASK = Task.from_toml(TEXT)
ADDED = ("level_integral", "flow_integral", "level_filter", "flow_filter", "level_setpoint")


def test_measured_states_get_features_and_computed_ones_get_none() -> None:
    assert TASK.state_names == ("level", "flow", "speed", *ADDED)
    assert TASK.remembered == ADDED
    assert TASK.predicted == ("level", "flow")
    assert set(TASK.columns.needed) == {"level", "flow", "valve", "pump", "gate", "wanted"}


def test_a_dumped_task_is_the_same_task() -> None:
    assert Task.from_dict(TASK.model_dump(mode="json")) == TASK


def test_a_state_of_the_file_keeps_its_own_formula() -> None:
    own = 'level_integral = { formula = "0.9*level_integral[t-1] + level.error" }\n[actions]'
    task = Task.from_toml(TEXT.replace("[actions]", own))
    assert task.states["level_integral"].formula == "0.9*level_integral[t-1] + level.error"
    assert set(task.remembered) == {*ADDED} - {"level_integral"}


def test_networks_do_not_read_features() -> None:
    for history in (1, 2):
        text = TEXT.replace("history = 2", f"history = {history}")
        task = Task.from_toml(text)
        names = np.tile(task.scope.names, history)[physical_columns(task)]
        assert not set(ADDED) & set(names)


@pytest.mark.parametrize("memory", ['["integal"]', '"integral"', "3", "[1]"])
def test_other_words_are_refused(memory: str) -> None:
    text = TEXT.replace('["integral", "filter", "setpoint"]', memory)
    with pytest.raises(
        ClearloopError, match=r'memory: expected a list of "integral", "filter" and "setpoint"'
    ):
        Task.from_toml(text)


def columns(level: Floats, wanted: Floats, actions: Floats) -> dict[str, Floats]:
    """Return the computed states of an episode, by the engine's own programs."""
    n = len(level)
    states = np.zeros((n, len(TASK.states)))
    states[:, 0], states[:, 1] = level, 2.0
    aims = np.zeros_like(states)
    aims[:, 0] = wanted
    found = derive_rows(TASK, TASK.derived, states, actions, aims, np.zeros(n, np.int64), TASK.history)
    return dict(zip(TASK.state_names, found.T, strict=True))


def test_features_are_what_their_names_say() -> None:
    rng = np.random.default_rng(0)
    level, wanted = rng.normal(size=30), np.repeat([1.0, 3.0], 15)
    actions = rng.uniform([0, -1, 0], 1, (30, 3))
    saturated = rng.random(30) < 0.3
    actions[saturated, :2] = [1.0, -1.0]
    found = columns(level, wanted, actions)
    total, slow = 0.0, 0.0
    for t in range(30):
        before = actions[t - 1] if t else np.zeros(3)
        # Both actions that take any value were at a limit: the sum waits.
        free = 0 < before[0] < 1 or -1 < before[1] < 1
        error = level[t] - wanted[t]
        total += 0.5 * error * free
        slow += 0.25 * (error - slow)  # a twentieth of 80 steps are 4
        assert found["level_integral"][t] == pytest.approx(total)
        assert found["level_filter"][t] == pytest.approx(slow)
        assert found["level_setpoint"][t] == wanted[t]
