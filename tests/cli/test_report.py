"""`clearloop card`, `clearloop refine`, and an edited file scored on the run's models."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from clearloop.controllers import load
from clearloop.runs import Front, RunDirectory
from tests.pages.conftest import learn_pusher

from .conftest import Run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return learn_pusher(tmp_path_factory.mktemp("cli-card"))


@pytest.fixture(scope="session")
def last(finished: RunDirectory) -> str:
    return Front.read(finished).entries[-1].controller


def test_a_card_by_number_goes_into_the_run(run: Run, finished: RunDirectory, last: str) -> None:
    done = run("card", last, "--run", finished.path)
    assert done.code == 0, done.err
    page, sheet = (finished.path / f"card-{last}{kind}" for kind in (".html", ".pdf"))
    assert done.out == f"Card       {page}\nCard       {sheet}\n"
    assert sheet.read_bytes().startswith(b"%PDF")
    assert hashlib.sha256((finished.path / "controllers" / f"{last}.json").read_bytes()).hexdigest() in (
        page.read_text(encoding="utf-8")
    )


def test_refine_writes_a_simpler_file_and_says_what_it_cost(
    run: Run, finished: RunDirectory, last: str, tmp_path: Path
) -> None:
    out = tmp_path / "short.json"
    done = run("refine", last, "--run", finished.path, "--round", 1, "--tolerance", 0.2, "--out", out)
    assert done.code == 0, done.err
    assert "as given" in done.out
    assert "becomes" in done.out
    assert "On plant" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines() if not line.startswith("File"))
    refined = load(out)
    assert refined.name == f"{last}, refined within 20 %"
    told = json.loads(
        run("refine", last, "--run", finished.path, "--tolerance", 0.2, "--out", out, "--json").out
    )
    assert told["model"]["after"] <= 1.2 * told["model"]["before"]
    assert told["system"]["after"]["on"] == "system"
    assert told["complexity"]["after"] <= told["complexity"]["before"]


def test_by_default_the_refined_file_stands_beside_the_other(
    run: Run, finished: RunDirectory, last: str
) -> None:
    done = run("refine", last, "--run", finished.path)
    assert f"File       {finished.path / 'controllers' / f'{last}-refined.json'}" in done.out


def test_on_the_model_a_controller_costs_what_the_front_says(
    run: Run, finished: RunDirectory, last: str
) -> None:
    told = json.loads(run("evaluate", last, "--run", finished.path, "--on", "model", "--json").out)
    assert told["penalty"]["mean"] == pytest.approx(Front.read(finished).entries[-1].penalty_model, rel=1e-12)


def test_refine_judges_as_the_front_was_judged(run: Run, finished: RunDirectory) -> None:
    for row in Front.read(finished).judged:
        told = json.loads(run("refine", row.controller, "--run", finished.path, "--json").out)
        assert told["model"]["before"] == pytest.approx(row.penalty, rel=1e-12)


def test_an_edited_file_needs_no_task(run: Run, finished: RunDirectory, last: str, tmp_path: Path) -> None:
    text = (finished.path / "controllers" / f"{last}.json").read_text(encoding="utf-8")
    edited = tmp_path / "edited.json"
    edited.write_text(re.sub(r'"place": -?[\d.]+', '"place": -1.25', text), encoding="utf-8")
    done = run("evaluate", edited, "--run", finished.path)
    assert done.code == 0, done.err
    assert "on the plant, 1,024 starts" in done.out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("card", "003"), "Missing option '--run'"),
        (
            ("card", "777", "--run", "RUN"),
            "777: no controller file, and no controller of RUN; this run has",
        ),
        (("card", "LAST", "--run", "RUN", "--out", "x.doc"), "--out x.doc: expected a name that ends in"),
        (("card", "x.json", "--run", "RUN"), "x.json: cannot be read: No such file or directory"),
        (("card", "LAST", "--run", "nowhere"), "nowhere/run.json: cannot be read"),
        (("refine", "LAST", "--run", "RUN", "--round", "9"), "--round 9: expected from 1 to 6 digits"),
        (("refine", "LAST", "--run", "RUN", "--tolerance", "2"), "--tolerance 2: expected a share"),
        (
            ("evaluate", "x.json"),
            "the task is missing: give --task TASK, or --run DIR to use the task of a run",
        ),
    ],
)
def test_errors_are_one_line(
    run: Run, finished: RunDirectory, last: str, command: tuple[str, ...], message: str
) -> None:
    names = {"RUN": str(finished.path), "LAST": str(finished.path / "controllers" / f"{last}.json")}
    done = run(*(names.get(word, word) for word in command))
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert message.replace("RUN", str(finished.path)) in done.err
    assert done.err.count("\n") == 1
