"""Feeds bring the samples of a running plant, one after the other: from a growing CSV file, or over OPC UA.

A feed only reads. It yields samples, and in between notices: a lost connection, or that nothing is new.
"""

import asyncio
import csv
import io
import math
import os
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from clearloop.data.csv import check_text, sniff
from clearloop.data.log import missing_column
from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.task import Task

if TYPE_CHECKING:
    from asyncua.client.client import Client

LONGEST_LINE = 1024 * 1024  # bytes of a line of a CSV file
_APART = 10  # control intervals between two episodes of a file whose times begin again
_LATEST = 1e30  # seconds; larger times cannot be told apart
_WAIT = 0.2  # seconds between two looks at a file that has not grown


class Sample(NamedTuple):
    """What the plant showed at one time.

    Attributes:
        time: Seconds; since 1970 if the plant tells a date.
        values: The value of each state, setpoint and action by its name in the task; NaN for what is missing.
    """

    time: float
    values: dict[str, float]


class Notice(NamedTuple):
    """Something to tell between two samples; an empty text says that nothing is new."""

    text: str = ""


Feed = Iterator[Sample | Notice]


# A CSV file that grows.


def csv_feed(path: str, task: Task, *, follow: bool, wait: float = _WAIT) -> Feed:
    """Yield the rows of a CSV file, and wait for more.

    Args:
        path: The file, or `-` for standard input.
        task: The task, whose `[data]` says which columns are read.
        follow: Whether to wait for further rows at the end of a file; standard input is read to its end.
        wait: Seconds between two looks.

    Raises:
        ClearloopError: The file cannot be read, or lacks a column.
    """
    if path == "-":
        yield from _rows(sys.stdin.buffer, path, task, 0, follow=False, wait=wait)
        return
    count = 0
    while True:
        with _opened(path) as file:
            count = yield from _rows(file, path, task, count, follow=follow, wait=wait)
        if not follow:
            return
        yield Notice(f"{path} begins again")


