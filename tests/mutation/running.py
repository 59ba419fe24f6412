"""Runs pytest in forked processes: to learn which test reaches which line, and to try a mutant."""

import ast
import contextlib
import gc
import io
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NoReturn

import pytest

from tests.fuzz.running import is_at_work
from tests.mutation.mutants import SOURCE, Mutant, constant_name, mutated

ROOT = SOURCE.parents[1]
QUIET = [
    "-q",
    "-x",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "--hypothesis-seed=0",
    "--no-header",
    "--tb=line",
]
MOST_SECONDS = 60  # of processor time for one mutant: one that never ends is noticed, too
MOST_EXAMPLES = 30  # of a test of hypothesis; the suite itself tries more
MOST_WAITING = 60  # seconds in which one neither runs nor waits for a processor, before it is ended
KILLED, SURVIVED = 1, 0


def warm_up(tests: list[str]) -> None:
    """Import the package and all tests, and load the compiled engine; no thread may be started by this."""
    os.environ.update(
        CLEARLOOP_THREADS="1", POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"
    )
    os.chdir(ROOT)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp(prefix="mutation-")
    with contextlib.redirect_stdout(io.StringIO()):
        code = pytest.main([*QUIET, "--collect-only", *tests])
    if code:
        sys.exit("the tests cannot be collected")
    from clearloop.controllers import from_json
    from clearloop.evaluation import evaluate
    from clearloop.task import Task

    law = from_json('{"clearloop": 1, "kind": "equation", "outputs": {"force": "0"}}')
    evaluate(law, Task.load("cartpole"), starts=1)
    for module in ("jax", "optax", "polars", "sympy", "sklearn.ensemble", "matplotlib.pyplot", "control"):
        __import__(module)
    warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")


def apart(work: Callable[[], int]) -> int:
    """Call a function in a process of its own, within limits; return its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        _work_and_end(work)
    idle, seen, pause = 0.0, time.monotonic(), 0.002
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        now = time.monotonic()
        idle, seen = idle + (0.0 if is_at_work(child) else now - seen), now
        if idle > MOST_WAITING:
            os.kill(child, signal.SIGKILL)
        time.sleep(pause)
        pause = min(0.1, pause * 1.3)


def _work_and_end(work: Callable[[], int]) -> NoReturn:
    code = 70
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = work()
    finally:
        os._exit(code)


# Which test reaches which function.


class Tracing:
    """A plugin of pytest that notes for every test its time, and our functions that it enters."""

    def __init__(self, files: list[str]) -> None:
        self.files = {str(SOURCE / file): file for file in files}
        self.found: dict[str, dict[str, Any]] = {}
        self.entered: set[CodeType] = set()

    def _trace(self, frame: FrameType, _event: str, _: object) -> None:
        if frame.f_code.co_filename in self.files:
            self.entered.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.entered, begun = set(), time.process_time()
        sys.settrace(self._trace)
        threading.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            lines: dict[str, list[int]] = {}
            for code in self.entered:
                lines.setdefault(self.files[code.co_filename], []).append(code.co_firstlineno)
            self.found[item.nodeid] = {"seconds": time.process_time() - begun, "lines": lines}


class Brief:
    """A plugin of pytest: tests of hypothesis try fewer examples, and do not simplify what fails."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        from hypothesis import Phase, settings  # not before pytest, which wants to rewrite it

        for item in items:
            function = getattr(item, "obj", None)
            function = getattr(function, "__func__", function)
            used = getattr(function, "_hypothesis_internal_use_settings", None)
            if used is not None:
                brief = settings(
                    used,
                    max_examples=min(used.max_examples, MOST_EXAMPLES),
                    phases=(Phase.explicit, Phase.generate),
                    database=None,
                )
                vars(function)["_hypothesis_internal_use_settings"] = brief


def trace(test: str, files: list[str], result: Path) -> bool:
    """Run a file of tests, and write what its tests reach; whether all of them pass."""

    def work() -> int:
        plugin = Tracing(files)
        code = pytest.main([*QUIET, test], plugins=[plugin, Brief()])
        result.write_text(json.dumps(plugin.found))
        return int(code)

    return apart(work) == 0


# One mutant.


def try_mutant(mutant: Mutant, tests: list[str]) -> int:
    """Run these tests with the change: KILLED, SURVIVED, or the negative number of a signal."""

    def work() -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
        try:
            applied = apply(mutant)
        except Exception:  # a constant that cannot be computed: nobody could import the file
            return KILLED
        if not applied:
            return SURVIVED
        return int(pytest.main([*QUIET, *tests], plugins=[Brief()]))

    return apart(work)


def apply(mutant: Mutant) -> bool:
    """Give the functions of the imported package the code of the mutant; all who hold one see it.

    Returns:
        Whether anything was changed.
    """
    path = str(SOURCE / mutant.file)
    new = compile(mutated(mutant), path, "exec")
    codes = _codes(new)
    changed = 0
    for function in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
        old = function.__code__
        if old.co_filename == path and "<locals>" not in old.co_qualname:
            code = codes.get((old.co_qualname, old.co_firstlineno))
            if code is not None and not code.co_freevars:  # without the only `super()`, too
                code = code.replace(co_freevars=old.co_freevars)
            if code is not None and code.co_freevars == old.co_freevars and code != old:
                function.__code__ = code
                changed += 1
    return changed > 0 or _change_constant(mutant, path)


def _change_constant(mutant: Mutant, path: str) -> bool:
    """Give a constant of the module its new value, also where it was imported by its name."""
    for statement in mutated(mutant).body:
        if statement.lineno <= mutant.line <= (statement.end_lineno or 0) and (
            name := constant_name(statement)
        ):
            home = next(
                module for module in list(sys.modules.values()) if getattr(module, "__file__", "") == path
            )
            old, space = getattr(home, name), dict(vars(home))
            exec(compile(ast.Module([statement], []), path, "exec"), space)  # noqa: S102 - our own source
            for module in list(sys.modules.values()):
                if vars(module).get(name) is old:
                    setattr(module, name, space[name])
            return True
    return False


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    found: dict[tuple[str, int], CodeType] = {}
    waiting = [code]
    while waiting:
        for inner in waiting.pop().co_consts:
            if isinstance(inner, CodeType):
                found[inner.co_qualname, inner.co_firstlineno] = inner
                if "<locals>" not in inner.co_qualname:
                    waiting.append(inner)
    return found
