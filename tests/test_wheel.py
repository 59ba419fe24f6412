"""The wheel alone is enough: it is built, installed in a fresh environment, and runs the demo from there."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import clearloop

ROOT = Path(__file__).parents[1]
SOURCE = Path(clearloop.__file__).parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--no-index", "--no-build-isolation", "--wheel-dir", folder, ROOT,
        ],
        check=True,
    )  # fmt: skip
    (file,) = folder.glob("clearloop-*.whl")
    return file


def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    files = [file for file in SOURCE.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert {file.suffix for file in files} >= {".py", ".toml", ".json", ".html", ".js", ".css"}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == {file.relative_to(SOURCE.parent).as_posix(): file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment that has the wheel, and borrows all else from the one that runs the tests."""
    home = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    binaries = home / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "--python", binaries / "python", "--disable-pip-version-check",
            "install", "--quiet", "--no-deps", "--no-index", wheel,
        ],
        check=True,
    )  # fmt: skip
    (site,) = home.rglob("site-packages")
    # Folders named by a .pth file come last, and their own .pth files are not read: neither this
    # checkout nor what the outer environment has installed of it can stand before the wheel.
    (site / "borrowed.pth").write_text(
        "\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    )
    return binaries


LOOK = """
import json, clearloop, importlib.metadata, pathlib
from clearloop.published import CARTPOLE
from clearloop.task import Task
CARTPOLE[0].load(), Task.load("cartpole")
print(json.dumps([clearloop.__file__, importlib.metadata.version("clearloop")]))
"""


def test_the_demo_runs_from_the_wheel(fresh: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    looked = subprocess.run(
        [fresh / "python", "-c", LOOK], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert looked.returncode == 0, looked.stderr
    place, version = json.loads(looked.stdout)
    assert Path(place).is_relative_to(fresh.parent)
    assert version == clearloop.__version__

    done = subprocess.run(
        [fresh / "clearloop", "demo", "--out", "run", "--budget", "1000"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Pick" in done.stdout
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left >= {"run.json", "front.csv", "report.html", "model.png", "trajectories.png"}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "finished"
