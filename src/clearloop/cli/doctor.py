"""The command `doctor` says what clearloop finds on this machine, and what is missing for what."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import clearloop
from clearloop.cli.options import Json, print_json
from clearloop.cli.terminal import echo, print_table
from clearloop.errors import ClearloopError

# What is called by name: the purpose, and how to get it.
_PROGRAMS = {
    ("cc", "gcc", "clang"): ("verify --to c", "a C compiler, such as gcc, of the system"),
    ("node",): ("verify --to javascript", "Node.js, https://nodejs.org"),
    # Reports, cards and the studio open in any browser; the tests need this one.
    ("chromium", "chromium-browser", "google-chrome"): ("make test", "Chromium, of the system"),
}
# Packages of the extras, with the purpose of each.
_EXTRAS = {
    "excel": ("fastexcel", "logs in Excel workbooks"),
    "minari": ("minari", "Minari datasets as logs"),
    "dask": ("distributed", "bench --engine dask"),
    "fmu": ("fmpy", "FMUs: plants, and verify --to fmu"),
    "opcua": ("asyncua", "shadow --opcua"),
    "bench": ("torch", "the peers of make bench"),
}


class Finding(NamedTuple):
    """One thing that clearloop uses."""

    name: str
    found: str | None
    """the version or the place; None if it is missing"""
    purpose: str
    remedy: str | None = None
    """how to get what is missing"""


def doctor(as_json: Json = False) -> None:
    """Say what clearloop finds on this machine, and what is missing for what.

    Nothing of what may be missing is needed to learn controllers and to export them. Attach the output when
    you report a fault.

    Example: clearloop doctor
    """
    findings = list(_examine())
    if as_json:
        print_json([finding._asdict() for finding in findings])
        return
    print_table(
        ("what", "needed for", "found"),
        [(it.name, it.purpose, it.found or "missing") for it in findings],
    )
    missing = [it for it in findings if it.found is None]
    echo()
    for finding in missing:
        echo(f"For {finding.purpose}: {finding.remedy}")
    if not missing:
        echo("Nothing is missing.")


def _examine() -> Iterator[Finding]:
    yield Finding("clearloop", clearloop.__version__, "everything")
    yield Finding("Python", platform.python_version(), "everything")
    for name in ("numpy", "numba", "jax", "scipy", "polars"):
        yield Finding(name, _version(name), "everything", f"pip install {name}")
    yield Finding("processor", f"{_cores()} cores, {platform.machine()}", "searches use all of them")
    yield _cache()
    for names, (purpose, remedy) in _PROGRAMS.items():
        place = next(filter(None, map(shutil.which, names)), None)
        yield Finding(Path(place).name if place else names[0], place, purpose, remedy)
    yield _benchmark()
    for extra, (name, purpose) in _EXTRAS.items():
        yield Finding(name, _version(name), purpose, f'pip install "clearloop[{extra}]"')


def _benchmark() -> Finding:
    from clearloop.plants.cosimulation import IndustrialBenchmark

    name, purpose = "industrial_benchmark_python", "the plant of the task industrial"
    try:
        with IndustrialBenchmark() as found:
            return Finding(name, found.interpreter, purpose)
    except ClearloopError as error:
        return Finding(name, None, purpose, str(error))


def _cache() -> Finding:
    from clearloop.kernels.compilation import CACHE_FOLDER

    folder = Path(CACHE_FOLDER)
    kept = folder.is_dir() and any(folder.rglob("*.nbi"))
    state = "compiled" if kept else "empty: the first search compiles for some seconds"
    return Finding("engine", f"{folder} ({state})", "rollouts")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
