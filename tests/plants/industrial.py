"""The interpreter that has the Industrial Benchmark: `make test` makes it in `.venv/industrial`."""

import os
import sys
from pathlib import Path

import pytest

from clearloop.plants.cosimulation import INTERPRETER

MADE = Path(sys.prefix, "industrial", *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))


def benchmark_python() -> str:
    """Its path; skips where there is none, but not in CI."""
    found = os.environ.get(INTERPRETER) or (str(MADE) if MADE.exists() else None)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs the Industrial Benchmark: make test installs requirements/industrial.txt")
        pytest.skip("no interpreter with the Industrial Benchmark here")
    return found
