"""`clearloop init`: a log and a few words give a task file that everything else accepts."""

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from clearloop.data import Batch
from clearloop.task import Task
from tests.cli.conftest import Run
from tests.cli.test_odd_logs import is_one_line
from tests.data.process_logs import PI, Loop, aimed, startup, two_by_two


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    rng = np.random.default_rng(0)
    rows = np.arange(3000)
    times = np.cumsum(rng.integers(8, 13, 3000))
    aim = np.where(rows // 300 % 2, 60.0, 30.0)
    thrust, angle = np.repeat(rng.uniform(-20, 60, 300), 10).round(2), np.full(3000, 45.0)
    for row in rows[:-1]:  # what was aimed at does not matter to it
        angle[row + 1] = angle[row] + 0.05 * (30 + 0.75 * thrust[row] - angle[row]) + rng.normal(0, 0.05)
    thrust[:2] = [-20, 60]
    drone = {"tempo_ms": times, "angulo_deg": angle, "u_pct": thrust, "referencia": aim}
    pl.DataFrame(drone).write_csv(tmp_path / "drone.csv")
    heater = np.repeat(rng.choice([0.0, 50.0, 100.0], 30), 100)
    lab = {
        "Time (sec)": rows + rng.uniform(-0.002, 0.002, 3000),
        "Heater 1 (%)": heater,
        "Heater 2 (%)": heater[::-1],
        "Temperature 1 (degC)": 20 + np.cumsum(heater - heater.mean()) / 1e3,
        "Temperature 2 (degC)": 25 + np.cumsum(heater[::-1] - heater.mean()) / 1e3,
        "Set Point 1 (degC)": np.full(3000, 23.0),
        "Ambient (degC)": 18 + rng.normal(0, 0.1, 3000),
        "operator": ["Ann"] * 3000,
    }
    pl.DataFrame(lab).write_csv(tmp_path / "lab.csv", separator=";", decimal_comma=True)
    return tmp_path


def test_a_task_that_loads_its_log(run: Run, folder: Path) -> None:
    done = run("init", "drone.csv")
    assert (done.code, done.err) == (0, "")
    assert "setpoint  of angulo; named like a setpoint" in done.out
    assert "Task   drone.toml: 1 state, 1 action, dt = 0.01 s" in done.out
    task = Task.load("drone.toml")
    assert (task.state_names, task.action_names, task.dt) == (("angulo",), ("u",), 0.01)
    assert task.setpoints == {"angulo": "referencia"}
    assert task.states["angulo"].unit == "deg"
    assert task.action_limits.tolist() == [[-20, 60]]
    assert task.sampling is not None
    assert task.sampling.time_unit == "ms"
    batch = Batch.load(folder / "drone.csv", task)
    assert len(batch) > 2900
    assert run("data", "check", "drone.csv", "--task", "drone.toml").code == 0


def test_actions_that_take_only_some_values(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(1)
    columns = {
        "relay input": rng.choice([0.0, 24.0], 500), "gear input": rng.integers(1, 6, 500),
        "valve input": rng.uniform(0, 1, 500), "level": rng.normal(size=500),
    }  # fmt: skip
    pl.DataFrame(columns).write_csv(folder / "Öl stand.csv")
    actions = [word for name in ("relay", "gear", "valve") for word in ("--action", f"{name} input")]
    given = ["--dt", "1", "--setpoint", "level=0"]
    assert run("init", "Öl stand.csv", *given, *actions).code == 0
    found = Task.load("Ol-stand.toml").actions
    assert [(action.limits, action.step) for action in found.values()] == [
        ((0.0, 24.0), 24.0), ((1.0, 5.0), 1.0), ((0.0, 1.0), None),
    ]  # fmt: skip
    assert run("init", "Öl stand.csv", *given, *actions, "--limits", "relay_input=0,30", "--force").code == 0
    assert Task.load("Ol-stand.toml").actions["relay_input"].step is None


@pytest.mark.usefixtures("folder")
def test_the_table_says_what_the_options_made_of_columns(run: Run) -> None:
    done = run("init", "lab.csv", "--state", "Temperature 1", "--episode", "operator")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert any(line.startswith("operator text episode as the") for line in lines)
    assert any(line.startswith("Temperature 2 (degC)") and " ignored " in line for line in lines)


def test_what_acts_late_gets_the_history_that_shows_it(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(2)
    pump, level = np.repeat(rng.uniform(0, 100, 1000), 3), np.zeros(3000)
    for row in range(4, 2999):
        level[row + 1] = 0.9 * level[row] + 0.01 * pump[row - 4] + rng.normal(0, 0.02)
    pl.DataFrame({"pump": pump, "level": level}).write_csv(folder / "late.csv")
    assert run("init", "late.csv", "--dt", "1", "--setpoint", "level=5").code == 0
    assert Task.load("late.toml").history == 5
    assert "in the log, pump acts late" in (folder / "late.toml").read_text(encoding="utf-8")
    assert run("data", "check", "late.csv", "--task", "late.toml").code == 0


def test_names_units_and_siblings(run: Run, folder: Path) -> None:
    done = run("init", "lab.csv", "--goal", "Temperature 1 within 0.5", "--velocity", "temperature_2:4")
    assert done.code == 0
    assert "Task   lab.toml: 4 states (1 computed), 2 actions, dt = 1 s" in done.out
    task = Task.load("lab.toml")
    names = ("Temperature_1", "Temperature_2", "Temperature_2_dot", "Ambient")
    assert (task.state_names, task.action_names) == (names, ("Heater_1", "Heater_2"))
    assert task.dt == 1
    assert task.setpoints == {"Temperature_1": 23.0}
    assert task.states["Ambient"].external
    assert task.states["Temperature_2_dot"].unit == "degC/s"
    assert task.action_limits.tolist() == [[0, 100], [0, 100]]
    batch = Batch.load("lab.csv", task)
    temperature, speed = batch.states[:, 1], batch.states[:, 2]
    keep = round(np.exp(-1 / 4), 3)
    rate = np.diff(temperature)
    expected = [0.0]
    for value in rate:
        expected.append(keep * expected[-1] + round(1 - keep, 3) * value)
    np.testing.assert_allclose(speed, expected, atol=1e-9)
    assert "its velocity: the difference, through a first-order filter" in (folder / "lab.toml").read_text()


def test_what_one_says_counts(run: Run, folder: Path) -> None:
    options = "--state angulo --action u --setpoint angulo=45 --limits u=-50,80 --dt 0.02 --out t.toml"
    assert run("init", "drone.csv", *options.split(), "--goal", "angulo within 2.5").code == 0
    task = Task.load("t.toml")
    assert task.setpoints == {"angulo": 45.0}
    assert task.action_limits.tolist() == [[-50, 80]]
    assert task.dt == 0.02
    assert 'track = "angulo", tolerance = 2.5' in (folder / "t.toml").read_text()
    assert len(Batch.load("drone.csv", task)) < 1600


def test_a_file_is_not_overwritten(run: Run, folder: Path) -> None:
    (folder / "drone.toml").write_text("mine")
    done = run("init", "drone.csv")
    assert is_one_line(done)
    assert "drone.toml: already exists: use --out FILE.toml, or --force" in done.err
    assert (folder / "drone.toml").read_text() == "mine"
    assert run("init", "drone.csv", "--force").code == 0
    assert Task.load("drone.toml").name == "drone"


@pytest.mark.usefixtures("folder")
def test_questions_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearloop.cli.init._on_terminal", lambda: True)
    answers = iter(["u_pct", "angulo_deg", "referencia", "angulo"])
    asked = []

    def prompt(question: str, default: str, show_default: bool) -> str:
        assert question.endswith(f" [{default}]")
        assert not show_default
        asked.append((question.split(" (")[0], default))
        return next(answers)

    monkeypatch.setattr("typer.prompt", prompt)
    assert run("init", "drone.csv").code == 0
    assert asked == [
        ("Actions that the controller sets", "u_pct"),
        ("States that are measured", "angulo_deg"),
        ("Setpoint of angulo_deg", "referencia"),
        ("Velocities to derive", "-"),
    ]
    assert Task.load("drone.toml").state_names == ("angulo", "angulo_dot")


@pytest.mark.usefixtures("folder")
def test_a_wrong_answer_is_asked_again_and_the_others_are_kept(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearloop.cli.init._on_terminal", lambda: True)
    # A column that is not there; then no goal, so that all is asked again with the answers as defaults.
    answers = ["u_pc", "u_pct", "angulo_deg", "-", "angulo:fast", "angulo:0.1", "", "", "50", ""]
    asked: list[str] = []

    def prompt(question: str, default: str, show_default: bool) -> str:  # noqa: ARG001
        asked.append(question)
        return answers[len(asked) - 1] or default

    monkeypatch.setattr("typer.prompt", prompt)
    done = run("init", "drone.csv")
    assert (done.code, len(asked)) == (0, len(answers))
    said = " ".join(done.out.split())
    assert "no column 'u_pc'; did you mean 'u_pct'?" in said
    assert "--velocity angulo:fast: expected STATE, or STATE:SECONDS" in said
    assert "give --setpoint angulo=COLUMN or --setpoint angulo=NUMBER" in said
    assert asked[6:8] == [
        "Actions that the controller sets (columns, with ; between them) [u_pct]",
        "States that are measured (columns, with ; between them) [angulo_deg]",
    ]
    assert asked[-1].endswith(" [angulo:0.1]")
    task = Task.load("drone.toml")
    assert task.setpoints == {"angulo": 50.0}
    assert "angulo_dot" in task.state_names


ERRORS = {
    "init none.csv": "none.csv: cannot be read",
    "init drone.csv --out x.txt": "--out x.txt: expected a name that ends in .toml",
    "init drone.csv --state speed": "drone.csv: no column 'speed'; the columns are: 'tempo_ms', ",
    "init drone.csv --state angul": "drone.csv: no column 'angul'; did you mean 'angulo'?",
    "init drone.csv --action angulo --state angulo": "column 'angulo_deg' has two roles",
    "init drone.csv --setpoint angulo": "--setpoint angulo: expected NAME=VALUE",
    "init drone.csv --setpoint u=3": "drone.csv: no column 'u'; the columns are: 'angulo_deg'",
    "init drone.csv --setpoint angulo=here": "drone.csv: no column 'here'",
    "init drone.csv --goal angulo": '--goal angulo: expected "STATE within TOLERANCE"',
    "init drone.csv --velocity angulo:fast": "--velocity angulo:fast: expected STATE, or STATE:SECONDS",
    "init drone.csv --limits u=5": "--limits u=5: expected ACTION=LOW,HIGH",
    "init drone.csv --limits u=5,1": "--limits u=5,1: expected ACTION=LOW,HIGH",
    "init drone.csv --limits w=0,1": "no column 'w'; the columns are: 'tempo_ms', ",
    "init drone.csv --dt 0": "--dt 0: expected a number of seconds above 0",
    "init drone.csv --dt nan": "--dt nan: expected a number of seconds above 0",
    "init lab.csv --state operator": "lab.csv: column 'operator' holds text, not numbers",
    "init still.csv": "still.csv: cannot tell which column is the action: give --action COLUMN",
    "init still.csv --action u --setpoint level=1": "column 'u' never changes: the log does not show",
    "init timeless.csv": "no column tells the time: give the seconds between two rows as --dt",
    "init timeless.csv --dt 1": "no state has a setpoint, and taken as actions are 'u': give --setp",
    "init summed.csv --dt 1 --setpoint level=2 --integral level": "the log already has 'level_sum'",
    "init summed.csv --dt 1 --setpoint level=2 --velocity level": "the log already has 'level_dot'",
    "data record None-v0 --out x.csv": "None-v0: there is no such Gymnasium environment here",
    "data record Blackjack-v1 --out x.csv": "Blackjack-v1: observes ",
    "data record Pendulum-v1 --out x.txt": "--out x.txt: expected a name that ends in .csv or .parquet",
    "data convert drone.csv --task cartpole --out x.txt": "--out x.txt: expected a name that ends in .csv",
}


@pytest.mark.parametrize("command", ERRORS)
def test_an_error_is_one_line(run: Run, folder: Path, command: str) -> None:
    (folder / "still.csv").write_text("t,level,u\n0,1,5\n1,2,5\n2,4,5\n")
    (folder / "timeless.csv").write_text("level,u\n1,5\n2,4\n4,5\n")
    (folder / "summed.csv").write_text("level,level_dot,level_sum,u\n1,2,5,0\n2,4,3,1\n4,5,2,3\n")
    before = sorted(folder.iterdir())
    done = run(*command.split())
    assert ERRORS[command] in done.err
    assert is_one_line(done)
    assert sorted(folder.iterdir()) == before


@pytest.mark.usefixtures("folder")
def test_an_environment_becomes_a_task(run: Run) -> None:
    assert run("data", "record", "Pendulum-v1", "--steps", "450", "--out", "one.csv").code == 0
    done = run("data", "record", "Pendulum-v1", "--steps", "450", "--out", "two.csv")
    assert "450 transitions in 3 episodes, random actions" in done.out
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
    assert run("init", "one.csv", "--dt", "0.05").code == 0
    task = Task.load("one.toml")
    assert (task.state_names, task.action_names) == (("obs_0", "obs_1", "obs_2"), ("action_0",))
    assert task.reward.column == "reward"
    batch = Batch.load("one.csv", task)
    assert (len(batch), batch.episode_count) == (450, 3)
    assert run("data", "record", "CartPole-v1", "--steps", "100", "--out", "pole.parquet").code == 0
    frame = pl.read_parquet("pole.parquet")
    assert set(frame["action_0"].drop_nulls()) == {0.0, 1.0}
    assert frame["terminal"].sum() >= 3


def drafted(run: Run, name: str, frame: pl.DataFrame, *options: str) -> Task:
    frame.write_csv(f"{name}.csv")
    done = run("init", f"{name}.csv", *options)
    assert (done.code, done.err) == (0, "")
    return Task.load(f"{name}.toml")


HEADERS = [
    ("Time (min)", 60.0, "yref"), ("t_h", 3600.0, "SP"), ("Zeit [Stunden]", 3600.0, "y_soll"),
    ("minutes", 60.0, "referencia"), ("Time (hr)", 3600.0, "Set Point"), ("tempo_ms", 0.001, "sp_y"),
    ("elapsed", 1.0, "ySP"), ("t", 1.0, "r"), ("t", 1.0, "ref"),
]  # fmt: skip


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("time", "dt", "setpoint"), HEADERS)
def test_a_closed_loop_is_drafted_without_a_word(run: Run, time: str, dt: float, setpoint: str) -> None:
    frame = aimed(PI, rows=1500, hold=(80, 160), span=(40, 70))(np.random.default_rng(0))
    frame = frame.rename({"aim": setpoint, "u": "Tc"}).with_columns(pl.int_range(1500).alias(time))
    task = drafted(run, "loop", frame)
    assert (task.state_names, task.action_names) == (("y",), ("Tc",))
    assert task.setpoints == {"y": setpoint}
    assert task.dt == dt


@pytest.mark.usefixtures("folder")
def test_columns_without_a_setpoint_are_actions(run: Run) -> None:
    rng = np.random.default_rng(0)
    frame = two_by_two(rng).with_columns(t=pl.int_range(3000))
    names = {"y1": "T1", "y2": "T2", "u1": "Q1", "u2": "Q2", "aim1": "SP1", "aim2": "SP2"}
    task = drafted(run, "two", frame.rename(names))
    assert (task.state_names, task.action_names) == (("T1", "T2"), ("Q1", "Q2"))
    assert task.setpoints == {"T1": "SP1", "T2": "SP2"}
    named = frame.rename(names | {"u1": "alpha", "u2": "beta"}).drop("SP1", "SP2")
    limits = ["--limits", "alpha=0,100", "--limits", "beta=0,100", "--setpoint", "T1=45"]
    assert drafted(run, "named", named, *limits).action_names == ("alpha", "beta")


@pytest.mark.usefixtures("folder")
def test_limits_come_from_the_body_of_the_log(run: Run) -> None:
    frame = startup(np.random.default_rng(0)).with_columns(t=pl.int_range(3000))
    low, high = drafted(run, "started", frame).action_limits[0]
    rest = frame["u"][2:]
    assert low <= rest.min() < low + 10
    assert high - 10 < rest.max() <= high
    done = run("data", "check", "started.csv", "--task", "started.toml")
    assert "single rows, such as those of a startup" in " ".join(done.out.split())


@pytest.mark.usefixtures("folder")
def test_the_draft_looks_as_far_ahead_as_the_loop_needs(run: Run) -> None:
    slow = Loop(gain=0.9, lag=120, kp=1.0, ki=0.01, noise=0.05)
    frame = aimed(slow, rows=9000, hold=(600, 900), span=(40, 70))(np.random.default_rng(0))
    task = drafted(run, "slow", frame.with_columns(t=pl.int_range(9000)))
    assert 200 <= task.horizon <= 500
    assert task.discount**task.horizon == pytest.approx(0.05, rel=0.1)
    assert task.state_names == ("y",)  # nothing disturbs it
    disturbed = Loop(gain=0.9, lag=120, kp=1.0, ki=0.01, noise=0.05, drift=0.3)
    frame = aimed(disturbed, rows=9000, hold=(600, 900), span=(40, 70))(np.random.default_rng(0))
    assert drafted(run, "load", frame.with_columns(t=pl.int_range(9000))).state_names == ("y", "y_sum")
    assert "because the log shows disturbances" in Path("load.toml").read_text(encoding="utf-8")


@pytest.mark.usefixtures("folder")
def test_a_quiet_log_gets_a_larger_weight_of_changes(run: Run) -> None:
    weights = []
    for kd in (0.0, 60.0):
        loop = Loop(gain=0.9, lag=40, kp=2.0, ki=0.05, kd=kd, noise=0.1)
        frame = aimed(loop, rows=3000, hold=(150, 300), span=(40, 70))(np.random.default_rng(0))
        task = drafted(run, f"kd{kd:.0f}", frame.with_columns(t=pl.int_range(3000)))
        weights.append(next(term.weight for term in task.reward.terms if term.kind == "rate"))
    assert weights[0] > 3 * weights[1] >= 0.3
