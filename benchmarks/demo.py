"""The demo as a user runs it: the seconds of its phases, and the multiply-adds of its whole search."""

import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl

from clearloop.surrogate import Surrogate
from clearloop.task import Task


class Demo(NamedTuple):
    """What a demo took."""

    phases: dict[str, float]
    """seconds of each phase; what timing.csv does not name (examination, pages, figures) is the last"""
    steps: int
    """steps of the model that the search took"""
    multiply_adds: int
    """of the networks in one step"""

    @property
    def rate(self) -> float:
        """Multiply-adds in a second of the whole search, with its breeding and everything else."""
        return self.steps * self.multiply_adds / self.phases["search"]


def run_demo(budget: str = "quick") -> Demo:
    """Run `clearloop demo` in a folder that is deleted afterwards.

    Args:
        budget: As `clearloop demo --budget` takes it.
    """
    with TemporaryDirectory() as folder:
        out = Path(folder) / "demo"
        words = ["-m", "clearloop", "demo", "--budget", budget, "--out", str(out)]
        begin = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, capture_output=True)  # noqa: S603 - our own words
        total = time.perf_counter() - begin
        timing = pl.read_csv(out / "timing.csv")
        surrogate = Surrogate.load(out / "surrogate", Task.load("cartpole"))
    seconds = timing.group_by("phase", maintain_order=True).agg(pl.col("seconds").sum())
    phases = dict(seconds.iter_rows())
    networks = surrogate.dynamics[0]
    return Demo(
        phases={**phases, "the rest": total - sum(phases.values())},
        steps=int(timing["steps"].sum()),
        multiply_adds=sum(a * b for network in networks for a, b in pairwise(network.sizes)),
    )
