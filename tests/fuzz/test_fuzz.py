"""A few hundred cases of the fuzzer, and the fuzzer itself: it makes a case again, and sees faults."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.fuzz import damage, running, seeds, words
from tests.fuzz.case import Case
from tests.fuzz.cases import FAMILIES, make_case
from tests.fuzz.running import COMPILING, CRASHED, MOST_MEMORY, Ended, faults

ROOT = Path(__file__).parents[2]
HERE = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="cases are forked, in memory of Linux")


@HERE
def test_a_few_hundred_cases_have_no_fault() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--cases", "250", "--seed", "18"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "250 cases with the seed 18: 0 kinds of faults" in done.stdout


@pytest.fixture(scope="module")
def good() -> seeds.Seeds:
    table = [["level", "pump"], *[["1.5", "2"]] * 30]
    kept = seeds.read_repository()
    folder = {"table.csv": b"a,b\n1,2\n"}
    logs = dict.fromkeys(seeds.TASKS, table)
    return seeds.Seeds(logs=logs, workbook=_zip(), archive=b"PAR1" * 9, bench=folder, shadow=folder, **kept)


def _zip() -> bytes:
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", '<c r="A1"><v>1</v></c>')
    return buffer.getvalue()


def test_a_case_is_made_again_from_its_number(good: seeds.Seeds) -> None:
    cases = [make_case(3, number, good) for number in range(1_500)]
    assert [make_case(3, number, good) for number in (1_499, 7)] == [cases[1_499], cases[7]]
    assert {case.family for case in cases} == set(FAMILIES)
    assert make_case(4, 7, good) != cases[7]


def test_documents_survive_their_way_through_toml(good: seeds.Seeds) -> None:
    import tomllib

    for document in good.tasks.values():
        assert tomllib.loads(damage.to_toml(document).decode()) == document


def test_formulas_of_the_grammar_are_often_right() -> None:
    import random

    from clearloop.errors import ClearloopError
    from clearloop.expression import parse

    right = 0
    for number in range(200):
        try:
            parse(words.formula(random.Random(number), ["theta", "rho"]))  # noqa: S311
            right += 1
        except ClearloopError:
            pass
    assert 60 < right < 195


def test_what_compiles_the_engine_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes long, and happens once on a machine."""
    ends = [Ended(0, "", f"{COMPILING}; this takes some seconds\n", 30.0, 0), Ended(0, "", "", 1.0, 0)]
    monkeypatch.setattr(running, "_run", lambda _, folder: ends.pop(0)._replace(out=folder.name))
    case = Case("task", ["tasks"], {"it.toml": b""})
    assert running.run_case(case, tmp_path / "case") == Ended(0, "case", "", 1.0, 0)
    assert not ends
    assert not list(tmp_path.iterdir())


def test_every_kernel_is_compiled_before_the_cases_are_forked() -> None:
    """In a case it would take of the case's time: much of it, where the machine is slow."""
    program = """
from tests.fuzz.running import compile_engine
from tests.kernels.cache_probe import dispatchers

compile_engine()
print(sorted((len(one.signatures), one.py_func.__name__) for one in set(dispatchers())))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[(1, '_run_any'), (1, 'filter_rows'), (2, 'roll_tiles')]", done.stderr


@HERE
def test_a_process_that_sleeps_is_not_at_work() -> None:
    """However little of a processor it has; what it started counts, too."""
    busy, idle = ("while True: pass", "import time; time.sleep(60)")
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    for program, works in ((busy, True), (idle, False), (parent, True)):
        process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
        try:
            while running.is_at_work(process.pid) is not works:
                assert process.poll() is None
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_searches_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole search of a built-in task takes long on a slow machine: one round is enough."""
    from clearloop import runs
    from clearloop.cli import bench, learn, model
    from clearloop.errors import ClearloopError

    trained = [(learn, "learn_model"), (model, "learn_model")]
    others = [(bench, "_carry_out"), (learn, "make_report"), (runs, "polite_interruption")]
    for module, name in (*trained, *others):
        monkeypatch.setattr(module, name, None)  # and back after the test
    running._prepare(Case("run", ["learn"], {}))
    for module, name in trained:
        with pytest.raises(ClearloopError, match="before a model is trained"):
            vars(module)[name]()
    bench._carry_out(SimpleNamespace(done=3, total=3), None)  # type: ignore[arg-type]
    with pytest.raises(ClearloopError, match="before a model is trained"):
        bench._carry_out(SimpleNamespace(done=2, total=3), None)  # type: ignore[arg-type]
    with runs.polite_interruption() as interruption:
        assert interruption.asked


GOOD = Ended(0, "", "", 1.0, 2**28)
LINE = "error: log.csv: no column 'theta'\n"
TRACEBACK = (
    'Traceback (most recent call last):\n  File "/x/src/clearloop/files.py", line 7, in f\nKeyError: 1\n'
)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (GOOD._replace(code=CRASHED, err=TRACEBACK), "traceback: KeyError: 1 [files.py:7]"),
        (GOOD._replace(code=2, err=TRACEBACK + LINE), "traceback"),
        (GOOD._replace(code=-24), "time: more than 20 s"),
        (GOOD._replace(seconds=21.0), "time: more than 20 s"),
        (GOOD._replace(code=-6), "signal 6"),
        (GOOD._replace(code=1), "exit code 1"),
        (GOOD._replace(memory=MOST_MEMORY + 1), "memory: 2,048 MiB"),
        (GOOD._replace(code=2, err="error: not enough memory for this\n"), "memory"),
        (GOOD._replace(err="/x/laws.py:77: RuntimeWarning: overflow\n"), "warning: laws.py: RuntimeWarning"),
        (GOOD._replace(code=2), "no single error line"),
        (GOOD._replace(code=2, err=LINE + LINE), "no single error line"),
        (GOOD._replace(code=2, err=LINE + "more\n"), "no single error line"),
        (GOOD._replace(code=2, err="error: " + "x" * 2_000 + "\n"), "an error line of 2007 characters"),
        (GOOD._replace(code=2, err="error: \x1b[31m\n"), "control characters"),
        (GOOD._replace(out='{"penalty": NaN}'), "prints no JSON"),
        (GOOD._replace(out="a\x9b2J\n"), "control character"),
        (GOOD._replace(err="Report  \u202ea\n"), "control character"),
    ],
)
def test_faults_are_seen(ended: Ended, said: str) -> None:
    assert said in " ".join(faults(Case("task", ["tasks", "it.toml", "--json"], {}), ended))


def test_a_good_end_has_no_fault() -> None:
    for case, ended in (
        (Case("task", ["tasks", "it.toml", "--json"], {}), GOOD._replace(out="{}")),
        (Case("task", ["tasks", "it.toml"], {}), GOOD._replace(code=2, err="Card  0%\n" + LINE)),
        (Case("log", ["data", "check", "log.csv"], {}), GOOD._replace(code=1)),
    ):
        assert faults(case, ended) == []
