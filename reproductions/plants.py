"""Other plants than the cart-pole: the best of each front, beside LQR, PID and the controller of the log.

`python -m reproductions.plants [BUDGET] [PLANT]…`; by default `standard`, and all three. Each run has a batch
and models of its own. Runs are kept in runs/plants, and not repeated.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl

from clearloop.controllers import Controller, load
from clearloop.evaluation import evaluate
from clearloop.task import Task
from reproductions.published_controllers import Mean

FOLDER = Path("runs/plants")
METHODS = {"pendulum": ("gprl",), "tank": ("lqr", "pid", "gprl"), "motor": ("lqr", "pid", "gprl")}
SEEDS = range(3)
EPISODES = 100  # of Gymnasium's pendulum


def main() -> None:
    budget, *plants = sys.argv[1:] or ["standard"]
    for plant in plants or METHODS:
        print(f"{plant}, {budget}, seeds {SEEDS.start} to {SEEDS.stop - 1}, 1,024 scenarios")
        fronts = [learn(plant, budget, seed) for seed in SEEDS]
        if Path(f"examples/plants/{plant}.json").exists():
            logged = evaluate(load(f"examples/plants/{plant}.json"), Task.load(plant))
            print(f"  the log's controller              {logged.penalty:.3f}")
        for method in METHODS[plant]:
            best = [front.filter(pl.col("method") == method)[-1] for front in fronts]
            promised, charged = (
                Mean([float(row[column].item()) for row in best])
                for column in ("penalty_model", "penalty_system")
            )
            print(f"  {method:<10} promised {promised}   plant {charged}")
        for seed, front in zip(SEEDS, fronts, strict=True):
            row = front.filter(pl.col("method") == "gprl")[-1]
            print(f"  seed {seed}: {row['formula'].item()}")
            if plant == "pendulum":
                controller = load(
                    FOLDER / f"{plant}-{budget}-{seed}/controllers/{row['controller'].item()}.json"
                )
                print(f"    Pendulum-v1: mean return {gymnasium_return(controller)} over {EPISODES} episodes")


def learn(plant: str, budget: str, seed: int) -> pl.DataFrame:
    out = FOLDER / f"{plant}-{budget}-{seed}"
    if not (out / "front.csv").exists():
        methods = [word for method in METHODS[plant] for word in ("--method", method)]
        again = ["--resume"] if out.exists() else []
        options = ["--budget", budget, "--seed", str(seed), "--out", str(out), *again]
        command = [sys.executable, "-m", "clearloop", "learn", plant, *methods, *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    return pl.read_csv(out / "front.csv", schema_overrides={"controller": pl.String})


def gymnasium_return(controller: Controller) -> Mean:
    """In the environment itself, from its resets with seeds 0, 1, 2, …"""
    import gymnasium

    environment, returns = gymnasium.make("Pendulum-v1"), []
    task = Task.load("pendulum")
    controller = controller.for_task(task)
    for seed in range(EPISODES):
        observation, _ = environment.reset(seed=seed)
        memory, total, over = controller.reset(), 0.0, False
        while not over:
            action = controller.act(dict(zip(task.states, map(float, observation), strict=True)), memory)
            observation, reward, _, over, _ = environment.step(np.array([action["torque"]]))
            total += float(reward)
        returns.append(total)
    return Mean(returns)


if __name__ == "__main__":
    main()
