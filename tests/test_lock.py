"""The exact versions in `requirements/` fit the ranges of `pyproject.toml`, and name no place to get them."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>[^\\]+))? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")
FILES = ["demo", "dev"]
INDUSTRIAL = ["industrial-benchmark-python", "numpy", "scipy"]  # in an environment of its own


class Pin(NamedTuple):
    version: Version
    marker: Marker | None


def read_lock(name: str) -> dict[str, Pin]:
    """Read a file that holds nothing but comments, pins, and at least one hash for each pin."""
    pins: dict[str, Pin] = {}
    hashes = 1
    for line in (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if HASH.fullmatch(line):
            hashes += 1
            continue
        found = PIN.fullmatch(line)
        assert found, line
        assert hashes, line
        assert found["name"] not in pins, line
        pins[found["name"]] = Pin(
            Version(found["version"]), Marker(found["marker"]) if found["marker"] else None
        )
        hashes = 0
    assert hashes
    return pins


def group(name: str) -> list[Requirement]:
    """Read a dependency group, with the groups that it includes."""
    found = []
    for entry in PROJECT["dependency-groups"][name]:
        found += group(entry["include-group"]) if isinstance(entry, dict) else [Requirement(entry)]
    return found


def dependencies() -> list[Requirement]:
    return [Requirement(line) for line in PROJECT["project"]["dependencies"]]


@pytest.mark.parametrize(
    ("name", "least"), [("demo", len(dependencies())), ("dev", len(dependencies())), ("industrial", 2)]
)
def test_a_lock_holds_only_versions_and_hashes(name: str, least: int) -> None:
    pins = read_lock(name)
    assert len(pins) > least
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert not re.search(r"://|@|index|find-links|trusted-host", text)


@pytest.mark.parametrize(("name", "included"), [("demo", "build"), ("dev", "dev")])
def test_every_dependency_is_locked_within_its_range(name: str, included: str) -> None:
    pins = read_lock(name)
    for needed in dependencies() + group(included):
        pin = pins[canonicalize_name(needed.name)]
        assert pin.version in needed.specifier, needed
        assert pin.marker is None, needed


def test_the_industrial_benchmark_has_its_old_numpy() -> None:
    pins = read_lock("industrial")
    assert sorted(pins) == INDUSTRIAL
    assert pins["numpy"].version < Version("2")


def test_tests_run_with_the_versions_of_the_demo() -> None:
    """On the systems of the demo at least: a tool may need a package everywhere, colorama for example."""
    demo, dev = read_lock("demo"), read_lock("dev")
    assert {name: dev[name].version for name in demo} == {name: pin.version for name, pin in demo.items()}
    assert {name for name in demo if dev[name].marker not in (None, demo[name].marker)} == set()


def test_the_demo_needs_no_development_tools_and_nothing_needs_torch() -> None:
    tools = {canonicalize_name(tool.name) for tool in group("dev")}
    needed = {canonicalize_name(one.name) for one in dependencies() + group("build")}
    shared = {"packaging"}  # matplotlib reads versions with it
    assert (tools - needed - shared).isdisjoint(read_lock("demo"))
    for name in FILES:
        assert not [pin for pin in read_lock(name) if pin.startswith(("torch", "nvidia", "triton"))]


def test_the_package_itself_stays_on_ranges() -> None:
    operators = {range_.operator for needed in dependencies() for range_ in needed.specifier}
    assert operators <= {">=", "<"}


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    ("target", "files"),
    [
        ("demo", ["demo"]),
        ("reproduce", ["demo"]),
        *((target, [*FILES, "industrial"]) for target in ("test", "lint", "bench")),
    ],
)
def test_make_installs_only_what_is_locked(target: str, files: list[str]) -> None:
    plan = subprocess.run(
        ["make", "--dry-run", target, "VENV=none"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    installs = [line for line in plan.splitlines() if "pip" in line and " install " in line]
    locked = [line for line in installs if "--require-hashes" in line]
    assert [re.findall(r"requirements/(\w+)\.txt", line) for line in locked] == [[name] for name in files]
    (package,) = set(installs) - set(locked)
    assert package.endswith("--no-deps --no-build-isolation --editable .")
