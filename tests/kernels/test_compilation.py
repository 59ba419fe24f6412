"""Compilation happens on first use, once for a machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def probe(cache: Path) -> dict[str, int]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "tests.kernels.cache_probe"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    first, second = probe(tmp_path), probe(tmp_path)
    assert first["imported"] == 0
    assert first["misses"] > 0
    assert second["misses"] == 0
    assert second["hits"] > 0
