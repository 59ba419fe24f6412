"""An engine does the work of a bench: in processes on this machine, or on a Dask cluster.

A piece of work that fails, or whose worker dies, is tried again. After three tries it is given up, and the
other pieces continue. The results do not depend on the engine.
"""

import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple
from uuid import uuid4

from clearloop.errors import ClearloopError
from clearloop.kernels.engine import threads

TRIES = 3  # of each piece of work


class Call(NamedTuple):
    """A function at the top level of a module and its arguments, which can be sent to another process."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Failure(NamedTuple):
    """The outcome of a piece of work that was given up."""

    reason: str
    """why the last try failed, in one line"""


class Engine(ABC):
    """An engine carries out calls at the same time."""

    @abstractmethod
    def run(self, calls: Mapping[str, Call]) -> Iterator[tuple[str, Any]]:
        """Carry out calls; the first ones are started first.

        Args:
            calls: The calls by their keys.

        Yields:
            The key of a call and its result, or a `Failure`, as soon as it is there.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop all work that is not finished."""


def reason(error: BaseException) -> str:
    """Describe an error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Local(Engine):
    """The cores of this machine: each piece of work has a process with one thread.

    Most of the work runs in kernels, which could share one process. But the searches around them are plain
    Python, of which two processes do twice as much.
    """

    def __init__(self, workers: int | None = None) -> None:
        """Prepare the engine; `workers` is the number of processes, that of the cores if not given."""
        self.workers = workers or threads()
        self._context = get_context("spawn")  # a fork would copy threads of the kernels while they work
        self._running: dict[Connection, tuple[str, Any]] = {}

    def run(self, calls: Mapping[str, Call]) -> Iterator[tuple[str, Any]]:
        """Carry out calls; see `Engine.run`."""
        waiting, tries = list(calls), dict.fromkeys(calls, 0)
        while waiting or self._running:
            while waiting and len(self._running) < self.workers:
                key = waiting.pop(0)
                tries[key] += 1
                self._start(key, calls[key])
            for end in connection.wait(list(self._running)):
                key, outcome = self._finish(end)  # type: ignore[arg-type]  # it waits for sockets as well
                if isinstance(outcome, Failure) and tries[key] < TRIES:
                    waiting.insert(0, key)
                else:
                    yield key, outcome

    def _start(self, key: str, call: Call) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, call), name=key, daemon=True)
        process.start()
        theirs.close()
        self._running[ours] = key, process

    def _finish(self, end: Connection) -> tuple[str, Any]:
        key, process = self._running.pop(end)
        try:
            outcome = end.recv()
        except (EOFError, OSError):  # it died, before or while it answered
            process.join()
            outcome = Failure(f"its process died, with exit code {process.exitcode}")
        end.close()
        process.join()
        return key, outcome

    def close(self) -> None:
        """Kill the processes that are still at work."""
        for end, (_, process) in self._running.items():
            process.kill()
            process.join()
            end.close()
        self._running.clear()


def _work(end: Connection, call: Call) -> None:
    """Carry out a call in a worker process, and send its outcome; exit at once if the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    os.environ["CLEARLOOP_THREADS"] = "1"
    threading.Thread(target=_end_with, args=(end,), daemon=True).start()
    try:
        outcome = call.function(*call.arguments)
    except Exception as error:  # whatever it is, the other pieces of work continue
        outcome = Failure(reason(error))
    end.send(outcome)


def _end_with(end: Connection) -> None:
    try:
        end.recv()  # nothing is ever sent: this returns only when the parent is gone
    except (EOFError, OSError):
        os._exit(1)


class Dask(Engine):
    """A Dask cluster. Dask itself gives the work of a dead worker to another one."""

    def __init__(self, address: str = "", workers: int | None = None) -> None:
        """Connect to a cluster, or start one on this machine.

        Args:
            address: The address of a scheduler; if empty, a cluster of processes with one thread each starts.
            workers: The number of these processes; that of the cores if not given.

        Raises:
            ClearloopError: Dask is not installed, or no scheduler answers.
        """
        try:
            import distributed
        except ImportError as error:
            raise ClearloopError(
                "--engine dask: Dask is not installed: pip install 'clearloop[dask]'"
            ) from error
        self._cluster: Any = None
        if not address:
            self._cluster = distributed.LocalCluster(
                n_workers=workers or threads(),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            )
        try:
            self.client: Any = distributed.Client(address or self._cluster, timeout="5s")
        except (OSError, ValueError) as error:
            raise ClearloopError(f"--engine dask:{address}: no scheduler answers there: {error}") from error

    def run(self, calls: Mapping[str, Call]) -> Iterator[tuple[str, Any]]:
        """Carry out calls; see `Engine.run`."""
        from distributed import as_completed

        bench = uuid4().hex  # a scheduler that serves several benches returns one result for equal keys
        futures = {
            self.client.submit(
                _work_remotely,
                *call,
                key=f"clearloop-{bench}-{key}",
                priority=-number,
                retries=TRIES - 1,
                pure=False,
            ): key
            for number, (key, call) in enumerate(calls.items())
        }
        for future in as_completed(futures):
            error = future.exception()
            yield futures[future], future.result() if error is None else Failure(reason(error))

    def close(self) -> None:
        """Leave the cluster; stop it if it was started here."""
        self.client.close()
        if self._cluster is not None:
            self._cluster.close()


def _work_remotely(function: Any, arguments: tuple[Any, ...]) -> Any:
    os.environ["CLEARLOOP_THREADS"] = "1"  # a worker has as many threads as it has pieces of work
    return function(*arguments)
