"""Serving the studio on this machine, until Ctrl-C."""

import logging
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from clearloop.errors import ClearloopError
from clearloop.studio.app import Studio, make_app
from clearloop.studio.session import Session

HOST = "127.0.0.1"
LARGEST_FRAME = 64 * 1024  # bytes of a websocket's message, before the connection is cut
PATIENCE = 5  # seconds that open connections get when it ends


def serve(runs: Path, task: str, port: int, ready: Callable[[str], None]) -> None:
    """`port` 0 takes a free one. `ready` is told the address."""
    studio = Studio(runs, task)
    first = studio.catalog.find(studio.catalog.first)
    if first.playable:
        Session(first).step()  # compiles, where that has not been done
    listening = listen(port)
    complain_in_lines()
    ready(f"http://{HOST}:{listening.getsockname()[1]}/")
    make_server(studio, listening).run(sockets=[listening])


def make_server(studio: Studio, listening: socket.socket) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            make_app(studio, listening.getsockname()[1]),
            log_config=None,
            access_log=False,
            server_header=False,
            ws="websockets-sansio",
            ws_max_size=LARGEST_FRAME,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=PATIENCE,
        )
    )


class OneLine(logging.Formatter):
    """What goes wrong with a connection is worth a line, not a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return f"studio: {record.getMessage().partition(chr(10))[0]}"


def complain_in_lines() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.ERROR, handlers=[handler])


def listen(port: int) -> socket.socket:
    """On this machine only."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise ClearloopError(
            f"port {port}: {error.strerror}: choose another with --port, or --port 0 for a free one"
        ) from error
    return listening
