"""The baselines, on the cart-pole and on both tracks: what they promise, and what the plant charges.

`python -m reproductions.baselines [METHOD[:TRACK]]… [--seeds N]`; by default all methods, both tracks and ten
seeds, each with its own batch and model. Models and scores are kept in runs/baselines, and not made twice.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from clearloop.data import Batch
from clearloop.files import whole_file
from clearloop.methods import Point, learn
from clearloop.methods.registry import find_method
from clearloop.plants.exploration import make_batch
from clearloop.surrogate import BEST, PUBLISHED, Surrogate, Track
from clearloop.task import Task
from reproductions.published_controllers import Mean

FOLDER = Path("runs/baselines")
METHODS = ("lqr", "pid", "nfq", "pso-p")
TRACKS = {track.name: track for track in (BEST, PUBLISHED)}
PAPER = {
    "lqr": ("2.23", "3.01"),
    "pid": ("2.03", "3.04"),
    "nfq-selected": ("2.71 ± 0.04", "5.4 ± 0.2"),
    "nfq-last": ("15.0 ± 1.0", "15.5 ± 0.9"),
    "pso-p": ("1.2535 ± 0.0014", "4.20 ± 0.04"),
}
"""Penalties on the model and on the system."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("jobs", nargs="*", metavar="METHOD[:TRACK]")
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args(arguments)
    task, jobs = Task.load("cartpole"), []
    for name, _, track in (job.partition(":") for job in asked.jobs or METHODS):
        jobs += [(name, TRACKS[track])] if track else [(name, each) for each in TRACKS.values()]
    print("| method | track | paper: model | model | paper: system | system | failures | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for method, track in jobs:
        report(track, [score(task, method, track, seed) for seed in range(asked.seeds)])


def score(task: Task, method: str, track: Track, seed: int) -> dict[str, Any]:
    path = FOLDER / f"{method}-{track.name}-{seed}.json"
    if not path.exists():
        scores = run(task, method, track, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(json.dumps(scores, indent=1).encode())
    kept: dict[str, Any] = json.loads(path.read_text())
    return kept


def run(task: Task, method: str, track: Track, seed: int) -> dict[str, Any]:
    """What the best of the front costs, and what stands beside it."""
    batch = make_batch(task, rng=np.random.default_rng(seed))
    surrogate = model(task, batch, track, seed)
    began = time.monotonic()
    result = learn(
        task, batch, find_method(method)(), rng=np.random.default_rng([seed, 2]), surrogate=surrogate
    )
    seconds = time.monotonic() - began
    best = result.points[-1]
    points = {(best.controller.name or method) if result.beside else method: best}
    points |= {point.controller.name or method: point for point in result.beside}
    return {"seconds": seconds, "points": {name: costs(point) for name, point in points.items()}}


def costs(point: Point) -> dict[str, float | None]:
    system = point.system
    return {
        "judged": point.judged.penalty,
        "model": point.model.penalty,
        "system": None if system is None else system.penalty,
        "failures": None if system is None else system.failures,
    }


def model(task: Task, batch: Batch, track: Track, seed: int) -> Surrogate:
    folder = FOLDER / f"model-{track.name}-{seed}"
    if not (folder / "surrogate.json").exists():
        Surrogate.fit(task, batch, track=track, rng=np.random.default_rng([seed, 1])).save(folder)
    return Surrogate.load(folder, task)


def report(track: Track, runs: list[dict[str, Any]]) -> None:
    seconds = np.mean([run["seconds"] for run in runs])
    for name in runs[0]["points"]:
        scores = [run["points"][name] for run in runs]
        model, system, failures = (
            Mean([row[key] for row in scores]) for key in ("model", "system", "failures")
        )
        paper = PAPER.get(name, ("", ""))
        print(
            f"| {name} | {track.name} | {paper[0]} | {model} | {paper[1]} | {system} | {failures} "
            f"| {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
