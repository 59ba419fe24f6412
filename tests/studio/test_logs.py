"""A log is brought, its columns are named, and a task comes out: what the page asks of the server."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from clearloop.data.survey import guess_roles, survey
from clearloop.errors import ClearloopError
from clearloop.studio.library import Catalog, Runs
from clearloop.studio.logs import MOST_COLUMNS, DraftWish, Logs, course
from clearloop.studio.server import Studio
from clearloop.task import Task
from tests.studio.asking import TestClient
from tests.studio.oven import oven_log

LOG = oven_log(200)
WIDE = "0," * MOST_COLUMNS + "0\n"


def bring(client: TestClient, name: str = "oven.csv", content: str | bytes = LOG) -> Any:
    return client.post(f"/api/logs?name={name}", content=content)


def late_log(rows: int = 400, late: int = 4) -> str:
    """CSV: the heater acts some rows later."""
    heater = np.random.default_rng(0).uniform(0, 100, rows + late)
    temperature, lines = 40.0, ["time,temperature,heater"]
    for row in range(rows):
        lines.append(f"{5 * row},{temperature:.5f},{heater[row + late]:.5f}")
        temperature += 0.1 * (20 + 0.5 * heater[row] - temperature)
    return "\n".join(lines) + "\n"


def draft(client: TestClient, **wish: Any) -> Any:
    answer = client.post("/api/drafts", json={"log": "oven.csv", "name": "oven", **wish})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def oven(client: TestClient) -> TestClient:
    assert bring(client).status_code == 200
    return client


def test_a_log_is_described_column_by_column(client: TestClient) -> None:
    log = bring(client).json()
    assert (log["name"], log["rows"], log["task"]) == ("oven.csv", 200, "oven")
    assert {column["name"]: column["role"] for column in log["columns"]} == {
        "time": "time",
        "temperature": "state",
        "heater": "action",
        "target": "setpoint",
    }
    _, temperature, _, target = log["columns"]
    assert target["of"] == "temperature"
    assert len(temperature["course"]) == 160
    assert (min(temperature["course"]), max(temperature["course"])) == (0, 1)
    assert client.get("/api/logs/oven.csv").json() == log
    assert [one["name"] for one in client.get("/api/logs").json()] == ["oven.csv"]


def test_the_draft_is_that_of_init(oven: TestClient) -> None:
    found = draft(oven)
    task = Task.from_toml(found["text"])
    assert (task.name, task.dt, found["dt"]) == ("oven", 5.0, 5.0)
    (state,) = found["states"]
    assert (state["column"], state["setpoint"], state["external"]) == ("temperature", "target", False)
    (action,) = found["actions"]
    assert (action["column"], tuple(action["limits"])) == ("heater", task.actions["heater"].limits)
    assert "report" not in found


def test_what_a_person_says_comes_before_what_was_guessed(oven: TestClient) -> None:
    found = draft(
        oven,
        name="mine",
        roles={"target": "external"},
        setpoints={"temperature": 42},
        tolerances={"temperature": 1.5},
        limits={"heater": [0, 80]},
        velocities=["temperature"],
        integrals=["temperature"],
        dt=10,
    )
    task = Task.from_toml(found["text"])
    assert (task.name, task.dt) == ("mine", 10.0)
    assert task.setpoints == {"temperature": 42.0}
    assert task.actions["heater"].limits == (0, 80)
    assert set(task.states) == {"temperature", "temperature_dot", "temperature_sum", "target"}
    assert task.states["target"].external
    assert "tolerance = 1.5" in found["text"]
    state = found["states"][0]
    assert (state["velocity"], state["integral"]) == (True, True)


def test_sums_that_nobody_wants_are_left_out(oven: TestClient) -> None:
    # The law of this log leaves a constant offset, so the draft proposes a sum of its own accord.
    assert draft(oven)["states"][0]["integral"]
    assert not draft(oven, integrals=[])["states"][0]["integral"]


@pytest.mark.parametrize(
    ("wish", "question"),
    [
        ({"roles": {"heater": "ignored"}}, "Which column does the controller set?"),
        ({"roles": {"temperature": "ignored"}}, "Which columns are measured"),
        ({"roles": {"time": "ignored"}}, "No column tells the time"),
        ({"roles": {"target": "ignored"}}, "What is the goal?"),
        ({"setpoints": {"temperature": None}}, "What is the goal?"),
        ({"limits": {"heater": [5, 5]}}, "the limits of heater"),
    ],
)
def test_what_is_missing_is_asked_for_in_the_words_of_the_page(
    oven: TestClient, wish: dict[str, Any], question: str
) -> None:
    found = draft(oven, **wish)
    assert found.keys() == {"missing"}
    assert found["missing"].startswith(question)
    assert "--" not in found["missing"]


def test_the_check_speaks_in_words_and_lengthens_the_memory(client: TestClient) -> None:
    bring(client, content=late_log())
    goal = {"setpoints": {"temperature": 40}}
    quick, checked = draft(client, **goal), draft(client, **goal, check=True)
    assert checked["history"] > quick["history"]
    report = checked["report"]
    assert report["verdict"].startswith("This log ")
    assert {finding["severity"] for finding in report["findings"]} <= {"ok", "note", "warning", "problem"}
    again = client.post("/api/checks", json={"log": "oven.csv", "text": checked["text"]}).json()
    assert again == report


def test_a_task_is_kept_with_its_log_as_a_batch(oven: TestClient, studio: Studio) -> None:
    text = draft(oven)["text"]
    kept = oven.post("/api/tasks", json={"log": "oven.csv", "text": text}).json()
    assert kept == {"task": "oven", "batch": "oven"}
    (task,) = [one for one in oven.get("/api/state").json()["tasks"] if one["name"] == "oven"]
    assert not task["playable"]
    (batch,) = oven.get("/api/batches").json()
    assert (batch["name"], batch["task"], batch["rows"]) == ("oven", "oven", 199)
    assert oven.get("/batches/oven").text == LOG
    again = oven.post("/api/tasks", json={"log": "oven.csv", "text": text})
    assert (again.status_code, again.json()["error"]) == (
        400,
        "there is already a task 'oven': give another name",
    )
    assert oven.get("/api/logs/oven.csv").json()["task"] == "oven-2"
    assert "oven" in Catalog(Runs(studio.runs.folder)).stages  # also when the studio is started again
    assert not list(studio.batches.folder.glob(".*"))


def test_other_formats_become_a_batch_too(client: TestClient, tmp_path: Path) -> None:
    pl.read_csv(LOG.encode()).write_parquet(tmp_path / "oven.parquet")
    assert bring(client, "oven.parquet", (tmp_path / "oven.parquet").read_bytes()).status_code == 200
    text = client.post("/api/drafts", json={"log": "oven.parquet", "name": "oven"}).json()["text"]
    kept = client.post("/api/tasks", json={"log": "oven.parquet", "text": text}).json()
    assert kept == {"task": "oven", "batch": "oven"}
    assert client.get("/batches/oven").text.startswith("time,temperature,heater,target\n")


def test_a_second_log_of_the_same_name_gets_a_number(oven: TestClient) -> None:
    assert bring(oven).json()["name"] == "oven-2.csv"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("log.exe", "a,b\n1,2\n", "a log is a file that ends in .csv"),
        ("../x.csv", LOG, "cannot be the name of a log"),
        (".csv", LOG, "cannot be the name of a log"),
        ("empty.csv", "", "empty.csv"),
        ("bare.csv", "a,b\n", "bare.csv"),
        ("not.parquet", "PAR1", "not.parquet"),
        ("wide.csv", ",".join(f"c{k}" for k in range(MOST_COLUMNS + 1)) + "\n" + WIDE, "columns"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(
    client: TestClient, studio: Studio, name: str, content: str, complaint: str
) -> None:
    answer = bring(client, name, content)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert complaint in error
    assert "\n" not in error
    assert ".upload" not in error
    assert not studio.logs.folder.exists() or not list(studio.logs.folder.iterdir())


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("/api/drafts", "{"),
        ("/api/drafts", json.dumps({"log": "none.csv", "name": "x"})),
        ("/api/drafts", json.dumps({"log": "oven.csv", "name": "x", "roles": {"no such": "state"}})),
        ("/api/drafts", json.dumps({"log": "oven.csv", "name": "x", "roles": {"time": "king"}})),
        ("/api/drafts", json.dumps({"log": "oven.csv", "name": "../x"})),
        ("/api/drafts", json.dumps({"log": "oven.csv", "name": "x", "dt": -1})),
        ("/api/drafts", '{"log": "oven.csv", "name": "x", "dt": NaN}'),
        ("/api/drafts", json.dumps({"log": "../oven.csv", "name": "x"})),
        ("/api/checks", json.dumps({"log": "oven.csv", "text": "name = "})),
        ("/api/tasks", json.dumps({"log": "oven.csv", "text": 'name = "../../x"'})),
    ],
)
def test_wrong_requests_are_refused_in_one_line(oven: TestClient, address: str, body: str) -> None:
    answer = oven.post(address, content=body)
    assert answer.status_code in (400, 404)
    assert "\n" not in answer.json()["error"]


def test_long_requests_are_refused_before_they_are_read(oven: TestClient) -> None:
    assert oven.post("/api/drafts", content=b" " * 300_000).status_code == 413


def test_a_task_of_the_page_cannot_run_programs(oven: TestClient) -> None:
    text = draft(oven)["text"] + '\n[plant]\ngymnasium = "os:getcwd"\n'
    for address in ("/api/checks", "/api/tasks"):
        answer = oven.post(address, json={"log": "oven.csv", "text": text})
        assert answer.status_code == 400
        assert "[plant]" in answer.json()["error"]


def test_names_of_others_are_not_taken(oven: TestClient) -> None:
    text = draft(oven, name="tank")["text"]
    answer = oven.post("/api/tasks", json={"log": "oven.csv", "text": text})
    assert answer.json()["error"] == "there is already a task 'tank': give another name"


def test_the_picture_of_a_column_has_gaps_where_it_has_no_numbers() -> None:
    frame = pl.DataFrame({"a": [1.0, 5.0, None, 3.0]})
    (guess,) = guess_roles(survey(frame))
    assert course(guess.column) == [0, 0, 1, 1, None, None, 0.5, 0.5]


def test_only_the_latest_log_is_held(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.folder.mkdir()
    for name in ("a.csv", "b.csv"):
        (logs.folder / name).write_text(LOG)
    first = logs.open("a.csv")
    assert logs.open("a.csv") is first
    logs.open("b.csv")
    assert logs.open("a.csv") is not first
    with pytest.raises(ClearloopError, match=r"there is no log 'c\.csv'"):
        logs.open("c.csv")
    assert DraftWish(log="a.csv", name="a").integrals is None
