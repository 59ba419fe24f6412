"""The web server of the studio: its addresses, its limits, and how it is run on this machine."""

import asyncio
import json
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import h11
import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket
from uvicorn.protocols.http.h11_impl import H11Protocol

import clearloop
from clearloop.errors import ClearloopError
from clearloop.files import file_name
from clearloop.studio.guarding import (
    LARGEST_DRAFT,
    LARGEST_MESSAGE,
    LARGEST_UPLOAD,
    POLICY_VIOLATION,
    REPORT_POLICY,
    Guard,
    RefusedError,
    checked_name,
    parse_body,
)
from clearloop.studio.handover import (
    ExportWish,
    PackWish,
    Parcel,
    compare,
    exported,
    list_targets,
    packed,
)
from clearloop.studio.learning import Learner, Wish, list_methods
from clearloop.studio.library import Batches, Catalog, Runs, make_folder
from clearloop.studio.live import TRY_AGAIN_LATER, Live
from clearloop.studio.logs import DraftWish, Logs, TaskText, check_task, draft_task, own_task
from clearloop.studio.session import Session
from clearloop.studio.stage import Stage

# Bodies of requests, which are read up to a limit.

TOO_LARGE = 413


async def read_body(request: Request, most: int = LARGEST_MESSAGE) -> bytes:
    """Return the whole body of a request.

    Raises:
        RefusedError: It is longer than `most` bytes.
    """
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise RefusedError(TOO_LARGE, f"request: its body is longer than {most:,} bytes")
    return body


async def take_file(
    request: Request, folder: Path, suffix: str, keep: Callable[[Path], dict[str, Any]]
) -> dict[str, Any]:
    """Receive a file; nothing is left of one that is refused or cut off.

    Args:
        request: The request, whose body is the file.
        folder: The folder that it comes to.
        suffix: The end of its name, which says how it is read.
        keep: Takes the whole file, which it moves, and returns a description.

    Returns:
        The description.

    Raises:
        ClearloopError: The size or the content is refused, or the upload was cut off.
    """
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > LARGEST_UPLOAD:
        raise _too_large()
    await to_thread.run_sync(make_folder, folder)
    path = folder / f".{secrets.token_hex(8)}.upload{suffix}"
    try:
        await _receive(request, path)
        return await to_thread.run_sync(keep, path)
    except ClientDisconnect as error:
        raise ClearloopError("upload: the connection was lost") from error
    finally:
        path.unlink(missing_ok=True)


async def _receive(request: Request, path: Path) -> None:
    size = 0
    with path.open("xb") as file:
        async for piece in request.stream():
            size += len(piece)
            if size > LARGEST_UPLOAD:
                raise _too_large()
            file.write(piece)


def _too_large() -> RefusedError:
    return RefusedError(TOO_LARGE, f"upload: the file is larger than {LARGEST_UPLOAD // 1024**2} MB")


# The application.

PAGE = Path(__file__).parent / "page"
MOST_SESSIONS = 8  # live sessions that one core steps in time (docs/studio.md)
_LONGEST_REASON = 123  # bytes of the reason for which a websocket is closed (RFC 6455, 5.5)


