"""Learning from the page: `clearloop learn` as a process of its own, one at a time."""

import asyncio
import os
import re
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from clearloop.errors import ClearloopError
from clearloop.methods.method import find_method
from clearloop.registry import METHODS
from clearloop.studio.guarding import CommandMessage, Name, RefusedError, Seed
from clearloop.studio.library import Batches, Catalog, Runs

PROGRAM = (sys.executable, "-m", "clearloop")
PATIENCE = 10.0  # seconds for a run to keep its checkpoint, before it is ended
# As Ctrl-C does, then with emphasis. Windows has nothing like the first.
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL) if sys.platform != "win32" else (signal.SIGTERM,)
KINDNESS = 5  # so that what is played stays smooth while it learns
LONGEST_LINE = 400

# What the phases of a run say on standard error, and about which part of the whole each is.
PHASES = {"Learning the model": (0.0, 0.25), "Searching": (0.25, 0.8), "Report": (0.8, 1.0)}
_SAID = re.compile(r"(.+?)  +(\d+)%")


class Wish(CommandMessage):
    """What `POST /api/learn` asks for."""

    task: Name
    batch: Name | None = None
    """None: the task makes its own"""
    method: Name = "gprl"
    budget: (
        Literal["quick", "standard", "full"] | Annotated[int, Field(ge=1_000_000, le=10**12, strict=True)]
    ) = "quick"
    seed: Seed = 0
    force: bool = False
    """search even if the data cannot support a controller"""


def list_methods() -> list[dict[str, str]]:
    """What `GET /api/state` says of the methods: `name` and, for people, `title`."""
    return [
        {"name": method.name, "title": f"{method.title} ({method.gives})" if method.gives else method.title}
        for method in METHODS.working()
    ]


def parse_wish(text: bytes) -> Wish:
    try:
        return Wish.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = f"{first['loc'][0]}: " if first["loc"] else ""
        raise ClearloopError(f"learn: {place}{' '.join(first['msg'].split())}"[:300]) from error


@dataclass
class Job:
    """One process, and what it said."""

    name: str
    process: asyncio.subprocess.Process
    share: float | None = None
    line: str = "starting"
    stopped: bool = False
    """by somebody"""
    listening: asyncio.Task[None] = field(init=False)

    @property
    def running(self) -> bool:
        return not self.listening.done()

    def hear(self, line: str) -> None:
        """A line of its output; tables and the like are not for the page."""
        said = _SAID.match(line)
        phase = next((part for title, part in PHASES.items() if said and said[1].startswith(title)), None)
        if said and phase:
            low, high = phase
            self.share = low + (high - low) * int(said[2]) / 100
        if said or re.match(r"(Batch|Surrogate|Search|error:|interrupted)", line):
            self.line = " ".join(line.removeprefix("error: ").split())[:LONGEST_LINE]


class Learner:
    def __init__(self, catalog: Catalog, batches: Batches, runs: Runs) -> None:
        self._catalog, self._batches, self._runs = catalog, batches, runs
        self._job: Job | None = None
        self._starting = asyncio.Lock()
        self._lines: dict[str, str] = {}
        """the last words of earlier processes"""

    @property
    def busy(self) -> str | None:
        """The run that is being learned."""
        return self._job.name if self._job and self._job.running else None

    async def start(self, wish: Wish) -> str:
        """The name of the run."""
        find_method(wish.method)
        stage = self._catalog.find(wish.task)
        data = [] if wish.batch is None else ["--data", str(self._batches.path(wish.batch))]
        async with self._starting:
            if self.busy:
                raise RefusedError(409, f"'{self.busy}' is being learned: wait, or stop it")
            name = self._runs.free_name(stage.task.name)
            command = [*PROGRAM, "learn", stage.source, *data]
            command += ["--method", wish.method, "--budget", str(wish.budget), "--seed", str(wish.seed)]
            command += ["--out", str(self._runs.folder / name), *(["--force"] if wish.force else [])]
            self._job = job = Job(name, await _begin(command))
            job.listening = asyncio.create_task(self._listen(job))
        return name

    async def _listen(self, job: Job) -> None:
        """To the end of the process."""
        assert job.process.stdout is not None  # noqa: S101  it is a pipe
        rest = b""
        while piece := await job.process.stdout.read(4096):
            *lines, rest = (rest + piece).split(b"\n")
            rest = rest[-65536:]
            for line in lines:
                job.hear(line.decode(errors="replace"))
        await job.process.wait()
        self._lines[job.name] = job.line
        while len(self._lines) > 100:
            del self._lines[next(iter(self._lines))]

    def progress(self, name: str) -> dict[str, Any]:
        """JSON values."""
        job = self._job if self._job and self._job.name == name else None
        try:
            about = self._runs.about(name)
        except ClearloopError:
            if job is None and name not in self._lines:
                raise
            about = {"status": "failed", "front": [], "headline": ""}
        line = job.line if job else self._lines.get(name, about["headline"])
        if job and job.running:
            return {"status": "running", "share": job.share, "line": line, "front": about["front"]}
        status = about["status"]
        if job and status == "running":  # so says the run, which did not know how it would end
            status = "stopped" if job.stopped else "failed"
        if job and job.stopped and status == "failed":  # it had not begun
            status, line = "stopped", "stopped"
        if status == "finished":
            line = about["headline"]
        return {
            "status": status,
            "share": 1.0 if status == "finished" else None,
            "line": line,
            "front": about["front"],
        }

    async def stop(self, name: str) -> None:
        """As Ctrl-C would: the run can go on with --resume."""
        if self._job is None or self._job.name != name or not self._job.running:
            raise ClearloopError(f"run '{name}' is not being learned here")
        job = self._job
        job.stopped = True
        for end in ENDS:
            with suppress(ProcessLookupError):
                job.process.send_signal(end)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(job.listening), PATIENCE)
                return

    async def close(self) -> None:
        """When the server ends, whatever is being learned is stopped."""
        if self.busy:
            await self.stop(self.busy)


async def _begin(command: list[str]) -> asyncio.subprocess.Process:
    """In a session of its own, so that Ctrl-C reaches it only through us."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "1000"},
    )
    if hasattr(os, "setpriority"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, KINDNESS)
    return process
