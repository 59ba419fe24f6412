"""What is served, and what is not."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.websockets import WebSocketDisconnect

import clearloop
from clearloop.cli.learn import Given, make_request, start
from clearloop.data import Batch
from clearloop.plants.exploration import make_batch
from clearloop.registry import METHODS
from clearloop.runs import RunDirectory
from clearloop.studio import server
from clearloop.studio.server import Studio, make_app
from clearloop.task import Task
from tests.runs.guessing import PUSHER, make_quick
from tests.studio.asking import ORIGIN, PORT, TestClient


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With one run that is finished, and has a report of sorts."""
    runs = tmp_path_factory.mktemp("runs")
    file = runs / "pusher.toml"
    file.write_text(PUSHER)
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        run, given = RunDirectory(runs / "pushed"), Given(methods=("guess",), budget="4e5", seed=0)
        start(run, make_request("learn", str(file), given), Task.load(str(file)))
    (run.path / "report.html").write_text("<script>1</script>")
    return runs


@pytest.fixture
def pusher(folder: Path) -> Iterator[TestClient]:
    studio = Studio(folder, str(folder / "pusher.toml"))
    with TestClient(make_app(studio, PORT), base_url=ORIGIN, headers={"origin": ORIGIN}) as client:
        yield client


def made(task: str = "cartpole", size: int = 200) -> bytes:
    batch = make_batch(Task.load(task), rng=np.random.default_rng(0), size=size)
    return batch.to_frame().write_csv().encode()


def test_the_state_says_what_there_is(client: TestClient) -> None:
    state = client.get("/api/state").json()
    assert state["version"] == clearloop.__version__
    assert state["default_task"] == "cartpole"
    assert {task["name"] for task in state["tasks"]} >= {"cartpole", "motor", "pendulum", "tank"}
    assert [method["name"] for method in state["methods"]] == list(METHODS)
    assert state["methods"][0]["title"] == "GPRL (equations)"


def test_an_empty_folder_has_nothing(client: TestClient) -> None:
    assert client.get("/api/runs").json() == []
    assert client.get("/api/batches").json() == []
    assert [one["id"] for one in client.get("/api/controllers?task=cartpole").json()] == [
        "published/gprl",
        "published/pid",
        "published/lqr",
        "published/none",
    ]
    assert [one["source"] for one in client.get("/api/controllers?task=tank").json()] == ["logged"]


def test_a_run_has_its_front_its_headline_and_its_controllers(pusher: TestClient) -> None:
    (run,) = pusher.get("/api/runs").json()
    assert (run["name"], run["status"], run["task"]) == ("pushed", "finished", "pusher")
    assert run["headline"].startswith("The best robust controller")
    assert run["report"] == "/runs/pushed/report.html"
    assert sum(entry["pick"] for entry in run["front"]) == 1
    listed = pusher.get("/api/controllers?task=pusher").json()
    assert [one["id"] for one in listed] == [f"runs/pushed/{entry['controller']}" for entry in run["front"]]
    assert listed[0]["formula"] == run["front"][0]["formula"]
    progress = pusher.get("/api/runs/pushed/progress").json()
    kept = {"task": "pusher", "front": run["front"]}
    assert progress == {"status": "finished", "share": 1.0, "line": run["headline"], **kept}
    assert pusher.get("/api/controllers?task=cartpole").json()[-1]["source"] == "published"


def test_a_report_runs_as_if_it_came_from_nowhere(pusher: TestClient) -> None:
    answer = pusher.get("/runs/pushed/report.html")
    assert answer.text == "<script>1</script>"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy


@pytest.mark.parametrize(
    "path",
    [
        "/runs/none/report.html",
        "/runs/../pusher.toml",
        "/runs/pushed/run.json",
        "/runs/pushed/../../pusher.toml",
        "/runs/%2e%2e/report.html",
        "/runs/..%2f..%2fetc/report.html",
        "/runs/pushed%2f..%2fpushed/report.html",
        "/batches/..%2f..%2fpusher",
        "/batches/%2e%2e%2fpusher.toml",
        "/batches/..%5c..%5cpusher",
        "/batches/%252e%252e%252fpusher",
        "/batches/a%00b",
        "/api/runs/%2e%2e/progress",
        "/api/runs/..%2fpushed/progress",
        "/%2e%2e/app.py",
        "/..%2fapp.py",
        "/..%5capp.py",
        "/../app.py",
        "//etc/passwd",
        "/page/../../app.py",
    ],
)
def test_nothing_leads_out_of_the_folder(pusher: TestClient, path: str) -> None:
    answer = pusher.get(path)
    assert answer.status_code in (400, 404)
    assert "derivative" not in answer.text
    assert "Starlette" not in answer.text


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_nor_do_links(studio: Studio, client: TestClient, folder: Path) -> None:
    runs, batches = studio.runs.folder, studio.batches.folder
    batches.mkdir(parents=True)
    (runs / "elsewhere").symlink_to(folder / "pushed")
    (batches / "secret.csv").symlink_to(folder / "pusher.toml")
    (batches / "secret.json").write_text('{"task": "pusher", "rows": 1, "episodes": 1}')
    (runs / "own").mkdir()
    (runs / "own" / "run.json").write_bytes((folder / "pushed" / "run.json").read_bytes())
    (runs / "own" / "report.html").symlink_to(folder / "pusher.toml")
    (runs / "own" / "controllers").symlink_to(folder / "pushed" / "controllers")
    assert client.get("/runs/elsewhere/report.html").status_code == 400
    assert client.get("/runs/own/report.html").status_code == 400
    assert client.get("/batches/secret").status_code == 400
    assert client.get("/api/batches").json() == []
    assert [run["name"] for run in client.get("/api/runs").json()] == ["own"]
    assert client.get("/api/runs").json()[0]["report"] is None
    assert "runs/" not in client.get("/api/controllers?task=cartpole").text


