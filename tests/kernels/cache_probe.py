"""Run in an interpreter of its own: what the engine compiles on import and on a small job, as JSON."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

import clearloop.kernels
import clearloop.kernels.engine


def dispatchers() -> Iterator[Any]:
    for found in pkgutil.iter_modules(clearloop.kernels.__path__, "clearloop.kernels."):
        module = importlib.import_module(found.name)
        yield from (item for item in vars(module).values() if isinstance(item, Dispatcher))


def run_job() -> None:
    from clearloop.expression import parse
    from tests.kernels.rig import Rig

    rig = Rig(("x",), dtype=np.float32)
    policies = rig.programs([[parse("-x")]], limit=1.0)
    job = rig.job([[0.5], [2.0]], steps=3)
    rollout = clearloop.kernels.engine.roll_out(policies, rig.plant(["u"], ["-abs(x)"]), job)
    assert rollout.returns.shape == (1, 1, 2)


def main() -> None:
    imported = sum(len(d.signatures) for d in dispatchers())
    run_job()
    statistics = [d.stats for d in dispatchers()]
    hits = sum(sum(one.cache_hits.values()) for one in statistics)
    misses = sum(sum(one.cache_misses.values()) for one in statistics)
    print(json.dumps({"imported": imported, "hits": hits, "misses": misses}))


if __name__ == "__main__":
    main()
