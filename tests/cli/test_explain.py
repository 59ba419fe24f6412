"""`clearloop data explain`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.explanation.planted import Law, make_log, white


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    make_log(Law(kp=(38.8, 10.1, 2.8, 3.9)), white(0.3), episodes=60).save(path)
    return path


def test_says_the_law_and_writes_it(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "logged.json"
    done = run("data", "explain", log, "--task", "cartpole", "--out", out)
    assert (done.code, done.err) == (0, "")
    first, formula, *_, last = done.out.splitlines()
    assert first.startswith("A linear law explains 9")
    assert formula.startswith("    force = 3")
    assert last == f"Law  {out}"
    assert "standard error" in done.out
    assert max(map(len, done.out.replace(str(out), "").splitlines())) <= 80
    assert run("show", out).code == 0
    scored = json.loads(run("evaluate", out, "--task", "cartpole", "--starts", "64", "--json").out)
    assert scored["failures"] < 0.2
    simulated = run("simulate", out, "--task", "cartpole", "--steps", "5", "--start", "theta=0.1")
    assert simulated.code == 0


def test_json(run: Run, log: Path) -> None:
    done = run("data", "explain", log, "--task", "cartpole", "--json")
    document = json.loads(done.out)
    account = document["actions"]["force"]
    assert (account["chosen"], account["law"]["kind"]) == ("law", "linear")
    gains = {gain["name"]: gain["gain"] for gain in account["law"]["gains"]}
    assert gains == pytest.approx({"theta": 38.8, "theta_dot": 10.1, "rho": 2.8, "rho_dot": 3.9}, rel=0.05)
    assert all(0 < gain["standard_error"] < 1 for gain in account["law"]["gains"])


def test_random_actions_and_no_law_to_write(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "batch.csv", tmp_path / "law.json"
    run("data", "make", "cartpole", "--size", "500", "--out", path)
    done = run("data", "explain", path, "--task", "cartpole", "--out", out)
    assert done.code == 2
    assert done.out.startswith("The actions look random: no law explains more than ")
    assert done.err.startswith("error: there is no law to write: The actions look random")
    assert not out.exists()
    assert (
        json.loads(run("data", "explain", path, "--task", "cartpole", "--json").out)["actions"]["force"][
            "law"
        ]
        is None
    )


def test_too_short(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    run("data", "make", "cartpole", "--size", "20", "--out", path)
    done = run("data", "explain", path, "--task", "cartpole")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert "rows have an action: at least 50 are needed" in done.err
    assert len(done.err.splitlines()) == 1
