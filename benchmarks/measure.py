"""Timing on machines that others use too: the best of interleaved repetitions, and how they spread."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

Work = Callable[[], Any]


@dataclass(frozen=True)
class Timing:
    best: float
    """seconds"""
    median: float

    @property
    def noise(self) -> float:
        """How much slower the typical repetition was than the best."""
        return self.median / self.best - 1


def measure(works: Mapping[str, Work], repetitions: int) -> dict[str, Timing]:
    """Each once to warm up, then all in turn, so that a busy spell hits all alike."""
    for work in works.values():
        work()
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repetitions):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - begin)
    return {name: Timing(min(times), sorted(times)[len(times) // 2]) for name, times in seconds.items()}


def on_all_cores(work: Work, cores: int) -> Work:
    """The same work on every core at once."""
    pool = ThreadPoolExecutor(cores)

    def run() -> None:
        for future in [pool.submit(work) for _ in range(cores)]:
            future.result()

    return run
