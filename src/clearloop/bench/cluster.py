"""A Dask cluster: one that is started here, or one that is given by its address."""

import os
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from clearloop.bench.engines import TRIES, Call, Engine, Failure, reason
from clearloop.errors import ClearloopError
from clearloop.kernels.engine import threads


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
                _work, *call, key=f"clearloop-{bench}-{key}", priority=-number, retries=TRIES - 1, pure=False
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


def _work(function: Any, arguments: tuple[Any, ...]) -> Any:
    """On the worker, which has as many threads as it has pieces of work."""
    os.environ["CLEARLOOP_THREADS"] = "1"
    return function(*arguments)