class Studio:
    """The state that all requests share, and their handlers.

    Handlers read and write files in threads, so that live sessions keep time meanwhile.
    """

    def __init__(self, runs: Path, task: str = "cartpole") -> None:
        """Open a folder of runs; `task` is open first, a built-in name or a file."""
        self.batches, self.runs = Batches(runs), Runs(runs)
        self.catalog = Catalog(self.runs, task)
        self.learner = Learner(self.catalog, self.batches, self.runs)
        self.logs = Logs(runs)
        self._busy = asyncio.Lock()  # one at a time, of what keeps a core busy for seconds
        self.sessions = 0
        """the number of live sessions"""

    async def state(self, request: Request) -> Response:  # noqa: ARG002
        """Answer `GET /api/state`: the version, the tasks, the methods and the languages."""
        tasks = await to_thread.run_sync(self.catalog.describe)
        return JSONResponse(
            {
                "version": clearloop.__version__,
                "tasks": tasks,
                "default_task": self.catalog.first,
                "methods": await to_thread.run_sync(list_methods),
                "targets": await to_thread.run_sync(list_targets),
            }
        )

    async def list_runs(self, request: Request) -> Response:  # noqa: ARG002
        """Answer `GET /api/runs`: all runs, the newest first."""
        listed = await to_thread.run_sync(self.runs.list)
        for one in listed:
            if one["name"] == self.learner.busy:
                one["status"] = "running"
        return JSONResponse(listed)

    async def report(self, request: Request) -> Response:
        """Answer `GET /runs/NAME/report.html`."""
        path = await to_thread.run_sync(self.runs.report, request.path_params["name"])
        return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})

    async def _stage(self, asked: HTTPConnection, find: Callable[[str], Stage]) -> Stage:
        """Return the stage of the task that a request names, for which models may have to be read."""
        return await to_thread.run_sync(find, asked.query_params.get("task", self.catalog.first))

    async def controllers(self, request: Request) -> Response:
        """Answer `GET /api/controllers?task=NAME`: all controllers of a task."""
        stage = await self._stage(request, self.catalog.find)
        return JSONResponse(await to_thread.run_sync(self.catalog.controllers, stage))

    async def margins(self, request: Request) -> Response:
        """Answer `GET /api/margins?task=NAME&controller=ID`: how far a loop is from instability."""
        stage = await self._stage(request, self.catalog.stage)
        name = request.query_params.get("controller", "")
        async with self._busy:
            return JSONResponse(await to_thread.run_sync(self.catalog.margins, name, stage))

    async def list_batches(self, request: Request) -> Response:  # noqa: ARG002
        """Answer `GET /api/batches`: all batches, the newest first."""
        return JSONResponse(await to_thread.run_sync(self.batches.list))

    async def upload(self, request: Request) -> Response:
        """Answer `POST /api/batches?task=NAME&name=NAME`: keep the body, a CSV file, as a batch."""
        stage = await self._stage(request, self.catalog.find)
        name = checked_name(request.query_params.get("name", ""), "a batch")
        keep = partial(self.batches.take, name=name, task=stage.task)
        return JSONResponse(await take_file(request, self.batches.folder, ".csv", keep))

    async def download(self, request: Request) -> Response:
        """Answer `GET /batches/NAME`: a batch as CSV."""
        name = request.path_params["name"]
        path = await to_thread.run_sync(self.batches.path, name)
        return FileResponse(path, media_type="text/csv", filename=f"{name}.csv")

    async def learn(self, request: Request) -> Response:
        """Answer `POST /api/learn`: start a run and return its name."""
        wish = parse_body(await read_body(request), Wish, "learn")
        return JSONResponse({"run": await self.learner.start(wish)})

    # A log of one's own, from its columns to a task.

    async def list_logs(self, request: Request) -> Response:  # noqa: ARG002
        """Answer `GET /api/logs`: all logs, the newest first."""
        return JSONResponse(await to_thread.run_sync(self.logs.list))

    async def upload_log(self, request: Request) -> Response:
        """Answer `POST /api/logs?name=FILE`: keep the body, a log in any format, and describe its columns."""
        name = self.logs.checked(request.query_params.get("name", ""))
        keep = partial(self.logs.take, name=name)
        found = await take_file(request, self.logs.folder, Path(name).suffix.lower(), keep)
        return JSONResponse(self._with_a_name(found))

    async def open_log(self, request: Request) -> Response:
        """Answer `GET /api/logs/FILE`: the columns of a log."""
        async with self._busy:
            log = await to_thread.run_sync(self.logs.open, request.path_params["name"])
            return JSONResponse(self._with_a_name(await to_thread.run_sync(log.describe)))

    def _with_a_name(self, log: dict[str, Any]) -> dict[str, Any]:
        return log | {"task": self.catalog.free_name(file_name(Path(log["name"]).stem))}

    async def draft(self, request: Request) -> Response:
        """Answer `POST /api/drafts`: a task file for a log."""
        wish = parse_body(await read_body(request, LARGEST_DRAFT), DraftWish, "draft")
        async with self._busy:
            log = await to_thread.run_sync(self.logs.open, wish.log)
            return JSONResponse(await to_thread.run_sync(draft_task, log, wish))

    async def check(self, request: Request) -> Response:
        """Answer `POST /api/checks`: what is wrong with a log, by a task file that somebody has edited."""
        given = parse_body(await read_body(request, LARGEST_DRAFT), TaskText, "check")
        async with self._busy:
            log = await to_thread.run_sync(self.logs.open, given.log)
            return JSONResponse(await to_thread.run_sync(check_task, log, given.text))

    async def keep_task(self, request: Request) -> Response:
        """Answer `POST /api/tasks`: keep a task file, and its log as a batch."""
        given = parse_body(await read_body(request, LARGEST_DRAFT), TaskText, "task")
        async with self._busy:
            return JSONResponse(await to_thread.run_sync(self._keep_task, given))

    def _keep_task(self, given: TaskText) -> dict[str, Any]:
        task = own_task(given.text)
        self.catalog.check_new(task)
        make_folder(self.batches.folder)
        copy = self.batches.folder / f".{secrets.token_hex(8)}.upload.csv"
        try:
            self.logs.copy(given.log, copy)
            batch = self.batches.take(copy, self.batches.free_upload(task.name), task)
        finally:
            copy.unlink(missing_ok=True)
        self.catalog.keep(task, given.text)
        return {"task": task.name, "batch": batch["name"]}

    # What leaves the studio.

    async def comparison(self, request: Request) -> Response:
        """Answer `GET /api/comparison?task=NAME&a=ID&b=ID`: what two controllers cost."""
        stage = await self._stage(request, self.catalog.stage)
        first, second = (request.query_params.get(side, "") for side in "ab")
        async with self._busy:
            return JSONResponse(await to_thread.run_sync(compare, self.catalog, stage, first, second))

    async def export(self, request: Request) -> Response:
        """Answer `POST /api/export`: a controller as source code."""
        wish = parse_body(await read_body(request), ExportWish, "export")
        async with self._busy:
            return _saved(await to_thread.run_sync(exported, self.catalog, wish))

    async def pack(self, request: Request) -> Response:
        """Answer `POST /api/pack`: a controller of a run with all that a second person needs, as a zip."""
        wish = parse_body(await read_body(request), PackWish, "pack")
        async with self._busy:
            return _saved(await to_thread.run_sync(packed, self.catalog, wish))

    async def progress(self, request: Request) -> Response:
        """Answer `GET /api/runs/NAME/progress`."""
        return JSONResponse(await to_thread.run_sync(self.learner.progress, request.path_params["name"]))

    async def stop(self, request: Request) -> Response:
        """Answer `POST /api/runs/NAME/stop`: stop a run and return its progress."""
        name = request.path_params["name"]
        await self.learner.stop(name)
        return JSONResponse(await to_thread.run_sync(self.learner.progress, name))

    async def live(self, socket: WebSocket) -> None:
        """Serve the websocket `/live?task=NAME`: one live session until it closes.

        A refused websocket is accepted first, because a browser tells its page only then why it was closed.
        """
        await socket.accept()
        if self.sessions >= MOST_SESSIONS:
            reason = f"{MOST_SESSIONS} live sessions are open, which is the limit: close another tab"
            await socket.close(TRY_AGAIN_LATER, reason)
            return
        self.sessions += 1
        try:
            stage = await self._stage(socket, self.catalog.stage)
            session = await to_thread.run_sync(Session, stage)
            await Live(socket, session, self.catalog, self.batches).run()
        except ClearloopError as error:
            reason = str(error).encode()[:_LONGEST_REASON].decode(errors="ignore")
            await socket.close(POLICY_VIOLATION, reason)
        finally:
            self.sessions -= 1


