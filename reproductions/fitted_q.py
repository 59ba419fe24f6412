"""Eqs. 1 and 2 of the paper: what fitted Q evaluation says of published controllers, from the batch alone.

`python -m reproductions.fitted_q [networks|trees]…`; by default both. Values are kept in runs/fitted_q, and
not computed twice.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from clearloop.evaluation import evaluate, fitted_q
from clearloop.evaluation.q_evaluation import Approximator, NetworkFits, Trees
from clearloop.files import whole_file
from clearloop.plants.exploration import make_batch
from clearloop.published import CARTPOLE, Published
from clearloop.task import Task

FOLDER = Path("runs/fitted_q")
SEEDS = {"networks": range(10), "trees": range(1)}
APPROXIMATORS: dict[str, type[Approximator]] = {"networks": NetworkFits, "trees": Trees}
MEMORYLESS = [published for published in CARTPOLE if published.file != "pid"]


def main(asked: list[str] | None = None) -> None:
    task = Task.load("cartpole")
    rows = []
    for name in asked or list(SEEDS):
        values: dict[str, list[float]] = {published.file: [] for published in MEMORYLESS}
        for seed in SEEDS[name]:
            for published in MEMORYLESS:
                values[published.file].append(_value(task, published, name, seed))
        rows += [_row(task, published, name, values[published.file]) for published in MEMORYLESS]
        order = np.array([values[file] for file in ("gprl", "lqr", "none")])
        right = int((np.diff(order, axis=0) > 0).all(axis=0).sum())
        print(f"{name}: the order is right for {right} of {order.shape[1]} batches", flush=True)
    print("| controller | approximator | batches | from the batch | lowest, highest | plant | mean error |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(rows))


def _value(task: Task, published: Published, name: str, seed: int) -> float:
    path = FOLDER / f"{published.file}-{name}-{seed}.json"
    if not path.exists():
        batch = make_batch(task, rng=np.random.default_rng(seed))
        began, rng = time.process_time(), np.random.default_rng([seed, 3])
        value = fitted_q(published.load(), task, batch, approximator=APPROXIMATORS[name](), rng=rng)
        print(
            f"{name} seed {seed} {published.file}: {value!r}, {time.process_time() - began:.0f} s", flush=True
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(json.dumps(value.to_dict()).encode())
    return float(json.loads(path.read_text())["penalty"]["mean"])


def _row(task: Task, published: Published, name: str, values: list[float]) -> str:
    plant = evaluate(published.load(), task).penalty
    error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}" if len(values) > 1 else ""
    mean, low, high = np.mean(values), min(values), max(values)
    return (
        f"| {published.title} | {name} | {len(values)} | {mean:.3f}{error} | {low:.3f}, {high:.3f}"
        f" | {plant:.3f} | {mean / plant - 1:+.0%} |"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
