"""FMUs: simulators take them, and they act as the controller does."""

import io
import math
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.model_description import read_model_description
from fmpy.validation import validate_fmu

from clearloop.controllers import Controller, Equation
from clearloop.errors import ClearloopWarning
from clearloop.exports import export, lower
from clearloop.exports.guard import STATUS
from clearloop.plants.cosimulation import CoSimulation
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.exports.controllers import Maker

STATES = ("theta", "theta_dot", "rho", "rho_dot")
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-Wno-unused-parameter")
VERSIONS = {"2.0": (), "3.0": ("fmi3",)}


def packed(controller: Controller, version: str = "2.0", *options: str, guard: bool = False) -> bytes:
    chosen, without = [*VERSIONS[version], *options], [] if guard else ["guard"]
    content = export(controller, to="fmu", name="law", options=chosen, without=without)["law.fmu"]
    assert isinstance(content, bytes)
    return content


def problems(content: bytes, folder: Path) -> list[str]:
    file = folder / "it.fmu"
    file.write_bytes(content)
    return list(validate_fmu(str(file)))


def unit_of(content: bytes, folder: Path) -> Any:
    """The FMU in this process, as fmpy gives it."""
    zipfile.ZipFile(io.BytesIO(content)).extractall(folder)
    about = read_model_description(folder)
    old = about.fmiVersion == "2.0"
    kind, token = (FMU2Slave, about.guid) if old else (FMU3Slave, about.instantiationToken)
    unit = kind(guid=token, unzipDirectory=str(folder), modelIdentifier="law", instanceName="it")
    unit.instantiate()
    return unit


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_description_is_valid(kind: str, version: str, tmp_path: Path) -> None:
    for guard in (True, False):
        content = packed(KINDS[kind].for_task(CARTPOLE), version, "sources-only", guard=guard)
        assert problems(content, tmp_path) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_so_it_is_for_random_controllers_with_odd_names(version: str, tmp_path: Path) -> None:
    maker = Maker(np.random.default_rng(4))
    for kind in ("equation", "linear", "pid", "fuzzy") * 5:
        content = packed(maker.controller(kind), version, "sources-only", guard=True)
        assert problems(content, tmp_path) == []


@pytest.mark.parametrize("words", ["*/ evil", "<a>&\"'", "]]>", "調 θ̇", "@NAME@ @TOKEN@", "x #include <y>"])
def test_so_it_is_whatever_its_name_is(words: str, tmp_path: Path) -> None:
    odd = Equation(outputs={"u": "x"}, name=words, units={"x": words, "u": words})
    content = packed(odd, "2.0", "sources-only", guard=True)
    assert problems(content, tmp_path) == []
    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    sources = sorted(map(str, (tmp_path / "sources").glob("*.c")))
    subprocess.run(["gcc", *WARNINGS, "-fsyntax-only", *sources], check=True)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["lagging equation", "pid"])
def test_it_equals_the_controller_over_1000_steps(kind: str, version: str, tmp_path: Path) -> None:
    controller, rng = KINDS[kind].for_task(CARTPOLE), np.random.default_rng(0)
    (tmp_path / "law.fmu").write_bytes(packed(controller, version))
    inputs = [str(one.variable) for one in lower(controller).inputs]
    memory = controller.reset()
    with CoSimulation(tmp_path / "law.fmu", inputs=inputs, outputs=("force",), step=0.025) as unit:
        unit.begin()
        for step in range(1000):
            seen = dict(zip(STATES, rng.normal(scale=0.3, size=4), strict=True))
            aim = -0.2 if step < 500 else 0.4
            wanted = controller.act(seen, memory, {"rho": aim})
            given = {**seen, "rho.setpoint": aim}
            assert unit.advance([given[name] for name in inputs]) == pytest.approx(
                [wanted["force"]], rel=0, abs=1e-12
            )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broken_sensor_does_not_reach_the_law(version: str, tmp_path: Path) -> None:
    """NaN, infinity or a mark: the last action is held, then the safe value is given; a status says it."""
    controller = KINDS["pid"].for_task(CARTPOLE).model_copy(update={"safe": {"force": 1.5}})
    (tmp_path / "law.fmu").write_bytes(packed(controller, version, guard=True))
    inputs, outputs = ("theta", "rho", "theta_valid"), ("force", "status")
    invalid = sum(STATUS[sign][0] for sign in ("outside", "marked", "held", "safe"))
    with CoSimulation(tmp_path / "law.fmu", inputs=inputs, outputs=outputs, step=0.025) as unit:
        unit.begin()
        before = [unit.advance([0.01 * step, -0.2, 1.0]) for step in range(5)][-1]
        assert not int(before[1]) & invalid
        for broken in ([math.nan, -0.2, 1.0], [0.05, math.inf, 1.0], [0.05, -0.2, 0.0]):
            found = [unit.advance(broken) for _ in range(15)]
            assert [action for action, _ in found] == [before[0]] * 10 + [1.5] * 5
            assert all(int(status) & invalid for _, status in found)
            before = [unit.advance([0.05, -0.2, 1.0]) for _ in range(5)][-1]
            assert not int(before[1]) & invalid


