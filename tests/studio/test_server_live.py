"""Over real sockets: rude clients leave nothing behind, and the others do not notice them."""

import http.client
import json
import random
import socket
import struct
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from clearloop.studio import server
from tests.studio.serving import PATIENCE, Served, error, frame, say, settled, wait_for

UPGRADE = (
    "GET /live?task={task} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


JUNK: list[str | bytes] = ["", "{", "null", '{"do":"fly"}', "\0" * 50, b"\xff\xfe"]


def raw(served: Served, text: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", served.port), PATIENCE)
    connection.sendall(text.encode())
    return connection


def cut(connection: socket.socket) -> None:
    """As when a cable is pulled: reset, no farewell."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def closing_code(connection: ClientConnection) -> int | None:
    """Reads until it is closed."""
    with suppress(ConnectionClosed):
        while True:
            connection.recv(PATIENCE)
    return connection.close_code


def test_two_hundred_who_vanish_leave_nothing(served: Served) -> None:
    with served.connect() as watcher:
        frame(watcher)
        before = served.counts
        rng = random.Random(0)  # noqa: S311
        for number in range(200):
            task = rng.choice(["cartpole", "cartpole", "tank", "none"])
            text = UPGRADE.format(task=task, port=served.port)
            connection = raw(served, text[: rng.randrange(1, len(text))] if number % 4 == 0 else text)
            if number % 4 == 1:
                connection.recv(10)
            if number % 4 == 2:
                connection.sendall(rng.randbytes(200))
            if number % 4 == 3:
                connection.recv(300)
                connection.sendall(b"\x81\xfe\xff")  # a frame that never ends
            cut(connection)
        settled(served, before)
        told = frame(watcher)
        assert frame(watcher, lambda one: one["t"] >= told["t"] + 5)["t"] >= told["t"] + 5


def test_a_flood_of_junk_closes_one_socket_and_no_other(served: Served) -> None:
    with served.connect() as watcher:
        frame(watcher)
        before = served.counts
        rng = random.Random(1)  # noqa: S311
        for _ in range(5):
            with served.connect() as flood:
                with suppress(ConnectionClosed):
                    for _ in range(2_000):
                        flood.send(rng.choice(JUNK))
                assert closing_code(flood) == 1008
        settled(served, before)
        frame(watcher)


def test_messages_that_are_too_large(served: Served) -> None:
    with served.connect() as one:
        one.send("x" * 4097)
        assert error(one) == "message: it is longer than 4,096 bytes"
        one.send("x" * 4097)
        assert error(one) == "message: it is longer than 4,096 bytes"
        one.send("x" * 4097)
        assert closing_code(one) == 1008
    with served.connect() as other:
        other.send("x" * 100_000)
        assert closing_code(other) == 1009


def test_who_does_not_read_misses_frames_and_not_steps(served: Served) -> None:
    """What is not read waits in buffers that have an end, and then gives way to what is new."""
    lazy = raw(served, UPGRADE.format(task="cartpole", port=served.port))
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with served.connect() as watcher:
        told = frame(watcher)["t"]
        frame(watcher, lambda one: one["t"] >= told + 40)
    cut(lazy)
    wait_for(lambda: served.studio.sessions == 0)


def test_a_session_goes_on_by_itself(served: Served) -> None:
    with served.connect() as watcher:
        say(watcher, do="drive", side=0, controller="published/gprl")
        say(watcher, do="sensors", noise=0.1, delay=1)
        say(watcher, do="push", size=0.3)
        say(watcher, do="setpoint", state="rho", value=0.4)
        one = frame(watcher, lambda one: one["setpoint"] == {"rho": 0.4} and one["sides"][0]["terms"])
        ahead = frame(watcher, lambda other: other["t"] >= one["t"] + 30)
        assert ahead["sides"][0]["up"] > one["sides"][0]["up"]
        assert 0 <= ahead["late"] <= 1
        say(watcher, do="pause", on=True)
        still = frame(watcher, lambda other: other["paused"])
        assert frame(watcher)["t"] == still["t"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_sockets_from_elsewhere_are_refused(served: Served, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refusal, served.connect(origin=origin):
        pass
    assert refusal.value.response.status_code == 403


def test_hosts_from_elsewhere_are_refused(served: Served) -> None:
    for host, status in ((f"127.0.0.1:{served.port}", 200), ("evil.example", 403), ("", 403)):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
        connection.request("GET", "/api/batches", headers={"Host": host})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
        assert "server" not in {name.lower() for name, _ in answer.getheaders()}
        connection.close()


@pytest.mark.parametrize(
    "path", ["/../app.py", "/..%2fapp.py", "/%2e%2e/app.py", "/batches/../../x", "//x/../.."]
)
def test_paths_as_no_browser_would_send_them(served: Served, path: str) -> None:
    connection = raw(
        served, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nConnection: close\r\n\r\n"
    )
    answer = b""
    while piece := connection.recv(65536):
        answer += piece
    connection.close()
    assert answer.split()[1] in (b"400", b"404")
    assert b"Starlette" not in answer


def test_an_upload_that_is_cut_off_leaves_nothing(served: Served) -> None:
    folder = served.studio.batches.folder
    text = (
        f"POST /api/batches?task=cartpole&name=x HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        f"Origin: {served.origin}\r\nContent-Length: 1000000\r\n\r\n"
    )
    connections = [raw(served, text + "theta,theta_dot\n1,2\n") for _ in range(10)]
    wait_for(lambda: folder.exists() and len(list(folder.iterdir())) == 10)
    for connection in connections:
        cut(connection)
    wait_for(lambda: not list(folder.iterdir()))
    wait_for(lambda: served.counts["requests"] == 0)


def test_answers_are_json(served: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    connection.request("GET", "/api/state")
    assert json.loads(connection.getresponse().read())["default_task"] == "cartpole"
    connection.close()


HALF = "GET /api/state HTTP/1.1\r\nHost: 127.0.0.1"


def whole(connection: socket.socket) -> bytes:
    """All that comes until it is closed."""
    answer = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            answer += piece
    connection.close()
    return answer


def asked(served: Served) -> tuple[int, object]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    connection.request("GET", "/api/batches", headers={"Connection": "close"})
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body


@pytest.mark.parametrize("text", ["", HALF])
def test_half_a_header_is_not_waited_for(served: Served, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(server, "HEADER_PATIENCE", 0.3)
    before = served.counts
    with served.connect() as watcher:
        frame(watcher)
        answers = [whole(one) for one in [raw(served, text) for _ in range(20)]]
        told = frame(watcher)["t"]
        frame(watcher, lambda one: one["t"] >= told + 5)
    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)
    settled(served, before)


def test_half_of_a_second_header_is_not_waited_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADER_PATIENCE", 0.3)
    connection = raw(served, f"GET /api/batches HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n")
    answer = b""
    while not answer.endswith(b"[]"):
        answer += connection.recv(65536)
    connection.sendall(HALF.encode())
    assert whole(connection).startswith(b"HTTP/1.1 408 ")


def test_who_sends_a_header_byte_by_byte_gets_no_more_time(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEADER_PATIENCE", 0.3)
    slow = raw(served, "GET / HTTP/1.1\r\n")
    with suppress(ConnectionError):
        for number in range(10_000):
            slow.sendall(f"X-{number}: 0\r\n".encode())
            slow.settimeout(0.05)
            with suppress(TimeoutError):
                assert b" 408 " in slow.recv(100)
                break
    slow.close()
    wait_for(lambda: served.counts["connections"] == 0)


def test_a_body_that_stops_is_not_waited_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_PATIENCE", 0.3)
    folder = served.studio.batches.folder
    connection = raw(
        served,
        f"POST /api/batches?task=cartpole&name=x HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        f"Origin: {served.origin}\r\nContent-Length: 1000000\r\n\r\ntheta\n",
    )
    whole(connection)
    wait_for(lambda: served.counts["requests"] == 0)
    assert not list(folder.iterdir())


def test_there_are_only_so_many_connections(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 5)
    with served.connect() as watcher:
        frame(watcher)
        others = [raw(served, HALF) for _ in range(4)]
        wait_for(lambda: served.counts["connections"] == 5)
        status, body = asked(served)
        assert status == 503
        assert body == {"error": "the studio has 5 connections, which is the limit: try again"}
        with pytest.raises(InvalidStatus) as refusal, served.connect():
            pass
        assert refusal.value.response.status_code == 503
        silent = raw(served, "")
        assert whole(silent) == b""  # it asked nothing, and is not kept
        told = frame(watcher)["t"]
        frame(watcher, lambda one: one["t"] >= told + 5)
        for connection in others:
            connection.close()
        wait_for(lambda: served.counts["connections"] == 1)
        assert asked(served) == (200, [])


def test_there_are_only_so_many_sessions_and_the_page_hears_why(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_SESSIONS", 2)
    with served.connect() as one, served.connect() as two:
        frame(one), frame(two)
        with served.connect() as three:
            assert closing_code(three) == 1013
            assert three.close_reason == "2 live sessions are open, which is the limit: close another tab"
        assert served.studio.sessions == 2
        frame(one)
    wait_for(lambda: served.studio.sessions == 0)
    with served.connect() as again:
        frame(again)


def test_a_task_that_cannot_be_played_is_refused_with_the_reason(served: Served) -> None:
    with served.connect("none") as one:
        assert closing_code(one) == 1008
        assert one.close_reason == "there is no task 'none'"
