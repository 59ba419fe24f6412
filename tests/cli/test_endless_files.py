"""A pipe in the place of a file would be waited for without end; every command refuses it in one line."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from tests.cli.conftest import Run
from tests.cli.test_hostile_files import is_one_line

VERSION_0_1 = Path(__file__).parents[1] / "version_0_1"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes and alarms of POSIX")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Path) -> Iterator[None]:
    """A folder with two runs and a controller; whoever waits for a pipe is woken, and the test fails."""

    def wake(_number: int, _frame: FrameType | None) -> None:
        pytest.fail("the command waits for the pipe")

    monkeypatch.chdir(tmp_path)
    shutil.copytree(VERSION_0_1 / "finished", "run")
    shutil.copytree(VERSION_0_1 / "interrupted", "interrupted")
    shutil.copy(published / "gprl.json", "gprl.json")
    before = signal.signal(signal.SIGALRM, wake)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


EVALUATE = "evaluate gprl.json --task cartpole --starts"
RESUME = "learn cartpole --out interrupted --resume"


@pytest.mark.parametrize(
    ("pipe", "command"),
    [
        ("task.toml", "tasks task.toml"),
        ("task.toml", "learn task.toml --out new"),
        ("gprl.json", f"{EVALUATE} 2"),
        ("gprl.json", "export gprl.json --to c --task cartpole"),
        ("starts.csv", f"{EVALUATE} starts.csv"),
        ("log.csv", "data check log.csv --task cartpole"),
        ("log.parquet", "learn cartpole --data log.parquet --out new"),
        ("run/run.json", "show run"),
        ("run/front.csv", "show run"),
        ("run/judged.csv", "show run"),
        ("run/trust.csv", "show run"),
        ("run/published.csv", "show run"),
        ("run/batch.parquet", "report run"),
        ("run/controllers/001.json", "evaluate 001 --run run --on model"),
        ("run/surrogate/surrogate.json", "evaluate gprl.json --run run --on model"),
        ("run/surrogate/surrogate.safetensors", "evaluate gprl.json --run run --on model"),
        ("interrupted/quality.json", RESUME),
        ("interrupted/progress.csv", RESUME),
        ("interrupted/timing.csv", RESUME),
        ("interrupted/checkpoint/gprl.safetensors", RESUME),
    ],
)
def test_a_pipe_is_refused_in_one_line(run: Run, pipe: str, command: str) -> None:
    Path(pipe).unlink(missing_ok=True)
    os.mkfifo(pipe)
    done = run(*command.split())
    last = done.err.splitlines()[-1]
    assert f"{pipe}: cannot be read: a device or a pipe may never end" in last, done
    assert is_one_line(done._replace(out="", err=f"{last}\n")), done
    assert done.err == f"{last}\n" or command == RESUME  # which says first where it goes on


def test_a_device_is_refused_in_one_line(run: Run) -> None:
    for device in ("zero", "null", "urandom", "tty"):
        for command in ("show /dev/{}", "tasks /dev/{}", f"{EVALUATE} {{}}.csv"):
            Path(f"{device}.csv").unlink(missing_ok=True)
            Path(f"{device}.csv").symlink_to(f"/dev/{device}")
            done = run(*command.format(device).split())
            assert is_one_line(done), (device, command, done)
