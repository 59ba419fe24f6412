"""`verify`: what is the same passes, what is not is found, and the bench beside it runs."""

import csv
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clearloop.controllers import Controller, Equation, Linear, load
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.exports import DOUBLE, SINGLE, Precision, lower
from clearloop.expression import Variable
from clearloop.registry import TARGETS
from clearloop.task import Task
from clearloop.verification import Amount, Verdict, verify
from clearloop.verification import verdict as verdicts
from clearloop.verification.testbench import FLAGS
from clearloop.verification.vectors import vectors
from clearloop.verification.verdict import Actions, BenchTrial, logged
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.surrogate.models import cartpole_log

PUBLISHED = sorted((Path(__file__).parents[2] / "examples" / "published").glob("*.json"))
FEW = Amount(episodes=3, length=12, after=1, tries=0, share=0.1)


def judged(
    controller: Controller, folder: Path, to: str = "python", precision: str = "double", amount: Amount = FEW
) -> Verdict:
    rng = np.random.default_rng(0)
    return verify(controller, to=to, folder=folder, rng=rng, precision=precision, amount=amount)


@pytest.mark.parametrize("to", [name for name, target in TARGETS.items() if target.verifier])
@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.stem)
def test_the_published_controllers_are_equal(file: Path, to: str, tmp_path: Path) -> None:
    verdict = judged(load(file).for_task(CARTPOLE), tmp_path, to)
    assert verdict.equal
    assert verdict.left_out <= 0.1 * verdict.vectors
    assert verdict.vectors >= 2


@pytest.mark.parametrize("name", ["motor", "pendulum", "tank"])
def test_controllers_that_derive_states_and_follow_setpoints_are_equal(name: str, tmp_path: Path) -> None:
    task = Task.load(name)
    row = dict.fromkeys(task.state_names, 0.5)
    linear = Linear(gains={action: {**row, f"{action}[t-1]": 0.1} for action in task.action_names})
    verdict = judged(linear.for_task(task), tmp_path)
    assert verdict.equal
    assert verdict.left_out == 0


@pytest.mark.parametrize("kind", ["lagging equation", "fuzzy", "greedy-q"])
def test_c_in_single_precision(kind: str, tmp_path: Path) -> None:
    verdict = judged(KINDS[kind].for_task(CARTPOLE), tmp_path, "c", "single")
    assert verdict.equal
    assert verdict.difference > 0 or kind == "greedy-q"


