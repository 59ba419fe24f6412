"""What the commands print and write when all is well."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.main import get_command

from clearloop.cli.program import app
from clearloop.controllers import Equation, from_json, load, save
from clearloop.evaluation import evaluate, simulate
from clearloop.plants.exploration import make_batch
from clearloop.runs import RunDirectory
from tests.cli.conftest import Run
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.plants.mixer import TEXT as MIXER
from tests.task.texts import EXPRESSION, LEARNED, SMALL


def commands(inner: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """With what typer makes of them; () is the program itself."""
    yield path, inner
    for name, command in getattr(inner, "commands", {}).items():
        yield from commands(command, *path, name)


COMMANDS = dict(commands(get_command(app)))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_an_example_and_fits_80_columns(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command, "--help")
    assert done.code == 0
    assert done.err == ""
    assert max(map(len, done.out.splitlines())) <= 80
    wanted = "Start with: clearloop demo" if not command else f"Example: clearloop {' '.join(command)}"
    assert command == ("data",) or wanted in done.out
    prose = [line.strip() for line in done.out.partition("╭")[0].splitlines()]
    for line, after in pairwise(prose):  # paragraphs fill their lines
        assert not line or not after or len(line) + len(after.split()[0]) >= 76


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_breaks_no_word_and_shows_no_types_of_options(run: Run, command: tuple[str, ...]) -> None:
    shown = run(*command, "--help").out
    for parameter in COMMANDS[command].params:
        words = f"{parameter.metavar or ''} {parameter.help}".split()
        assert set(words) <= set(shown.split())
    options = shown.partition("─ Options ")[2]
    assert not re.findall("<(?:bool|int|float|str|path)", options)
    assert "[[" not in shown


@pytest.mark.parametrize("command", [(), ("data",)], ids=" ".join)
def test_without_arguments_the_help_is_printed_and_nothing_else(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command)
    assert done.code == 2
    assert "Usage: clearloop" in done.out
    assert done.err == ""


def test_version(run: Run) -> None:
    done = run("--version")
    assert (done.code, done.out, done.err) == (0, "clearloop 0.1.0\n", "")


def test_tasks(run: Run) -> None:
    assert [line.split() for line in run("tasks").out.splitlines()[1:3]] == [
        ["cartpole", "theta,", "theta_dot,", "force", "0.025", "s", "100"], ["rho,", "rho_dot"],
    ]  # fmt: skip
    task, *others = json.loads(run("tasks", "--json").out)
    assert [other["name"] for other in others] == [
        "cartpole-hardware", "industrial", "motor", "mountaincar", "pendulum", "swingup", "tank",
    ]  # fmt: skip
    assert task == {
        "name": "cartpole",
        "states": ["theta", "theta_dot", "rho", "rho_dot"],
        "actions": ["force"],
        "dt": 0.025,
        "horizon": 100,
        "plant": True,
    }


def test_tasks_shows_one_with_its_reward_written_out(run: Run, tmp_path: Path) -> None:
    lines = run("tasks", "cartpole").out.splitlines()
    assert "State rho in m, setpoint 0." in lines
    assert "Action force from -10 to 10 N." in lines
    assert lines[-1] == "Failure abs(theta) > 0.7 or abs(rho) > 2.4"
    (tmp_path / "mine.toml").write_text(
        SMALL.replace(EXPRESSION, 'terms = [{ track = "level", weight = 2 }, { rate = "valve" }]')
    )
    document = json.loads(run("tasks", tmp_path / "mine.toml", "--json").out)
    assert document["reward"] == "-2*abs(level.error) - abs(valve - valve[t-1])"
    assert document["failure"] is None
    assert "Reward -2*abs(level.error) - abs(valve - valve[t-1])" in run("tasks", tmp_path / "mine.toml").out
    (tmp_path / "learned.toml").write_text(LEARNED)
    assert run("tasks", tmp_path / "learned.toml").out.splitlines()[-1] == "Reward learned from column r"


def test_evaluate_prints_what_the_contract_says(run: Run, published: Path) -> None:
    done = run("evaluate", published / "gprl.json", "--task", "cartpole", "--json")
    document = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert list(document) == ["task", "on", "starts", "penalty", "failures"]
    assert (document["task"], document["on"], document["starts"]) == ("cartpole", "system", 1024)
    assert document["penalty"]["mean"] == pytest.approx(2.903, abs=0.005)
    assert 0.1 < document["penalty"]["se"] < 0.14
    assert document["failures"] == pytest.approx(0.065, abs=0.005)
    text = run("evaluate", published / "gprl.json", "--task", "cartpole").out
    assert text.splitlines()[0].startswith("penalty   2.903 ± 0.1")
    assert text.splitlines()[1] == "failures  6.5 %"


def test_the_plant_has_two_names_and_json_repeats_the_one_that_was_used(run: Run, published: Path) -> None:
    words = ("evaluate", published / "lqr.json", "cartpole", "--starts", "3")
    usual = json.loads(run(*words, "--json").out)
    for name in ("plant", "system"):
        assert json.loads(run(*words, "--on", name, "--json").out) == {**usual, "on": name}
        assert "(on the plant, 3 starts)" in run(*words, "--on", name).out
    steps = ("simulate", published / "lqr.json", "cartpole", "--steps", "3")
    assert run(*steps, "--on", "plant").out == run(*steps, "--on", "system").out == run(*steps).out


def test_every_command_with_a_task_takes_it_both_ways() -> None:
    ways = {}
    for path, command in COMMANDS.items():
        ways[path] = {type(one).__name__ for one in command.params if one.metavar == "TASK"}
    taking = {path for path, kinds in ways.items() if kinds}
    assert {("learn",), ("bench",), ("evaluate",), ("data", "check"), ("data", "make"), ("export",)} <= taking
    assert all(len(ways[path]) == 2 for path in taking)


def test_a_task_is_the_same_both_ways(run: Run, published: Path, tmp_path: Path) -> None:
    gprl = published / "gprl.json"
    for words in (
        ("tasks",),
        ("evaluate", gprl, "--starts", "2"),
        ("export", gprl, "--to", "c"),
        ("show", gprl),
    ):
        argument, option = run(*words, "cartpole"), run(*words, "--task", "cartpole")
        assert (argument.code, argument.out) == (0, option.out)
        assert run(*words, "cartpole", "--task", "cartpole").out == option.out
    made = [tmp_path / "one.csv", tmp_path / "two.csv"]
    assert run("data", "make", "cartpole", "--size", "99", "--out", made[0]).code == 0
    assert run("data", "make", "--task", "cartpole", "--size", "99", "--out", made[1]).code == 0
    assert made[0].read_bytes() == made[1].read_bytes()


def test_evaluate_from_the_first_starts_or_from_a_file(run: Run, published: Path, tmp_path: Path) -> None:
    pid = published / "pid.json"
    some = json.loads(run("evaluate", pid, "--task", "cartpole", "--starts", "10", "--json").out)
    assert some["starts"] == 10
    assert some["penalty"]["mean"] == evaluate(load(pid), CARTPOLE, starts=10).penalty
    points = CARTPOLE.scoring_starts(10)
    frame = pl.DataFrame(dict(zip(CARTPOLE.state_names, points.T, strict=True)))
    frame.select(["rho_dot", "rho", "theta_dot", "theta"]).write_csv(tmp_path / "starts.csv")
    given = json.loads(
        run("evaluate", pid, "--task", "cartpole", "--starts", tmp_path / "starts.csv", "--json").out
    )
    assert given == some
    alone = run("evaluate", pid, "--task", "cartpole", "--starts", "1")
    assert "±" not in alone.out
    one = json.loads(run("evaluate", pid, "--task", "cartpole", "--starts", "1", "--json").out)
    assert one["penalty"]["se"] is None


@pytest.mark.parametrize("kind", KINDS)
def test_show_explains_every_kind_in_80_columns(run: Run, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    named = KINDS[kind].model_copy(update={"name": "A name that is longer than a line of the terminal " * 3})
    save(named, path)
    for shown, options in ((named, ()), (named.for_task(CARTPOLE), ("--task", "cartpole"))):
        done = run("show", path, *options)
        assert (done.code, done.err) == (0, "")
        assert max(map(len, done.out.splitlines())) <= 80
        assert done.out.splitlines()[-1] == f"Complexity {named.complexity}."
        assert " ".join(" ".join(shown.words()).split()) in " ".join(done.out.split())
    document = json.loads(run("show", path, "--json").out)
    assert document["complexity"] == named.complexity
    assert document["summary"] == named.summary
    del document["complexity"], document["summary"]
    assert from_json(json.dumps(document)) == named


def test_show_speaks_of_setpoints_only_where_they_matter(run: Run, published: Path) -> None:
    assert "rho stands for rho - setpoint; the setpoint is 0 m." in run(
        "show", published / "lqr.json", "--task", "cartpole"
    ).out  # fmt: skip
    assert "setpoint" not in run("show", published / "none.json", "--task", "cartpole").out
    pid = run("show", published / "pid.json", "--task", "cartpole").out
    assert "The setpoint of rho is 0 m." in pid
    assert "Kp = -81.51 N/rad, Ti = 1.413 s (over 1 s), Td = 0.3531 s" in pid


@pytest.mark.parametrize(
    "command", ["show", "simulate", "export --to python", "verify --to python --json", "evaluate --starts 5"]
)
def test_a_controller_of_a_run_goes_by_its_number(
    run: Run, published: Path, tmp_path: Path, command: str
) -> None:
    directory = RunDirectory(tmp_path / "run")
    directory.begin(
        CARTPOLE, make_batch(CARTPOLE, rng=np.random.default_rng(0), size=10), {"command": "model"}
    )
    file = directory.folder("controllers") / "003.json"
    file.write_bytes((published / "gprl.json").read_bytes())
    name, *options = command.split()
    by_file = run(name, file, "--task", "cartpole", *options)
    by_number = run(name, "003", "--run", directory.path, *options)
    assert by_number.code == 0, by_number.err
    unnamed = re.sub(r"# Run run: run.json, SHA-256 [0-9a-f]{64}\.\n", "", by_number.out)
    assert unnamed == by_file.out  # an export names its run


def test_simulate_prints_numbers(run: Run, published: Path) -> None:
    done = run(
        "simulate", published / "pid.json", "--task", "cartpole", "--start", "theta=0.3", "--start", "rho=-1"
    )
    frame = pl.read_csv(done.out.encode())
    expected = simulate(load(published / "pid.json"), CARTPOLE, start={"theta": 0.3, "rho": -1.0})
    assert (done.code, done.err, len(frame)) == (0, "", 101)
    np.testing.assert_array_equal(frame.select(CARTPOLE.state_names).to_numpy(), expected.states[0])


def test_simulate_writes_numbers_and_pictures(run: Run, published: Path, tmp_path: Path) -> None:
    wanted = [
        "simulate",
        published / "pid.json",
        "--task",
        "cartpole",
        "--setpoint",
        "rho=1@20",
        "--steps",
        "50",
    ]
    printed = run(*wanted).out
    for name, beginning in (("x.csv", b"step,time"), ("x.PNG", b"\x89PNG"), ("x.svg", b"<?xml")):
        done = run(*wanted, "--out", tmp_path / name)
        assert (done.code, done.err) == (0, "")
        assert done.out == f"{tmp_path / name}: 50 steps\n"
        assert (tmp_path / name).read_bytes().startswith(beginning)
    assert (tmp_path / "x.csv").read_text() == printed
    frame = pl.read_csv(tmp_path / "x.csv")
    assert frame["rho.setpoint"].to_list() == [0.0] * 20 + [1.0] * 31
    again = tmp_path / "again.svg"
    run(*wanted, "--out", again)
    assert again.read_bytes() == (tmp_path / "x.svg").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.svg", "x.PNG", "x.csv", "x.svg"]


def test_a_setpoint_without_a_step_holds_from_the_beginning(run: Run, published: Path) -> None:
    done = run(
        "simulate", published / "pid.json", "--task", "cartpole", "--setpoint", "rho=0.5", "--steps", "3"
    )
    assert pl.read_csv(done.out.encode())["rho.setpoint"].to_list() == [0.5] * 4


def test_a_batch_is_made_and_found_fit(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    done = run("data", "make", "cartpole", "--size", "1500", "--seed", "7", "--out", path)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{path}: 1,500 transitions in ")
    checked = run("data", "check", path, "--task", "cartpole")
    assert (checked.code, checked.err) == (0, "")
    assert checked.out.startswith("This log is fit to learn from: 1,500 transitions")
    assert max(map(len, checked.out.splitlines())) <= 80
    document = json.loads(run("data", "check", path, "--task", "cartpole", "--json").out)
    assert document["severity"] in ("ok", "note")
    again = tmp_path / "again.csv"
    run("data", "make", "cartpole", "--size", "1500", "--seed", "7", "--out", again)
    assert again.read_bytes() == path.read_bytes()
    other = tmp_path / "other.parquet"
    assert run("data", "make", "cartpole", "--size", "30", "--out", other).code == 0
    assert len(pl.read_parquet(other)) > 30


def test_a_log_with_problems_gets_its_verdict_and_exit_code_1(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("theta,theta_dot,rho,rho_dot,force\n" + "0.1,0,0,0,1\n" * 5 + "0.1,,0,0,x\n" * 3)
    done = run("data", "check", path, "--task", "cartpole")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("This log cannot be used as it is: ")
    document = json.loads(run("data", "check", path, "--task", "cartpole", "--json").out)
    assert document["severity"] == "problem"
    assert {finding["code"] for finding in document["findings"]} >= {"text", "missing-values"}


def test_a_task_file_of_ones_own(run: Run, tmp_path: Path) -> None:
    task, controller = tmp_path / "mixer.toml", tmp_path / "c.json"
    task.write_text(MIXER, encoding="utf-8")
    save(Equation(outputs={"burner": "1 - heat", "inlet": "burner[t-1] - level"}), controller)
    assert run("evaluate", controller, "--task", task, "--starts", "5").code == 0
    assert run("simulate", controller, "--task", task, "--out", tmp_path / "x.png").code == 0
    assert "burner is limited to 0 … 2 kW." in run("show", controller, "--task", task).out
    assert run("data", "make", task, "--size", "50", "--out", tmp_path / "b.parquet").code == 0
