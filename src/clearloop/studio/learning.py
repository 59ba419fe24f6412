"""Learning from the page: the studio runs `clearloop learn` as a process of its own, one at a time."""

import asyncio
import os
import re
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from anyio import to_thread
from pydantic import Field

from clearloop.errors import ClearloopError
from clearloop.methods.method import find_method
from clearloop.registry import METHODS
from clearloop.studio.guarding import CommandMessage, Name, RefusedError, Seed
from clearloop.studio.library import Batches, Catalog, Runs

PROGRAM = (sys.executable, "-m", "clearloop")
PATIENCE = 10.0  # seconds that a process has to end after each of the signals ENDS
# The first is what Ctrl-C sends, so that the run keeps its checkpoint. Windows has nothing like it.
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL) if sys.platform != "win32" else (signal.SIGTERM,)
KINDNESS = 5  # the niceness of the process, so that live sessions stay smooth
LONGEST_LINE = 400  # characters

# The phases of a run as it names them on standard error, and the part of the whole that each takes.
PHASES = {"Learning the model": (0.0, 0.25), "Searching": (0.25, 0.8), "Report": (0.8, 1.0)}
_SAID = re.compile(r"(.+?)  +(\d+)%")


class Wish(CommandMessage):
    """The body of `POST /api/learn`."""

    task: Name
    batch: Name | None = None
    """null: the task makes its own batch"""
    method: Name = "gprl"
    budget: (
        Literal["quick", "standard", "full"] | Annotated[int, Field(ge=1_000_000, le=10**12, strict=True)]
    ) = "quick"
    seed: Seed = 0
    force: bool = False
    """search even if the data cannot support a controller"""


def list_methods() -> list[dict[str, str]]:
    """Return the methods for `GET /api/state`: the `name` of each and, for people, a `title`."""
    return [
        {"name": method.name, "title": f"{method.title} ({method.gives})" if method.gives else method.title}
        for method in METHODS.working()
    ]


@dataclass
class Job:
    """One learning process and its latest output."""

    name: str
    """of the run"""
    process: asyncio.subprocess.Process
    share: float | None = None
    """that is done, from 0 to 1; None if it is not known"""
    line: str = "starting"
    """the latest line for people"""
    stopped: bool = False
    """True if somebody stopped it"""
    listening: asyncio.Task[None] = field(init=False)

    @property
    def running(self) -> bool:
        """True until the process has ended and its output has been read."""
        return not self.listening.done()

    def hear(self, line: str) -> None:
        """Take a line of its output; only lines of progress and errors are for the page."""
        said = _SAID.match(line)
        phase = next((part for title, part in PHASES.items() if said and said[1].startswith(title)), None)
        if said and phase:
            low, high = phase
            self.share = low + (high - low) * int(said[2]) / 100
        if said or re.match(r"(Batch|Surrogate|Search|error:|interrupted)", line):
            self.line = " ".join(line.removeprefix("error: ").split())[:LONGEST_LINE]


class Learner:
    """The learning processes of the studio, at most one at a time."""

    def __init__(self, catalog: Catalog, batches: Batches, runs: Runs) -> None:
        """Learn tasks of the catalog from these batches into this folder of runs."""
        self._catalog, self._batches, self._runs = catalog, batches, runs
        self._job: Job | None = None
        self._starting = asyncio.Lock()
        self._lines: dict[str, str] = {}
        """the last lines of earlier processes, by run"""

    @property
    def busy(self) -> str | None:
        """The name of the run that is being learned, or None."""
        return self._job.name if self._job and self._job.running else None

    async def start(self, wish: Wish) -> str:
        """Start learning and return the name of the run.

        Raises:
            RefusedError: Another run is being learned.
            ClearloopError: The task, the batch or the method is not known.
        """
        find_method(wish.method)
        stage = await to_thread.run_sync(self._catalog.find, wish.task)
        data = [] if wish.batch is None else ["--data", str(self._batches.path(wish.batch))]
        async with self._starting:
            if self.busy:
                raise RefusedError(409, f"the run '{self.busy}' is being learned: wait for it, or stop it")
            name = self._runs.free_name(stage.task.name)
            command = [*PROGRAM, "learn", stage.source, *data]
            command += ["--method", wish.method, "--budget", str(wish.budget), "--seed", str(wish.seed)]
            command += ["--out", str(self._runs.folder / name), *(["--force"] if wish.force else [])]
            self._job = job = Job(name, await _begin(command))
            job.listening = asyncio.create_task(self._listen(job))
        return name

    async def _listen(self, job: Job) -> None:
        """Read the output of a process until it ends."""
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
        """Return the status, share, latest line, task and front of a run as JSON values.

        Raises:
            ClearloopError: There is no such run.
        """
        job = self._job if self._job and self._job.name == name else None
        try:
            about = self._runs.about(name)
        except ClearloopError:
            if job is None and name not in self._lines:
                raise
            about = {"status": "failed", "task": None, "front": [], "headline": ""}
        line = job.line if job else self._lines.get(name, about["headline"])
        known = {"task": about["task"], "front": about["front"]}
        if job and job.running:
            return {"status": "running", "share": job.share, "line": line, **known}
        status = about["status"]
        if job and status == "running":  # the process ended before it could write another status
            status = "stopped" if job.stopped else "failed"
        if job and job.stopped and status == "failed":  # it was stopped before it wrote a run directory
            status, line = "stopped", "stopped"
        if status == "finished":
            line = about["headline"]
        return {"status": status, "share": 1.0 if status == "finished" else None, "line": line, **known}

    async def stop(self, name: str) -> None:
        """Stop a run as Ctrl-C would, so that it can go on with --resume.

        Raises:
            ClearloopError: This run is not being learned here.
        """
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
        """Stop the run that is being learned, because the server ends."""
        if self.busy:
            await self.stop(self.busy)


async def _begin(command: list[str]) -> asyncio.subprocess.Process:
    """Start a process in a session of its own, so that Ctrl-C reaches it only through the studio."""
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
