"""Compilation happens on first use, once for a machine."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from clearloop.kernels.compilation import _temporary

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


@pytest.mark.skipif(os.name == "nt", reason="users of POSIX")
def test_what_others_could_have_written_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = _temporary()
    assert mine == tmp_path / f"clearloop-{os.getuid()}" == _temporary()
    assert mine.stat().st_mode & 0o777 == 0o700
    mine.chmod(0o777)
    assert _temporary() != mine
    mine.rmdir()
    mine.symlink_to(tmp_path)
    assert _temporary() != mine
