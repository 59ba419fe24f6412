"""A task without a plant is driven on the models of a run, beside the controller that made the log."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clearloop.controllers import Equation
from clearloop.errors import ClearloopError
from clearloop.evaluation import simulate
from clearloop.plants.scenarios import Disturbance, Scenarios
from clearloop.studio.course import LoggedCourse
from clearloop.studio.library import Catalog, Runs
from clearloop.studio.server import Studio, make_app
from clearloop.studio.session import LARGEST_LOAD, Automatic, Faults, Session
from clearloop.studio.stage import Stage
from clearloop.task import Task
from tests.studio.asking import ORIGIN, PORT, TestClient
from tests.studio.oven import BIAS, GAIN, OVEN, learn_oven

LAW = Equation(outputs={"heater": f"-2*temperature - temperature[t-1] + 0.2*heater[t-1] + {BIAS}"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    learn_oven(folder)
    return folder


@pytest.fixture(scope="module")
def stage(folder: Path) -> Stage:
    """With two models that judge."""
    stage = Catalog(Runs(folder), str(folder / "oven.toml")).stage("oven")
    assert stage.models is not None
    surrogate = stage.models.surrogate
    surrogate = replace(surrogate, track=replace(surrogate.track, search=1, judge=2))
    return replace(stage, models=replace(stage.models, surrogate=surrogate))


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    studio = Studio(folder, str(folder / "oven.toml"))
    with TestClient(make_app(studio, PORT), base_url=ORIGIN, headers={"origin": ORIGIN}) as client:
        yield client


def driven(stage: Stage, seed: int) -> Session:
    session = Session(stage, seed)
    session.drive(0, Automatic(LAW.for_task(stage.task)))
    session.restart(seed)
    return session


@pytest.mark.parametrize("faults", [Faults(), Faults(gain=0.6, load=0.2)])
def test_each_model_is_driven_from_the_same_row_of_the_log_as_simulate_would(
    stage: Stage, faults: Faults
) -> None:
    assert stage.models is not None
    task, models = stage.task, stage.models
    session = driven(stage, 4)
    session.disturb(faults)
    course = session._course
    assert isinstance(course, LoggedCourse)
    assert course.row > 0
    scenario = Scenarios.logged(task, models.batch, np.array([course.row]), 40)
    upset = Disturbance(gain=faults.gain, offset=LARGEST_LOAD * faults.load)
    if faults != Faults():
        scenario = scenario.disturbed(task, [upset])
    assert set(models.members) == {1, 2}
    run = simulate(LAW, task, surrogate=models.surrogate, scenario=scenario)
    side = session.sides[0]
    assert len(side.others) == len(models.members) - 1 == 1
    for step in range(40):
        states = [one.state["temperature"] for one in (side, *side.others)]
        np.testing.assert_allclose(states, run.states[list(models.members), step, 0], rtol=1e-9)
        session.step()
    assert session.frame()["sides"][0]["others"][0]["state"].keys() == {"temperature"}


def test_setpoints_follow_the_log_until_they_are_moved(stage: Stage) -> None:
    assert stage.models is not None
    session = driven(stage, 1)
    column = stage.models.batch.setpoints
    assert column is not None
    row = session._course.row  # type: ignore[union-attr]
    assert session.setpoint() == {"temperature": column[row, 0]}
    for _ in range(len(column)):
        session.step()
    assert session.setpoint() == {"temperature": column[-1, 0]}
    session.aim("temperature", 44.0)
    session.step()
    assert session.setpoint() == {"temperature": 44.0}


def test_the_controller_of_the_log_stands_beside_those_of_the_run(client: TestClient) -> None:
    (task,) = [one for one in client.get("/api/state").json()["tasks"] if one["name"] == "oven"]
    assert task["models"] == {"run": "oven-1", "members": 1}
    assert (task["drawing"], task["pace"], task["push"]) == ("strip", 0.1, "temperature")
    low, high = task["states"][0]["range"]
    assert low <= 35
    assert high >= 50
    law, *found = client.get("/api/controllers?task=oven").json()
    assert law["id"] == "log/law"
    assert [one["id"] for one in found if one.get("pick")] == ["runs/oven-1/001"]
    margins = client.get("/api/margins?task=oven&controller=log/law").json()
    assert margins["known"]
    # By hand: the plant 0.05*0.5/(z - 0.95) and the gain bear 1.95/(0.025*gain) until z = -1.
    assert margins["gain"] == pytest.approx(1.95 / (0.025 * GAIN), rel=0.1)
    refused = client.get("/api/margins?task=oven&controller=published/none")
    assert refused.status_code == 400


def test_it_drives_the_models_to_the_setpoint(folder: Path) -> None:
    catalog = Catalog(Runs(folder), str(folder / "oven.toml"))
    stage = catalog.stage("oven")
    session = Session(stage, 2)
    session.drive(0, catalog.driver("log/law", stage))
    session.aim("temperature", 45.0)
    for _ in range(100):
        session.step()
    # the law is GAIN * error + BIAS, and the oven 20 + 0.5 * heater at rest
    assert session.sides[0].state["temperature"] == pytest.approx((20 + (GAIN * 45 + BIAS) / 2) / 3, abs=1)
    rests, (_, amount) = session.sides[0].state["temperature"], stage.push(None, 1.0)
    session.push(None, 1.0)
    assert session.sides[0].state["temperature"] == pytest.approx(rests + amount)


def test_margins_of_the_plant_are_those_of_its_linearisation() -> None:
    stage = Stage("cartpole", Task.load("cartpole"))
    names = ["known", "robust"]
    wild = Equation(outputs={"force": "-20*theta - rho"}).for_task(stage.task)
    assert [stage.margins(wild)[name] for name in names] == [False, False]
    firm = Equation(outputs={"force": "40*theta + 8*theta_dot + rho + 2.5*rho_dot"}).for_task(stage.task)
    found = stage.margins(firm)
    assert found["known"]
    assert 10 < found["phase"] < 90
    assert 0 < found["delay"] < 10


def test_a_run_that_ends_makes_its_task_playable(tmp_path: Path) -> None:
    file = tmp_path / "oven.toml"
    file.write_text(OVEN)
    catalog = Catalog(Runs(tmp_path), str(file))
    with pytest.raises(ClearloopError, match="or models that a run has learned"):
        catalog.stage("oven")
    learn_oven(tmp_path)
    stage = catalog.stage("oven")
    assert stage.models is not None
    assert catalog.stage("oven") is stage
    assert stage.source == str(file)


def test_models_are_read_beside_the_sessions_that_keep_time(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request reads a run in the thread in which all sessions are stepped."""
    asked = []

    def on_models(catalog: Catalog, stage: Stage) -> Stage:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        asked.append(stage.task.name)
        return known(catalog, stage)

    known = Catalog._on_models
    monkeypatch.setattr(Catalog, "_on_models", on_models)
    oven = {"task": "oven", "controller": "log/law", "a": "log/law", "b": "log/law"}
    for address in ("/api/controllers", "/api/margins", "/api/comparison"):
        assert client.get(address, params=oven).status_code == 200
    assert client.post("/api/batches", params=oven | {"name": "b"}, content=b"x").status_code == 400
    assert client.post("/api/learn", json={"task": "oven", "batch": "none"}).status_code == 404
    own = {"origin": ORIGIN, "host": f"127.0.0.1:{PORT}"}
    with client.websocket_connect("/live?task=oven", headers=own) as socket:
        assert "t" in socket.receive_json()
    assert asked == ["oven"] * 6
