"""An OPC UA server on this machine, in a thread of its own, that offers the samples of a plant."""

import asyncio
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

from asyncua import ua
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.server.server import Server
from asyncua.server.user_managers import UserManager

EPOCH = datetime(2040, 1, 1, tzinfo=UTC)  # later than the first values of a server, which have its own time


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class _Users(UserManager):
    """Knows one user."""

    def get_user(
        self,
        iserver: Any,  # noqa: ARG002
        username: str | None = None,
        password: str | None = None,
        certificate: Any = None,
    ) -> User | None:
        if certificate is not None and username is None:
            return User(role=UserRole.User)
        return User(role=UserRole.User) if (username, password) == ("operator", "secret") else None


class PlantServer:
    """The server; leave its block and enter another one on the same port to start it again."""

    def __init__(
        self,
        names: Sequence[str],
        port: int,
        *,
        users: bool = False,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        self.names, self.port = tuple(names), port
        self.url = f"opc.tcp://127.0.0.1:{port}"
        self._users, self._certificate = users, certificate
        self._loop = asyncio.new_event_loop()
        self._ready, self._thread = Event(), Thread(target=self._loop.run_forever, daemon=True)
        self.nodes = {name: f"ns=2;s={name}" for name in names}

    def __enter__(self) -> Self:
        self._thread.start()
        self.call(self._start)
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._server.stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, work: Callable[[], Any]) -> Any:
        """Run work in the thread of the server."""
        future: Future[Any] = asyncio.run_coroutine_threadsafe(work(), self._loop)
        return future.result(timeout=600)

    async def _start(self) -> None:
        self._server = Server(user_manager=_Users() if self._users else None)
        await self._server.init()
        self._server.set_endpoint(self.url)
        if self._certificate is not None:
            await self._server.load_certificate(str(self._certificate[0]))
            await self._server.load_private_key(str(self._certificate[1]))
            self._server.set_security_policy([ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt])
        else:
            self._server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
        await self._server.register_namespace("urn:plant")
        objects = self._server.nodes.objects
        self._variables = {
            name: await objects.add_variable(ua.NodeId.from_string(f"ns=2;s={name}"), name, 0.0)
            for name in self.names
        }
        for variable in self._variables.values():
            await variable.set_writable()
        await self._server.start()

    def offer(self, rows: Sequence[tuple[float, Mapping[str, float]]], pause: float = 0.0) -> None:
        """Offer samples: seconds since the epoch of the tests, and values."""

        async def work() -> None:
            for seconds, values in rows:
                stamp = EPOCH + timedelta(seconds=seconds)
                for name, value in values.items():
                    content = ua.DataValue(
                        ua.Variant(float(value), ua.VariantType.Double),
                        SourceTimestamp=ua.DateTime.fromisoformat(stamp.isoformat()),
                    )
                    await self._server.write_attribute_value(self._variables[name].nodeid, content)
                await asyncio.sleep(pause)

        self.call(work)

    def stand_still(self, seconds: float) -> None:
        """Answer nobody for so long, as a server does that is busy."""

        async def work() -> None:
            time.sleep(seconds)

        self.call(work)

    def value(self, name: str) -> float:
        async def work() -> float:
            return float(await self._variables[name].read_value())

        return float(self.call(work))

    @property
    def items(self) -> int:
        """How many nodes are watched."""
        known = self._server.iserver.subscription_service.subscriptions.values()
        return sum(len(one.monitored_item_srv._monitored_items) for one in known)

    def wait_for_items(self, count: int, seconds: float = 120) -> None:
        """Wait until somebody watches so many nodes."""
        end = time.monotonic() + seconds
        while self.items < count:
            if time.monotonic() > end:
                raise TimeoutError
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait until everything that was offered has been sent."""
        time.sleep(1.0)
