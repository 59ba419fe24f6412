"""The controllers of the paper on the plant of the paper: what each costs, and which starts it loses."""

import sys

import clearloop as cl
from clearloop.figures.style import save_figure
from clearloop.figures.trajectories import Outcomes, draw_start_maps


def main(figure: str = "paper_table.png") -> None:
    task = cl.Task.load("cartpole")
    outcomes = {}
    for name in ("gprl", "pid", "lqr"):
        found = cl.evaluate(cl.load(f"examples/published/{name}.json"), task)
        outcomes[name.upper()] = Outcomes.of(found)
        print(f"{name:5} {found}")
    save_figure(draw_start_maps(task, task.scoring_starts(), outcomes), figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
