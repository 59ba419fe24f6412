"""A robust pick: the cheapest controller and the cheapest one with margins, when the action comes late."""

import sys

import numpy as np
from matplotlib.figure import Figure

import clearloop as cl
from clearloop.plants.scenarios import Disturbance, Scenarios


def main(figure: str = "robust_pick.png", steps: str = "1e7") -> None:
    task = cl.Task.load("cartpole")
    batch = cl.make_batch(task, size=4_000, rng=np.random.default_rng(0))
    surrogate = cl.Surrogate.fit(task, batch, rng=np.random.default_rng(0))

    drawing = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes = drawing.subplots()
    starts, late = Scenarios.scoring(task, 256), range(6)
    for robust in (True, False):
        rng = np.random.default_rng(0)
        found = cl.learn(
            task,
            batch,
            cl.GPRL(),
            rng=rng,
            budget=int(float(steps)),
            surrogate=surrogate,
            robust=robust,
        )
        name = "with margins" if robust else "the lowest cost alone"
        print(f"{name}: {found.best.summary}")
        costs = [
            cl.evaluate(found.best, task, starts=starts.disturbed(task, [Disturbance(late=n)])).penalty
            for n in late
        ]
        axes.plot(late, costs, "o-", label=name)
    axes.set(xlabel="steps that the action comes late on the plant", ylabel="penalty")
    axes.legend()
    drawing.savefig(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
