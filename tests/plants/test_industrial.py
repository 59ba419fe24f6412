"""The Industrial Benchmark as a plant: it is the class of its package, step by step."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clearloop.controllers import Equation
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate, simulate
from clearloop.plants.cosimulation import INTERPRETER
from clearloop.plants.exploration import make_batch
from clearloop.plants.gym import make_environment
from clearloop.runs import RunDirectory
from clearloop.task import Task
from tests.plants.industrial import benchmark_python

TASK = Task.load("industrial")
MEDIOCRE = Equation(outputs={f"delta_{name}": f"25 - {name}" for name in "vgh"})
SETPOINTS = (10.0, 50.0, 100.0)
STEP_BY_STEP = """
import json, sys
import numpy as np
np.float = float  # which the package needs, and NumPy 1.24 dropped
from industrial_benchmark_python.IDS import IDS
asked = json.load(sys.stdin)
plant = IDS(p=asked["p"], inital_seed=asked["seed"])
rows = []
for action in [None, *asked["actions"]]:
    if action is not None:
        plant.step(action)
    rows.append([float(plant.state[name]) for name in ("p", "v", "g", "h", "c", "f", "reward")])
json.dump(rows, sys.stdout)
"""


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> str:
    python = benchmark_python()
    monkeypatch.setenv(INTERPRETER, python)
    return python


def changed(change: Callable[[dict], None]) -> Task:  # type: ignore[type-arg]
    tables = TASK.model_dump(mode="json", exclude_none=True)
    change(tables)
    return Task.from_dict(tables)


@pytest.mark.parametrize("setpoint", SETPOINTS)
def test_it_is_the_class_of_its_package(benchmark: str, setpoint: float) -> None:
    actions = np.random.default_rng(int(setpoint)).uniform(-1.2, 1.2, (1000, 3))  # beyond the limits, too
    asked = json.dumps({"p": setpoint, "seed": 7, "actions": actions.tolist()})
    theirs = np.array(
        json.loads(
            subprocess.run(
                [benchmark, "-c", STEP_BY_STEP], input=asked, stdout=subprocess.PIPE, text=True, check=True
            ).stdout
        )
    )
    environment = make_environment(TASK, 1000)
    ours = [environment.reset(seed=7, options={"p": setpoint})[0]]
    ours += [environment.step(action)[0] for action in actions]
    environment.close()
    np.testing.assert_allclose(ours, theirs[:, :6], rtol=1e-12, atol=1e-12)
    assert len({*theirs[:, 6]}) == 1001
    np.testing.assert_allclose(-np.array(ours)[:, 4] - 3 * np.array(ours)[:, 5], theirs[:, 6], rtol=1e-12)


@pytest.mark.usefixtures("benchmark")
def test_starts_take_the_setpoints_in_turn_and_their_number_as_the_seed() -> None:
    scored = evaluate(MEDIOCRE, TASK, starts=5)
    points = np.zeros((4, 6))
    points[:, 0] = [10, 50, 100, 30]
    chosen = evaluate(MEDIOCRE, TASK, starts=points)
    np.testing.assert_array_equal(scored.penalties[0, :3], chosen.penalties[0, :3])
    assert scored.penalties[0, 3] != scored.penalties[0, 0]  # the same setpoint, other noise
    assert scored.penalties[0, 0] < chosen.penalties[0, 3] < scored.penalties[0, 1]
    course = simulate(MEDIOCRE, TASK, start={"p": 50.0}, steps=30)
    assert course.states.shape == (1, 31, 6)
    assert course.states[0, -1, :2].tolist() == [50, 25]
    assert course.states[0, -5:, 2].tolist() == [30, 20, 30, 20, 30]  # a whole action moves the gain by 10
    np.testing.assert_allclose(
        course.rewards[0], -course.states[0, 1:, 4] - 3 * course.states[0, 1:, 5], rtol=1e-12
    )
    assert simulate(MEDIOCRE, TASK, steps=1).states[0, 0, 0] == SETPOINTS[0]


@pytest.mark.usefixtures("benchmark")
def test_a_batch_is_of_random_actions_at_each_setpoint() -> None:
    short = changed(lambda tables: tables["exploration"].update(steps=60))
    one, again, other = (make_batch(short, rng=np.random.default_rng(seed), size=200) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.states, again.states)
    assert not np.array_equal(one.states, other.states)
    assert len(one) == 200
    assert np.bincount(one.episodes).tolist() == [61, 61, 61, 21]
    assert [*one.states[np.bincount(one.episodes).cumsum() - 1, 0]] == [10, 50, 100, 10]
    acted = one.actions[~np.isnan(one.actions[:, 0])]
    assert (np.abs(acted) <= 1).all()
    assert np.abs(acted.mean(axis=0)).max() < 0.2
    assert not one.terminal.any()
    assert one.rewards is not None
    rows = np.flatnonzero(~np.isnan(one.rewards))
    np.testing.assert_allclose(
        one.rewards[rows], -one.states[rows + 1, 4] - 3 * one.states[rows + 1, 5], rtol=1e-12
    )


def partly_random(tables: dict) -> None:  # type: ignore[type-arg]
    tables["signals"] = {"luck": {"steps": [0.0, 1.0], "every": [1, 1]}}
    tables["signals"] |= {f"any_{name}": {"steps": [-1.0, 1.0], "every": [1, 1]} for name in "vgh"}
    law = {f"delta_{name}": f"if(luck < 0.4, any_{name}, 25 - {name} + 0*f[t-3])" for name in "vgh"}
    tables["exploration"] = {"size": 500, "steps": 100, "law": law}
    tables["states"]["trend"] = {"formula": "v - v[t-1]"}


@pytest.mark.usefixtures("benchmark")
def test_a_law_with_some_random_actions_draws_a_batch() -> None:
    task = changed(partly_random)
    batch = make_batch(task, rng=np.random.default_rng(0))
    acting = ~np.isnan(batch.actions[:, 0])
    by_law = np.clip(25 - batch.states[acting, 1:4], -1, 1)
    share = (batch.actions[acting] == by_law).all(axis=1).mean()
    assert 0.55 < share < 0.66  # 60 %, and no random action equals the law's
    first = np.flatnonzero(np.diff(batch.episodes, prepend=-1))
    moved = np.diff(batch.states[:, 1], prepend=50.0)
    moved[first] = 0
    np.testing.assert_allclose(batch.states[:, 6], moved, atol=1e-12)
    assert evaluate(Equation(outputs=dict.fromkeys(task.actions, "-trend")), task, starts=2).failures == 0


@pytest.mark.usefixtures("benchmark")
@pytest.mark.parametrize(
    ("change", "start", "message"),
    [
        (None, {"p": 120.0}, "p: expected a setpoint from 0 to 100, not 120"),
        (None, {"v": 20.0}, "only its setpoint p can be chosen at the start, not 'v'"),
        (("states", "hg"), None, "it has no state 'hg'; its states are p, v, g, h, c, f"),
        (
            ("actions", "brake"),
            None,
            "its actions are delta_v, delta_g, delta_h, not delta_v, delta_g, delta_h",
        ),
    ],
)
def test_what_it_cannot_do_is_one_line(
    change: tuple[str, str] | None, start: dict[str, float] | None, message: str
) -> None:
    def add(tables: dict) -> None:  # type: ignore[type-arg]
        if change:
            tables[change[0]][change[1]] = {"limits": [0.0, 1.0]} if change[0] == "actions" else {}

    task = changed(add)
    law = Equation(outputs=dict.fromkeys(task.actions, "0*v"))
    with pytest.raises(ClearloopError) as caught:
        simulate(law, task, start=start, steps=2)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_the_package_an_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INTERPRETER, "")
    for work in (
        lambda: evaluate(MEDIOCRE, TASK, starts=1),
        lambda: make_batch(TASK, rng=np.random.default_rng(0), size=5),
    ):
        with pytest.raises(ClearloopError) as caught:
            work()
        assert str(caught.value) == (
            f"task 'industrial': [plant] package: industrial-benchmark: {sys.executable} does not have it "
            "(No module named 'industrial_benchmark_python'): python -m venv DIR, then DIR/bin/pip install "
            '"numpy<2" "scipy<1.14" industrial-benchmark-python, then set '
            "CLEARLOOP_INDUSTRIAL_PYTHON=DIR/bin/python"
        )
    monkeypatch.setenv(INTERPRETER, "/no/such/python")
    with pytest.raises(ClearloopError, match="/no/such/python cannot be run: No such file"):
        evaluate(MEDIOCRE, TASK, starts=1)


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        ({"package": "os"}, '[plant] package: expected "industrial-benchmark"'),
        ({"package": "/bin/sh"}, '[plant] package: expected "industrial-benchmark"'),
        ({"package": "industrial-benchmark", "gymnasium": "X"}, "package allows no other keys but settings"),
        ({"gymnasium": "X", "settings": {"p": [1.0]}}, "settings are those of a package: give package, too"),
        ({"package": "industrial-benchmark", "settings": {"p": []}}, "expected a list of numbers"),
    ],
)
def test_a_task_names_no_program(plant: dict[str, object], message: str) -> None:
    with pytest.raises(ClearloopError) as caught:
        changed(lambda tables: tables.update(plant=plant))
    assert message in str(caught.value)


def test_a_run_that_is_opened_starts_no_program(tmp_path: Path) -> None:
    task, run = changed(partly_random), RunDirectory(tmp_path / "run")
    twin = changed(
        lambda tables: tables.update(
            plant={"next": {name: name for name in "vghcf"}}, starts={"v": [0.0, 1.0]}
        )
    )
    run.begin(task, make_batch(twin, size=50, rng=np.random.default_rng(0)), {"command": "test"})
    assert run.task().plant is None
    assert run.task().states == task.states
