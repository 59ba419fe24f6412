"""What leaves the studio is what the command line writes; controllers are compared in words."""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clearloop.controllers import load
from clearloop.exports import export
from clearloop.exports.comments import made_from
from clearloop.files import file_bytes
from clearloop.pages.pack import pack
from clearloop.registry import TARGETS
from clearloop.studio.server import Studio, make_app
from tests.studio.asking import ORIGIN, PORT, TestClient
from tests.studio.oven import learn_oven

RUN = "runs/oven-1/001"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    learn_oven(folder)
    return folder


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    studio = Studio(folder, str(folder / "oven.toml"))
    with TestClient(make_app(studio, PORT), base_url=ORIGIN, headers={"origin": ORIGIN}) as client:
        yield client


def ask(client: TestClient, what: str, **wish: str) -> Any:
    return client.post(f"/api/{what}", json={"task": "oven", "controller": RUN, **wish})


def test_the_page_knows_all_languages(client: TestClient) -> None:
    targets = client.get("/api/state").json()["targets"]
    assert [target["name"] for target in targets] == list(TARGETS)
    assert {"name": "st", "title": "Structured Text"} in targets


def test_an_export_says_what_it_was_made_from(client: TestClient, folder: Path) -> None:
    answer = ask(client, "export", target="st")
    assert answer.headers["content-disposition"] == 'attachment; filename="oven_001.st"'
    assert answer.headers["x-sha256"] == hashlib.sha256(answer.content).hexdigest()
    file = folder / "oven-1" / "controllers" / "001.json"
    origin = made_from(file, folder / "oven-1")
    assert "Run oven-1: run.json" in origin[1]
    assert answer.content == file_bytes(
        export(load(file), to="st", name="oven-001", origin=origin)["oven_001.st"]
    )


def test_several_files_come_as_a_zip(client: TestClient) -> None:
    answer = ask(client, "export", target="c")
    assert answer.headers["content-disposition"] == 'attachment; filename="oven-001-c.zip"'
    assert sorted(zipfile.ZipFile(io.BytesIO(answer.content)).namelist()) == ["oven_001.c", "oven_001.h"]


def test_the_law_of_the_log_is_exported_too(client: TestClient) -> None:
    answer = ask(client, "export", controller="log/law", target="python")
    assert answer.status_code == 200, answer.text
    assert b"Run " not in answer.content


def test_the_pack_is_that_of_the_command_line(client: TestClient, folder: Path, tmp_path: Path) -> None:
    answer = ask(client, "pack")
    assert answer.headers["content-disposition"] == 'attachment; filename="oven-1-001.zip"'
    digest = pack(folder / "oven-1" / "controllers" / "001.json", folder / "oven-1", tmp_path / "x.zip")
    assert answer.headers["x-sha256"] == digest == hashlib.sha256(answer.content).hexdigest()


@pytest.mark.parametrize(
    ("what", "wish"),
    [
        ("export", {"target": "cobol"}),
        ("export", {"target": "st", "controller": "runs/oven-1/999"}),
        ("export", {"target": "st", "controller": "runs/../001"}),
        ("export", {"target": "st", "task": "none"}),
        ("export", {"target": "st", "task": "cartpole"}),
        ("export", {}),
        ("pack", {"controller": "log/law"}),
        ("pack", {"controller": "runs/oven-1/..%2f..%2foven"}),
        ("pack", {"controller": "runs/oven-1/../001"}),
        ("pack", {"task": "cartpole"}),
    ],
)
def test_what_cannot_be_handed_out_is_refused_in_one_line(
    client: TestClient, what: str, wish: dict[str, str]
) -> None:
    answer = ask(client, what, **wish)
    assert answer.status_code in (400, 404)
    assert "\n" not in answer.json()["error"]


def test_two_controllers_are_compared_from_the_same_rows_of_the_log(client: TestClient) -> None:
    found = client.get(f"/api/comparison?task=oven&a={RUN}&b=log/law").json()
    first, second = found["penalties"]
    assert found["words"].startswith("From the same 256 rows of the log, on 1 model, the first costs ")
    swapped = client.get(f"/api/comparison?task=oven&a=log/law&b={RUN}").json()
    assert swapped["penalties"] == [second, first]
    assert ("less than" in found["words"]) == (first["mean"] < second["mean"])
    same = client.get("/api/comparison?task=oven&a=log/law&b=log/law").json()
    assert same["words"].endswith(": no clear difference.")


def test_on_a_plant_they_are_compared_from_its_starts(client: TestClient) -> None:
    found = client.get("/api/comparison?task=cartpole&a=published/gprl&b=published/lqr").json()
    assert found["words"].startswith("From the same 256 starts on the plant, the first costs ")
    refused = client.get("/api/comparison?task=cartpole&a=published/gprl&b=none")
    assert refused.status_code == 400
