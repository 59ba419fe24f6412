"""The paper's figure of population-based policy search, with numbers: evaluation and improvement by GPRL.

`python -m reproductions.population [STEPS]`: of so many model steps, by default 1.5e9; in runs/figures.
"""

import sys

import numpy as np

from clearloop.figures.progress import Generation, draw_population
from clearloop.methods import Problem, Search, learn
from clearloop.methods.evolving import Evolving
from clearloop.methods.gprl import GPRL
from clearloop.methods.learning import BUDGETS
from clearloop.plants.exploration import make_batch
from clearloop.task import Task
from reproductions.figures import keep


def main(budget: int = BUDGETS["quick"]) -> None:
    task = Task.load("cartpole")
    generations: list[Generation] = []

    def watch(search: Search, problem: Problem) -> None:
        if isinstance(search, Evolving) and not search.finalists:
            evolution = search.evolution
            living = {genome for island in evolution.islands for genome in island.values()}
            costs = np.array([evolution.costs[genome] for genome in living])
            generations.append(Generation(problem.spent, len(evolution.seen), np.sort(costs)))

    batch = make_batch(task, rng=np.random.default_rng(0))
    result = learn(task, batch, GPRL(), rng=np.random.default_rng([0, 2]), budget=budget, watch=watch)
    print(f"{len(generations)} rounds, {generations[-1].evaluated:,} programs: {result!r}")
    keep("population", draw_population(generations))


if __name__ == "__main__":
    main(*(int(float(text)) for text in sys.argv[1:]))