def make_app(studio: Studio, port: int) -> Starlette:
    """Make the application; `port` is where it is served, which is part of its own hosts and origins."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await studio.learner.close()

    return Starlette(
        routes=[
            Route("/api/state", studio.state),
            Route("/api/runs", studio.list_runs),
            Route("/api/runs/{name}/progress", studio.progress),
            Route("/api/runs/{name}/stop", studio.stop, methods=["POST"]),
            Route("/api/controllers", studio.controllers),
            Route("/api/margins", studio.margins),
            Route("/api/batches", studio.list_batches, methods=["GET"]),
            Route("/api/batches", studio.upload, methods=["POST"]),
            Route("/api/learn", studio.learn, methods=["POST"]),
            Route("/api/logs", studio.list_logs, methods=["GET"]),
            Route("/api/logs", studio.upload_log, methods=["POST"]),
            Route("/api/logs/{name}", studio.open_log),
            Route("/api/drafts", studio.draft, methods=["POST"]),
            Route("/api/checks", studio.check, methods=["POST"]),
            Route("/api/tasks", studio.keep_task, methods=["POST"]),
            Route("/api/comparison", studio.comparison),
            Route("/api/export", studio.export, methods=["POST"]),
            Route("/api/pack", studio.pack, methods=["POST"]),
            Route("/batches/{name}", studio.download),
            Route("/runs/{name}/report.html", studio.report),
            WebSocketRoute("/live", studio.live),
            Mount("/", StaticFiles(directory=PAGE, html=True, check_dir=False)),
        ],
        middleware=[Middleware(Guard, port=port)],
        exception_handlers={ClearloopError: _refuse, OSError: _regret},
        lifespan=lifespan,
    )


def _saved(parcel: Parcel) -> Response:
    """Answer with a file for the browser to save, whose name consists of harmless characters."""
    headers = {
        "content-disposition": f'attachment; filename="{file_name(parcel.name)}"',
        "x-sha256": parcel.digest,
    }
    return Response(parcel.content, media_type="application/octet-stream", headers=headers)


def _refuse(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return JSONResponse({"error": str(error)}, error.status if isinstance(error, RefusedError) else 400)


def _regret(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Say in one line what the system does not do, such as writing to a disk that is full."""
    reason = getattr(error, "strerror", None) or type(error).__name__
    return JSONResponse({"error": f"the studio's folder: {reason}"}, 500)


