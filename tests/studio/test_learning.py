"""Runs that are begun from the page: as processes of their own, which are quick here."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clearloop.registry import METHODS
from clearloop.runs import RunDirectory
from clearloop.studio import learning
from clearloop.studio.learning import Job
from clearloop.studio.server import Studio, make_app
from tests.runs.guessing import PUSHER, Guess
from tests.studio.asking import ORIGIN, PORT, TestClient
from tests.studio.serving import PATIENCE

ENDLESS = 10**8  # minutes
QUICK = 1_000_000


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Studio:
    monkeypatch.setattr(learning, "PROGRAM", (sys.executable, "-m", "tests.runs.program"))
    monkeypatch.setitem(METHODS, "guess", Guess)
    file = tmp_path / "pusher.toml"
    file.write_text(PUSHER)
    return Studio(tmp_path / "runs", str(file))


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    with TestClient(make_app(studio, PORT), base_url=ORIGIN, headers={"origin": ORIGIN}) as client:
        yield client


def begin(client: TestClient, **wish: Any) -> str:
    answer = client.post("/api/learn", json={"task": "pusher", "method": "guess"} | wish)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["run"])


def wait(client: TestClient, name: str, status: str, front: int = 0) -> dict[str, Any]:
    """Until it says so."""
    until = time.monotonic() + 3 * PATIENCE
    while True:
        progress: dict[str, Any] = client.get(f"/api/runs/{name}/progress").json()
        if progress["status"] == status and len(progress["front"]) >= front:
            return progress
        assert time.monotonic() < until, progress
        time.sleep(0.1)


def test_a_run_is_learned_to_its_end(studio: Studio, client: TestClient) -> None:
    name = begin(client, budget=QUICK)
    assert name == "pusher-1"
    progress = wait(client, name, "finished", 1)
    assert progress["share"] == 1.0
    assert progress["line"].startswith("The best robust controller")
    assert studio.learner.busy is None
    (run,) = client.get("/api/runs").json()
    assert run["front"] == progress["front"]
    assert studio.runs.free_name("pusher") == "pusher-2"


def test_one_at_a_time_seen_growing_and_stopped(studio: Studio, client: TestClient) -> None:
    name = begin(client, budget=ENDLESS)
    again = client.post("/api/learn", json={"task": "pusher", "method": "guess"})
    assert again.status_code == 409
    assert again.json() == {"error": "the run 'pusher-1' is being learned: wait for it, or stop it"}
    progress = wait(client, name, "running", front=2)
    assert progress["front"][0]["controller"] is None
    assert progress["front"][0]["method"] == "guess"
    assert client.get("/api/runs").json()[0]["status"] == "running"
    stopped = client.post(f"/api/runs/{name}/stop").json()
    assert stopped["status"] == "stopped"
    assert studio.learner.busy is None
    assert RunDirectory(studio.runs.folder / name).describe()["status"] == "interrupted"
    assert client.get("/api/runs").json()[0]["status"] == "stopped"
    assert client.post(f"/api/runs/{name}/stop").status_code == 400


def test_what_is_being_learned_ends_with_the_server(studio: Studio) -> None:
    with TestClient(make_app(studio, PORT), base_url=ORIGIN, headers={"origin": ORIGIN}) as client:
        name = begin(client, budget=ENDLESS)
        wait(client, name, "running", front=1)
    assert studio.learner.busy is None
    assert RunDirectory(studio.runs.folder / name).describe()["status"] == "interrupted"


def test_data_that_cannot_support_a_controller_is_refused_in_words(client: TestClient) -> None:
    still = "place,speed,push,episode\n" + "".join(f"{0.001 * i},0.01,0,0\n" for i in range(300))
    assert client.post("/api/batches?task=pusher&name=still", content=still.encode()).status_code == 200
    name = begin(client, batch="still", budget=QUICK)
    progress = wait(client, name, "failed")
    assert "push never changes" in progress["line"]
    assert progress["share"] is None


def test_a_process_that_dies_is_no_run_that_was_stopped(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KILL_AT", "candidates.csv:1")
    name = begin(client, budget=QUICK)
    assert wait(client, name, "failed")["share"] is None


@pytest.mark.parametrize(
    ("lines", "share", "said"),
    [
        ([], None, "starting"),
        (["Compiling the engine"], None, "starting"),
        (["Batch      600 transitions"], None, "Batch 600 transitions"),
        (
            ["Learning the model  40%  held-out error 2e-05"],
            0.1,
            "Learning the model 40% held-out error 2e-05",
        ),
        (["Searching  gprl  50%  best 2.8", "      3   4.56  x"], 0.525, "Searching gprl 50% best 2.8"),
        (["Report  50%", "error: disk full"], 0.9, "disk full"),
        (["Batch " + "x" * 1000], None, "Batch " + "x" * 394),
    ],
)
def test_what_a_process_says(lines: list[str], share: float | None, said: str) -> None:
    job = Job("x", None)  # type: ignore[arg-type]
    for line in lines:
        job.hear(line)
    assert job.share == pytest.approx(share)
    assert job.line == said
