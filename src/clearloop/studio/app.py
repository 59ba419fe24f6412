"""The application: what is served where."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

import clearloop
from clearloop.errors import ClearloopError
from clearloop.studio.batches import Batches
from clearloop.studio.catalog import Catalog
from clearloop.studio.guarding import POLICY_VIOLATION, REPORT_POLICY, Guard, RefusedError
from clearloop.studio.learning import Learner, parse_wish
from clearloop.studio.live import TRY_AGAIN_LATER, Live
from clearloop.studio.runs import Runs
from clearloop.studio.session import Session
from clearloop.studio.uploads import read_json, take_batch

PAGE = Path(__file__).parent / "page"
MOST_SESSIONS = 64


class Studio:
    """What all requests share. Whatever reads or writes files does so in a thread: the clock goes on."""

    def __init__(self, runs: Path, task: str = "cartpole") -> None:
        self.batches, self.runs = Batches(runs), Runs(runs)
        self.catalog = Catalog(self.runs, task)
        self.learner = Learner(self.catalog, self.batches, self.runs)
        self.sessions = 0
        """that are going on"""

    async def state(self, request: Request) -> Response:  # noqa: ARG002
        tasks = await to_thread.run_sync(self.catalog.describe)
        return JSONResponse(
            {"version": clearloop.__version__, "tasks": tasks, "default_task": self.catalog.first}
        )

    async def list_runs(self, request: Request) -> Response:  # noqa: ARG002
        listed = await to_thread.run_sync(self.runs.list)
        for one in listed:
            if one["name"] == self.learner.busy:
                one["status"] = "running"
        return JSONResponse(listed)

    async def report(self, request: Request) -> Response:
        path = await to_thread.run_sync(self.runs.report, request.path_params["name"])
        return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})

    async def controllers(self, request: Request) -> Response:
        stage = self.catalog.find(request.query_params.get("task", self.catalog.first))
        return JSONResponse(await to_thread.run_sync(self.catalog.controllers, stage))

    async def list_batches(self, request: Request) -> Response:  # noqa: ARG002
        return JSONResponse(await to_thread.run_sync(self.batches.list))

    async def upload(self, request: Request) -> Response:
        stage = self.catalog.find(request.query_params.get("task", self.catalog.first))
        name = request.query_params.get("name", "")
        return JSONResponse(await take_batch(request, self.batches, name, stage.task))

    async def download(self, request: Request) -> Response:
        name = request.path_params["name"]
        path = await to_thread.run_sync(self.batches.path, name)
        return FileResponse(path, media_type="text/csv", filename=f"{name}.csv")

    async def learn(self, request: Request) -> Response:
        wish = parse_wish(await read_json(request))
        return JSONResponse({"run": await self.learner.start(wish)})

    async def progress(self, request: Request) -> Response:
        return JSONResponse(await to_thread.run_sync(self.learner.progress, request.path_params["name"]))

    async def stop(self, request: Request) -> Response:
        name = request.path_params["name"]
        await self.learner.stop(name)
        return JSONResponse(await to_thread.run_sync(self.learner.progress, name))

    async def live(self, socket: WebSocket) -> None:
        if self.sessions >= MOST_SESSIONS:
            await socket.close(TRY_AGAIN_LATER, "too many sessions")
            return
        self.sessions += 1
        try:
            stage = self.catalog.stage(socket.query_params.get("task", self.catalog.first))
            session = await to_thread.run_sync(Session, stage)
            await socket.accept()
            await Live(socket, session, self.catalog, self.batches).run()
        except ClearloopError as error:
            await socket.close(POLICY_VIOLATION, str(error)[:100])
        finally:
            self.sessions -= 1


def make_app(studio: Studio, port: int) -> Starlette:
    """`port`: where it is served, which is part of the hosts and origins that are its own."""

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
            Route("/api/batches", studio.list_batches, methods=["GET"]),
            Route("/api/batches", studio.upload, methods=["POST"]),
            Route("/api/learn", studio.learn, methods=["POST"]),
            Route("/batches/{name}", studio.download),
            Route("/runs/{name}/report.html", studio.report),
            WebSocketRoute("/live", studio.live),
            Mount("/", StaticFiles(directory=PAGE, html=True, check_dir=False)),
        ],
        middleware=[Middleware(Guard, port=port)],
        exception_handlers={ClearloopError: _refuse},
        lifespan=lifespan,
    )


def _refuse(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return JSONResponse({"error": str(error)}, error.status if isinstance(error, RefusedError) else 400)
