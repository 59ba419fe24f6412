"""A run whose files were damaged is refused in one line that names the damaged file."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

FINISHED = Path(__file__).parents[1] / "version_0_1" / "finished"
TABLES = ("front.csv", "judged.csv", "trust.csv", "published.csv")
COMMANDS: tuple[tuple[str, ...], ...] = (("show", "run"), ("show", "run", "--json"), ("report", "run"))

Damage = Callable[[bytes], bytes]
SPOILT: dict[str, Damage] = {
    "empty": lambda _: b"",
    "binary": lambda _: bytes(range(256)),
    "cut": lambda content: content[: len(content) // 2],
    "nul": lambda content: content.replace(b"7", b"\0"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("clearloop.cli.report.make_report", lambda run: run.path / "report.html")
    return Path(shutil.copytree(FINISHED, tmp_path / "run"))


def refused(run: Run, name: str, *, everywhere: bool = True) -> None:
    for command in COMMANDS:
        done = run(*command)
        assert "Traceback" not in done.err
        if done.code or everywhere:
            assert (done.code, done.err.count("\n")) == (2, 1), (command, done)
            assert f"run/{name}: " in done.err or (name in done.err and "damaged" in done.err), done.err


@pytest.mark.parametrize("name", ["run.json", "front.csv", "judged.csv"])
@pytest.mark.parametrize("how", SPOILT)
def test_spoilt_files(folder: Path, run: Run, name: str, how: str) -> None:
    file = folder / name
    file.write_bytes(SPOILT[how](file.read_bytes()))
    refused(run, name)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("cell", ["nan", "inf", "-inf", "x", "", "1e999", "[]"])
def test_spoilt_cells(folder: Path, run: Run, name: str, cell: str) -> None:
    """Every column in turn; a text may be anything, and what may be unknown may be empty."""
    file = folder / name
    head, first, *rest = file.read_text().splitlines()
    cells = first.split(",")
    for number, column in enumerate(head.split(",")):
        if column in ("controller", "method", "formula", "title"):
            continue
        changed = ",".join([*cells[:number], cell, *cells[number + 1 :]])
        file.write_text("\n".join([head, changed, *rest]) + "\n")
        for command in COMMANDS[:2]:
            done = run(*command)
            assert done.err.count("\n") <= 1
            assert done.code == 0 if not done.err else (done.code == 2 and name in done.err)
            assert cell == "" or done.code == 2, (column, command)


NO_JSON = (float("nan"), float("inf"))
VALUES: tuple[Any, ...] = (None, [], {}, "x", *NO_JSON, -1, [{}], True)


def places(document: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths to everything in the parts of `run.json` that are ours."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield (*path, key)
            if path[:1] != ("task",) and "methods" not in path:
                yield from places(value, (*path, key))


def changed(document: Any, path: tuple[str, ...], value: Any) -> Any:
    """A copy with another value at a path; without it if that is None."""
    name, *rest = path
    kept = {key: inner for key, inner in document.items() if key != name}
    if rest:
        return kept | {name: changed(document[name], tuple(rest), value)}
    return kept if value is None else kept | {name: value}


def test_run_json_without_a_part_or_with_another_type(folder: Path, run: Run) -> None:
    file = folder / "run.json"
    document = json.loads(file.read_text())
    for path in places(document):
        for value in VALUES:
            if (path, value) != (("asked", "command"), "x"):  # which may be a command of a later version
                file.write_text(json.dumps(changed(document, path, value)))
                refused(run, "run.json", everywhere=value in NO_JSON)


@pytest.mark.parametrize("content", ["{}", "[]", '{"verdict": 1}', '{"verdict": "x", "reasons": [1]}', "NaN"])
def test_spoilt_quality_of_a_model(folder: Path, run: Run, content: str) -> None:
    kept = Path(shutil.copytree(FINISHED.parent / "interrupted", folder.parent / "interrupted"))
    (kept / "quality.json").write_text(content)
    done = run("learn", "cartpole", "--out", "interrupted", "--resume")
    assert done.code == 2
    assert "interrupted/quality.json: damaged" in done.err


@pytest.mark.parametrize("name", ["progress.csv", "timing.csv"])
def test_spoilt_tables_of_progress(folder: Path, run: Run, name: str) -> None:
    kept = Path(shutil.copytree(FINISHED.parent / "interrupted", folder.parent / "interrupted"))
    text = (kept / name).read_text()
    (kept / name).write_text(text + "gprl,nan,nan,nan,nan,nan\n")
    done = run("learn", "cartpole", "--out", "interrupted", "--resume")
    assert done.code == 2
    assert f"interrupted/{name}: damaged" in done.err
