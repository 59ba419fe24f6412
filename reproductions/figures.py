"""All figures that come from a run of `clearloop learn`: its front, its search, its rules, trees and starts.

`python -m reproductions.figures [RUN]`, by default runs/demo: in runs/figures, as PNG and SVG. The paper's
figures of rules need a run with the methods fpsrl and fgprl, that of trees one with gprl.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clearloop.controllers import Controller, Equation, Fuzzy, load
from clearloop.data import Batch
from clearloop.evaluation import evaluate
from clearloop.figures.progress import draw_progress
from clearloop.figures.rules import draw_rules, ranges_of
from clearloop.figures.style import save_figure
from clearloop.figures.trajectories import Outcomes, draw_start_maps
from clearloop.published import published_for
from clearloop.runs import Front, Ledger, RunDirectory
from clearloop.search.gp.genome import choose_cuts
from clearloop.task import Task
from reproductions.front import draw_front
from reproductions.specimen import from_equations
from reproductions.tree import draw_crossover

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path("runs/figures")


def main(path: str = "runs/demo") -> None:
    run = RunDirectory(Path(path))
    front, task = Front.read(run), run.task()
    keep("front", draw_front(front))
    keep("progress", draw_progress(Ledger(run).progress))
    found = {entry.controller: load(path_of(run, entry.controller)) for entry in front.entries}
    draw_of_each_method(front, found, task, Batch.load(run.path / "batch.parquet", task))
    pick = front.entries[front.pick].controller
    shown = {f"{pick}, the pick": found[pick], **{p.title: p.load() for p in published_for(task)}}
    outcomes = {title: Outcomes.of(evaluate(controller, task)) for title, controller in shown.items()}
    keep("starts", draw_start_maps(task, task.scoring_starts(), outcomes))


def draw_of_each_method(front: Front, found: dict[str, Controller], task: Task, batch: Batch) -> None:
    """Of fuzzy methods the best with two rules, as in the paper; of equations a crossing of the two best."""
    for method in dict.fromkeys(entry.method for entry in front.entries):
        own = [found[entry.controller] for entry in front.entries if entry.method == method]
        fuzzy = [one for one in own if isinstance(one, Fuzzy) and _rules(one) <= 2]
        equations = [one for one in own if isinstance(one, Equation)]
        if fuzzy:
            keep(f"rules-{method}", draw_rules(fuzzy[-1], task, ranges_of(task, batch)))
        if len(equations) > 1:
            keep(f"trees-{method}", draw_parents(equations[-2:]))


def draw_parents(equations: list[Equation]) -> "Figure":
    (first, second), words, names = from_equations(equations)
    rng = np.random.default_rng(0)
    tried = [choose_cuts(first, second, words, rng) for _ in range(100)]
    possible = [cuts for cuts in tried if cuts is not None]
    telling = [cuts for cuts in possible if all(2 < stop - start < 12 for start, stop in cuts)]
    return draw_crossover((first, second), (telling or possible)[0], words, names)


def path_of(run: RunDirectory, controller: str) -> Path:
    return run.path / "controllers" / f"{controller}.json"


def keep(name: str, figure: "Figure") -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "svg"):
        save_figure(figure, FOLDER / f"{name}.{suffix}")
    print(FOLDER / f"{name}.png")


def _rules(controller: Fuzzy) -> int:
    return sum(len(base.rules) for base in controller.outputs.values())


if __name__ == "__main__":
    main(*sys.argv[1:])
