"""Sec. 4.4 of the paper: from a player's 17,000 transitions, an equation that balances a cart-pole.

`python -m reproductions.hardware [BUDGET] [SEED]…`; by default `standard`, and seeds 0 to 4. Each seed has a
batch and models of its own. The chosen equation is tried on the twin, which no search has seen. Runs are kept
in runs/hardware, and not repeated.
"""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clearloop.controllers import Controller, Equation, load
from clearloop.data import Batch
from clearloop.evaluation import evaluate
from clearloop.plants.scenarios import Scenarios
from clearloop.runs import Front, RunDirectory
from clearloop.task import Task
from clearloop.task.task import read_task

FOLDER = Path("runs/hardware")
TASK = "cartpole-hardware"
SEEDS = range(5)
TRIALS = 200
SECONDS = 60.0
UPRIGHT = {"angle": [-0.05, 0.05], "place": [-0.1, 0.1]}  # as well as a hand can hold it
ENOUGH = 0.95  # of the trials
LQR = "38.8*theta + 10.1*theta_dot/0.025 + 2.8*rho + 3.9*rho_dot/0.025"


@dataclass(frozen=True)
class Trials:
    """How long the pole was up."""

    seconds: np.ndarray
    upright: float
    """share of the trials that nothing fell in"""

    def __str__(self) -> str:
        error = self.seconds.std(ddof=1) / np.sqrt(len(self.seconds))
        return f"{100 * self.upright:5.1f} % | {self.seconds.mean():5.1f} ± {error:.1f} s"


def main() -> None:
    budget, *numbers = sys.argv[1:] or ["standard"]
    seeds = [int(number) for number in numbers] or list(SEEDS)
    runs = {seed: learn(TASK, budget, seed) for seed in seeds}
    blind = {seeds[0]: learn(forgetful(), budget, seeds[0], "--force")}  # else its model may be refused
    print(f"{TASK}, {budget}: {TRIALS} trials of {SECONDS:.0f} s from upright starts\n")
    print("| controller | up to the end | up for |\n|---|---|---|")
    for seed, run in runs.items():
        print(f"| the player, batch of seed {seed} | | {played(run)} |")
    lqr, equation = Equation(outputs={"force": LQR}), load("examples/published/hardware.json")
    print(f"| the published LQR, on differences | {tried(lqr, trial_task())} |")
    print(f"| the same, if the cart had no friction | {tried(lqr, trial_task({'rub': 0.0}))} |")
    print(f"| the published hardware equation | {tried(equation, trial_task())} |")
    for label, folders in (("history = 1", blind), ("GPRL", runs)):
        kept = []
        for seed, run in folders.items():
            controller, formula = chosen(run)
            outcome = tried(controller, trial_task())
            kept.append(outcome.upright)
            print(f"| {label}, seed {seed}: `{formula}` | {outcome} |")
        good = sum(share >= ENOUGH for share in kept)
        print(f"| {label}: seeds with {ENOUGH:.0%} or more | {good} of {len(kept)} | |")


def forgetful() -> str:
    """The same task with a history of one observation."""
    file = FOLDER / "history-1.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    text, _ = read_task(TASK)
    file.write_text(text.replace("history = 10 ", "history = 1 "), encoding="utf-8")
    return str(file)


def learn(task: str, budget: str, seed: int, *more: str) -> Path:
    out = FOLDER / f"{Path(task).stem}-{budget}-{seed}"
    if not (out / "front.csv").exists():
        again = ["--resume"] if out.exists() else []
        options = ["--budget", budget, "--seed", str(seed), "--out", str(out), *again, *more]
        command = [sys.executable, "-m", "clearloop", "learn", task, *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    return out


def chosen(run: Path) -> tuple[Controller, str]:
    """The pick of the front: the simplest that models and starts of their own cannot tell from the best."""
    front = Front.read(RunDirectory(run))
    entry = front.entries[front.pick]
    return load(run / f"controllers/{entry.controller}.json"), entry.formula


def played(run: Path) -> str:
    """By the person, from the batch."""
    batch = Batch.load(run / "batch.parquet", Task.load(TASK))
    seconds = (np.bincount(batch.episodes) - 1) * Task.load(TASK).dt
    return f"{seconds.mean():5.1f} ± {seconds.std(ddof=1) / np.sqrt(len(seconds)):.1f} s"


def tried(controller: Controller, task: Task) -> Trials:
    """With 1 to pay in every step from the fall on, undiscounted, a penalty counts the rest."""
    outcome = evaluate(controller, task, starts=Scenarios.scoring(task, TRIALS))
    failed = outcome.failed[0]
    seconds = (task.horizon - outcome.penalties[0] + failed) * task.dt
    return Trials(seconds, 1.0 - float(failed.mean()))


def trial_task(changes: Mapping[str, float] | None = None) -> Task:
    """The twin from upright starts, for a minute; only the fall counts. `changes`: of its figures."""
    tables = Task.load(TASK).model_dump(mode="json")
    tables["plant"]["where"] |= changes or {}
    falls = next(case["when"] for case in tables["reward"]["cases"] if case["failure"])
    reward = {"cases": [{"when": falls, "value": -1.0, "failure": True}], "otherwise": 0.0}
    steps = round(SECONDS / tables["dt"])
    return Task.from_dict({**tables, "horizon": steps, "discount": 1.0, "reward": reward, "starts": UPRIGHT})


if __name__ == "__main__":
    main()
