"""From a log to a readable controller, in Python: `python examples/from_a_log.py [MODEL_STEPS]`."""

import sys

import numpy as np
import polars as pl

import clearloop as cl

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


def main() -> None:
    budget = int(float(sys.argv[1])) if len(sys.argv) > 1 else 200_000_000

    # Any dataframe will do. This one is of a plant that clearloop knows, so that we can look in the end.
    log: pl.DataFrame = cl.make_batch(cl.Task.load("tank"), rng=np.random.default_rng(0)).to_frame()
    log = log.select("episode", "time", "level", "pump", setpoint="level_sp")

    task = cl.Task.from_toml(TASK)
    batch = cl.Batch.from_frame(log, task)
    print(batch)

    rng = np.random.default_rng(0)
    surrogate = cl.Surrogate.fit(task, batch, rng=rng)
    result = cl.learn(task, batch, cl.GPRL(), rng=rng, budget=budget, surrogate=surrogate)
    with pl.Config(fmt_str_lengths=100, tbl_width_chars=120, tbl_rows=50):
        print(result.front.select("complexity", "penalty_model", "formula"))

    # One step, as it runs on the target: what sensors show, the setpoint, and a memory.
    controller = result.best.for_task(task)
    memory = controller.reset()
    print(controller.act({"level": 12.0}, memory, {"level": 15.0}))

    print("on the true plant, by its own reward:", cl.evaluate(result.best, cl.Task.load("tank")))


if __name__ == "__main__":
    main()
