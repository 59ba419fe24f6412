"""How good the equations of GPRL are at each complexity: experiments with a batch and models of their own.

`python -m reproductions.search [--budget N]… [--seeds N] [--task TASK] [--jobs N]`: by default the cart-pole,
seeds 0 to 9, with the budgets `quick` and 5e8, robustness off. Of each front the best controllers of
complexity at most 33 and at most 41 are chosen by the judging models; the plant only scores them. Fronts are
kept in runs/search, and those that are there are not repeated.
"""

import argparse
import json
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from clearloop.files import read_text, whole_file
from clearloop.methods import BUDGETS, learn
from clearloop.methods.gprl import GPRL
from clearloop.plants.exploration import make_batch
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from reproductions.published_controllers import Mean

FOLDER = Path("runs/search")
LIMITS = (33, 41)  # complexities
LARGEST = 1024 * 1024  # bytes of a front

Front = list[dict[str, Any]]
"""The rows of `Result.front`, from the simplest to the best."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the arguments are those of the process unless given."""
    parser = argparse.ArgumentParser("python -m reproductions.search", description=__doc__)
    parser.add_argument("--budget", action="append", metavar="N", help="quick, standard, or model steps")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="number of experiments (10)")
    parser.add_argument("--task", default="cartpole", help="a built-in task, or a task file (cartpole)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="experiments at the same time (1)")
    parser.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR", help=str(FOLDER))
    asked = parser.parse_args([] if arguments is None else arguments)
    budgets = asked.budget or ["quick", "5e8"]
    work = partial(run, asked.task, budgets, folder=asked.folder)
    # Spawned: neither numba's threads nor those of JAX survive a fork.
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(work, seed) for seed in range(asked.seeds)]):
            print(done.result(), flush=True)
    for budget in budgets:
        fronts = [read(file_of(asked.folder, asked.task, budget, seed)) for seed in range(asked.seeds)]
        print(f"\n{asked.task}, {budget}, seeds 0 to {asked.seeds - 1}\n\n{table(fronts)}")
    return 0


def run(task_name: str, budgets: Sequence[str], seed: int, *, folder: Path) -> str:
    """Search with each budget, unless that was done before, and return a line for each.

    Args:
        task_name: A built-in task, or a task file.
        budgets: Named budgets, or numbers of model steps.
        seed: The number of the experiment.
        folder: Where fronts are kept.
    """
    lines = []
    files = {budget: file_of(folder, task_name, budget, seed) for budget in budgets}
    if missing := [budget for budget in budgets if not files[budget].exists()]:
        task = Task.load(task_name)
        batch = make_batch(task, rng=np.random.default_rng(seed))
        surrogate = Surrogate.fit(task, batch, rng=np.random.default_rng([seed, 1]))
    for budget, file in files.items():
        if budget in missing:
            rng, steps = np.random.default_rng([seed, 2]), BUDGETS.get(budget) or int(float(budget))
            result = learn(task, batch, GPRL(), rng=rng, budget=steps, surrogate=surrogate, robust=False)
            file.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(file) as out:
                out.write(json.dumps(result.front.to_dicts(), indent=1).encode())
        chosen = [best(read(file), limit) for limit in LIMITS]
        found = "   ".join(
            f"<= {n}: {row['penalty_system']:.3f}" for n, row in zip(LIMITS, chosen, strict=True)
        )
        lines.append(f"seed {seed}, {budget:8s} {found}   {chosen[-1]['formula']}")
    return "\n".join(lines)


def file_of(folder: Path, task_name: str, budget: str, seed: int) -> Path:
    """Return the file of an experiment's front."""
    return folder / f"{Path(task_name).stem}-{budget}-{seed}.json"


def read(file: Path) -> Front:
    """Read the front of an experiment."""
    front: Front = json.loads(read_text(file, LARGEST))
    return front


def best(front: Front, limit: int) -> dict[str, Any]:
    """Return the best row of at most this complexity, as the judging models see it, or the simplest row."""
    return [front[0], *(row for row in front if row["complexity"] <= limit)][-1]


def table(fronts: Sequence[Front]) -> str:
    """Write the means over experiments as a table."""
    lines = ["| complexity | promised | on the plant | range |", "|---|---|---|---|"]
    for limit in LIMITS:
        chosen = [best(front, limit) for front in fronts]
        promised, plant = ([row[key] for row in chosen] for key in ("penalty_model", "penalty_system"))
        spread = f"{min(plant):.3f} to {max(plant):.3f}"
        lines.append(f"| at most {limit} | {Mean(promised)} | {Mean(plant)} | {spread} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
