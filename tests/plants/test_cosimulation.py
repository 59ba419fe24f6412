"""FMUs of others as plants: they act as they should, and what goes wrong in them harms nothing else."""

from pathlib import Path

import numpy as np
import pytest
from fmpy import platform

from clearloop.controllers import Controller, Equation
from clearloop.errors import ClearloopError
from clearloop.evaluation import SetpointChange, evaluate, simulate
from clearloop.files import zipped
from clearloop.plants.cosimulation import CoSimulation
from clearloop.plants.exploration import make_batch
from clearloop.runs import RunDirectory
from clearloop.task import Task
from tests.plants.vessel import AS_EQUATIONS, AS_FMU, make_vessel, vessel_task

pytestmark = pytest.mark.skipif(platform != "linux64", reason="the vessel is compiled for Linux")
LAW = Equation(outputs={"inflow": "0.8 - 1.5*level - 0.1*total + 0.2*inflow[t-1]"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vessel")
    make_vessel(folder)
    vessel_task(folder)
    return folder


def constant(inflow: float) -> Controller:
    return Equation(outputs={"inflow": f"{inflow} + 0*level"})


def test_it_is_the_same_plant_as_its_equations(folder: Path) -> None:
    task = Task.load(folder / "vessel.toml")
    twin = Task.from_toml((folder / "vessel.toml").read_text().replace(AS_FMU, AS_EQUATIONS))
    ours, theirs = evaluate(LAW, twin, starts=20), evaluate(LAW, task, starts=20)
    np.testing.assert_allclose(theirs.penalties, ours.penalties, rtol=1e-12)
    points = np.array([[0.3, 0.0], [0.9, 0.0]])
    np.testing.assert_allclose(
        evaluate(LAW, task, starts=points).penalties, evaluate(LAW, twin, starts=points).penalties, rtol=1e-12
    )
    change = [SetpointChange("level", 0.4, 7)]
    found = [simulate(LAW, it, start={"level": 0.1}, setpoints=change, steps=50) for it in (task, twin)]
    np.testing.assert_allclose(found[0].states, found[1].states, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[0].rewards, found[1].rewards, rtol=1e-12)


def test_without_a_box_it_has_one_start_its_own(folder: Path) -> None:
    text = (folder / "vessel.toml").read_text().replace("[starts]\nlevel = [0.0, 1.0]", "")
    (folder / "own.toml").write_text(text)
    task = Task.load(folder / "own.toml")
    assert evaluate(LAW, task, starts=100).penalties.shape == (1, 1)
    assert simulate(LAW, task).states[0, 0, 0] == 0.25


def test_one_that_cannot_be_set_back_is_made_anew(tmp_path: Path, folder: Path) -> None:
    make_vessel(tmp_path, reset=3)
    task, usual = Task.load(vessel_task(tmp_path)), Task.load(folder / "vessel.toml")
    np.testing.assert_array_equal(
        evaluate(LAW, task, starts=3).penalties, evaluate(LAW, usual, starts=3).penalties
    )


@pytest.mark.parametrize(
    ("inflow", "message"),
    [
        (95, "the FMU crashed (SIGSEGV)"),
        (75, "its variable 'x' became nan"),
        (65, "the FMU failed: fmi2DoStep failed"),
        (55, "the FMU ended its process (exit code 5)"),
    ],
)
def test_what_goes_wrong_in_it_is_one_line(folder: Path, inflow: float, message: str) -> None:
    with pytest.raises(ClearloopError) as caught:
        evaluate(constant(inflow), Task.load(folder / "vessel.toml"), starts=2)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(folder / "vessel.fmu"))


def test_one_that_never_returns_is_stopped(folder: Path) -> None:
    with CoSimulation(
        folder / "vessel.fmu", inputs=["valve.u"], outputs=["x"], step=0.5, patience=20.0
    ) as unit:
        unit.begin()
        assert unit.advance([1.0]) != [0.25]
        unit._patience = 0.5
        with pytest.raises(ClearloopError, match=r"did not answer within 0\.5 s, and was stopped"):
            unit.advance([85.0])


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        ('fmu = "other.fmu"', "other.fmu: no such FMU"),
        ('fmu = "vessel.toml"', "it is not an FMU: File is not a zip file"),
        ('fmu = "vessel.fmu"', "it has no variable 'inflow'; it has: valve.u, x, x0"),
        (AS_FMU.replace('"x"', '"X"'), "it has no variable 'X'; did you mean 'x'?"),
        (AS_FMU.replace('"valve.u"', '"x"'), "its variable 'x' is no input: it is of causality output"),
        (AS_FMU.replace(', "level.start" = "x0"', ""), "its variable 'x' has no start that can be set"),
        ('fmu = "vessel.fmu"\nsubsteps = 2', "fmu allows no other keys but variables"),
        (AS_FMU.replace('fmu = "vessel.fmu"', 'gymnasium = "X"'), "variables name those of an FMU"),
    ],
)
def test_a_task_that_does_not_fit_is_told(folder: Path, plant: str, message: str) -> None:
    (folder / "wrong.toml").write_text((folder / "vessel.toml").read_text().replace(AS_FMU, plant))
    with pytest.raises(ClearloopError) as caught:
        evaluate(LAW, Task.load(folder / "wrong.toml"), starts=2)
    assert message in str(caught.value)


def test_one_for_another_machine_is_told(tmp_path: Path) -> None:
    make_vessel(tmp_path, library="win64/vessel.dll")
    with pytest.raises(ClearloopError, match=r"no binary for this machine \(linux64\), only for win64"):
        evaluate(LAW, Task.load(vessel_task(tmp_path)), starts=2)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    content = zipped({"a": b"a"})
    entry = content.index(b"PK\x01\x02")  # where the directory says how large the file is, unpacked
    content = content[: entry + 24] + (2**31).to_bytes(4, "little") + content[entry + 28 :]
    (tmp_path / "bomb.fmu").write_bytes(content)
    with pytest.raises(ClearloopError, match=r"bytes unpacked; at most 1,073,741,824 are read"):
        CoSimulation(tmp_path / "bomb.fmu", inputs=[], outputs=[], step=1.0)


def test_a_run_does_not_bring_an_fmu_of_its_own(folder: Path, tmp_path: Path) -> None:
    """It is a program: only a task file that the user names may say which one runs."""
    task = Task.load(folder / "vessel.toml")
    twin = Task.from_toml((folder / "vessel.toml").read_text().replace(AS_FMU, AS_EQUATIONS))
    run = RunDirectory(tmp_path / "run")
    run.begin(task, make_batch(twin, size=50, rng=np.random.default_rng(0)), {"command": "test"})
    assert run.describe()["task"]["plant"]["fmu"] == str(folder / "vessel.fmu")
    assert run.task().plant is None
