"""A log of one's own: is it fit to learn from, which law made it, and what would be better?"""

import sys

import numpy as np

import clearloop as cl
from clearloop import data

TASK = """
name = "level"
dt = 5.0
discount = 0.98
horizon = 150
history = 4

[states]
level     = { unit = "cm", setpoint = "setpoint" }
level_sum = { unit = "cm s", formula = "clip(level_sum[t-1] + dt*level.error, -1500, 1500)" }

[actions]
pump = { unit = "%", limits = [0.0, 100.0] }

[reward]
terms = [{ track = "level", tolerance = 0.5, scale = 10.0 }, { rate = "pump" }]
"""


def main(figure: str = "own_log.png", steps: str = "3e7") -> None:
    # Any dataframe will do. This one is of a plant that clearloop knows.
    plant = cl.make_batch(cl.Task.load("tank"), size=4_000, rng=np.random.default_rng(0)).to_frame()
    log = plant.select("episode", "time", "level", "pump", setpoint="level_sp")

    task = cl.Task.from_toml(TASK)
    print(data.check(task, log))
    batch = cl.Batch.from_frame(log, task)
    print(cl.explain(task, batch))
    result = cl.learn(task, batch, cl.GPRL(), rng=np.random.default_rng(0), budget=int(float(steps)))
    print(result.front.select("complexity", "penalty_low", "penalty_high", "formula"))
    result.plot().savefig(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
