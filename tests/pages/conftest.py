"""A finished run with its report."""

from pathlib import Path

import pytest

from clearloop.cli.learn import Given, make_request, start
from clearloop.pages.card import contents
from clearloop.pages.report import write_report
from clearloop.pages.sections import Card
from clearloop.runs import Front, RunDirectory
from clearloop.task import Task
from tests.runs.guessing import PUSHER, make_quick

HOSTILE = '</script><img src="//x.org">'
"""as a unit, which a task file may say"""


def learn_pusher(folder: Path) -> RunDirectory:
    """Without a report."""
    file = folder / "pusher.toml"
    file.write_text(PUSHER.replace('push = { unit = "N"', f"push = {{ unit = '{HOSTILE}'"))
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        given = Given(methods=("guess", "lqr"), budget="4e5", seed=0)
        run = RunDirectory(folder / "run")
        start(run, make_request("learn", str(file), given), Task.load(str(file)))
    return run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    run = learn_pusher(tmp_path_factory.mktemp("report"))
    write_report(run)
    return run


@pytest.fixture(scope="session")
def file(finished: RunDirectory) -> Path:
    """Its most complex controller."""
    return finished.path / "controllers" / f"{Front.read(finished).entries[-1].controller}.json"


@pytest.fixture(scope="session")
def card(finished: RunDirectory, file: Path) -> Card:
    return contents(file, finished)


@pytest.fixture
def page(finished: RunDirectory) -> Path:
    return finished.path / "report.html"
