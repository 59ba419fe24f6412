"""NeoRL-2: the script around the searches, on an environment of our own."""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from clearloop.data import Batch
from clearloop.surrogate.steps import Steps, judge_frame
from clearloop.task import Task
from reproductions import neorl2

ENVIRONMENT = """
import gymnasium
import numpy as np
import polars as pl

class Toy(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-10, 10, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        print("this is no answer")
        self.at, self.goal = 0.0, float(seed or 0)
        return np.array([self.at, self.goal]), {}

    def step(self, action):
        self.at += float(action[0])
        return np.array([self.at, self.goal]), -abs(self.at - self.goal), False, False, {}

gymnasium.register("DMSD", entry_point=lambda: Toy(), max_episode_steps=3)
"""
TASK = """
name = "toy"
dt = 1.0
discount = 1.0
horizon = 3
[states]
at = { setpoint = "goal" }
[actions]
push = { limits = [-1.0, 1.0] }
[reward]
expression = "-abs(at.error)"
[starts]
from = "episodes"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The benchmark in small: an archive, the environment, and a run that `learn` would have left."""
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(20, 4, 2))
    n = 20 * 3
    np.savez(
        tmp_path / "DMSD-high-60-train.npz",
        obs=seen[:, :-1].reshape(n, 2),
        next_obs=seen[:, 1:].reshape(n, 2),
        action=rng.uniform(-1, 1, (n, 1)),
        reward=np.full(n, 10.0),
        done=np.zeros(n),
        truncated=np.tile([0, 0, 1], 20),
    )
    package = tmp_path / "checkout" / "neorl2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(ENVIRONMENT, encoding="utf-8")
    run = tmp_path / "out" / "DMSD-0"
    (run / "controllers").mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"status": "finished", "pick": {"controller": "002"}}))
    law = {"clearloop": 1, "kind": "equation", "outputs": {"push": "-at"}}
    (run / "controllers" / "002.json").write_text(json.dumps(law))
    (run / "front.csv").write_text(
        "controller,method,complexity,penalty_model,formula,penalty_low,penalty_high\n"
        "001,gprl,1,9,0,,\n002,gprl,2,1.5,push = -at,1,2\n"
    )
    (run / "timing.csv").write_text("phase,method,seconds\nbatch,,30\nsearch,gprl,60\n")
    return tmp_path


def test_picks_are_scored_in_the_true_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = folder / "tasks"
    tasks.mkdir()
    (tasks / "DMSD.toml").write_text(TASK, encoding="utf-8")
    monkeypatch.setattr(neorl2, "TASKS", tasks)
    words = ["--data", str(folder), "--env", str(folder / "checkout"), "--seeds", "0", "--episodes", "3"]
    words += ["--python", sys.executable, "--out", str(folder / "out")]
    assert neorl2.main(words) == 0

    # From 0 to the seed in steps of 1: the distances that are left are 0, then 0, then 1 + 0 + 0.
    scores = folder / "out" / "DMSD-0" / "scores.jsonl"
    assert [json.loads(line)["return"] for line in scores.read_text().splitlines()] == [0.0, 0.0, -1.0]
    shown = capsys.readouterr().out
    score = neorl2.PUBLISHED["DMSD"].score(-1 / 3)
    assert f"| **{score:.1f}** | 1 |" in shown
    assert "| DMSD | 0.0 |" not in shown
    assert f"| DMSD | {neorl2.PUBLISHED['DMSD'].score(30.0):.1f} |" in shown  # 3 rewards of 10
    assert "| DMSD, 0 | -1.5 | -2 … -1 | -0.3 ± 0.3 | 3 | +350% |  | 2 | 1.5 |" in shown
    assert (folder / "out" / "table.md").read_text() == shown.removesuffix("\n")

    assert (folder / "out" / "neorl2.png").read_bytes().startswith(b"\x89PNG")

    before = scores.read_bytes()
    assert neorl2.main([*words[:-6], "--episodes", "2", *words[-4:]]) == 0  # nothing is left to run
    assert scores.read_bytes() == before


def test_a_task_without_a_file_is_drafted(folder: Path) -> None:
    log = folder / "DMSD-high-60-train.npz"
    task = Task.from_toml(neorl2.draft("Other", log))
    assert task.reward.column == "reward"
    assert (task.horizon, task.discount, task.state_names) == (3, 1.0, ("obs_0", "obs_1"))
    assert Batch.load(log, task).episode_count == 20
    assert neorl2.places(task, log)["states"] == {"obs_0": 0, "obs_1": 1}


def test_errors_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert neorl2.main(["--data", str(folder / "checkout")]) == 2
    assert "holds no archive such as" in capsys.readouterr().err
    assert neorl2.main(["--data", str(folder), "--tasks", "Pump"]) == 2
    assert "no archive Pump-*.npz; there are: DMSD" in capsys.readouterr().err


@pytest.mark.parametrize("name", [path.stem for path in sorted(neorl2.TASKS.glob("*.toml"))])
def test_task_files_are_whole(name: str) -> None:
    task = Task.load(neorl2.TASKS / f"{name}.toml")
    assert task.name == name
    assert task.discount == 1
    assert task.starts_with_episodes
    assert task.reward_expression is not None


def test_the_lander_ends_once_and_is_paid_once() -> None:
    """An end that pays once: the step that touches down earns 100, and all later ones 0."""
    task = Task.load(neorl2.TASKS / "RocketRecovery.toml")
    y = [0.2, 0.1, 0.02, 0.01]
    rest = dict.fromkeys(("x", "vx", "vy", "angle", "spin", "wind", "main", "side"), [0.0] * 4)
    batch = Batch.from_frame(pl.DataFrame(rest | {"y": y}), task)
    rewards, _ = judge_frame(task, Steps.of(task, batch).frame)
    np.testing.assert_allclose(rewards, [10.0, 100.0, 0.0], rtol=1e-6)
