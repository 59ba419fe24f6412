"""The application: what is served where."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

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
from clearloop.studio.guarding import POLICY_VIOLATION, Guard
from clearloop.studio.live import TRY_AGAIN_LATER, Live
from clearloop.studio.session import Session

PAGE = Path(__file__).parent / "page"
MOST_SESSIONS = 64


class Studio:
    """What all requests share."""

    def __init__(self, runs: Path, task: str = "cartpole") -> None:
        self.catalog, self.batches = Catalog(runs, task), Batches(runs)
        self.sessions = 0
        """that are going on"""

    async def state(self, request: Request) -> Response:  # noqa: ARG002
        tasks = await asyncio.to_thread(self.catalog.describe)
        return JSONResponse(
            {"version": clearloop.__version__, "tasks": tasks, "default_task": self.catalog.first}
        )

    async def controllers(self, request: Request) -> Response:
        stage = self.catalog.stage(request.query_params.get("task", self.catalog.first))
        return JSONResponse(await asyncio.to_thread(self.catalog.controllers, stage))

    async def list_batches(self, request: Request) -> Response:  # noqa: ARG002
        return JSONResponse(await asyncio.to_thread(self.batches.list))

    async def download(self, request: Request) -> Response:
        name = request.path_params["name"]
        path = await asyncio.to_thread(self.batches.path, name)
        return FileResponse(path, media_type="text/csv", filename=f"{name}.csv")

    async def live(self, socket: WebSocket) -> None:
        if self.sessions >= MOST_SESSIONS:
            await socket.close(TRY_AGAIN_LATER, "too many sessions")
            return
        self.sessions += 1
        try:
            stage = self.catalog.stage(socket.query_params.get("task", self.catalog.first))
            session = await asyncio.to_thread(Session, stage)
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

    return Starlette(
        routes=[
            Route("/api/state", studio.state),
            Route("/api/controllers", studio.controllers),
            Route("/api/batches", studio.list_batches),
            Route("/batches/{name}", studio.download),
            WebSocketRoute("/live", studio.live),
            Mount("/", StaticFiles(directory=PAGE, html=True, check_dir=False)),
        ],
        middleware=[Middleware(Guard, port=port)],
        exception_handlers={ClearloopError: _refuse},
        lifespan=lifespan,
    )


def _refuse(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return JSONResponse({"error": str(error)}, 400)
