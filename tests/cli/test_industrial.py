"""The Industrial Benchmark on the command line, with and without its package."""

import csv
import json
from pathlib import Path

import pytest

from clearloop.plants.cosimulation import INTERPRETER
from tests.cli.conftest import Run
from tests.plants.industrial import benchmark_python

LAW = {f"delta_{name}": f"25 - {name}" for name in "vgh"}


def test_its_commands_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INTERPRETER, benchmark_python())
    log, law, starts = tmp_path / "log.csv", tmp_path / "law.json", tmp_path / "starts.csv"
    law.write_text(json.dumps({"clearloop": 1, "kind": "equation", "outputs": LAW}))
    starts.write_text("p\n50\n50\n")
    made = run("data", "make", "industrial", "--size", 40, "--out", log)
    assert (made.code, made.err) == (0, "")
    assert log.read_text().splitlines()[0] == (
        "episode,time,p,v,g,h,c,f,delta_v,delta_g,delta_h,reward,terminal"
    )
    words = ("evaluate", law, "--task", "industrial", "--on", "plant", "--json", "--starts")
    found = [json.loads(run(*words, given).out) for given in (3, starts)]
    assert [one["starts"] for one in found] == [3, 2]
    assert found[0]["penalty"]["mean"] != found[1]["penalty"]["mean"]
    shown = run("simulate", law, "--task", "industrial", "--start", "p=50", "--steps", 4)
    assert [row["p"] for row in csv.DictReader(shown.out.splitlines())] == ["50.0"] * 5
    (doctor,) = (
        one for one in json.loads(run("doctor", "--json").out) if one["name"] == "industrial_benchmark_python"
    )
    assert doctor["found"] == benchmark_python()


@pytest.mark.parametrize("data", [False, True])
def test_without_the_package_learning_does_not_begin(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bool
) -> None:
    """Not even from a log, because what is learned from it is tested on the plant at the end."""
    monkeypatch.setenv(INTERPRETER, "")
    (tmp_path / "log.csv").write_text("p,v,g,h,c,f,delta_v,delta_g,delta_h\n")
    words = ("--data", tmp_path / "log.csv") if data else ()
    done = run("learn", "industrial", *words, "--out", tmp_path / "run")
    assert done.code == 2
    assert done.err.startswith("error: task 'industrial': [plant] package: industrial-benchmark: ")
    assert done.err.count("\n") == 1
    assert not (tmp_path / "run").exists()
    assert "For the plant of the task industrial: industrial-benchmark: " in run("doctor").out
