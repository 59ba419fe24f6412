"""`clearloop learn`: what it writes and prints, and what it refuses."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import clearloop
from clearloop.cli.model import manageable
from clearloop.controllers import load
from clearloop.data import Batch
from clearloop.evaluation import evaluate
from clearloop.plants.exploration import make_batch
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from tests.cli.conftest import Done, Run
from tests.methods.small_values import make_values_small
from tests.runs.guessing import PUSHER, make_quick

QUICK = ("--method", "guess", "--budget", "4e5")
COLUMNS = (
    "controller,method,complexity,penalty_model,penalty_model_se,penalty_system,penalty_system_se,"
    "failures_system,formula,penalty_low,penalty_high,penalty_disturbed,"
    "phase_margin,gain_margin,delay_margin,ms,robust"
)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with a small task, which is the current one; models are had in a moment."""
    make_quick(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pusher.toml").write_text(PUSHER)
    return tmp_path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def asked(run: Run, here: Path, store: Path) -> Path:  # noqa: ARG001
    """A finished run: `clearloop learn pusher.toml`; the same for all tests."""
    if not (store / "run").exists():
        done = run("learn", "pusher.toml", *QUICK, "--out", "run")
        assert done.code == 0, done.err
        shutil.copytree("run", store / "run")
    return Path(shutil.copytree(store / "run", "run", dirs_exist_ok=True))


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def error(done: Done) -> str:
    assert done.code == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def test_what_a_run_leaves(asked: Path) -> None:
    task = Task.load("pusher.toml")
    description = json.loads((asked / "run.json").read_text())
    assert description["status"] == "finished"
    assert description["asked"] == {
        "command": "learn",
        "task": "pusher.toml",
        "data": [],
        "methods": {
            "guess": {
                "sizes": [1, 2],
                "spread": 10.0,
                "shape": "normal",
                "most": None,
                "weights": {},
                "rounds": {"guesses": 8, "starts": 16},
            }
        },
        "budget": 400_000,
        "track": "best",
        "value": "model",
        "seed": 0,
        "robust": True,
        "stay": 0.0,
    }
    rows = table(asked / "front.csv")
    assert ",".join(rows[0]) == COLUMNS
    surrogate = Surrogate.load(asked / "surrogate", task)
    for row in rows:
        controller = load(asked / "controllers" / f"{row['controller']}.json")
        assert (controller.limits, controller.dt) == ({"push": (-2.0, 2.0)}, 0.1)
        assert controller.units == {"place": "m", "speed": "m/s", "push": "N"}
        assert int(row["complexity"]) == controller.complexity
        assert row["formula"] == controller.summary
        on_model = evaluate(controller, task, surrogate=surrogate, members=surrogate.judge_members)
        on_system = evaluate(controller, task)
        assert float(row["penalty_model"]) == on_model.penalty  # exactly: it is read as it was written
        assert float(row["penalty_model_se"]) == on_model.standard_error
        assert float(row["penalty_system"]) == on_system.penalty
        assert float(row["failures_system"]) == on_system.failures
    assert [row["controller"] for row in rows] == ["001", "002"]
    timing = table(asked / "timing.csv")
    phases = [f"{row['phase']} {row['method']}" for row in timing]
    assert phases == ["batch ", "surrogate ", "replays ", "search guess", "judgement guess"]
    assert int(timing[3]["steps"]) >= 400_000
    progress = table(asked / "progress.csv")
    best = [float(row["best"]) for row in progress]
    assert best == sorted(best, reverse=True)
    assert int(progress[-1]["steps"]) >= 400_000
    assert not (asked / "checkpoint").exists()


def test_the_same_seed_gives_the_same_bytes(run: Run, asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARLOOP_THREADS", "1")
    assert run("learn", "pusher.toml", *QUICK, "--out", "again").code == 0
    assert run("learn", "pusher.toml", *QUICK, "--out", "other", "--seed", "1").code == 0
    names = ["front.csv", "judged.csv", *(f"controllers/{f.name}" for f in (asked / "controllers").iterdir())]
    assert all((asked / name).read_bytes() == Path("again", name).read_bytes() for name in names)
    assert (asked / "front.csv").read_bytes() != Path("other", "front.csv").read_bytes()


def test_what_it_says(run: Run, here: Path) -> None:  # noqa: ARG001
    done = run("learn", "pusher.toml", *QUICK)
    lines = done.out.splitlines()
    blank = lines.index("")
    batch, surrogate, *replays, search = lines[:blank]
    assert " ".join(replays).startswith("Replays    the models repeat the log with its own actions")
    assert re.fullmatch(r"Batch      600 transitions in \d+ episodes, .* failing", batch)
    assert surrogate == "Surrogate  3 models of the plant: good"
    assert re.fullmatch(r"Search     guess: 2 controllers, 4\d\d,\d\d\d model steps, \d+:\d\d", search)
    assert re.match("The best (robust )?controller, 002, costs ", lines[blank + 1])
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.out.endswith(run("show", "runs/pusher").out)  # its usual place
    document = json.loads(run("learn", "pusher.toml", "--resume", "--json").out)
    assert document["methods"].keys() == {"guess"}
    assert run("show", "runs/pusher", "--json").out == json.dumps(document, ensure_ascii=False) + "\n"


def test_json_is_alone_on_standard_output(run: Run, here: Path) -> None:  # noqa: ARG001
    done = run("learn", "pusher.toml", *QUICK, "--json")
    document = json.loads(done.out)
    assert [row["controller"] for row in document["front"]] == ["001", "002"]
    assert document["pick"]["controller"] in ("001", "002")
    assert document["published"] == []
    assert done.err.splitlines()[0].startswith("Batch")


def test_methods_keep_their_order_and_have_their_settings(run: Run, here: Path) -> None:
    done = run(
        "learn", "pusher.toml", "--method", "gprl", "--method", "guess", "--method", "gprl",
        "--budget", "400000", "--set", "gp.islands=5", "--set", "gprl.gp.population=6", "--set", "sizes=2",
        "--set", "gprl.gp.offspring=6", "--set", "most=3", "--set", "rounds.guesses=1e1",
        "--set", "guess.weights.x=1,2", "--set", "weights.y=3",
    )  # fmt: skip
    assert done.code == 0, done.err
    description = json.loads((here / "runs/pusher/run.json").read_text())
    settings = description["asked"]["methods"]
    assert list(settings) == ["gprl", "guess"]
    assert settings["gprl"]["gp"]["islands"] == [5]
    assert settings["gprl"]["gp"]["population"] == 6
    assert (settings["guess"]["sizes"], settings["guess"]["most"]) == ([2], 3)
    assert settings["guess"]["rounds"]["guesses"] == 10
    assert settings["guess"]["weights"] == {"x": [1.0, 2.0], "y": [3.0]}
    rows = table(here / "runs/pusher/front.csv")
    methods = [row["method"] for row in rows]
    assert methods == sorted(methods, key=["gprl", "guess"].index)
    assert set(methods) == {"gprl", "guess"}
    assert [row["controller"] for row in rows] == [f"{n:03d}" for n in range(1, len(rows) + 1)]


def test_equations_of_a_form_that_the_user_gives(run: Run, here: Path) -> None:  # noqa: ARG001
    words = ("learn", "pusher.toml", "--method", "gprl", "--budget", "4e5", "--out", "run")
    small = ("--set", "gprl.gp.offspring=10", "--set", "gprl.gp.islands=9")
    form = "k1*place + 0.5*tanh({…})"
    done = run(*words, *small, "--form", form)
    assert done.code == 0, done.err
    for row in table(Path("run") / "front.csv"):
        assert re.fullmatch(r"(-?[\d.e-]+\*)?-?place [+-] .*tanh\(.*\)", row["formula"]), row["formula"]
    other = run(*words, "--resume", "--form", "k1*place + {…}")
    assert "run: was started with --set gprl.form" in error(other)
    assert run(*words, "--resume", "--form", f"push={form}").code == 0


def test_a_method_that_does_not_suit_is_left_out(run: Run, here: Path) -> None:
    done = run("learn", "pusher.toml", "--method", "cloning", *QUICK, "--out", "run")
    assert done.code == 0, done.err
    assert "Search     cloning is left out: cloning: there is nothing to clone" in done.err
    assert {row["method"] for row in table(here / "run/front.csv")} == {"guess"}
    left_out = json.loads((here / "run/run.json").read_text())["left_out"]["cloning"]
    assert left_out.startswith("cloning: there is nothing to clone")
    assert json.loads(run("show", "run", "--json").out)["left_out"] == {"cloning": left_out}
    alone = run("learn", "pusher.toml", "--method", "cloning", "--out", "alone")
    assert alone.code == 2
    assert alone.err.splitlines()[-1].startswith("error: cloning: there is nothing to clone")


def test_a_part_of_a_long_log_is_what_its_file_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("clearloop.cli.model.MOST_TRANSITIONS", 300)
    monkeypatch.setattr("clearloop.cli.model.PIECE", 10)
    make_batch(Task.from_toml(PUSHER), rng=np.random.default_rng(0)).save(tmp_path / "log.csv")
    computed = PUSHER.replace("speed = {", 'speed = { formula = "(place - place[t-1])/dt",', 1)
    task = Task.from_toml(computed[: computed.index("[plant]")])
    part = manageable(task, Batch.load(tmp_path / "log.csv", task))
    assert "of its 600 transitions, in evenly" in capsys.readouterr().err
    part.save(tmp_path / "batch.parquet")
    assert Batch.load(tmp_path / "batch.parquet", task).fingerprint() == part.fingerprint()


def test_a_log_of_ones_own_without_a_plant(run: Run, here: Path) -> None:
    assert run("data", "make", "pusher.toml", "--out", "log.csv").code == 0
    (here / "real.toml").write_text(PUSHER[: PUSHER.index("[plant]")])
    done = run("learn", "real.toml", "--data", "log.csv", *QUICK, "--out", "real")
    assert done.code == 0, done.err
    assert "plant:" in done.out
    assert "on plant" not in done.out
    assert " promises " in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    rows = table(here / "real/front.csv")
    assert {row["penalty_system"] + row["penalty_system_se"] + row["failures_system"] for row in rows} == {""}
    document = json.loads(run("show", "real", "--json").out)
    assert document["front"][0]["penalty_system"] is None


Change = Callable[[Path], object]
REFUSED: dict[str, str] = {
    "--method gppl": "no method 'gppl'; did you mean 'gprl'?",
    "--method xyz": "no method 'xyz'; expected one of: gprl",
    "--budget soon": "--budget soon: expected quick, standard, full, or a number of model steps such as 2e9",
    "--budget 0": "--budget 0: expected",
    "--budget -3": "--budget -3: expected",
    "--budget nan": "--budget nan: expected",
    "--budget 1e99": "--budget 1e99: expected",
    "--track bets": "--track bets: expected best or published",
    "--seed -1": "Invalid value for '--seed'",
    "--data none.csv": "none.csv: cannot be read: No such file or directory",
    "--set": "Option '--set' requires an argument",
    "--set sizes": "--set sizes: expected NAME=VALUE or METHOD.NAME=VALUE",
    "--set =3": "--set =3: expected NAME=VALUE or METHOD.NAME=VALUE",
    "--set size=3": "--set size=3: no setting 'size' among sizes, spread, shape, most, weights.NAME,"
    " rounds.guesses, rounds.starts; did you mean 'sizes'?",
    "--set guesses=3": "did you mean 'rounds.guesses'?",
    "--set rounds=3": "--set rounds=3: no setting 'rounds' among",
    "--set weights=3": "--set weights=3: no setting 'weights' among",
    "--set weights.x.y=3": "--set weights.x.y=3: no setting 'weights.x.y' among",
    "--set weights.x=a": "--set weights.x=a: expected a valid",
    "--set sizes.x=3": "--set sizes.x=3: no setting 'sizes.x' among",
    "--set guess.size=3": "did you mean 'sizes'?",
    "--set guess=3": "--set guess=3: no setting '' among",
    "--set gprl.functions=add": "gprl is not a method of this run, whose methods are guess",
    "--set sizes=1,x": "--set sizes=1,x: expected a valid integer",
    "--set most=1.5": "--set most=1.5: expected a valid integer",
    "--set spread=nan": "--set spread=nan: expected a finite number",
    "--set spread=-1": "--set spread=-1: spread must be greater than 0",
    "--set shape=round": "--set shape=round: expected 'normal' or 'uniform'",
    "--form {}": "--form: only gprl searches equations: add --method gprl, or leave --form out",
    "--method gprl --form tanh({x})": "--form of push: unexpected '{' at column 6; a part to search is",
    "--method gprl --form pull={}": "--form: 'pull' is not an action of the task; the task has push",
    "--method gprl --form {} --form push={}": "--form push={}: push has a template already",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_done_is_one_line(run: Run, here: Path, words: str) -> None:
    method = () if "--method" in words else QUICK
    assert REFUSED[words] in error(run("learn", "pusher.toml", *method, *words.split()))
    assert sorted(path.name for path in here.iterdir()) == ["pusher.toml"]


def test_a_run_is_not_overwritten(run: Run, asked: Path) -> None:
    before = (asked / "front.csv").read_bytes()
    message = error(run("learn", "pusher.toml", *QUICK, "--seed", "1", "--out", "run"))
    assert message == (
        "run: already holds a run of 'clearloop learn'; look at it with 'clearloop show run',"
        " continue it with --resume, or choose another --out"
    )
    assert "already holds a run of 'clearloop learn'" in error(run("model", "pusher.toml", "--out", "run"))
    assert "already holds a run of 'clearloop learn'" in error(run("demo", "--out", "run"))
    assert (asked / "front.csv").read_bytes() == before


def test_a_finished_run_is_shown_again(run: Run, asked: Path) -> None:
    done = run(
        "learn", "pusher.toml", "--out", "run", "--resume", *QUICK, "--seed", "0", "--set", "sizes=1,2"
    )
    assert (done.code, done.err) == (0, "")
    assert done.out == run("show", asked).out


DISAGREEING = {
    "--seed 1": "run: was started with --seed 0, not 1; leave --seed out to continue the run, or choose",
    "--budget quick": "run: was started with --budget 400,000, not ",
    "--track published": "run: was started with --track best, not published;",
    "--method gprl": "run: was started with --method guess, not gprl;",
    "--set sizes=1,2,3": "run: was started with --set guess.sizes 1,2, not 1,2,3;",
    "--set rounds.starts=9": "run: was started with --set guess.rounds",
    "--data log.csv": "run: was started with other data than log.csv holds now;",
}


@pytest.mark.parametrize("words", DISAGREEING)
def test_what_was_asked_stays_as_it_was(run: Run, asked: Path, words: str) -> None:
    run("data", "make", "pusher.toml", "--size", "50", "--out", "log.csv")
    message = error(run("learn", "pusher.toml", "--out", asked, "--resume", *words.split()))
    assert DISAGREEING[words] in message


def change_task(run: Path) -> None:
    del run
    Path("pusher.toml").write_text(PUSHER.replace("horizon = 15", "horizon = 16"))


def rename_task(run: Path) -> None:
    del run
    Path("pusher.toml").write_text(PUSHER.replace('"pusher"', '"pusher2"'))


def change_copy(run: Path) -> None:
    shutil.copy(Path(clearloop.__file__).parent / "py.typed", run / "batch.parquet")


def change_version(run: Path) -> None:
    text = (run / "run.json").read_text().replace('"finished"', '"running"')
    (run / "run.json").write_text(text.replace(f'"clearloop": "{clearloop.__version__}"', '"clearloop": "0"'))


def break_description(run: Path) -> None:
    (run / "run.json").write_text("{")


def empty_description(run: Path) -> None:
    (run / "run.json").write_text("{}")


def break_front(run: Path) -> None:
    (run / "front.csv").write_text(COLUMNS + "\n001,guess,x,1,,,,,0\n")


def break_judged(run: Path) -> None:
    (run / "judged.csv").write_text("controller,penalty,penalty_se,extra,extra_se\n")


CHANGES: list[tuple[Change, str]] = [
    (change_task, "run: 'horizon' of the task 'pusher' has changed since the run was started"),
    (rename_task, "run: was started with the task 'pusher', not 'pusher2'"),
    (change_copy, "batch.parquet"),
    (change_version, "run: was started with clearloop 0, not "),
    (break_description, "run.json: damaged: Expecting property name"),
    (empty_description, "run.json: damaged: 'status': Field required"),
    (break_front, "front.csv: damaged: row 1, column 'complexity'"),
    (break_judged, "run: damaged: front.csv and judged.csv name different controllers"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_run_that_was_tampered_with_is_refused(run: Run, asked: Path, change: Change, message: str) -> None:
    change(asked)
    assert message in error(run("learn", "pusher.toml", "--out", asked, "--resume"))


def test_nothing_to_go_on_with_is_a_beginning(run: Run, here: Path) -> None:
    done = run("learn", "pusher.toml", *QUICK, "--resume", "--out", "new")
    assert done.code == 0
    assert done.err.splitlines()[0] == "new: holds no run to continue, so a new run starts"
    assert (here / "new" / "front.csv").exists()


def test_show_of_a_run_that_has_no_front(run: Run, asked: Path, tmp_path: Path) -> None:
    text = (asked / "run.json").read_text()
    (asked / "run.json").write_text(text.replace('"finished"', '"interrupted"'))
    assert error(run("show", asked)) == (
        "run: has no front yet: the run was interrupted;"
        " to continue: clearloop learn pusher.toml --out run --resume"
    )
    (asked / "run.json").write_text(text.replace('"finished"', '"running"'))
    assert "no front yet: the run is running, or was killed" in error(run("show", asked, "--json"))
    (asked / "run.json").write_text(text.replace('"learn"', '"model"'))
    assert "a run of 'clearloop model', which has no front" in error(run("show", asked))
    (asked / "run.json").write_text(text.replace('"learn"', '"bench"'))
    assert "a run of 'clearloop bench', which has no front" in error(run("report", asked))
    assert "holds no run: it has no run.json" in error(run("show", tmp_path))


def test_a_search_on_the_batch_alone(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_values_small(monkeypatch)
    learn = ("learn", "pusher.toml", "--method", "guess", "--budget", "2e7", "--out", "valued")
    done = run(*learn, "--value", "batch")
    assert done.code == 0, done.err
    assert re.search(r"guess: \d controllers?, [\d,]+ logged steps", done.out)
    asked = json.loads((here / "valued" / "run.json").read_text())["asked"]
    assert asked["value"] == "batch"
    pick = json.loads((here / "valued" / "run.json").read_text())["pick"]
    assert "1,024 other starts, by fitted Q evaluation of the batch" in pick["reason"]
    assert error(run(*learn, "--resume", "--value", "model")) == (
        "valued: was started with --value batch, not model;"
        " leave --value out to continue the run, or choose another --out"
    )
    assert run(*learn, "--resume").code == 0


@pytest.mark.usefixtures("here")
def test_values_that_cannot_be(run: Run) -> None:
    learn = ("learn", "pusher.toml", "--value")
    assert error(run(*learn, "plant")) == "--value plant: expected model or batch"
    for method in ("pid", "cloning"):
        assert error(run(*learn, "batch", "--method", method)) == (
            f"--value batch: {method} needs a model: leave out --value or this method"
        )


@pytest.mark.usefixtures("here")
def test_a_run_that_stays_near_the_log_says_how_near(run: Run) -> None:
    done = run("learn", "pusher.toml", *QUICK, "--stay", "1", "--out", "near")
    assert done.code == 0, done.err
    assert json.loads(Path("near/run.json").read_text())["asked"]["stay"] == 1.0
    assert run("learn", "pusher.toml", *QUICK, "--out", "far").code == 0
    near, far = (
        [float(row["departure"]) for row in table(Path(name) / "trust.csv")] for name in ("near", "far")
    )
    assert max(near) < min(far)
    assert "--stay" in error(run("learn", "pusher.toml", "--stay", "0.5", "--out", "near", "--resume"))
    assert "--stay" in error(run("learn", "pusher.toml", "--stay", "1.5", "--out", "x"))
