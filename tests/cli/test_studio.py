"""`clearloop studio` as a process."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_process import LISTENING, posix

PLANTLESS = (
    'name = "log"\ndt = 1.0\ndiscount = 0.9\nhorizon = 5\n[states]\nx = {}\n'
    '[actions]\nu = { limits = [0, 1] }\n[reward]\nexpression = "-x"\n'
)


@posix
@pytest.mark.parametrize(("options", "task"), [((), "cartpole"), (("--task", "log.toml"), "log")])
def test_it_says_where_it_is_and_stops_on_ctrl_c(tmp_path: Path, options: tuple[str, ...], task: str) -> None:
    (tmp_path / "log.toml").write_text(PLANTLESS)
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING, "studio", "runs", "--port", "0", *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = re.fullmatch(r"Studio {5}(http://127\.0\.0\.1:\d+/)\n", process.stdout.readline())
        assert found is not None
        assert process.stdout.readline() == "Stop       Ctrl-C\n"
        with urllib.request.urlopen(f"{found[1]}api/state") as answer:  # noqa: S310 - our own
            assert f'"default_task":"{task}"' in answer.read().decode()
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert printed == ""
    assert errors.splitlines()[-1:] == ["Stopped"]  # before it, perhaps, that the engine is being compiled


def test_a_port_that_is_taken_is_one_line(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("studio", tmp_path, "--port", port)
    assert done.code == 2
    assert done.err.startswith(f"error: port {port}: ")
    assert done.err.endswith(": choose another with --port, or --port 0 for a free one\n")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("task", ["none", "none.toml"])
def test_so_is_a_task_that_there_is_not(run: Run, tmp_path: Path, task: str) -> None:
    done = run("studio", tmp_path, "--port", "0", "--task", task)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
