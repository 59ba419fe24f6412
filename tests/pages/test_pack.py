"""A pack is checked with nothing but Python, and any change of it is noticed."""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import clearloop as cl
from clearloop.cli import main
from clearloop.controllers import Linear, save
from clearloop.pages.pack import pack, pack_files
from clearloop.pages.sections import Card
from clearloop.runs import RunDirectory


@pytest.fixture(scope="module")
def packed(finished: RunDirectory, file: Path, card: Card, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made twice, with the same bytes; the card, which has such a test of its own, is made once."""
    folder = tmp_path_factory.mktemp("pack")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clearloop.pages.pack.contents", lambda *_: card)
        digests = {pack(file, finished.path, folder / f"{name}.zip") for name in ("it", "again")}
    assert {hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()} == digests
    assert len(digests) == 1
    return folder / "it.zip"


def test_the_command_prints_the_hash_of_the_zip(
    finished: RunDirectory,
    file: Path,
    card: Card,
    packed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("clearloop.pages.pack.contents", lambda *_: card)
    words = ["pack", file.stem, "--run", str(finished.path), "--out", str(tmp_path / "it.zip")]
    monkeypatch.setattr(sys, "argv", ["clearloop", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    digest = hashlib.sha256((tmp_path / "it.zip").read_bytes()).hexdigest()
    assert f"SHA-256    {digest}\n" in capsys.readouterr().out
    assert (tmp_path / "it.zip").read_bytes() == packed.read_bytes()


@pytest.fixture
def folder(packed: Path, tmp_path: Path) -> Path:
    zipfile.ZipFile(packed).extractall(tmp_path)
    return tmp_path


def check(folder: Path) -> tuple[int, str]:
    """With no package: no site-packages, no user's packages, no variables."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "check.py"], cwd=folder, capture_output=True, text=True, env={}
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_it_is_checked_with_nothing_but_python(folder: Path) -> None:
    code, said = check(folder)
    assert (code, said.splitlines()[-1]) == (0, "yes")
    assert "Largest difference 0 of an action's range" in said
    assert not list(folder.rglob("__pycache__"))


def test_it_has_what_a_second_person_needs(folder: Path, file: Path, finished: RunDirectory) -> None:
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names >= {
        "LICENSE", "README.txt", "card.html", "check.py", "controller.json", "exports/controller.c",
        "exports/controller.h", "exports/controller.py", "exports/controller.st", "exports/controller.xml",
        "exports/controller.fmu", "front.csv", "manifest.json", "run.json", "task.json", "vectors.csv",
        "vectors.json",
    }  # fmt: skip
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["data"]["fingerprint"] == finished.describe()["data"]["fingerprint"]
    assert set(manifest["files"]) == names - {"manifest.json", "check.py"}
    task = cl.Task.from_dict(json.loads((folder / "task.json").read_text()))
    assert cl.load(folder / "controller.json") == cl.load(file).for_task(task)
    assert "Apache License" in (folder / "LICENSE").read_text()
    assert manifest["controller_sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    head = (folder / "exports" / "controller.st").read_text(encoding="utf-8")
    assert all(manifest["files"][name] in head for name in ("controller.json", "run.json", "card.html"))


def test_a_change_of_any_file_is_noticed(packed: Path, tmp_path: Path) -> None:
    """In the first, the middle and the last byte."""
    files = zipfile.ZipFile(io.BytesIO(packed.read_bytes()))
    files.extractall(tmp_path)
    names = [name for name in files.namelist() if name != "check.py"]
    for number, name in enumerate(names):
        content = bytearray(files.read(name))
        place = [0, len(content) // 2, len(content) - 1][number % 3]
        content[place] ^= 1
        (tmp_path / name).write_bytes(content)
        code, said = check(tmp_path)
        assert (code, said) == (1, f"{name} was changed\nno: this is not what was packed\n")
        (tmp_path / name).write_bytes(files.read(name))
    (tmp_path / names[-1]).unlink()
    assert check(tmp_path)[1].startswith(f"{names[-1]} is missing\n")


def test_another_law_is_noticed_although_all_hashes_fit(folder: Path) -> None:
    """As if somebody had packed the export of another controller."""
    export = folder / "exports" / "controller.py"
    text = export.read_text(encoding="utf-8").replace(
        "return {", "return {key: value + 1e-6 for key, value in {"
    )
    export.write_text(
        text.replace("}\n", "}.items()}\n") if "return {key" in text else text, encoding="utf-8"
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["exports/controller.py"] = hashlib.sha256(export.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    check_py = (folder / "check.py").read_text()
    (old,) = [line for line in check_py.splitlines() if line.startswith("MANIFEST")]
    new = f'MANIFEST = "{hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()}"'
    (folder / "check.py").write_text(check_py.replace(old, new))
    code, said = check(folder)
    assert (code, said.splitlines()[-1]) == (1, "no: the exported law gives other actions")


def test_a_file_that_came_later_is_told_and_not_run(folder: Path) -> None:
    """Also if it has the name of a module that check.py imports."""
    (folder / "notes.txt").write_text("mine")
    (folder / "json.py").write_text("print('yes')\nraise SystemExit(0)\n")
    done = subprocess.run([sys.executable, "check.py"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout.count("yes")) == (0, 1)
    for name in ("json.py", "notes.txt"):
        assert f"note: {name} is not part of the pack" in done.stdout


def test_names_reach_no_terminal_as_commands(
    finished: RunDirectory, file: Path, card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of the task, and that of the controller's file, which need not be UTF-8."""
    monkeypatch.setattr("clearloop.pages.pack.contents", lambda *_: card)
    run = RunDirectory(shutil.copytree(finished.path, tmp_path / "run"))
    about = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    about["task"]["name"] = "push\x1b]52;c;cm0gLXJm\x07 \x9b2J\u202eer\nyes"
    (run.path / "run.json").write_text(json.dumps(about), encoding="utf-8")
    odd = tmp_path / b"go\xffod\x1b[2J.json".decode("utf-8", "surrogateescape")
    law = json.loads(file.read_text(encoding="utf-8"))
    odd.write_text(json.dumps({key: value for key, value in law.items() if key != "name"}))
    files = pack_files(odd, run)
    said = files["README.txt"].splitlines()[0].decode()
    assert said.startswith("go?od?[2J: a controller for push?]52;c;cm0gLXJm? ?2J?er?yes, packed")
    assert json.loads(files["manifest.json"])["controller"] == "go?od?[2J.json"
    for name in ("README.txt", "check.py", "vectors.csv", *(one for one in files if "exports/" in one)):
        text = files[name].decode("utf-8", "replace" if name.endswith(".fmu") else "strict")
        assert name.endswith(".fmu") or all(c.isprintable() or c in "\n\r\t\ufeff" for c in text), name


def test_what_does_not_fit_is_one_line(finished: RunDirectory, tmp_path: Path) -> None:
    save(Linear(gains={"other": {"x": 1.0}}), tmp_path / "other.json")
    with pytest.raises(cl.ClearloopError, match="other"):
        pack(tmp_path / "other.json", finished.path, tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()
    shutil.rmtree(tmp_path)
