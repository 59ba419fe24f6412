"""A law of one's own form: you write its frame; its constants and what stands in the braces are found."""

import sys

import numpy as np

import clearloop as cl


def main(figure: str = "own_form.png", steps: str = "1e8") -> None:
    task = cl.Task.load("cartpole")
    batch = cl.make_batch(task, size=4_000, rng=np.random.default_rng(0))
    surrogate = cl.Surrogate.fit(task, batch, rng=np.random.default_rng(0))
    method = cl.GPRL(form={"force": "k1*theta + k2*theta_dot + k3*tanh({…})"})
    rng = np.random.default_rng(0)
    result = cl.learn(task, batch, method, rng=rng, budget=int(float(steps)), surrogate=surrogate)
    print(result.front.select("complexity", "penalty_model", "penalty_system", "formula"))
    result.best.plot(ranges={"theta": (-0.3, 0.3)}).savefig(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
