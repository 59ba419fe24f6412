"""Texts in files may hold commands to a terminal, or be very long: neither reaches the screen."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.runs.guessing import PUSHER

HOSTILE = "push\x1b]52;c;cm0gLXJm\x07\x9b2J\u202eer"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task file whose name and unit are hostile, if a task may have such ones at all."""
    text = PUSHER.replace('name = "pusher"', f"name = {json.dumps(HOSTILE)}")
    assert text != PUSHER
    file = tmp_path / "task.toml"
    file.write_text(text)
    return file


def harmless(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_names_of_tasks_are_escaped(task: Path, run: Run, options: tuple[str, ...]) -> None:
    done = run("tasks", task, *options)
    assert harmless(done.out + done.err)
    if options and not done.code:
        assert json.loads(done.out)["name"] == HOSTILE


def test_names_of_controllers_and_files_are_escaped(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "good\x1b[2J.json"
    controller = {"clearloop": 1, "kind": "equation", "name": HOSTILE, "outputs": {"push": "place"}}
    file.write_text(json.dumps(controller))
    assert harmless("".join(map(str, run("show", file))))
    assert harmless("".join(map(str, run("show", file.with_suffix(".txt")))))
    assert harmless("".join(map(str, run("export", file, "--to", "c", "--out", tmp_path / "a\x1bb.c"))))


def test_names_of_columns_are_escaped(tmp_path: Path, run: Run) -> None:
    log = tmp_path / "log.csv"
    log.write_text(f"time,{HOSTILE}\x1b[31m,u\n" + "".join(f"{i},{i % 7},{i % 3}\n" for i in range(50)))
    assert harmless("".join(map(str, run("init", log, "--out", tmp_path / "drafted.toml"))))


@pytest.mark.parametrize("size", [5_000, 200_000])
def test_errors_are_not_as_long_as_the_names_in_them(tmp_path: Path, run: Run, size: int) -> None:
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"clearloop": 1, "kind": "equation", "outputs": {"a": "b" * size + "$"}}))
    for arguments in (("show", file), ("show", "x" * size), ("tasks", "y" * size)):
        done = run(*arguments)
        assert done.code == 2
        assert len(done.err) < 2_000