def _opened(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except (OSError, ValueError) as error:
        raise ClearloopError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


def _rows(
    file: BinaryIO, path: str, task: Task, number: int, *, follow: bool, wait: float
) -> Generator[Sample | Notice, None, int]:
    """Yield the rows of a file until it ends, or if it is followed, until it begins again.

    `number` is that of its first row, which tells the time where no column does. That of the next row is
    returned.
    """
    table: _Table | None = None
    head: list[str] = []
    for line in _lines(file, path, follow=follow, wait=wait):
        if isinstance(line, Notice):
            yield line
        elif table is None:
            head.append(line)
            if sum(bool(one.strip()) for one in head) > 2:  # enough to tell how the file is written
                table = _Table(path, task, head)
                for late in table.rows(head):
                    yield table.sample(late, number)
                    number += 1
        elif line.strip():
            yield table.sample(line, number)
            number += 1
    if table is None and not follow:
        _check_text(path, head)
        if sum(bool(one.strip()) for one in head) < 2:
            raise ClearloopError(f"{path}: has no rows")
        table = _Table(path, task, head)
        yield from (table.sample(late, row) for row, late in enumerate(table.rows(head), number))
    return number


def _lines(file: BinaryIO, path: str, *, follow: bool, wait: float) -> Iterator[str | Notice]:
    """Yield whole lines; while there is none, yield notices."""
    begun, replaced = b"", False
    while True:
        piece = file.readline(LONGEST_LINE)
        begun += piece
        if len(begun) >= LONGEST_LINE:
            raise ClearloopError(f"{path}: a line is longer than {LONGEST_LINE:,} bytes")
        if begun.endswith(b"\n") or (not piece and begun and not follow):
            text = begun.decode("utf-8-sig", errors="replace")
            yield from io.StringIO(text, newline=None)  # lines may also end with carriage returns alone
            begun = b""
        elif not piece and not follow:
            return
        elif not piece:
            if replaced:
                return
            if not (replaced := _is_replaced(file, path)):  # if so, what came last is read first
                yield Notice()
                time.sleep(wait)


def _is_replaced(file: BinaryIO, path: str) -> bool:
    """Tell whether a path leads to another file now, or whether the file has become shorter."""
    with suppress(OSError):
        there, here = Path(path).stat(), os.fstat(file.fileno())
        return not os.path.samestat(there, here) or here.st_size < file.tell()
    return False  # it is not there: its successor will be


def _check_text(path: str, head: list[str]) -> None:
    try:
        check_text("".join(head))
    except ClearloopError as error:
        raise ClearloopError(f"{path}: {error}") from error


class _Table:
    """The columns of a CSV file."""

    def __init__(self, path: str, task: Task, head: list[str]) -> None:
        _check_text(path, head)
        self._path, self._unit = path, task.columns.time_unit
        try:
            self._dialect = sniff("".join(head))
            names = [name.strip() for name in self._cells(head[self._dialect.skip_lines])]
        except (ClearloopError, csv.Error) as error:
            raise ClearloopError(f"{path}: {error}") from error
        columns = task.columns
        wanted = dict(zip(task.state_names, columns.states, strict=True))
        wanted |= dict(zip(task.action_names, columns.actions, strict=True))
        aims = zip(task.logged_setpoints, columns.setpoints, strict=True)
        wanted |= {f"{name}.setpoint": column for name, column in aims}
        for name in task.setpoints:
            if f"{name}.setpoint" not in wanted and f"{name}.setpoint" in names:
                wanted[f"{name}.setpoint"] = f"{name}.setpoint"
        self._places = {name: names.index(column) for name, column in wanted.items() if column in names}
        for name, column in wanted.items():
            if name not in self._places and name not in task.derived and name not in task.action_names:
                raise ClearloopError(f"{path}: {missing_column(column, names).message}")
        self._time = names.index(columns.time) if columns.time in names else None
        self._dt = task.dt
        self._episode = names.index(columns.episode) if columns.episode in names else None
        self._present, self._shift, self._last = "", 0.0, -math.inf

    def rows(self, head: list[str]) -> list[str]:
        """Return the first lines that are rows of values."""
        first = self._dialect.skip_lines + 1 + self._dialect.unit_row
        return [line for line in head[first:] if line.strip()]

    def _cells(self, line: str) -> list[str]:
        return next(csv.reader(io.StringIO(line.rstrip("\r\n")), delimiter=self._dialect.separator), [])

    def sample(self, line: str, number: int) -> Sample:
        try:
            cells = self._cells(line)
        except csv.Error:
            cells = []
        values = {
            name: self._number(cells[place]) if place < len(cells) else math.nan
            for name, place in self._places.items()
        }
        when = number * self._dt
        if self._time is not None:
            when = self._seconds(cells[self._time]) if self._time < len(cells) else math.nan
            if math.isnan(when):
                raise ClearloopError(f"{self._path}: row {number + 1:,} has no time: {quoted(line.strip())}")
        return Sample(self._after(when, cells), values)

    def _after(self, when: float, cells: list[str]) -> float:
        """Return the time of a row; where a new episode begins earlier, it is put after the last one."""
        episode = cells[self._episode] if self._episode is not None and self._episode < len(cells) else ""
        if episode != self._present and when + self._shift <= self._last:
            self._shift = self._last - when + _APART * self._dt
        self._present, self._last = episode, when + self._shift
        return self._last

    def _number(self, cell: str) -> float:
        try:
            return float(cell.replace(",", ".") if self._dialect.decimal_comma else cell)
        except ValueError:
            return math.nan

    def _seconds(self, cell: str) -> float:
        """Return a time; NaN if the cell has none, or one that no clock shows.

        A date without a zone is in UTC, as in a log (`data/cells.py`).
        """
        if abs(found := self._number(cell) * self._unit) < _LATEST:
            return found
        try:
            date = datetime.fromisoformat(cell.strip())
        except ValueError:
            return math.nan
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


# OPC UA.


@dataclass(frozen=True, kw_only=True)
class Access:
    """How to reach an OPC UA server.

    Attributes:
        url: Its address, such as "opc.tcp://plc:4840".
        user: The name of a user, if the server asks for one.
        password: The user's password.
        certificate: The file of a certificate (PEM or DER), if the server asks for one.
        key: The file of its private key.
        policy: The security policy, such as "Basic256Sha256", with a certificate.
    """

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    certificate: Path | None = None
    key: Path | None = None
    policy: str = "Basic256Sha256"


PATIENCE = 10.0  # seconds for which a server may be silent
NO_ENDPOINT = "No matching endpoints"  # what asyncua says if a server does not offer the policy
TRIGGER = "trigger"  # the node in the table that says when a sample is complete


def check_nodes(nodes: Mapping[str, str], task: Task, needed: set[str]) -> dict[str, str]:
    """Return the node of each name, checked.

    Args:
        nodes: Node ids by the names of states, actions, setpoints such as "level.setpoint", and "trigger".
        task: The task.
        needed: The states that the controller reads.

    Raises:
        ClearloopError: A name is unknown, or a needed one is missing.
    """
    known = [*task.state_names, *task.action_names, *(f"{name}.setpoint" for name in task.setpoints), TRIGGER]
    for name in nodes:
        if name not in known:
            raise ClearloopError(
                f"[opcua] {name}: expected a state, an action, a setpoint or trigger"
                f"{did_you_mean(name, known) or ': ' + ', '.join(known)}"
            )
    missing = sorted(needed - {*nodes} - {*task.derived})
    if missing:
        raise ClearloopError(
            f'[opcua]: no node for {", ".join(missing)}: add a line such as {missing[0]} = "ns=2;s=..."'
        )
    return dict(nodes)


class OpcuaFeed:
    """The samples of an OPC UA server, by a subscription to its nodes; a lost connection is made again.

    A sample is complete when the trigger node has a new timestamp; it has the values that all nodes had then.
    Every change of the trigger is queued by the server, so none is left out while there is a connection.

    Args:
        access: The server.
        nodes: The node id of each state, action and setpoint, and perhaps of the trigger.
        dt: Seconds between two samples.
        retry: Seconds to the first attempt to connect again.
    """

    QUEUE = 10_000  # changes of a node that the server keeps for us
    WAITING = 100_000  # samples that wait for the program, before further ones are dropped

    def __init__(self, access: Access, nodes: Mapping[str, str], dt: float, *, retry: float = 0.5) -> None:
        self._access, self._nodes, self._dt, self._retry = access, dict(nodes), dt, retry
        self._trigger = TRIGGER if TRIGGER in nodes else next(iter(nodes))
        self._queue: Queue[Sample | Notice | BaseException] = Queue(self.WAITING)
        self._stopped = Event()
        self._write: tuple[str, float] | None = None
        self._thread = Thread(target=self._run, daemon=True)

    def __iter__(self) -> Feed:
        self._thread.start()
        try:
            while True:
                try:
                    found = self._queue.get(timeout=_WAIT)
                except Empty:
                    found = Notice()
                if isinstance(found, BaseException):
                    raise found
                yield found
        finally:
            self._stopped.set()
            self._thread.join(timeout=10)

    def write(self, node: str, value: float) -> None:
        """Write a value to a node with the next opportunity; only the latest value counts."""
        self._write = node, value

    def _put(self, thing: Sample | Notice | BaseException) -> None:
        with suppress(Full):  # a gap, which the timestamps show
            self._queue.put_nowait(thing)

    def _run(self) -> None:
        import logging

        logging.getLogger("asyncua").setLevel(logging.CRITICAL)  # the errors are told in one line below
        try:
            asyncio.run(self._stay_connected())
        except BaseException as error:  # whatever it is, the other thread tells it
            self._queue.put(error)

    async def _stay_connected(self) -> None:
        pause, lost = self._retry, False
        connected_once = False
        while not self._stopped.is_set():
            try:
                async for _ in self._listen():
                    if lost:
                        self._put(Notice("connected again"))
                    connected_once, lost, pause = True, False, self._retry
            except ClearloopError:
                raise
            except Exception as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                if NO_ENDPOINT in reason:
                    reason += "; does it ask for --certificate and --key, or for another --policy?"
                if not connected_once and _is_final(error):
                    raise ClearloopError(f"--opcua {self._access.url}: {reason}") from error
                if not lost:
                    self._put(Notice(f"no connection ({reason[:80]}); trying again"))
                lost = True
            if not self._stopped.is_set():
                await asyncio.sleep(pause)
                pause = min(2 * pause, 30.0)

    async def _listen(self) -> AsyncIterator[None]:
        """Connect, and yield now and then as long as the connection lasts."""
        client = await connect(self._access)
        try:
            collector = _Collector(self._nodes, self._trigger, self._put)
            period = max(min(1000 * self._dt, 1000.0), 20.0)
            subscription = await client.create_subscription(period, collector)
            await self._subscribe(client, subscription, collector)
            while not self._stopped.is_set():
                yield
                for _ in range(5):
                    await asyncio.sleep(min(self._dt, 0.2))
                    if (write := self._write) is not None:
                        await _write_value(client, *write)
                        if self._write is write:  # or a later value has come meanwhile
                            self._write = None
                    collector.settle(2 * period / 1000)
                await client.check_connection()
                await client.nodes.server_state.read_value()
        finally:
            with suppress(Exception):
                await asyncio.wait_for(client.disconnect(), timeout=3)

    async def _subscribe(self, client: "Client", subscription: Any, collector: "_Collector") -> None:
        from asyncua import ua
        from asyncua.ua.uaerrors import UaStatusCodeError

        nodes = {name: client.get_node(text) for name, text in self._nodes.items()}
        for name, node in nodes.items():
            try:
                await node.read_value()
            except UaStatusCodeError as error:
                raise ClearloopError(
                    f"[opcua] {name}: the server has no value at {quoted(self._nodes[name])}: {error}"
                ) from error
        change = ua.DataChangeFilter(Trigger=ua.DataChangeTrigger.StatusValueTimestamp)
        for name in sorted(nodes, key=lambda name: name == self._trigger):  # the trigger is the last
            collector.names.setdefault(nodes[name].nodeid, []).append(name)
        order = sorted(collector.names, key=lambda node: self._trigger in collector.names[node])
        await subscription._subscribe(
            [client.get_node(node) for node in order],
            mfilter=change,
            queuesize=self.QUEUE,
            sampling_interval=0.0,
        )


def _is_final(error: Exception) -> bool:
    """Tell whether to try again makes no sense: the server refuses us, or a file is wrong."""
    from asyncua.ua.uaerrors import UaError, UaStatusCodeError

    if isinstance(error, UaStatusCodeError):
        words = ("Identity", "UserAccess", "Certificate", "Security")
        return any(word in type(error).__name__ for word in words)
    if NO_ENDPOINT in str(error):
        return True
    return not isinstance(error, OSError | asyncio.TimeoutError | UaError)


async def connect(access: Access) -> "Client":
    """Return a client that is connected to a server.

    Raises:
        ClearloopError: asyncua is not installed.
    """
    try:
        from asyncua.client.client import Client
        from asyncua.crypto import security_policies
        from asyncua.crypto.uacrypto import CertProperties
    except ImportError as error:
        raise ClearloopError("--opcua needs asyncua: pip install 'clearloop[opcua]'") from error
    # A closed connection is noticed at once. One on which nothing comes is given up only after some time,
    # because what a busy server queues would be lost with it.
    client = Client(access.url, timeout=PATIENCE, watchdog_intervall=PATIENCE)
    if access.user:
        client.set_user(access.user)
        client.set_password(access.password or "")
    if access.certificate and access.key:
        policy = getattr(security_policies, f"SecurityPolicy{access.policy}", None)
        if policy is None:
            raise ClearloopError(f"--policy {access.policy}: unknown; the usual one is Basic256Sha256")
        certificate, key = access.certificate.read_bytes(), access.key.read_bytes()
        client.application_uri = _application_uri(certificate) or client.application_uri
        parts = [CertProperties(one, "pem" if _is_pem(one) else "der") for one in (certificate, key)]
        await client.set_security(policy, parts[0], parts[1])
    await client.connect()
    return client


def _is_pem(content: bytes) -> bool:
    """Tell whether a certificate or key is in the text form, whatever its file is called."""
    return b"-----BEGIN" in content


def _application_uri(content: bytes) -> str | None:
    """Return the name of the application in a certificate, which a server compares with ours."""
    from cryptography import x509

    load = x509.load_pem_x509_certificate if _is_pem(content) else x509.load_der_x509_certificate
    with suppress(x509.ExtensionNotFound):
        names = load(content).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return next(iter(names.get_values_for_type(x509.UniformResourceIdentifier)), None)
    return None


async def _write_value(client: "Client", node: str, value: float) -> None:
    from asyncua import ua

    place = client.get_node(node)
    kind = await place.read_data_type_as_variant_type()
    is_real = kind in (ua.VariantType.Float, ua.VariantType.Double)
    await place.write_value(ua.DataValue(ua.Variant(value if is_real else round(value), kind)))


class _Collector:
    """Puts the changes of single nodes together to samples."""

    def __init__(
        self, nodes: Mapping[str, str], trigger: str, put: Callable[[Sample | Notice], None]
    ) -> None:
        self.names: dict[Any, list[str]] = {}
        """the names of each node"""
        self._put, self._trigger = put, trigger
        self._changes: dict[str, deque[tuple[float, float]]] = {
            name: deque(maxlen=OpcuaFeed.WAITING) for name in nodes
        }
        self._due: deque[tuple[float, float]] = deque()  # the trigger's timestamps, and when they arrived

    def datachange_notification(self, node: Any, value: Any, data: Any) -> None:
        """Take a change; asyncua calls it."""
        whole = data.monitored_item.Value
        stamp = whole.SourceTimestamp or whole.ServerTimestamp or datetime.now(UTC)
        when = stamp.replace(tzinfo=UTC).timestamp()
        good = whole.StatusCode is None or whole.StatusCode.is_good()
        try:
            number = float(value) if good else math.nan
        except (TypeError, ValueError):
            number = math.nan
        for name in self.names[node.nodeid]:
            changes = self._changes[name]
            if not changes or when > changes[-1][0]:
                changes.append((when, number))
                if name == self._trigger:
                    self._due.append((when, time.monotonic()))
        self.settle(math.inf)

    def settle(self, patience: float) -> None:
        """Give the samples that are complete: every node is as new, or has had its time to become so.

        Args:
            patience: Seconds that a node may be later than the trigger; a node that does not change is not
                waited for any longer.
        """
        while self._due:
            when, arrived = self._due[0]
            fresh = all(changes and changes[-1][0] >= when for changes in self._changes.values())
            if not fresh and time.monotonic() - arrived < patience:
                return
            self._due.popleft()
            values = {name: self._at(name, when) for name in self._changes if name != TRIGGER}
            known = {name: value for name, value in values.items() if value is not None}
            if len(known) == len(values):  # at first, a node may have only a value of a later time
                self._put(Sample(when, known))

    def _at(self, name: str, when: float) -> float | None:
        """Return the value of a node at a time, and forget what came before; None if it is not known."""
        changes = self._changes[name]
        while len(changes) > 1 and changes[1][0] <= when:
            changes.popleft()
        return changes[0][1] if changes and changes[0][0] <= when else None
