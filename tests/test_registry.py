"""What other packages add by entry points, and what becomes of packages that are broken."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clearloop.errors import ClearloopError, ClearloopWarning
from clearloop.registry import METHODS, Registry

GROUP = "clearloop.tests"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a package with entry points, and perhaps a module, where Python finds it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(package: str, points: str, module: str = "") -> None:
        folder = tmp_path / f"{package}-2.1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.1\n")
        (folder / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
        (tmp_path / f"{package}.py").write_text(module)
        monkeypatch.delitem(sys.modules, package, raising=False)
        importlib.invalidate_caches()

    return put


def registry() -> Registry:
    places = {"lqr": "clearloop.methods.lqr:LQR"}
    return Registry("method", GROUP, "clearloop.methods.method:Method", places)


GOOD = """
from dataclasses import dataclass
from clearloop.methods.lqr import LQR

@dataclass(frozen=True, kw_only=True)
class Mine(LQR):
    name = "mine"
"""


def test_a_method_of_another_package_stands_after_the_built_in_ones(install: Install) -> None:
    install("acme", "mine = acme:Mine", GOOD)
    found = registry()
    assert list(found) == ["lqr", "mine"]
    assert (len(found), "mine" in found, "acme" in sys.modules) == (2, True, False)  # nothing is imported
    assert found.find("mine").__name__ == "Mine"
    assert [method.name for method in found.working()] == ["lqr", "mine"]


def test_a_built_in_name_means_the_built_in_method(install: Install) -> None:
    install("acme", "lqr = acme:Mine", GOOD)
    found = registry()
    message = "the method 'lqr' of the package acme 2.1 is not used: clearloop has one of this name"
    with pytest.warns(ClearloopWarning, match=message):
        assert found.find("lqr").__module__ == "clearloop.methods.lqr"
    assert list(found) == ["lqr"]


@pytest.mark.parametrize(
    ("points", "module", "reason"),
    [
        ("mine = acme:Mine", "import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("mine = acme:Mine", "1 / 0", "ZeroDivisionError: division by zero"),
        ("mine = acme:Mine", "", "AttributeError: module 'acme' has no attribute 'Mine'"),
        ("mine = not a place", "", "Error: "),  # which one depends on the version of importlib.metadata
        ("mine = acme:Mine", "Mine = 3", "is not a class that derives from clearloop.methods.method.Method"),
        ("mine = acme:Mine", GOOD.replace('"mine"', '"other"'), "it calls itself 'other': it needs the name"),
        ("My Own = acme:Mine", GOOD.replace('"mine"', '"My Own"'), "in small letters, digits and dashes"),
        ("mine = acme:Mine", GOOD + "    needed: int\n", "missing 1 required keyword-only argument"),
        (
            "mine = acme:Mine",
            "from clearloop.methods import Method\nclass Mine(Method):\n    name = 'mine'",
            "Mine does not define its title",
        ),
        (
            "mine = acme:Mine",
            "from clearloop.methods import Method\nclass Mine(Method):\n    name = title = 'mine'",
            "TypeError: Can't instantiate abstract class Mine",
        ),
    ],
)
def test_a_broken_package_is_named_in_one_line(
    install: Install, points: str, module: str, reason: str
) -> None:
    install("acme", points, module)
    found, name = registry(), points.partition(" = ")[0]
    with pytest.raises(ClearloopError) as error:
        found.find(name)
    assert str(error.value).startswith(f"the method '{name}' of the package acme 2.1 cannot be used: ")
    assert reason in str(error.value)
    with pytest.warns(ClearloopWarning, match="of the package acme 2.1 cannot be used"):
        assert [method.name for method in found.working()] == ["lqr"]


def test_two_packages_with_the_same_name(install: Install) -> None:
    install("acme", "mine = acme:Mine", GOOD)
    install("other", "mine = other:Mine", GOOD)
    with pytest.raises(ClearloopError, match=r"of the packages (acme|other) 2.1, .+ 2.1: only one of these"):
        registry().find("mine")


def test_damaged_metadata_leave_the_built_in_ones(install: Install) -> None:
    install("acme", "nonsense")
    with pytest.warns(ClearloopWarning, match="methods of other packages are left out: an entry_points.txt"):
        assert list(registry()) == ["lqr"]


def test_the_program_says_it_in_one_line(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "GROUP", "clearloop.methods")
    install("acme", "broken = acme:Mine\nlqr = acme:Mine", "import nowhere")
    text = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from clearloop.cli import main; main()"

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", text, *words], capture_output=True, text=True)

    done = call("learn", "cartpole", "--method", "broken", "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert done.stderr == (
        "error: the method 'broken' of the package acme 2.1 cannot be used: "
        "ModuleNotFoundError: No module named 'nowhere'\n"
    )
    done = call(
        "learn", "cartpole", "--method", "lqr", "--set", "lqr.turbo=1", "--out", str(tmp_path / "run")
    )
    warning, error = done.stderr.splitlines()
    assert warning.startswith("warning: the method 'lqr' of the package acme 2.1 is not used")
    assert error.startswith("error: --set lqr.turbo=1: ")


def test_help_imports_no_method() -> None:
    text = (
        "import sys, clearloop.cli.program\n"
        "assert not {'numpy', 'clearloop.methods', 'clearloop.exports'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_a_test_may_add_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(METHODS, "mine", METHODS["lqr"])
        assert list(METHODS)[-1] == "mine"
    assert "mine" not in METHODS
