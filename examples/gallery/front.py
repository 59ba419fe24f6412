"""Two fronts compared: equations and fuzzy rules, from the simplest to the best."""

import sys

import numpy as np
from matplotlib.figure import Figure

import clearloop as cl


def main(figure: str = "front.png", steps: str = "1e8") -> None:
    task = cl.Task.load("cartpole")
    batch = cl.make_batch(task, size=4_000, rng=np.random.default_rng(0))
    surrogate = cl.Surrogate.fit(task, batch, rng=np.random.default_rng(0))

    drawing = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = drawing.subplots()
    for method, marker in ((cl.GPRL(), "o"), (cl.FGPRL(), "s")):
        rng = np.random.default_rng(0)
        front = cl.learn(task, batch, method, rng=rng, budget=int(float(steps)), surrogate=surrogate).front
        x, promised = front["complexity"], front["penalty_model"]
        off = [front["penalty_high"] - promised, promised - front["penalty_low"]]
        axes.errorbar(
            x, promised, off[::-1], marker=marker, ms=4, capsize=2, label=f"{method.name}, promised"
        )
        axes.plot(
            x, front["penalty_system"], "k" + marker, ms=9, mfc="none", label=f"{method.name}, on the plant"
        )
    axes.set(xlabel="complexity", ylabel="penalty", ylim=(2, 5))
    axes.legend()
    drawing.savefig(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
