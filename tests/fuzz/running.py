"""Runs one case in a process of its own, forked from one that has loaded all, and judges its end."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import psutil

from tests.fuzz.case import Case
from tests.fuzz.damage import write_file

MOST_SECONDS = 20  # of processor time
MOST_SECONDS_OF_A_SEARCH = 60  # a model is learned, searched on and judged; also until any case is ended
MOST_MEMORY = 2 * 1024**3  # bytes that are resident
MOST_WAITING = 60  # seconds in which a case neither runs nor waits for a processor, before it is ended
LONGEST_LINE = 1_600  # characters of an error
EXPLAINED = {(1, "verify"), (1, "data"), (130, "learn")}
"""Exit codes other than 0 and 2: code that differs, data with problems, a search that was interrupted."""
COMPILING = "Compiling the engine for this machine"
_WILD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # what commands a terminal
CRASHED = 70  # an exception came out of the program


class Ended(NamedTuple):
    """How a case ended."""

    code: int  # negative: the signal
    out: str
    err: str
    seconds: float  # of processor time
    memory: int  # bytes


def warm_up() -> None:
    """Import and compile what cases need, without starting a thread: a thread would be lost by a fork."""
    os.environ.update(
        CLEARLOOP_THREADS="1", COLUMNS="80", POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1", MPLBACKEND="agg",
        XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    )  # fmt: skip
    import importlib

    for module in (
        "fastexcel", "jax", "matplotlib.pyplot", "optax", "polars", "scipy.optimize", "scipy.stats",
        "sklearn.ensemble", "sklearn.linear_model", "sympy", "typst", "xlsxwriter",
        "clearloop.bench.engines", "clearloop.cli.program", "clearloop.data", "clearloop.diagnosis",
        "clearloop.explanation", "clearloop.exports", "clearloop.figures.model", "clearloop.methods",
        "clearloop.pages.card", "clearloop.pages.report", "clearloop.refining", "clearloop.runs",
        "clearloop.surrogate", "clearloop.verification", "clearloop.data.drafting", "clearloop.data.checks",
        "clearloop.plants.exploration",
    ):  # fmt: skip
        importlib.import_module(module)
    compile_engine()
    warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")


def compile_engine() -> None:
    """Run every kernel in every precision: what is compiled here is compiled in all forked processes."""
    import numpy as np

    from clearloop.controllers import from_json
    from clearloop.controllers.encoding import encode
    from clearloop.kernels.engine import roll_out
    from clearloop.plants.plant import lower_plant
    from clearloop.plants.scenarios import Scenarios
    from clearloop.programs import derive_after, derive_rows
    from clearloop.task import Task

    task = Task.load("cartpole")
    law = from_json('{"clearloop": 1, "kind": "equation", "outputs": {"force": "0"}}').for_task(task)
    for dtype in (np.float64, np.float32):
        job = Scenarios.at(task, np.zeros((1, 4))).job(task, 1, dtype)
        roll_out(encode([law], task, history=1, dtype=dtype), lower_plant(task, dtype), job, workers=1)
    task = Task.load("tank")  # it has a derived state, and four rows in a window
    rows = np.zeros((3, len(task.states)))
    derive_rows(task, task.derived, rows, np.zeros((3, 1)), rows, np.zeros(3, np.int64), task.history)
    derive_after(task, np.zeros((3, len(task.states) * 2 + task.history * (len(task.states) + 1))))


def run_case(case: Case, folder: Path) -> Ended:
    """Write the files of a case into a new folder, run its command there, and remove the folder.

    A command that had to compile the engine, which happens once on a machine, is run again.
    """
    for _ in range(2):
        folder.mkdir(parents=True)
        try:
            write_case(case, folder)
            ended = _run(case, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if COMPILING not in ended.err:
            break
    return ended


def write_case(case: Case, folder: Path) -> None:
    """Write the files of a case."""
    for name, content in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_file(folder / name, content)


def _run(case: Case, folder: Path) -> Ended:
    with contextlib.ExitStack() as stack:
        streams = []
        for name in ("in", "out", "err"):
            number = os.memfd_create(name)
            stack.callback(os.close, number)
            streams.append(number)
        os.write(streams[0], case.typed)
        os.lseek(streams[0], 0, os.SEEK_SET)
        child = os.fork()
        if child == 0:
            _become(case, folder, streams)
        code, usage = _wait(child)
        out, err = (_content(number) for number in streams[1:])
        return Ended(code, out, err, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _content(number: int) -> str:
    size = os.lseek(number, 0, os.SEEK_END)
    return os.pread(number, min(size, 2**24), 0).decode("utf-8", "backslashreplace")


def _wait(child: int) -> tuple[int, Any]:
    """Wait for a process; end it and what it started if it needs too much memory, or does nothing."""
    idle, seen, pause = 0.0, time.monotonic(), 0.001
    while True:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)  # a compiler that it has started
            return os.waitstatus_to_exitcode(status), usage
        now = time.monotonic()
        idle, seen = idle + (0.0 if is_at_work(child) else now - seen), now
        if idle > MOST_WAITING or _resident(child) > 1.5 * MOST_MEMORY:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        time.sleep(pause)
        pause = min(0.05, pause * 1.3)


def is_at_work(process: int) -> bool:
    """Tell whether a process, or one that it started, runs, or waits for a processor or a disk."""
    if _has_thread_at_work(process):
        return True
    with contextlib.suppress(psutil.Error):
        return any(_has_thread_at_work(one.pid) for one in psutil.Process(process).children(recursive=True))
    return False


def _has_thread_at_work(process: int) -> bool:
    with contextlib.suppress(OSError):  # it has just ended
        for file in Path(f"/proc/{process}/task").glob("*/stat"):
            if file.read_text().rpartition(")")[2].split()[0] in "RD":
                return True
    return False


def _resident(process: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()
    return 0


def most_seconds(case: Case) -> int:
    """How much processor time a case may take."""
    return MOST_SECONDS if case.stopped else MOST_SECONDS_OF_A_SEARCH


def _become(case: Case, folder: Path, streams: list[int]) -> NoReturn:
    """In the new process: run the command, and end."""
    code = CRASHED
    try:
        os.setpgid(0, 0)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as Python opens them
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit = MOST_SECONDS_OF_A_SEARCH
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        warnings.simplefilter("default", RuntimeWarning, append=True)  # as if none had been shown yet
        _prepare(case)
        code = _call_program(case.arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _call_program(arguments: list[str]) -> int:
    from clearloop.cli import main

    sys.argv = ["clearloop", *arguments]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)


def _prepare(case: Case) -> None:
    if case.written:
        from tests.fuzz.writing import write_log

        write_log(*case.written)
    if case.stopped:
        from clearloop import runs
        from clearloop.cli import bench, learn, model
        from clearloop.errors import ClearloopError

        def stop(*_: object, **__: object) -> NoReturn:
            raise ClearloopError("stopped by the fuzzer, before a model is trained")

        for module, name in ((learn, "learn_model"), (model, "learn_model")):
            setattr(module, name, stop)
        vars(bench)["_carry_out"] = lambda course, _: None if course.done == course.total else stop()
        vars(learn)["make_report"] = lambda run: run.path / "report.html"  # `report` is a command, too
        vars(runs)["polite_interruption"] = _stopping


@contextlib.contextmanager
def _stopping() -> Iterator[Any]:
    """A search that has Ctrl-C before it begins: it reads its checkpoint, and stops after a round."""
    from clearloop.runs.learning import Interruption

    interruption = Interruption()
    interruption.asked = True
    yield interruption


def call_apart(work: Callable[[], None]) -> None:
    """Call a function in a process of its own."""
    child = os.fork()
    if child == 0:
        code = CRASHED
        try:
            work()
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit("a process of the fuzzer failed")


def faults(case: Case, ended: Ended) -> list[str]:
    """What is wrong with the way in which a case ended; nothing if all is well."""
    found = []
    if "Traceback (most recent call last)" in ended.err or ended.code == CRASHED:
        found.append(f"traceback: {_place(ended.err)}")
    elif ended.code == -signal.SIGXCPU or ended.seconds > most_seconds(case):
        found.append(f"time: more than {most_seconds(case)} s of processor time")
    elif ended.code < 0:
        found.append(f"signal {-ended.code}")
    elif ended.code not in (0, 2) and (ended.code, case.arguments[0]) not in EXPLAINED:
        found.append(f"exit code {ended.code}")
    if ended.memory > MOST_MEMORY or "not enough memory" in ended.err:
        found.append(f"memory: {ended.memory / 1024**2:,.0f} MiB")
    if warning := re.search(r"^(.*?):\d+: (\w*Warning: .*)$", ended.err, re.MULTILINE):
        found.append(f"warning: {Path(warning[1]).name}: {warning[2][:100]}")
    if wild := _WILD.search(ended.out + ended.err):
        found.append(f"control character {wild[0]!r} in what is printed")
    if ended.code == 2:
        found += _faults_of_the_line(ended)
    if ended.code == 0 and "--json" in case.arguments and "--help" not in case.arguments:
        found += _faults_of_the_document(ended.out)
    return found


def _place(err: str) -> str:
    """The last line of a traceback, and the last of our files in it."""
    ours = re.findall(r'File ".*/src/clearloop/([^"]+)", line (\d+)', err)
    last = err.strip().splitlines()[-1][:160] if err.strip() else ""
    return f"{last} [{':'.join(ours[-1]) if ours else 'not in our files'}]"


def _faults_of_the_line(ended: Ended) -> list[str]:
    lines = [line for line in ended.err.split("\n") if line.startswith("error: ")]
    if len(lines) != 1 or not ended.err.endswith(lines[-1] + "\n"):
        return [f"no single error line at the end: {ended.err[-100:]!r}"]
    if len(lines[0]) > LONGEST_LINE:
        return [f"an error line of {len(lines[0])} characters"]
    return [] if lines[0].isprintable() else ["an error line with control characters"]


def _faults_of_the_document(out: str) -> list[str]:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(constant)

    try:
        json.loads(out, parse_constant=refuse)
    except ValueError as error:
        return [f"--json prints no JSON: {error}"[:120]]
    return []
