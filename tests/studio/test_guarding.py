"""Who may ask for what."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.errors import ClearloopError
from clearloop.studio.guarding import Meter, checked_name, inside
from clearloop.studio.server import Studio, make_app
from tests.studio.asking import ORIGIN, PORT, TestClient

OWN = [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"]
FOREIGN = [
    "",
    "evil.example",
    "127.0.0.1",
    f"127.0.0.1:{PORT + 1}",
    f"127.0.0.1.evil.example:{PORT}",
    f"evil.example:{PORT}",
    f"127.0.0.2:{PORT}",
    f"0.0.0.0:{PORT}",
    f"user@127.0.0.1:{PORT}",
    f"127.0.0.1:{PORT}, evil.example",
]


@pytest.fixture
def plain(studio: Studio) -> TestClient:
    """Somebody who says nothing about where they come from."""
    return TestClient(make_app(studio, PORT), base_url=ORIGIN)


@pytest.mark.parametrize("host", OWN)
def test_its_own_hosts_are_served(plain: TestClient, host: str) -> None:
    assert plain.get("/api/batches", headers={"host": host}).status_code == 200
    told = {"host": host, "origin": f"http://{host}"}
    assert plain.get("/api/batches", headers=told).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_other_hosts_are_refused(plain: TestClient, host: str) -> None:
    for path in ("/", "/api/state", "/batches/x", "/nowhere"):
        answer = plain.get(path, headers={"host": host})
        assert answer.status_code == 403
        assert "open the address that `clearloop studio` printed" in answer.json()["error"]


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", f"https://127.0.0.1:{PORT}", "http://127.0.0.1", "file://", ""]
)
def test_other_origins_are_refused(plain: TestClient, origin: str) -> None:
    for method, path in (("GET", "/api/state"), ("POST", "/api/learn"), ("POST", "/api/batches?name=x")):
        assert plain.request(method, path, headers={"origin": origin}).status_code == 403


@pytest.mark.parametrize("path", ["/api/learn", "/api/batches?name=x", "/api/runs/x/stop"])
def test_what_changes_something_must_say_where_it_comes_from(plain: TestClient, path: str) -> None:
    answer = plain.post(path)
    assert (answer.status_code, answer.json()) == (
        403,
        {"error": "a request that changes something needs an Origin header"},
    )


def test_every_answer_says_what_a_browser_may_do_with_it(client: TestClient) -> None:
    for path in ("/api/state", "/batches/none", "/nowhere"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'self'; style-src 'self';")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("name", ["a", "run-1", "A.b_c-9", "x" * 80])
def test_names(name: str) -> None:
    assert checked_name(name, "a run") == name


NO_NAMES = ["", ".", "..", ".a", "-a", "a/b", "a\\b", "a b", "ä", "a\n", "x" * 81, "a\0"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_no_names(name: str) -> None:
    with pytest.raises(ClearloopError, match="cannot be the name of a run"):
        checked_name(name, "a run")


@given(parts=st.lists(st.sampled_from(["..", ".", "a", "b.csv", "a/..", "/etc", "//", "~"]), max_size=4))
def test_paths_stay_in_their_folder(parts: list[str]) -> None:
    root = Path("/srv/folder")
    try:
        path = inside(root, *parts)
    except ClearloopError:
        return
    assert path.is_relative_to(root)
    assert path != root


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "real.csv").write_text("")
    (folder / "alias.csv").symlink_to("real.csv")
    (folder / "out.csv").symlink_to("../secret.csv")
    (folder / "away").symlink_to(tmp_path)
    assert inside(folder, "alias.csv") == (folder / "real.csv").resolve()
    for parts in (("out.csv",), ("away", "secret.csv"), ("away",)):
        with pytest.raises(ClearloopError, match="is not inside"):
            inside(folder, *parts)


def test_a_meter_counts_by_the_second() -> None:
    now = 0.0
    meter = Meter(lambda: now)
    assert not any(meter.too_many() for _ in range(200))
    assert meter.too_many()
    now = 1.0
    assert not any(meter.too_many() for _ in range(200))
    assert meter.too_many()
    assert [meter.too_large() for _ in range(3)] == [False, False, True]
