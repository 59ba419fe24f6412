"""What only a process of its own can show: exit codes, pipes, interruption."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-W", "error", "-m", "clearloop"]
posix = pytest.mark.skipif(os.name == "nt", reason="pipes and signals of POSIX")


def test_the_module_is_the_command(published: Path) -> None:
    script = Path(sys.executable).parent / "clearloop"
    arguments = ["show", str(published / "gprl.json")]
    one = subprocess.run([*COMMAND, *arguments], capture_output=True)
    two = subprocess.run([script, *arguments], capture_output=True)
    assert one.returncode == two.returncode == 0
    assert one.stdout == two.stdout
    assert b"force = 69.8*theta" in one.stdout
    assert one.stderr == two.stderr == b""


def test_compiling_is_announced_once_and_only_when_it_happens(published: Path, tmp_path: Path) -> None:
    arguments = ["evaluate", str(published / "gprl.json"), "--task", "cartpole", "--starts", "1"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, env=environment)
        for _ in range(2)
    )
    assert (
        first.stderr
        == "Compiling the engine for this machine; this takes some seconds and happens only once.\n"
    )
    assert second.stderr == ""
    assert first.stdout == second.stdout


def test_errors_leave_no_traceback() -> None:
    done = subprocess.run([*COMMAND, "show", "none.json"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: none.json: cannot be read: No such file or directory\n"


def test_output_is_utf8_whatever_the_locale_says(published: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run(
        [*COMMAND, "show", published / "gprl.json", "--task", "cartpole"],
        capture_output=True,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "-10 … 10 N" in done.stdout.decode()


@posix
def test_a_reader_that_goes_away_is_no_error(published: Path) -> None:
    """Both for what is written at once and for what is still in the buffer at the end."""
    for steps in ("3", "300"):
        reader, writer = os.pipe()
        os.close(reader)
        arguments = ["simulate", str(published / "none.json"), "--task", "cartpole", "--steps", steps]
        done = subprocess.run([*COMMAND, *arguments], stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        assert done.stderr == b""
        assert done.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_is_one_line(published: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        arguments = ["show", str(published / "none.json")]
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.stderr == "error: output: No space left on device\n"
    assert done.returncode == 2


# A test runner in the background may have told its children to ignore Ctrl-C.
LISTENING = """
import signal
from clearloop.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


@posix
def test_ctrl_c_ends_it_at_once_and_leaves_nothing(published: Path, tmp_path: Path) -> None:
    arguments = ["simulate", str(published / "pid.json"), "--task", "cartpole", "--steps", "1000000"]
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING, *arguments, "--out", tmp_path / "x.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CLEARLOOP_THREADS": "2"},
    )
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=3)  # it is at work
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert printed == ""
    assert errors.strip() == "interrupted"
    assert list(tmp_path.iterdir()) == []


@posix
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(closed: str, published: Path) -> None:
    shell = f'exec "$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", *COMMAND, "show", published / "gprl.json"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("force = 69.8*theta" in done.stdout) == (" >&-" not in f" {closed}")