def sabotage(trial: BenchTrial, old: str, new: str) -> None:
    file = trial.folder / trial.main
    text = file.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("to", "old", "new"),
    [
        ("python", "> 0.12", ">= 0.12"),  # differs at one single number
        ("python", "0.1*", "0.10000000001*"),
        ("javascript", "memory.theta_dot_past[8]", "memory.theta_dot_past[7]"),
        ("c", "limited(memory->rho_setpoint)", "0.3"),
    ],
)
def test_a_small_mistake_is_found(
    to: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest: Callable[[BenchTrial], Actions] = getattr(verdicts, f"run_{to}")

    def run(trial: BenchTrial) -> Actions:
        sabotage(trial, old, new)
        return honest(trial)

    monkeypatch.setattr(verdicts, f"run_{to}", run)
    verdict = judged(KINDS["lagging equation"].for_task(CARTPOLE), tmp_path, to, amount=Amount(episodes=3))
    assert not verdict.equal
    assert verdict.difference > verdict.tolerance


def test_the_bench_of_c_can_be_run_by_hand(tmp_path: Path) -> None:
    judged(KINDS["pid"].for_task(CARTPOLE), tmp_path, "c")
    assert {file.name for file in tmp_path.iterdir()} == {
        "controller.c",
        "controller.h",
        "controller_bench.c",
        "vectors.csv",
    }
    build = ["gcc", *FLAGS, "-Werror", "controller.c", "controller_bench.c", "-lm", "-o", "bench"]
    subprocess.run(build, cwd=tmp_path, check=True)
    done = subprocess.run(["./bench", "vectors.csv"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.endswith("largest difference 0: equal\n")
    (tmp_path / "vectors.csv").write_text("names\n0,1,0.1,0,0,5\n")
    done = subprocess.run(["./bench", "vectors.csv"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(": ")[1]) == (1, "NOT EQUAL\n")


def test_vectors_hold_what_the_controller_does(tmp_path: Path) -> None:
    equation = Equation(outputs={"u": "2*x - rho + u[t-1]"}, limits={"u": (-1, 1)}, setpoint={"rho": 0.5})
    judged(equation, tmp_path)
    rows = list(csv.DictReader((tmp_path / "vectors.csv").read_text().splitlines()))
    assert list(rows[0]) == ["episode", "compare", "x", "rho", "rho.setpoint", "u"]
    memory, last = equation.reset(), "-1"
    for row in rows:
        memory, last = (equation.reset(), row["episode"]) if row["episode"] != last else (memory, last)
        observation = {name: float(row[name]) for name in ("x", "rho")}
        found = equation.act(observation, memory, {"rho": float(row["rho.setpoint"])})
        assert found == {"u": float(row["u"])}


def test_vectors_are_on_both_sides_of_every_edge() -> None:
    equation = Equation(outputs={"u": "if(x*y > 2, 1, 0) + 1/(x - 3) + max(x + y, 0.25)"})
    routine, rng = lower(equation), np.random.default_rng(0)
    made = vectors(routine, DOUBLE, rng=rng, amount=Amount(episodes=0, length=0, tries=3, share=0.0))
    x = np.array([step[Variable("x")] for episode in made for step in episode[:1]])
    y = np.array([step[Variable("y")] for episode in made for step in episode[:1]])
    for edge in (x * y - 2, x - 3, x + y - 0.25):
        near = np.sort(np.abs(edge))[:2]
        assert (near < 1e-14).all()
        assert (edge[np.abs(edge) < 1e-14] <= 0).any()
        assert (edge[np.abs(edge) < 1e-14] >= 0).any()


def test_vectors_reach_the_limits_of_the_numbers() -> None:
    for precision in (DOUBLE, SINGLE):
        made = vectors(
            lower(KINDS["linear"]), precision, rng=np.random.default_rng(0), amount=Amount(episodes=1)
        )
        values = np.array([value for episode in made for step in episode for value in step.values()])
        assert np.abs(values).max() == precision.largest
        assert {0.0, precision.rounded(1e12), precision.rounded(-1e300)} <= set(values.tolist())
        assert all(precision.rounded(value) == value for value in values.tolist())


@pytest.mark.parametrize("precision", [DOUBLE, SINGLE], ids=lambda one: one.name)
def test_constants_are_tried_with_their_neighbours(precision: Precision) -> None:
    routine = lower(Equation(outputs={"u": "if(x > 0.1, 1, 0)"}))
    made = vectors(routine, precision, rng=np.random.default_rng(0), amount=Amount(episodes=0, tries=0))
    values = {step[Variable("x")] for episode in made for step in episode}
    near = precision.rounded(0.1)
    assert {near, precision.neighbour(near, 1), precision.neighbour(near, 0), -near} <= values


def test_the_states_of_a_log_are_tried() -> None:
    batch = cartpole_log(300)
    routine = lower(KINDS["lagging equation"].for_task(CARTPOLE))
    episodes = logged(routine, CARTPOLE, batch)
    assert len(episodes) == batch.episode_count
    column = [step[Variable("theta_dot")] for episode in episodes for step in episode]
    assert column == batch.states[:, CARTPOLE.state_names.index("theta_dot")].tolist()
    assert {step[Variable("rho", "setpoint")] for episode in episodes for step in episode} == {0.3}
    assert isinstance(batch, Batch)


def test_a_tool_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for to, tool in (("c", "gcc"), ("javascript", "node")):
        with pytest.raises(ClearloopError, match=f"^{tool} is not installed: install it"):
            judged(KINDS["equation"], tmp_path, to)


def test_what_does_not_run_cannot_be_verified(tmp_path: Path) -> None:
    with pytest.raises(ClearloopError, match="--to latex: LaTeX has no verifier"):
        judged(KINDS["equation"], tmp_path, "latex")
