"""Bodies of requests, no larger than they may be."""

import secrets
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.requests import ClientDisconnect, Request

from clearloop.errors import ClearloopError
from clearloop.studio.batches import Batches
from clearloop.studio.guarding import LARGEST_MESSAGE, LARGEST_UPLOAD, RefusedError, checked_name
from clearloop.task import Task

TOO_LARGE = 413


async def read_json(request: Request) -> bytes:
    """A small body, whole."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_MESSAGE:
            raise RefusedError(TOO_LARGE, f"request: longer than {LARGEST_MESSAGE:,} bytes")
    return body


async def take_batch(request: Request, batches: Batches, name: str, task: Task) -> dict[str, Any]:
    """A CSV file as a batch, if it is one; nothing is left of one that is refused or cut off."""
    checked_name(name, "a batch")
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > LARGEST_UPLOAD:
        raise RefusedError(TOO_LARGE, f"upload: larger than {LARGEST_UPLOAD // 1024**2} MB")
    await to_thread.run_sync(batches.make_folder)
    partial = batches.folder / f".{secrets.token_hex(8)}.upload.csv"
    try:
        await _receive(request, partial)
        return await to_thread.run_sync(batches.take, partial, name, task)
    except ClientDisconnect as error:
        raise ClearloopError("upload: cut off") from error
    finally:
        partial.unlink(missing_ok=True)


async def _receive(request: Request, path: Path) -> None:
    size = 0
    with path.open("xb") as file:
        async for piece in request.stream():
            size += len(piece)
            if size > LARGEST_UPLOAD:
                raise RefusedError(TOO_LARGE, f"upload: larger than {LARGEST_UPLOAD // 1024**2} MB")
            file.write(piece)
