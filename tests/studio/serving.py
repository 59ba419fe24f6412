"""The real server in a thread, and a websocket of few words that speaks to it from outside."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from websockets import Origin
from websockets.sync.client import ClientConnection, connect

from clearloop.studio.server import Studio, listen, make_server

FILES = Path("/proc/self/fd")
PATIENCE = 60.0  # seconds until a test gives up; none depends on it


@dataclass(frozen=True)
class Served:
    studio: Studio
    server: uvicorn.Server
    port: int
    loop: asyncio.AbstractEventLoop

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, task: str = "cartpole", origin: str | None = None) -> ClientConnection:
        told = Origin(origin or self.origin)
        return connect(f"ws://127.0.0.1:{self.port}/live?task={task}", origin=told)

    @property
    def counts(self) -> dict[str, int]:
        """What must not grow: sessions, connections, requests, tasks of the loop, open files."""
        state = self.server.server_state
        return {
            "sessions": self.studio.sessions,
            "connections": len(state.connections),
            "requests": len(state.tasks),
            "tasks": len(asyncio.all_tasks(self.loop)),
            "files": len(list(FILES.iterdir())) if FILES.is_dir() else 0,
        }


@contextmanager
def serving(studio: Studio) -> Iterator[Served]:
    listening = listen(0)
    port = listening.getsockname()[1]
    server = make_server(studio, listening)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="server")
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield Served(studio, server, port, server.servers[0].get_loop())
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listening.close()
    assert not thread.is_alive()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)


def settled(served: Served, before: dict[str, int]) -> None:
    """Until there is no more of anything than before."""
    until = time.monotonic() + PATIENCE
    while grown := {what: count for what, count in served.counts.items() if count > before[what]}:
        assert time.monotonic() < until, (before, grown)
        time.sleep(0.01)


def say(socket: ClientConnection, **message: Any) -> None:
    socket.send(json.dumps(message))


def frame(
    socket: ClientConnection, holds: Callable[[dict[str, Any]], bool] = lambda _: True
) -> dict[str, Any]:
    """The next that is one, and that holds."""
    while True:
        document: dict[str, Any] = json.loads(socket.recv(PATIENCE))
        if "t" in document and holds(document):
            return document


def error(socket: ClientConnection) -> str:
    """The next answer that complains."""
    while True:
        document = json.loads(socket.recv(PATIENCE))
        if "error" in document:
            return str(document["error"])