def test_a_damaged_run_spoils_nothing(studio: Studio, client: TestClient, folder: Path) -> None:
    for number, text in enumerate(["", "{", "[]", '{"status": "finished"}', "\0", "[" * 5000]):
        run = studio.runs.folder / f"bad{number}"
        run.mkdir(parents=True)
        (run / "run.json").write_text(text)
    description = json.loads((folder / "pushed" / "run.json").read_text())
    for name, change in {"odd": {"task": 3}, "lost": {"doubts": [], "status": "refused"}}.items():
        (studio.runs.folder / name).mkdir()
        (studio.runs.folder / name / "run.json").write_text(json.dumps(description | change))
    assert client.get("/api/runs").json() == []
    assert client.get("/api/controllers?task=cartpole").status_code == 200


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_files_of_a_run_may_come_and_go(studio: Studio, client: TestClient, folder: Path) -> None:
    run = studio.runs.folder / "going"
    run.mkdir(parents=True)
    description = json.loads((folder / "pushed" / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(description | {"status": "running"}))
    (run / "candidates.csv").symlink_to("gone")  # as if after it was listed
    (listed,) = client.get("/api/runs").json()
    assert (listed["status"], listed["front"]) == ("running", [])
    os.utime(run / "run.json", (0, 0))
    (run / ".run.json.1.partial").touch()
    assert client.get("/api/runs").json()[0]["status"] == "stopped"


def test_a_batch_is_taken_if_the_task_can_read_it(studio: Studio, client: TestClient) -> None:
    text = made()
    answer = client.post("/api/batches?task=cartpole&name=mine", content=text)
    assert answer.status_code == 200
    assert (answer.json()["rows"], answer.json()["task"]) == (200, "cartpole")
    assert client.get("/api/batches").json() == [answer.json()]
    download = client.get("/batches/mine")
    assert download.content == text
    assert download.headers["content-disposition"] == 'attachment; filename="mine.csv"'
    again = client.post("/api/batches?task=cartpole&name=mine", content=text)
    assert (again.status_code, again.json()) == (
        400,
        {"error": "there is already a batch 'mine': give another name"},
    )
    assert sorted(path.name for path in studio.batches.folder.iterdir()) == ["mine.csv", "mine.json"]


@pytest.mark.parametrize(
    ("query", "body", "said"),
    [
        ("task=cartpole&name=x", b"", "x.csv: "),
        ("task=cartpole&name=x", b"\0\1\2", "x.csv: is damaged"),
        ("task=cartpole&name=x", b"a,b\n1,2\n", "x.csv: "),
        ("task=tank&name=x", made(), "x.csv: "),
        ("task=cartpole&name=../x", made(), "cannot be the name of a batch"),
        ("task=cartpole&name=%2e%2e%2fx", made(), "cannot be the name of a batch"),
        ("task=cartpole", made(), "cannot be the name of a batch"),
        ("task=none&name=x", made(), "no task 'none'"),
    ],
)
def test_else_it_is_refused_in_one_line_and_nothing_is_left(
    studio: Studio, client: TestClient, query: str, body: bytes, said: str
) -> None:
    answer = client.post(f"/api/batches?{query}", content=body)
    assert answer.status_code == 400
    assert said in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert str(studio.batches.folder) not in answer.json()["error"]
    assert not studio.batches.folder.exists() or list(studio.batches.folder.iterdir()) == []


def test_uploads_have_a_largest_size(
    studio: Studio, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LARGEST_UPLOAD", 1000)
    declared = client.post("/api/batches?task=cartpole&name=x", content=b"x" * 1001)
    streamed = client.post("/api/batches?task=cartpole&name=x", content=iter([b"x" * 400] * 3))
    assert declared.status_code == streamed.status_code == 413
    assert list(studio.batches.folder.glob("*")) == list(studio.batches.folder.glob(".*")) == []
    asked = client.post("/api/learn", content=b" " * 5000)
    assert asked.status_code == 413


@pytest.mark.parametrize(
    "wish",
    [
        {},
        [],
        {"task": "none"},
        {"task": "cartpole", "method": "--force"},
        {"task": "cartpole", "method": "magic"},
        {"task": "cartpole", "batch": "none"},
        {"task": "cartpole", "batch": "../x"},
        {"task": "cartpole", "budget": "--out=/tmp/x"},
        {"task": "cartpole", "budget": 5},
        {"task": "cartpole", "seed": -1},
        {"task": "cartpole", "more": 1},
        {"task": ["cartpole"]},
    ],
)
def test_a_wish_that_makes_no_sense_starts_nothing(studio: Studio, client: TestClient, wish: Any) -> None:
    answer = client.post("/api/learn", json=wish)
    assert answer.status_code in (400, 404)
    assert "\n" not in answer.json()["error"]
    assert studio.learner.busy is None


def test_only_what_is_offered(client: TestClient) -> None:
    for method, path in (
        ("POST", "/api/state"),
        ("PUT", "/api/batches?name=x"),
        ("DELETE", "/batches/x"),
        ("GET", "/api/learn"),
        ("POST", "/index.html"),
    ):
        assert client.request(method, path).status_code in (404, 405)
    assert client.post("/api/runs/none/stop").status_code == 400


def live(client: TestClient, task: str = "cartpole", **headers: str) -> Any:
    own = {"host": f"127.0.0.1:{PORT}", "origin": ORIGIN}
    return client.websocket_connect(f"/live?task={task}", headers=own | headers)


def until(socket: Any, holds: Any) -> dict[str, Any]:
    while True:
        document: dict[str, Any] = json.loads(socket.receive_text())
        if "t" in document and holds(document):
            return document


def test_a_session_over_a_socket_is_played_recorded_and_saved(studio: Studio, client: TestClient) -> None:
    with live(client) as socket:
        socket.send_json({"do": "record", "on": True})
        socket.send_json({"do": "hand", "action": {"force": 1}})
        one = until(socket, lambda frame: frame["sides"][0]["action"]["force"] == 10)
        assert one["recording"]["on"]
        assert one["recording"]["name"] == "cartpole-play-1"
        socket.send_json({"do": "drive", "side": 1, "controller": "published/gprl"})
        two = until(socket, lambda frame: len(frame["sides"]) == 2)
        assert two["sides"][1]["terms"][0]["text"] == "69.8*theta"
        until(socket, lambda frame: frame["recording"]["rows"] > 20)
        socket.send_json({"do": "record", "on": False})
        last = until(socket, lambda frame: frame["recording"]["saved"])
        assert last["recording"] == {
            "on": False, "rows": 0, "episodes": 0, "name": None, "saved": "cartpole-play-1",
        }  # fmt: skip
        socket.send_json({"do": "record", "on": False})
    batch = Batch.load(studio.batches.path("cartpole-play-1"), Task.load("cartpole"))
    assert len(batch) > 20
    assert studio.sessions == 0


def test_a_socket_that_closes_keeps_what_was_recorded(studio: Studio, client: TestClient) -> None:
    with live(client) as socket:
        socket.send_json({"do": "record", "on": True})
        until(socket, lambda frame: frame["recording"]["rows"] > 3)
    assert client.get("/api/batches").json()[0]["name"] == "cartpole-play-1"
    assert studio.sessions == 0


def test_what_was_not_played_is_not_saved(studio: Studio, client: TestClient) -> None:
    with live(client) as socket:
        socket.send_json({"do": "pause", "on": True})
        socket.send_json({"do": "record", "on": True})
        socket.send_json({"do": "record", "on": False})
        while "error" not in (answer := json.loads(socket.receive_text())):
            assert answer["recording"]["rows"] <= 1
        assert answer["error"] == "record: no step was made, so nothing was saved"
    assert not studio.batches.folder.exists()


def test_the_socket_answers_nonsense_and_lives(client: TestClient) -> None:
    with live(client) as socket:
        for message in ("{", '{"do": "drive", "side": 0, "controller": "runs/../../x"}', "x" * 5000):
            socket.send_text(message)
            while "error" not in (answer := json.loads(socket.receive_text())):
                pass
            assert "\n" not in answer["error"]
        socket.send_json({"do": "restart", "seed": 1})
        socket.send_bytes(b'{"do": "speed", "factor": 0.5}')
        until(socket, lambda frame: frame["speed"] == 0.5)


def test_sockets_of_others_are_refused(client: TestClient) -> None:
    for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}, {"origin": "null"}):
        with pytest.raises(WebSocketDisconnect) as refusal, live(client, **headers):
            pass
        assert refusal.value.code == 1008
    with live(client, "none") as socket, pytest.raises(WebSocketDisconnect) as refusal:
        socket.receive_text()
    assert refusal.value.code == 1008


def test_there_are_only_so_many_sessions(
    studio: Studio, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_SESSIONS", 2)
    with live(client), live(client):
        with live(client) as third, pytest.raises(WebSocketDisconnect) as refusal:
            third.receive_text()
        assert refusal.value.code == 1013
    with live(client):
        assert studio.sessions == 1