@pytest.mark.parametrize("version", VERSIONS)
def test_it_samples_at_its_own_times_whatever_the_step_of_the_simulator(version: str, tmp_path: Path) -> None:
    counting = Equation(outputs={"u": "u[t-1] + 1 + 0*x"}, dt=0.1, limits={"u": (-1e6, 1e6)})
    (tmp_path / "law.fmu").write_bytes(packed(counting, version))
    for step, counts in (
        (0.1, [1, 2, 3, 4]),
        (0.05, [1, 1, 2, 2, 3]),
        (0.3, [3, 6, 9]),
        (0.25, [3, 5, 8, 10]),
    ):
        with CoSimulation(tmp_path / "law.fmu", inputs=("x",), outputs=("u",), step=step) as unit:
            assert unit.begin() == [1.0]  # what the first step would give; it has not been done
            assert [unit.advance([0.0])[0] for _ in counts] == counts


def test_the_sampling_does_not_drift(tmp_path: Path) -> None:
    counting = Equation(outputs={"u": "u[t-1] + 1 + 0*x"}, dt=0.1, limits={"u": (-1e6, 1e6)})
    unit, time = unit_of(packed(counting), tmp_path), 0.0
    unit.setupExperiment(startTime=0.0)
    unit.enterInitializationMode()
    unit.exitInitializationMode()
    for _ in range(20_000):
        unit.doStep(currentCommunicationPoint=time, communicationStepSize=0.1)
        time += 0.1  # not exact
    assert unit.getReal([1]) == [20_000.0]
    unit.freeInstance()


@pytest.mark.parametrize("version", VERSIONS)
def test_its_state_is_kept_and_put_back(version: str, tmp_path: Path) -> None:
    unit = unit_of(packed(KINDS["pid"].for_task(CARTPOLE), version), tmp_path)
    old = version == "2.0"
    if old:
        unit.setupExperiment(startTime=0.0)
    unit.enterInitializationMode()
    unit.exitInitializationMode()
    get, put = (unit.getReal, unit.setReal) if old else (unit.getFloat64, unit.setFloat64)

    def course(first: int) -> list[float]:
        found = []
        for step in range(first, first + 5):
            put([0, 1], [0.01 * step, -0.1])
            unit.doStep(currentCommunicationPoint=0.025 * step, communicationStepSize=0.025)
            found += get([3])
        return found

    course(0)
    state = unit.getFMUstate() if old else unit.getFMUState()
    kept = unit.serializeFMUstate(state) if old else unit.serializeFMUState(state)
    wanted = course(5)
    again = unit.deSerializeFMUstate(kept) if old else unit.deserializeFMUState(kept)
    (unit.setFMUstate if old else unit.setFMUState)(again)
    assert course(5) == wanted
    unit.freeInstance()


def test_an_output_cannot_be_set_and_a_wrong_identity_is_refused(tmp_path: Path) -> None:
    unit = unit_of(packed(KINDS["equation"].for_task(CARTPOLE)), tmp_path)
    outputs = [one for one in read_model_description(tmp_path).modelVariables if one.causality == "output"]
    with pytest.raises(Exception, match="fmi2SetReal failed"):
        unit.setReal([outputs[0].valueReference], [1.0])
    unit.freeInstance()
    other = FMU2Slave(guid="{0}", unzipDirectory=str(tmp_path), modelIdentifier="law", instanceName="it")
    with pytest.raises(Exception, match="instantiate"):
        other.instantiate()


@pytest.mark.parametrize("version", VERSIONS)
def test_its_sources_compile_without_a_warning(version: str, tmp_path: Path) -> None:
    content = packed(KINDS["greedy-q"].for_task(CARTPOLE), version, "sources-only", guard=True)
    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    sources = sorted(map(str, (tmp_path / "sources").glob("*.c")))
    subprocess.run(["gcc", *WARNINGS, "-c", "-fsyntax-only", *sources], check=True)
    joined = [f"-DFMI{version[0]}_FUNCTION_PREFIX=law_", "-S", "-o", "-", sources[1]]
    text = subprocess.run(["gcc", *joined], check=True, capture_output=True, text=True).stdout
    assert f"law_fmi{version[0]}DoStep:" in text


def test_the_same_controller_gives_the_same_bytes() -> None:
    controller = KINDS["fuzzy"].for_task(CARTPOLE)
    assert packed(controller, "2.0", "sources-only") == packed(controller, "2.0", "sources-only")
    assert packed(controller) == packed(controller)
    other = controller.model_copy(update={"limits": {"force": (-9.0, 10.0)}})
    tokens = {
        read_model_description(io.BytesIO(packed(one, "2.0", "sources-only"))).guid
        for one in (controller, other)
    }
    assert len(tokens) == 2


def test_without_a_compiler_it_has_sources_only_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.warns(ClearloopWarning, match="sources only, no binary: no C compiler was found"):
        content = packed(KINDS["equation"].for_task(CARTPOLE))
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert "sources/law.c" in names
    assert not any(name.startswith("binaries/") for name in names)
