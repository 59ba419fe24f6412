"""`clearloop export` and `verify` for PLCs."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

PUBLISHED = Path(__file__).parents[2] / "examples" / "published"
PID = (PUBLISHED / "pid.json", "--task", "cartpole")


def test_structured_text_with_options(run: Run) -> None:
    done = run("export", *PID, "--to", "st", "--with", "manual", "--with", "anti-windup")
    assert done.code == 0
    assert "Options: anti-windup, manual." in done.out
    assert "    manual : BOOL := FALSE;" in done.out
    assert "rate" not in done.out
    assert done.err == ""


def test_plcopen_in_a_file(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "pid.xml"
    done = run("export", *PID, "--to", "plcopen", "--precision", "single", "--out", out)
    assert done.code == 0
    assert done.out.startswith(f"{out}: PID on theta, rho")
    assert '<pou name="pid_controller" pouType="functionBlock">' in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("gprl.json", "--to", "st", "--with", "anti-windup"),
            "this is for a controller of kind 'pid', not of kind 'equation'",
        ),
        (
            ("pid.json", "--to", "st", "--with", "turbo"),
            "--with turbo: unknown option; st has action-deadband, anti-windup",
        ),
        (
            ("pid.json", "--to", "javascript", "--with", "manual"),
            "--with manual: javascript has no options: export to c, st, plcopen, fmu",
        ),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = run("export", PUBLISHED / arguments[0], "--task", "cartpole", *arguments[1:])
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_verify_leaves_a_bench(run: Run, tmp_path: Path) -> None:
    done = run("verify", *PID, "--to", "st", "--out", tmp_path, "--json")
    assert done.code == 0
    assert json.loads(done.out)["equal"] is True
    assert sorted(file.name for file in tmp_path.iterdir()) == ["pid.st", "pid_bench.st", "vectors.csv"]


def test_verify_tests_the_block_that_is_exported(run: Run, tmp_path: Path) -> None:
    """The same bytes, with its modes."""
    options = ("--with", "manual", "--with", "rate-limit")
    done = run("verify", *PID, "--to", "st", *options, "--name", "law", "--out", tmp_path / "bench")
    assert done.code == 0
    assert "st with manual, rate-limit, double precision: equal" in " ".join(done.out.split())
    assert run("export", *PID, "--to", "st", *options, "--out", tmp_path / "law.st").code == 0
    assert (tmp_path / "law.st").read_bytes() == (tmp_path / "bench" / "law.st").read_bytes()
    done = run("verify", *PID, "--to", "python", "--with", "manual")
    assert (done.code, done.err.startswith("error: --with manual: python has no options")) == (2, True)
