"""`clearloop shadow`: what it says, and that it writes to no plant unless a person says so twice."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.runs.test_shadow import TOML, boiler, write_csv


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLEARLOOP_OPCUA_PASSWORD", raising=False)
    Path("boiler.toml").write_text(TOML, encoding="utf-8")
    law = {"clearloop": 1, "kind": "equation", "outputs": {"flame": "-2*heat"}}
    Path("law.json").write_text(json.dumps(law), encoding="utf-8")
    write_csv(Path("log.csv"), boiler(60, 1))
    return tmp_path


BESIDE = ("shadow", "law.json", "--task", "boiler.toml")


def test_it_says_what_it_saw_and_goes_on(run: Run, folder: Path) -> None:
    done = run(*BESIDE, "--csv", "log.csv", "--once", "--json")
    found = json.loads(done.out)
    assert (done.code, found["samples"], found["gaps"], found["guards"]) == (0, 60, 0, {})
    assert (folder / "shadow-law" / "shadow.html").exists()
    write_csv(folder / "log.csv", boiler(20, 2, first=70), head=False)
    done = run(*BESIDE, "--csv", "log.csv", "--once")
    assert done.code == 0
    assert "samples    80, 1 gaps" in done.out
    assert "Goes on after 60 samples" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_well_when_a_person_or_a_service_manager_ends_it(folder: Path, number: int) -> None:
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from clearloop.cli import main; main()"  # a test runner may have switched Ctrl-C off
    words = [sys.executable, "-c", program, *BESIDE, "--csv", "log.csv"]
    table = folder / "shadow-law" / "shadow.csv"
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 120
        while not table.exists() or table.read_text().count("\n") < 61:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, "stopped; the same command goes on" in err) == (130, True)
    assert "samples    60, 0 gaps" in out
    assert (folder / "shadow-law" / "shadow.html").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give one source: --opcua URL or --csv FILE"),
        (("--csv", "log.csv", "--opcua", "opc.tcp://plc"), "give one source"),
        (
            ("--opcua", "opc.tcp://plc", "--write", "ns=2;s=u"),
            "--write moves the plant: add --i-am-responsible",
        ),
        (("--opcua", "opc.tcp://plc", "--i-am-responsible"), "--i-am-responsible is only for --write NODE"),
        (
            ("--csv", "log.csv", "--write", "ns=2;s=u", "--i-am-responsible"),
            "--write needs --opcua: a CSV file cannot be written back to a plant",
        ),
        (("--opcua", "opc.tcp://plc"), "--opcua needs the nodes: add a table [opcua] to the task"),
        (("--opcua", "opc.tcp://plc", "--certificate", "c.pem"), "--certificate and --key belong together"),
        (("--opcua", "opc.tcp://plc", "--user", "me"), "--user me: set CLEARLOOP_OPCUA_PASSWORD"),
        (("--csv", "nothing.csv"), "nothing.csv: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    run: Run, folder: Path, words: tuple[str, ...], message: str
) -> None:
    done = run(*BESIDE, *words)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert message in done.err
    assert not (folder / "shadow-law" / "shadow.csv").exists() or words == ("--csv", "nothing.csv")
