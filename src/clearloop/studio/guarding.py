"""The guard of the studio: only its own page on this machine may use it, with bounded messages."""

import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, TypeAdapter, ValidationError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clearloop.errors import ClearloopError, quoted

LARGEST_MESSAGE = 4 * 1024  # bytes, of a websocket's messages and of requests' JSON
LARGEST_DRAFT = 256 * 1024  # of requests that describe the columns of a log, or hold a task file
LARGEST_UPLOAD = 64 * 1024 * 1024
MOST_MESSAGES = 200  # in a second
MOST_OVERSIZE = 3
POLICY_VIOLATION = 1008

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
READING = ("GET", "HEAD")


class RefusedError(ClearloopError):
    """A refused request, which is answered with an HTTP status of its own."""

    def __init__(self, status: int, reason: str) -> None:
        """Keep the HTTP status and the reason, one line for people."""
        super().__init__(reason)
        self.status = status


class Guard:
    """A layer around the whole application that refuses hosts and origins other than this server's.

    A page from another site cannot make a browser lie about either, and a foreign name that points at this
    machine (DNS rebinding) is not among the hosts. A request that changes something must have an origin.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        """Guard the application that is served at this port."""
        self._app = app
        ends = ("", f":{port}") if port == 80 else (f":{port}",)
        self._hosts = {name + end for name in ("127.0.0.1", "localhost", "[::1]") for end in ends}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or not (reason := self._objection(scope)):
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason})
        else:
            await JSONResponse({"error": reason}, 403)(scope, receive, send)

    def _objection(self, scope: Scope) -> str:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return "the request names another host: open the address that `clearloop studio` printed"
        changing = scope["type"] == "websocket" or scope["method"] not in READING
        if len(origins) > 1 or any(origin.lower() not in self._origins for origin in origins):
            return "the request comes from another site: use the page of the studio"
        return "a request that changes something needs an Origin header" if changing and not origins else ""


HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
# Reports have scripts of their own. The sandbox gives them another origin, from which they reach nothing.
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; script-src 'unsafe-inline';"
    " style-src 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'self'"
)


def _with_headers(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name for name, _ in message["headers"]}
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = [*message["headers"], *(row for row in more if row[0] not in known)]
        await send(message)

    return with_headers


def checked_name(name: str, what: str) -> str:
    """Return a name that is safe as part of a file name.

    Raises:
        ClearloopError: The name has other characters, or is too long; `what` says what it is the name of.
    """
    if not NAME.fullmatch(name):
        raise ClearloopError(
            f"{quoted(name)} cannot be the name of {what}: use letters, digits, '.', '_' and '-'"
        )
    return name


def inside(folder: Path, *parts: str) -> Path:
    """Return the path of a file in a folder.

    Raises:
        ClearloopError: The path leads out of the folder, perhaps by a link.
    """
    root = folder.resolve()
    path = root.joinpath(*parts).resolve()
    if not path.is_relative_to(root) or path == root:
        raise ClearloopError(f"{quoted('/'.join(parts))} is not inside {folder}")
    return path


class Meter:
    """A counter of the messages of one websocket, which says when there are too many."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Start counting; `clock` returns seconds."""
        self._clock, self._second, self._count, self._oversize = clock, clock(), 0, 0

    def too_many(self) -> bool:
        """Count one more message; return True if that is too many for one second."""
        now = self._clock()
        if now - self._second >= 1:
            self._second, self._count = now, 0
        self._count += 1
        return self._count > MOST_MESSAGES

    def too_large(self) -> bool:
        """Count one more message that was too large; return True if that is one too many."""
        self._oversize += 1
        return self._oversize >= MOST_OVERSIZE


# The messages that the page may send to a session.

Name = Annotated[str, Field(max_length=200)]
_Share = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False, strict=True)]
Level = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
_Number = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False, strict=True)]
_Side = Annotated[int, Field(ge=0, le=1, strict=True)]
Seed = Annotated[int, Field(ge=0, lt=2**53, strict=True)]


class CommandMessage(BaseModel):
    """A message of the page; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_Message = TypeVar("_Message", bound=CommandMessage)


def parse_body(text: bytes, form: type[_Message], what: str) -> _Message:
    """Parse the body of a request; `what` names the request in errors.

    Raises:
        ClearloopError: It is no JSON, or a field is wrong.
    """
    try:
        return form.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))[:100]
        where = f"{place}: " if place else ""
        raise ClearloopError(f"{what}: {where}{' '.join(first['msg'].split())}"[:300]) from error


class Steer(CommandMessage):
    """Hold actions by hand."""

    do: Literal["hand"]
    action: Annotated[dict[Name, _Share], Field(max_length=100)]
    """the position in the range of each action, from -1 to 1"""


class Drive(CommandMessage):
    """Change the driver of one side."""

    do: Literal["drive"]
    side: _Side
    controller: Name | None
    """`hand`, an `id` of /api/controllers, or null to take away side 1"""


class Push(CommandMessage):
    """Push a state, on both sides alike."""

    do: Literal["push"]
    state: Name | None = None
    """null: the state that the drawing names"""
    size: _Share
    """from -1 to 1; 1 is a quarter of the state's range"""


class Aim(CommandMessage):
    """Change a setpoint."""

    do: Literal["setpoint"]
    state: Name
    value: _Number


class Disturb(CommandMessage):
    """Change the faults of sensors and actuators."""

    do: Literal["sensors"]
    noise: Level = 0.0
    """share of the largest noise"""
    delay: Annotated[int, Field(ge=0, le=10, strict=True)] = 0
    """steps"""
    gain: Annotated[float, Field(ge=0.25, le=4, allow_inf_nan=False, strict=True)] = 1.0
    """share of each action that acts on the plant"""
    load: _Share = 0.0
    """share of the largest load that is added to each action, from -1 to 1"""


class Restart(CommandMessage):
    """Begin a new episode."""

    do: Literal["restart"]
    seed: Seed | None = None
    """of the random numbers; null: any"""
    spread: Level | None = None
    """share of the start box that is used, from 0, its middle, to 1; null: the studio chooses"""


class Pause(CommandMessage):
    """Pause, or go on."""

    do: Literal["pause"]
    on: StrictBool


class Slow(CommandMessage):
    """Change the speed; 1 is real time."""

    do: Literal["speed"]
    factor: Annotated[float, Field(ge=0.1, le=1, allow_inf_nan=False, strict=True)]


class Record(CommandMessage):
    """Start a recording, or stop and save it."""

    do: Literal["record"]
    on: StrictBool


Command = Steer | Drive | Push | Aim | Disturb | Restart | Pause | Slow | Record
_ANY: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="do")])


def parse_command(text: str | bytes) -> Command:
    """Parse a message of the page.

    Raises:
        ClearloopError: It is no JSON, or not one of the commands above.
    """
    try:
        return _ANY.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))[:100]
        what = " ".join(first["msg"].split())[:200]
        raise ClearloopError(f"message: {place}: {what}" if place else f"message: {what}") from error
