"""The searched methods, on the cart-pole: what the best of each front promises, and what the plant charges.

`python -m reproductions.readable_methods [METHOD[:BUDGET]]…`; by default all of them with the budget
`standard`, and GPRL with a quarter of it. Fronts are kept in runs/readable_methods, and not learned twice.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from clearloop.controllers import Fuzzy
from clearloop.files import whole_file
from clearloop.methods import learn
from clearloop.methods.registry import find_method
from clearloop.plants.exploration import make_batch
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from reproductions.published_controllers import SEEDS, Mean

FOLDER = Path("runs/readable_methods")
ASKED = ("gprl", "gprl:quick", "fgprl", "fpsrl", "psonn")


def main() -> None:
    task = Task.load("cartpole")
    asked = [name.partition(":") for name in sys.argv[1:] or ASKED]
    jobs = [(method, budget or "standard") for method, _, budget in asked]
    fronts: dict[tuple[str, str], list[dict[str, Any]]] = {job: [] for job in jobs}
    for seed in SEEDS:
        for job in jobs:
            path = FOLDER / f"{job[0]}-{job[1]}-{seed}.json"
            if not path.exists():
                front = run(task, *job, seed)
                path.parent.mkdir(parents=True, exist_ok=True)
                with whole_file(path) as file:
                    file.write(json.dumps(front, indent=1).encode())
            fronts[job].append(json.loads(path.read_text()))
    report(fronts)


def run(task: Task, method: str, budget: str, seed: int) -> dict[str, Any]:
    batch = make_batch(task, rng=np.random.default_rng(seed))
    surrogate = model(task, batch, seed)
    began = time.monotonic()
    result = learn(
        task,
        batch,
        find_method(method)(),
        rng=np.random.default_rng([seed, 2]),
        budget=budget,
        surrogate=surrogate,
    )
    seconds = time.monotonic() - began
    rows = []
    for point, row in zip(result.points, result.front.to_dicts(), strict=True):
        rules = point.controller if isinstance(point.controller, Fuzzy) else None
        bases = list(rules.outputs.values()) if rules else []
        rows.append(
            row
            | {"rules": sum(len(base.rules) for base in bases)}
            | {"features": len({name for base in bases for rule in base.rules for name in rule.premise})}
        )
    print(f"{method} {budget} seed {seed}: {seconds:.0f} s, {result!r}", flush=True)
    return {"seconds": seconds, "front": rows}


def model(task: Task, batch: Any, seed: int) -> Surrogate:
    folder = FOLDER / f"model-{seed}"
    if not (folder / "surrogate.json").exists():
        Surrogate.fit(task, batch, rng=np.random.default_rng([seed, 1])).save(folder)
    return Surrogate.load(folder, task)


def report(fronts: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    print("| method | budget | promised | on the plant | failures | complexity | seconds |")
    print("|---|---|---|---|---|---|---|")
    for (method, budget), runs in fronts.items():
        for name, chosen in choices(method, runs):
            columns = [
                [row[key] for row in chosen]
                for key in ("penalty_model", "penalty_system", "failures_system", "complexity")
            ]
            seconds = np.mean([run["seconds"] for run in runs])
            print(f"| {name} | {budget} | {' | '.join(str(Mean(c)) for c in columns)} | {seconds:.0f} |")


def choices(method: str, runs: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The best of each front; and the best of those that are as simple as something published."""
    picks = [(method, [run["front"][-1] for run in runs])]
    if method == "gprl":
        picks.append(("gprl, complexity to 15", _last(runs, lambda row: row["complexity"] <= 15)))
    if method == "fpsrl":
        picks += [(f"fpsrl, {n} rules", _last(runs, lambda row, n=n: row["rules"] == n)) for n in (2, 4)]
    if method == "fgprl":
        picks.append(
            ("fgprl, 2 rules, 3 features", _last(runs, lambda r: r["rules"] == 2 and r["features"] <= 3))
        )
    return picks


def _last(runs: list[dict[str, Any]], fits: Any) -> list[dict[str, Any]]:
    return [next(row for row in reversed(run["front"]) if fits(row)) for run in runs]


if __name__ == "__main__":
    main()
