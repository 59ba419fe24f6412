"""Fuzzy rules that operators can discuss: each row is a rule, each column a state that it looks at."""

import sys

import numpy as np

import clearloop as cl
from clearloop.figures.rules import draw_rules, ranges_of
from clearloop.figures.style import save_figure


def main(figure: str = "fuzzy_rules.png", steps: str = "1e8") -> None:
    task = cl.Task.load("cartpole")
    batch = cl.make_batch(task, size=4_000, rng=np.random.default_rng(0))
    surrogate = cl.Surrogate.fit(task, batch, rng=np.random.default_rng(0))
    rng = np.random.default_rng(0)
    result = cl.learn(task, batch, cl.FGPRL(), rng=rng, budget=int(float(steps)), surrogate=surrogate)

    few = [point for point in result.points if len(list(point.controller.rules())) <= 4]
    controller = (few or list(result.points))[-1].controller.for_task(task)
    print(*controller.words(), sep="\n")
    save_figure(draw_rules(controller, task, ranges_of(task, batch)), figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
