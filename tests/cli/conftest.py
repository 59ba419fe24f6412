"""The command line in this process: exit code, standard output and standard error."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from clearloop.cli import main
from clearloop.controllers import from_json
from clearloop.evaluation import evaluate
from clearloop.task import Task


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture(scope="session", autouse=True)
def compiled_engine() -> None:
    """What a first run would say about compiling is said before any test listens."""
    task = Task.load("cartpole")
    evaluate(from_json('{"clearloop": 1, "kind": "equation", "outputs": {"force": "0"}}'), task, starts=1)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `clearloop` with these arguments, 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["clearloop", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return Done(int(stop.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture
def published() -> Path:
    return Path(__file__).parents[2] / "examples" / "published"
