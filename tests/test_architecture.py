"""The shape of the package: what may import what, and how many files a thing passes."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import clearloop as cl
from clearloop.data import Batch
from clearloop.plants.exploration import make_batch
from clearloop.task import Task

SOURCE = Path(cl.__file__).parent
MOST_FILES, MOST_LINES, MOST_SHARED = 237, 600, 30


def _name(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(file): file for file in sorted(SOURCE.rglob("*.py"))}


def _imported(module: str) -> Iterator[str]:
    """The modules of the package that a module imports, those inside of functions included."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            yield from inner - {module} or {node.module}


def test_files_are_few_and_none_is_long() -> None:
    lengths = {name: len(file.read_text(encoding="utf-8").splitlines()) for name, file in MODULES.items()}
    assert len(lengths) <= MOST_FILES
    assert {name for name, lines in lengths.items() if lines > MOST_LINES} == set()


def test_few_modules_share_their_name() -> None:
    names = Counter(file.stem for file in MODULES.values() if file.stem != "__init__")
    assert sum(count for count in names.values() if count > 1) <= MOST_SHARED


def test_no_imports_go_in_a_circle() -> None:
    """Not even inside of functions. The package itself names all of its parts, and is left out."""
    graph = {name: {*_imported(name)} - {name, "clearloop"} for name in MODULES if name != "clearloop"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_imports_are_absolute() -> None:
    for name, file in MODULES.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), name


_TOUCH = "import clearloop as cl\nfor name in cl.__all__: getattr(cl, name)\n"
_IMPORT = f"import importlib\nfor name in {list(MODULES)!r}:\n    importlib.import_module(name)\n"
_LOOK = """
import inspect, sys
for name in cl.__all__:
    assert not inspect.ismodule(getattr(cl, name)), name
assert cl.export(cl.load(sys.argv[1]), to="python")
from clearloop.exports import lower
for name, module in list(sys.modules.items()):
    for public in getattr(module, "__all__", ()) if name.startswith("clearloop") else ():
        assert f"{name}.{public}" not in sys.modules, f"{name}.{public} is a module and a function"
"""


@pytest.mark.parametrize(
    "program", [_TOUCH + _IMPORT + _LOOK, _IMPORT + _TOUCH + _LOOK], ids=["names first", "modules first"]
)
def test_public_names_and_modules_do_not_hide_each_other(program: str) -> None:
    """Whichever comes first: every module, or every public name."""
    controller = Path(__file__).parents[1] / "examples" / "published" / "gprl.json"
    subprocess.run([sys.executable, "-c", program, controller], check=True)


def _files_run(package: str, work: Any) -> set[str]:
    """The files of a package whose functions run while some work is done."""
    folder, seen = SOURCE / package, set()

    def trace(frame: FrameType, _event: str, _arg: object) -> None:
        file = Path(frame.f_code.co_filename)
        if folder in file.parents and frame.f_code.co_name != "<module>":
            seen.add(file.relative_to(folder).as_posix())

    before = sys.getprofile()
    sys.setprofile(trace)
    try:
        work()
    finally:
        sys.setprofile(before)
    return seen


def test_reading_a_log_passes_few_files(tmp_path: Path) -> None:
    task = Task.load("cartpole")
    make_batch(task, size=100, rng=np.random.default_rng(0)).save(tmp_path / "log.csv")
    assert len(_files_run("data", lambda: Batch.load(tmp_path / "log.csv", task))) <= 6


def test_structured_text_passes_few_files() -> None:
    task = Task.load("cartpole")
    for kind in ("gprl", "lqr", "pid"):
        controller = cl.load(f"examples/published/{kind}.json").for_task(task)
        assert len(_files_run("exports", lambda it=controller: cl.export(it, to="st"))) <= 12


def test_the_page_names_every_file_and_every_layer() -> None:
    root = Path(__file__).parents[1]
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {Path(name).stem for text in re.findall(r"`([^`\n]+)`", page) for name in text.split(" ")}
    modules = {file.stem for file in MODULES.values()} - {"__init__", "__main__"}
    assert modules - named == set()
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert "```\n" + "\n".join(contracts[0]["layers"]) + "\n```" in page
