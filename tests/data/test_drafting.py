"""A drafted task is a task, whatever the columns are called; and guesses have reasons."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.data import Batch
from clearloop.data.drafting import Wishes, draft, make_plan
from clearloop.data.survey import guess_roles, memory, outward, sensible, survey
from clearloop.errors import ClearloopError
from clearloop.task import Task
from clearloop.task.tables import ROLES

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: name == name.strip() and name.casefold() not in ROLES
)
spans = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))


@settings(max_examples=100, deadline=None)
@given(
    header=st.lists(names, min_size=3, max_size=6, unique_by=str.casefold),
    spans=st.lists(spans, min_size=6, max_size=6),
    dt=st.floats(1e-4, 1e4),
    setpoint=st.floats(-1e6, 1e6).map(lambda value: f"{value:.6f}"),
)
def test_a_draft_is_a_task_that_reads_its_log(
    header: list[str], spans: list[tuple[float, float]], dt: float, setpoint: str
) -> None:
    rng = np.random.default_rng(0)
    columns = {name: low + width * rng.random(40) for name, (low, width) in zip(header, spans, strict=False)}
    frame = pl.DataFrame(columns)
    by_name = {column.name: column for column in survey(frame)}
    wishes = Wishes(states=header[1:], actions=header[:1], setpoints={header[1]: setpoint}, dt=dt)
    plan = make_plan(guess_roles(tuple(by_name.values())), wishes)
    task = Task.from_toml(draft(plan, "drafted", "log.csv"))
    batch = Batch.from_frame(frame, task)
    assert np.array_equal(batch.states, np.stack([frame[name] for name in header[1:]], axis=1))
    assert np.array_equal(batch.actions[:, 0], frame[header[0]].to_numpy())
    low, high = task.action_limits[0]
    assert low <= batch.actions.min() <= batch.actions.max() <= high
    assert task.dt == pytest.approx(dt)


def roles(**columns: object) -> dict[str, str]:
    return {guess.column.name: guess.role for guess in guess_roles(survey(pl.DataFrame(columns)))}


def test_roles() -> None:
    rng = np.random.default_rng(0)
    steps = np.repeat(rng.random(10), 100)
    rising = np.arange(1000)
    noise = rng.random(1000)
    assert roles(t=rising, target_x=steps, x=noise, y=noise, u=noise) == {
        "t": "time", "target_x": "setpoint", "x": "state", "y": "state", "u": "action",
    }  # fmt: skip
    assert roles(stamp=["2024-01-01"] * 1000, level=noise, valve=steps, mode=["auto"] * 1000) == {
        "stamp": "time", "level": "state", "valve": "action", "mode": "ignored",
    }  # fmt: skip
    assert roles(run=rising // 100, done=rising % 100 == 99, reward=noise, s=noise, action=noise) == {
        "run": "episode", "done": "terminal", "reward": "reward", "s": "state", "action": "action",
    }  # fmt: skip
    assert roles(x=noise, same=noise * 0 + 3, plant_input=noise, control_output=noise, ambient=noise) == {
        "x": "state", "same": "ignored", "plant_input": "action", "control_output": "ignored",
        "ambient": "external",
    }  # fmt: skip
    held, lag = np.repeat(noise[:10], len(noise) // 10), 20
    level = np.convolve(np.append([held[0]] * (lag - 1), held), np.ones(lag) / lag, "valid") + 0.01 * noise
    furnace = {"Wish (°C)": held, "TIC-101.PV [°C]": level, "Gasventil %": 50 + 10 * noise}
    assert roles(**furnace) == dict(zip(furnace, ("setpoint", "state", "action"), strict=True))
    assert (
        roles(**{"valve (°C)": held, "T [°C]": level, "Gasventil %": 50 + 10 * noise})["valve (°C)"]
        == "action"
    )


def test_a_setpoint_that_is_always_0_is_one() -> None:
    level = np.random.default_rng(0).random(1000)
    found = roles(t=np.arange(1000), level=level, level_sp=level * 0, valve=level)
    assert found["level"] == "state"


def test_a_column_that_is_said_to_be_a_setpoint_is_nothing_else() -> None:
    steps, t = np.repeat([1.0, 3.0, 2.0, 4.0], 25), np.arange(100.0)
    frame = pl.DataFrame({"t": t, "a": steps, "b": steps + np.sin(t), "c": np.cos(t)})
    guesses = guess_roles(survey(frame))
    assert guesses[1].role == "action"
    with pytest.raises(ClearloopError, match="cannot tell which column is the action"):
        make_plan(guesses, Wishes(setpoints={"b": "a"}))
    plan = make_plan(guesses, Wishes(setpoints={"b": "a"}, actions=["c"]))
    assert (plan.role("a", "action"), plan.role("c", "state")) == ("setpoint", "action")


@pytest.mark.parametrize(
    ("value", "expected"), [(0.010073, 0.01), (1.00062, 1.0), (0.0251, 0.025), (0.0333, 0.033), (0.0, 0.0)]
)
def test_sensible_numbers(value: float, expected: float) -> None:
    assert sensible(value) == expected


def test_limits_go_outward() -> None:
    assert outward(-10.0, 8.239) == (-10.0, 10.0)
    assert outward(-30.37, 50.44) == (-31.0, 51.0)
    assert outward(0.0, 100.0) == (0.0, 100.0)
    assert outward(0.002, 0.0417) == (0.002, 0.042)


def test_a_signal_s_memory() -> None:
    rng = np.random.default_rng(0)
    slow = np.zeros(50_000)
    for row in range(1, len(slow)):
        slow[row] = np.exp(-1 / 40) * slow[row - 1] + rng.normal()
    assert memory([slow]) == pytest.approx(40, rel=0.3)
    assert memory([rng.normal(size=1000)]) == 1
    assert memory([np.ones(1000)]) == 0
