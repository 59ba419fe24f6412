"""The websocket of a live session: frames go out, commands come in, and nothing is left behind."""

import asyncio
import json
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import anyio
from anyio import to_thread
from starlette.websockets import WebSocket, WebSocketDisconnect

from clearloop.errors import ClearloopError
from clearloop.studio import guarding
from clearloop.studio.guarding import LARGEST_MESSAGE, POLICY_VIOLATION, Meter
from clearloop.studio.library import Batches, Catalog
from clearloop.studio.session import Driver, Faults, Recorder, Session

# Keeping time with a clock that only goes forward.

MOST_BEHIND = 8  # late steps that are made up for; if there are more, the lost time is dropped
WATCHED = 5.0  # seconds over which late steps are counted


class Pacer:
    """A timer that says how long to wait for the next step.

    A small delay is made up for, so that the rate holds. A large one is not, so that a slow machine shows
    slow motion and is not busy with catching up.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Start the timer; `clock` returns seconds."""
        self._clock = clock
        self._due = clock()
        self._steps: deque[tuple[float, bool]] = deque()

    def wait(self, interval: float) -> float:
        """Return the seconds until the next step, which is `interval` after the last one; 0 if it is due."""
        now = self._clock()
        self._due += interval
        late = now - self._due
        self._steps.append((now, late > interval / 2))
        while self._steps[0][0] < now - WATCHED:
            self._steps.popleft()
        if late > MOST_BEHIND * interval:
            self._due = now
        return max(self._due - now, 0.0)

    @property
    def late(self) -> float:
        """The share of the latest steps that came more than half an interval late."""
        return sum(late for _, late in self._steps) / max(len(self._steps), 1)

    async def pause(self, interval: float) -> None:
        """Sleep until the next step; other sessions get their turn even if it is already due."""
        await asyncio.sleep(self.wait(interval))


TRY_AGAIN_LATER = 1013
IDLE = 0.1  # seconds between frames of a session that is paused


class Outbox:
    """The messages to be sent. A frame that was not sent in time is replaced by the next; answers stay."""

    def __init__(self) -> None:
        """Start with nothing to send."""
        self._frame: dict[str, Any] | None = None
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue(maxsize=32)
        self._something = asyncio.Event()

    def show(self, frame: dict[str, Any]) -> None:
        """Send a frame next, instead of one that has not been sent."""
        self._frame = frame
        self._something.set()

    def answer(self, document: dict[str, Any]) -> None:
        """Send an answer; it is dropped if too many wait because nobody reads them."""
        with suppress(asyncio.QueueFull):
            self._answers.put_nowait(document)
        self._something.set()

    async def next(self) -> dict[str, Any]:
        """Wait for something to send; answers go before frames."""
        while True:
            await self._something.wait()
            if not self._answers.empty():
                return self._answers.get_nowait()
            self._something.clear()
            if self._frame is not None:
                frame, self._frame = self._frame, None
                return frame


class Live:
    """One websocket and its session."""

    def __init__(self, socket: WebSocket, session: Session, catalog: Catalog, batches: Batches) -> None:
        """Connect an accepted websocket with a session.

        Args:
            socket: The websocket.
            session: The session that it shows and commands.
            catalog: The controllers that may drive it.
            batches: The folder for recordings.
        """
        self._socket, self._session, self._catalog, self._batches = socket, session, catalog, batches
        self._outbox, self._pacer, self._saved = Outbox(), Pacer(), ""

    async def run(self) -> None:
        """Step, send and listen until the websocket closes; then save a recording that is under way."""
        try:
            async with anyio.create_task_group() as group:
                for part in (self._step, self._send, self._listen):
                    group.start_soon(self._until_it_ends, part, group.cancel_scope)
        finally:
            with anyio.CancelScope(shield=True):
                await self._keep(self._session.stop_recording())

    async def _until_it_ends(self, part: Callable[[], Awaitable[None]], scope: anyio.CancelScope) -> None:
        """Run one part; when it ends, all end."""
        try:
            await part()
        finally:
            scope.cancel()

    async def _step(self) -> None:
        session = self._session
        while True:
            await self._pacer.pause(IDLE if session.paused else session.stage.pace / session.speed)
            if not session.paused:
                try:
                    session.step()
                    if session.recorder is not None and session.recorder.full:
                        await self._stop_recording()
                except ClearloopError as error:
                    session.paused = True
                    self._outbox.answer({"error": str(error)})
            frame = session.frame()
            frame["recording"]["saved"] = self._saved
            self._outbox.show(frame | {"late": round(self._pacer.late, 3)})

    async def _send(self) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):  # both mean that it is closed
            while True:
                await self._socket.send_text(json.dumps(await self._outbox.next(), allow_nan=False))

    async def _listen(self) -> None:
        meter = Meter()
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text") or message.get("bytes") or ""
            oversize = len(text) > LARGEST_MESSAGE
            if meter.too_many() or (oversize and meter.too_large()):
                await self._socket.close(
                    POLICY_VIOLATION, "the page sent too many messages, or too long ones"
                )
                return
            if oversize:
                self._outbox.answer({"error": f"message: it is longer than {LARGEST_MESSAGE:,} bytes"})
                continue
            try:
                await self._obey(guarding.parse_command(text))
            except ClearloopError as error:
                self._outbox.answer({"error": str(error)})

    async def _obey(self, command: guarding.Command) -> None:
        session = self._session
        match command:
            case guarding.Steer():
                session.steer(command.action)
            case guarding.Drive():
                session.drive(command.side, await self._driver(command.controller))
            case guarding.Push():
                session.push(command.state, command.size)
            case guarding.Aim():
                session.aim(command.state, command.value)
            case guarding.Disturb():
                faults = command.model_dump(exclude={"do"})
                session.disturb(Faults(**faults))
            case guarding.Restart():
                seed = secrets.randbelow(2**32) if command.seed is None else command.seed
                session.restart(seed, command.spread)
            case guarding.Pause():
                session.paused = command.on
            case guarding.Slow():
                session.speed = command.factor
            case guarding.Record(on=True):
                session.record(self._batches.free_name(session.task.name))
            case guarding.Record(on=False):
                await self._stop_recording()

    async def _driver(self, name: str | None) -> Driver | None:
        if name is None or name == "hand":
            return self._session.hand if name else None
        return await to_thread.run_sync(self._catalog.driver, name, self._session.stage)

    async def _stop_recording(self) -> None:
        recorder = self._session.stop_recording()
        if recorder is not None and not recorder.transitions:
            raise ClearloopError("record: no step was made, so nothing was saved")
        try:
            await self._keep(recorder)
        except ClearloopError:  # the disk may be full: keep the recording, to try again
            self._session.recorder = self._session.recorder or recorder
            raise

    async def _keep(self, recorder: Recorder | None) -> None:
        """Save a recording, also when the websocket is gone."""
        if recorder is not None and recorder.transitions:
            await to_thread.run_sync(self._batches.keep, recorder)
            self._saved = recorder.name
