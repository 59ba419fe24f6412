"""The cores of this machine: a process for each piece of work, with one thread, as many as there are cores.

Most of the work runs in kernels, which could share one process; but the searches around them are plain
Python, and two processes do twice as much of that.
"""

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from typing import Any

from clearloop.bench.engines import TRIES, Call, Engine, Failure, reason
from clearloop.kernels.engine import threads


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
