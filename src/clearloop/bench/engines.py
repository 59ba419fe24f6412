"""Where the work of a bench is done: here, in a process for each piece, or on a Dask cluster.

A piece whose worker dies, or that fails, is tried again; after three times it is given up, and the rest goes
on. What comes out does not depend on the engine.
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

TRIES = 3


class Call(NamedTuple):
    """A function of a module, and its arguments: all of it can be sent elsewhere."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Failure(NamedTuple):
    reason: str
    """of the last try, in one line"""


class Engine(ABC):
    @abstractmethod
    def run(self, calls: Mapping[str, Call]) -> Iterator[tuple[str, Any]]:
        """The results, or `Failure`s, with their keys, as they come. The first calls are begun first."""

    @abstractmethod
    def close(self) -> None:
        """Stop what is still being done."""


def reason(error: BaseException) -> str:
    """In one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# The cores of this machine: a process for each piece of work, with one thread, as many as there are cores.
#
# Most of the work runs in kernels, which could share one process; but the searches around them are plain
# Python, and two processes do twice as much of that.


class Local(Engine):
    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or threads()
        self._context = get_context("spawn")  # a fork would copy the kernels' threads in the middle of work
        self._running: dict[Connection, tuple[str, Any]] = {}

    def run(self, calls: Mapping[str, Call]) -> Iterator[tuple[str, Any]]:
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
        for end, (_, process) in self._running.items():
            process.kill()
            process.join()
            end.close()
        self._running.clear()


def _work(end: Connection, call: Call) -> None:
    """In the process: answer, and end; or end at once when nobody waits for the answer any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who waits
    os.environ["CLEARLOOP_THREADS"] = "1"
    threading.Thread(target=_end_with, args=(end,), daemon=True).start()
    try:
        outcome = call.function(*call.arguments)
    except Exception as error:  # whatever it is, the rest of the bench goes on
        outcome = Failure(reason(error))
    end.send(outcome)


def _end_with(end: Connection) -> None:
    try:
        end.recv()  # nothing is ever sent
    except (EOFError, OSError):
        os._exit(1)


# A Dask cluster: one that is started here, or one that is given by its address.


class Dask(Engine):
    """Dask itself gives a dead worker's work to another one."""

    def __init__(self, address: str = "", workers: int | None = None) -> None:
        """No address: a cluster of processes with one thread each, as many as there are cores."""
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
        from distributed import as_completed

        bench = uuid4().hex  # a scheduler may serve several, and gives the same keys the same results
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
        self.client.close()
        if self._cluster is not None:
            self._cluster.close()


def _work_remotely(function: Any, arguments: tuple[Any, ...]) -> Any:
    """On the worker, which has as many threads as it has pieces of work."""
    os.environ["CLEARLOOP_THREADS"] = "1"
    return function(*arguments)
