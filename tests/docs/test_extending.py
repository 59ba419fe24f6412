"""The packages of the page on extensions are installed and used, as others would do it."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_pages import ROOT, blocks
from tests.runs.guessing import PUSHER

PAGE = ROOT / "docs" / "extending.md"
FILES = dict(
    re.findall(
        r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
)
GPRL = ROOT / "examples" / "published" / "gprl.json"


def install(project: dict[str, str], site: Path) -> None:
    """As pip does it, which would need the network for its build tools."""
    about = tomllib.loads(project.pop("pyproject.toml"))["project"]
    assert about["dependencies"] == ["clearloop"]
    for name, text in project.items():
        (site / name).write_text(text, encoding="utf-8")
    folder = site / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    )
    points = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in group_points.items())
        for group, group_points in about["entry-points"].items()
    ]
    (folder / "entry_points.txt").write_text("\n".join(points))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages: those of the page."""
    folder = tmp_path_factory.mktemp("site")
    for name in sorted({Path(file).parts[0] for file in FILES}):
        install({Path(file).name: text for file, text in FILES.items() if file.startswith(name)}, folder)
    return folder


@pytest.fixture
def call(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a program in a folder with a small task, where the packages are installed."""
    (tmp_path / "pusher.toml").write_text(PUSHER)
    monkeypatch.setenv("PYTHONPATH", f"{site}:{ROOT / 'src'}:{ROOT}")
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: object, program: str = "clearloop") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", program, *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run


def test_all_packages_are_on_the_page() -> None:
    assert sorted(Path(file).name for file in FILES) == [
        "clearloop_arduino.py",
        "clearloop_characteristic.py",
        "clearloop_guessing.py",
        "curve.json",
        "pyproject.toml",
        "pyproject.toml",
        "pyproject.toml",
    ]


def test_help_lists_the_names(call: Any) -> None:
    assert "pid, cloning, guessing; repeatable" in call("learn", "--help").stdout
    assert "pid, cloning, guessing; repeatable" in call("bench", "--help").stdout
    assert "python, latex, fmu, arduino." in call("export", "--help").stdout


def test_the_method_learns(call: Any, tmp_path: Path) -> None:
    words = ("--method", "guessing", "--set", "guessing.tries=20", "--budget", "1e6", "--out", "run")
    done = call("learn", "pusher.toml", *words, program="tests.runs.program")
    assert done.returncode == 0, done.stderr
    assert "Search     guessing: 1 controller" in done.stdout
    assert (tmp_path / "run" / "front.csv").read_text().splitlines()[1].startswith("001,guessing,")


def test_the_method_is_benched_beside_a_built_in_one(call: Any, tmp_path: Path) -> None:
    words = ("--method", "guessing", "--method", "lqr", "--seeds", 1, "--budget", "2e5", "--out", "run")
    done = call("bench", "pusher.toml", *words)
    assert done.returncode == 0, done.stderr
    assert "| penalty | LQR | GUESSING |" in (tmp_path / "run" / "table.md").read_text()


def test_the_method_is_used_from_python(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import clearloop as cl
    from tests.surrogate.models import QUICK, cartpole_log

    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(cl, "make_batch", lambda *_, **__: cartpole_log(1_000), raising=False)
    (use,) = (text for text in blocks(PAGE, "python") if "cl.learn(" in text)
    names: dict[str, Any] = {"track": QUICK}
    exec(use.replace("budget=20_000_000", "budget=2_000_000, track=track"), names)  # noqa: S102 - our own page
    assert names["result"].steps >= 2_000_000
    assert names["result"].points[0].model.penalty < 15


def test_the_kind_is_shown_evaluated_exported_and_verified(call: Any, site: Path) -> None:
    curve = site / "curve.json"
    assert "clip(theta" in call("show", curve).stdout
    done = call("evaluate", curve, "--task", "cartpole", "--starts", 8)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("penalty ")
    for target in ("python", "st"):
        done = call("verify", curve, "--task", "cartpole", "--to", target)
        assert f"{target}, double precision: equal" in done.stdout, done.stderr


def test_the_kind_refuses_in_one_line(call: Any, site: Path, tmp_path: Path) -> None:
    wrong = (site / "curve.json").read_text().replace("-0.1, 0.1", "0.1, -0.1")
    (tmp_path / "wrong.json").write_text(wrong)
    done = call("show", "wrong.json")
    assert done.returncode == 2
    complaint = "outputs.force: expected corners that rise, and a value for each"
    assert done.stderr == f"error: wrong.json: {complaint}\n"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
def test_the_target_exports_and_is_verified(call: Any, tmp_path: Path) -> None:
    done = call("export", GPRL, "--task", "cartpole", "--to", "arduino", "--out", "pole.ino")
    assert (done.returncode, done.stderr) == (0, "")
    assert {file.name for file in tmp_path.glob("pole.*")} == {"pole.ino", "pole.c", "pole.h"}
    sketch = (tmp_path / "pole.ino").read_text()
    assert "  input.theta_dot = read_theta_dot();\n" in sketch
    assert "while (millis() - begun < 25) {}" in sketch
    done = call("verify", GPRL, "--task", "cartpole", "--to", "arduino")
    assert "arduino, double precision: equal" in done.stdout


def test_the_target_refuses_in_one_line(call: Any) -> None:
    done = call("export", GPRL, "--to", "arduino")
    assert done.returncode == 2
    assert done.stderr == "error: arduino: the time between two steps is not known: give --task\n"
    done = call("export", GPRL, "--to", "arduino", "--out", "pole.c")
    assert done.stderr == "error: --out pole.c: expected a name that ends in .ino\n"
