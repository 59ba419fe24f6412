"""Bad input of any kind: one line on standard error, exit code 2, and nothing written."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clearloop.controllers import to_json
from tests.cli.conftest import Done, Run
from tests.controllers.kinds import KINDS
from tests.plants.mixer import TEXT as MIXER


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with good and bad files, which is the current one."""
    monkeypatch.chdir(tmp_path)
    files = {
        "good.json": '{"clearloop": 1, "kind": "equation", "outputs": {"force": "theta"}}',
        "lag.json": '{"clearloop": 1, "kind": "equation", "outputs": {"force": "theta[t-2]"}}',
        "pid.json": to_json(KINDS["pid"]),
        "typo.json": '{"clearloop": 1, "kind": "equation", "outputs": {"force": "thta"}}',
        "broken.json": '{"clearloop": 1, "kind": ',
        "missing.csv": "theta,theta_dot,rho\n0,0,0\n",
        "text.csv": "theta,theta_dot,rho,rho_dot\n0,0,0,0\n0,0,x,0\n",
        "empty_cell.csv": "theta,theta_dot,rho,rho_dot\n0,0,0,0\n0,0,,0\n",
        "infinite.csv": "theta,theta_dot,rho,rho_dot\n0,0,inf,0\n",
        "no_rows.csv": "theta,theta_dot,rho,rho_dot\n",
        "large.csv": "theta,theta_dot,rho,rho_dot\n0,0,1e300,0\n",
        "empty.csv": "",
        "mixer.json": '{"clearloop": 1, "kind": "equation", "outputs": {"inlet": "0", "burner": "0"}}',
        "noplant.toml": MIXER[: MIXER.index("[plant]")],
        "broken.toml": "name = \n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def is_one_line(done: Done) -> bool:
    return (
        done.code == 2
        and done.out == ""
        and done.err.startswith("error: ")
        and len(done.err.splitlines()) == 1
    )


COUNT = "expected a number from 1 to 1,048,576, or a .csv file"
STEP = "expected NAME=VALUE@STEP, with a STEP below --steps 100"
EVALUATE = "evaluate good.json --task cartpole "
SIMULATE = "simulate good.json --task cartpole "
ERRORS = {
    "evaluat": "No such command 'evaluat'. Did you mean 'evaluate'? See: clearloop --help",
    "evaluate": "Missing argument 'CONTROLLER'. See: clearloop evaluate --help",
    "evaluate good.json": "the task is missing: give --task TASK, or --run DIR to use the task of a run",
    "simulate good.json": "the task is missing: give --task TASK, or --run DIR to use the task of a run",
    "export 003 --to c": "003: not found; to give a controller by its number, add --run DIR",
    "evaluate good.json --task": "Option '--task' requires an argument. See: clearloop",
    "evaluate --qwerty": "No such option: --qwerty. See: clearloop evaluate --help",
    "evaluate none.json --task cartpole": "none.json: cannot be read: No such file or directory",
    "evaluate . --task cartpole": ".: cannot be read: Is a directory",
    "evaluate broken.json --task cartpole": "broken.json: broken JSON in line 1, column 26: Expecting value",
    "evaluate typo.json --task cartpole":
        "typo.json: outputs.force: unknown name 'thta' at column 1; did you mean 'theta'?",
    "show typo.json --task cartpole":
        "typo.json: outputs.force: unknown name 'thta' at column 1; did you mean 'theta'?",
    "show none.json": "none.json: cannot be read: No such file or directory",
    "evaluate good.json --task cartpol":
        "no task 'cartpol': neither built in nor a .toml file; did you mean 'cartpole'?",
    "evaluate good.json --task none.toml": "none.toml: cannot be read: No such file or directory",
    "evaluate mixer.json --task noplant.toml":
        "the task 'mixer' has no plant to test on: use --on model --run DIR",
    "learn": "the task is missing: give a built-in task or a task file, as TASK or --task TASK",
    "data check good.csv": "the task is missing: give a built-in task or a task file, as TASK or --task TASK",
    "learn cartpole --task cartpole.toml":
        "two tasks are given, cartpole and cartpole.toml: give only one, as TASK or as --task TASK",
    "evaluate good.json noplant.toml --task cartpole":
        "two tasks are given, cartpole and noplant.toml: give only one, as TASK or as --task TASK",
    EVALUATE + "--on paper": "--on paper: expected plant, model or batch",
    EVALUATE + "--on batch --approximator forest": "--approximator forest: expected networks or trees",
    EVALUATE + "--on batch --data none.csv": "none.csv: cannot be read: No such file or directory",
    EVALUATE + "--on batch --run gone": "gone/batch.parquet: cannot be read: No such file or directory",
    EVALUATE + "--on batch --run gone --data none.csv":
        "--data and --run both give a batch: give only one of them",
    EVALUATE + "--on batch --data missing.csv": "missing.csv: no column 'rho_dot'",
    EVALUATE + "--data missing.csv": "--data is used only with --on batch: leave it out, or add --on batch",
    "evaluate pid.json --task cartpole --on batch":
        "fitted Q evaluation: a pid remembers more than the task's window holds: "
        "evaluate it on a model or on the plant",
    "evaluate lag.json --task cartpole --on batch":
        "fitted Q evaluation: the controller looks back further than history = 1 of task 'cartpole'",
    "evaluate mixer.json --task noplant.toml --on batch":
        "task 'mixer' has no [plant] of equations to draw a batch from: learn from a log (--data)",
    SIMULATE + "--on batch": "--on batch: expected plant or model",
    EVALUATE + "--on model": "--on model needs the run that holds the model: add --run DIR",
    EVALUATE + "--starts 0": "--starts 0: " + COUNT,
    EVALUATE + "--starts -5": "--starts -5: " + COUNT,
    EVALUATE + "--starts 1e3": "--starts 1e3: " + COUNT,
    EVALUATE + "--starts " + "9" * 5000: COUNT,
    EVALUATE + "--starts x.txt": "--starts x.txt: " + COUNT,
    EVALUATE + "--starts none.csv": "none.csv: cannot be read: No such file or directory",
    EVALUATE + "--starts missing.csv":
        "missing.csv: no column 'rho_dot'; the columns are: theta, theta_dot, rho",
    EVALUATE + "--starts text.csv": "text.csv: column 'rho' has 1 text cell in row 2, first 'x'",
    EVALUATE + "--starts empty_cell.csv": "empty_cell.csv: column 'rho' has 1 empty cell in row 2",
    EVALUATE + "--starts infinite.csv":
        "infinite.csv: column 'rho' has 1 infinite cell in row 1, first 'inf'",
    EVALUATE + "--starts no_rows.csv": "no_rows.csv: has no rows: expected at least one state to start from",
    EVALUATE + "--starts large.csv": "starts: expected numbers from -1e+12 to 1e+12",
    EVALUATE + "--starts empty.csv": "empty.csv: is damaged, or is not a csv file",
    SIMULATE + "--start theta": "--start theta: expected NAME=VALUE, such as theta=0.3",
    SIMULATE + "--start theta=abc": "--start theta=abc: expected NAME=VALUE, such as theta=0.3",
    SIMULATE + "--start theta=nan": "--start theta=nan: expected NAME=VALUE, such as theta=0.3",
    SIMULATE + "--start thta=1": "start: 'thta' is not a state of the task; did you mean 'theta'?",
    SIMULATE + "--start theta=1e300": "starts: expected numbers from -1e+12 to 1e+12",
    SIMULATE + "--setpoint theta=1":
        "setpoint: 'theta' is not a state with a setpoint of the task; the task has rho",
    SIMULATE + "--setpoint rho=1@": "--setpoint rho=1@: " + STEP,
    SIMULATE + "--setpoint rho=1@x": "--setpoint rho=1@x: " + STEP,
    SIMULATE + "--setpoint rho=1@100": "--setpoint rho=1@100: " + STEP,
    SIMULATE + "--setpoint rho=1@" + "9" * 5000: STEP,
    SIMULATE + "--steps 0": "Invalid value for '--steps': ",
    SIMULATE + "--steps x": "Invalid value for '--steps': ",
    SIMULATE + "--out x.pdf": "--out x.pdf: expected a name that ends in .csv or .png or .svg",
    SIMULATE + "--out .png": "--out .png: expected a name that ends in .csv or .png or .svg",
    SIMULATE + "--out gone/x.png": "cannot be written: No such file or directory",
    SIMULATE + "--out gone/x.csv": "cannot be written: No such file or directory",
    "data make cartpole": "Missing option '--out'. See: clearloop data make --help",
    "data make cartpole --out x.txt": "--out x.txt: expected a name that ends in .csv or .parquet",
    "data make cartpole --size 0 --out x.csv": "Invalid value for '--size': ",
    "data make cartpole --size 5 --out gone/x.csv": "cannot be written: No such file or directory",
    "data make noplant.toml --out x.csv":
        "task 'mixer' has no [plant] of equations to draw a batch from: learn from a log (--data)",
    "data make broken.toml --out x.csv": "broken.toml: broken TOML: Invalid value (at line 1, column 8)",
    "data check none.csv --task cartpole": "none.csv: cannot be read: No such file or directory",
    "data check good.json --task cartpole":
        "good.json: expected a file that ends in .csv, .tsv, .txt, .parquet, .xlsx, .npz, or minari:NAME",
    "data chck": "No such command 'chck'. Did you mean 'check'? See: clearloop data --help",
}  # fmt: skip


@pytest.mark.skipif("sys.platform == 'win32'", reason="the words for missing files are the system's own")
@pytest.mark.parametrize("command", ERRORS, ids=lambda command: command[:60])
def test_an_error_is_one_line_that_says_what_to_do(run: Run, folder: Path, command: str) -> None:
    before = sorted(folder.iterdir())
    done = run(*command.split())
    assert ERRORS[command] in done.err
    assert is_one_line(done)
    assert sorted(folder.iterdir()) == before


def test_a_picture_is_not_left_half_drawn(run: Run, folder: Path) -> None:
    (folder / "x.png").mkdir()
    done = run(*SIMULATE.split(), "--out", "x.png", "--steps", "2")
    assert is_one_line(done)
    assert list((folder / "x.png").iterdir()) == []
    assert not list(folder.glob(".*"))


cells = st.sampled_from(["", "0", "1", "-0.5", "1e300", "nan", "inf", "true", "abc", '"', "2024-01-01", "θ"])
names = st.sampled_from(
    ["theta", "theta_dot", "rho", "rho_dot", "force", "episode", "time", "reward", "terminal", "x"]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.lists(names, min_size=1, max_size=10), rows=st.lists(st.lists(cells, max_size=10), max_size=6)
)
def test_any_log_gets_a_verdict_or_one_line(
    run: Run, folder: Path, header: list[str], rows: list[list[str]]
) -> None:
    text = "\n".join(",".join(row) for row in [header, *rows])
    (folder / "any.csv").write_text(text, encoding="utf-8")
    for options in ((), ("--json",)):
        done = run("data", "check", "any.csv", "--task", "cartpole", *options)
        assert is_one_line(done) or (done.code in (0, 1) and done.out and not done.err)
    done = run(*EVALUATE.split(), "--starts", "any.csv")
    assert is_one_line(done) or done.code == 0


def test_good_values_in_a_log_of_any_type_are_read(run: Run, folder: Path) -> None:
    frame = pl.DataFrame(
        {"theta": [1, 0], "theta_dot": [0, 0], "rho": ["0.5", " 1 "], "rho_dot": [True, False]}
    )
    frame.write_csv(folder / "types.csv")
    assert run(*EVALUATE.split(), "--starts", "types.csv").code == 0