# The server on this machine.

HOST = "127.0.0.1"
LARGEST_FRAME = 64 * 1024  # bytes of a websocket's message, above which the connection is cut
MOST_CONNECTIONS = 64
HEADER_PATIENCE = 10.0  # seconds that a client has to send the whole header of a request
BODY_PATIENCE = 30.0  # seconds between two pieces of a body
REFUSED_PATIENCE = 1.0  # seconds that a connection beyond the limit has to send something
_PATIENCE = 5  # seconds that open connections have to close when the server ends


def serve(runs: Path, task: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the studio until Ctrl-C.

    Args:
        runs: The folder of runs.
        task: The task that is open first, a built-in name or a file.
        port: The port; 0 takes a free one.
        ready: Is called with the address when the server listens.

    Raises:
        ClearloopError: The task cannot be loaded, or the port is taken.
    """
    studio = Studio(runs, task)
    first = studio.catalog.find(studio.catalog.first)
    if first.playable:
        Session(first).step()  # compiles the engine, if that has not been done
    listening = listen(port)
    complain_in_lines()
    ready(f"http://{HOST}:{listening.getsockname()[1]}/")
    make_server(studio, listening).run(sockets=[listening])


def make_server(studio: Studio, listening: socket.socket) -> uvicorn.Server:
    """Make the server for a socket that listens."""
    return uvicorn.Server(
        uvicorn.Config(
            make_app(studio, listening.getsockname()[1]),
            http=BoundedProtocol,
            log_config=None,
            access_log=False,
            server_header=False,
            ws="websockets-sansio",
            ws_max_size=LARGEST_FRAME,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=_PATIENCE,
        )
    )


class BoundedProtocol(H11Protocol):
    """HTTP with a limit of connections, and without patience for clients that never finish a request.

    uvicorn by itself keeps a connection with half a header for ever, and accepts any number of them.
    """

    _timer: asyncio.TimerHandle | None = None
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or refuse it as soon as it sends something."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._refused = True
            self.connections.discard(self)
            self._wait(REFUSED_PATIENCE)
        else:
            self._wait(HEADER_PATIENCE)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, and wait for the rest only so long."""
        if self._refused:
            self._answer(503, f"the studio has {MOST_CONNECTIONS} connections, which is the limit: try again")
            return
        super().data_received(data)
        waiting = self.conn.their_state
        if self not in self.connections or waiting not in (h11.IDLE, h11.SEND_BODY):
            self._stop_waiting()  # it is a websocket now, or the request is complete
        elif waiting is h11.SEND_BODY:
            self._wait(BODY_PATIENCE)
        elif self._timer is None:  # the first part of the next header
            self._wait(HEADER_PATIENCE)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self.conn.their_state is h11.IDLE and not self._refused:
            self._answer(408, f"the header of the request did not arrive within {HEADER_PATIENCE:g} s")
        self.transport.close()

    def _answer(self, status: int, reason: str) -> None:
        body = json.dumps({"error": reason}).encode()
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()


class OneLine(logging.Formatter):
    """A formatter that logs an error of a connection as one line, without a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the first line of the message."""
        return f"studio: {record.getMessage().partition(chr(10))[0]}"


def complain_in_lines() -> None:
    """Log errors of the server as single lines on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.ERROR, handlers=[handler])


def listen(port: int) -> socket.socket:
    """Return a socket that listens at a port of this machine only.

    Raises:
        ClearloopError: The port is taken, or not allowed.
    """
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
