"""The command `doctor`, and completion in the shell."""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from clearloop.cli import doctor
from tests.cli.conftest import Run


def test_it_lists_what_is_found(run: Run) -> None:
    done = run("doctor", "--json")
    assert done.code == 0
    found = {row["name"]: row for row in json.loads(done.out)}
    assert found["Python"]["found"] == ".".join(map(str, sys.version_info[:3]))
    assert found["fmpy"]["purpose"].startswith("FMUs")
    assert "kernels-" in found["engine"]["found"]
    assert found.keys() >= {"node", "processor"}
    assert {"chromium", "chromium-browser", "google-chrome"} & found.keys()


def test_it_says_what_is_missing_for_what(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(doctor, "version", missing)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    done = run("doctor")
    assert done.code == 0
    assert 'For shadow --opcua: pip install "clearloop[opcua]"' in done.out
    assert "For verify --to javascript: Node.js, https://nodejs.org" in done.out
    assert "For make test: Chromium" in done.out


def test_the_shell_completes_commands() -> None:
    environment = os.environ | {
        "_CLEARLOOP_COMPLETE": "complete_bash",
        "COMP_WORDS": "clearloop ev",
        "COMP_CWORD": "1",
    }
    program = [sys.executable, "-m", "clearloop"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["evaluate"]
