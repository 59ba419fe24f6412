"""A PID retuned: what runs a loop now, read off its log, and better numbers beside it."""

import sys

import numpy as np

import clearloop as cl
from clearloop.figures.trajectories import draw_tuning

OVEN = """
name = "oven"
dt = 0.25
discount = 0.99
horizon = 200
history = 3

[states]
y = { unit = "degC", setpoint = "goal" }

[actions]
u = { unit = "%", limits = [-50.0, 50.0] }

[reward]
expression = "-abs(y.error)"

[starts]
y = [-1.0, 1.0]
"""

# What the example has in place of your plant: two lags, and a PI controller that has run it for years.
PLANT = """
[signals]
goal  = { steps = [-10, 10], every = [150, 300] }
noise = { noise = 0.02 }

[plant]
substeps = 2
derivative = { inner = "(2*u[t-1] - inner)/6", outer = "(inner - outer)/2" }
observed = { y = "outer + noise" }

[exploration]
steps = 1500
starts = { inner = [-1.0, 1.0] }
law = { u = "u[t-1] - 0.6*(y - y[t-1]) - 0.02*y" }
"""


def main(figure: str = "pid_retuned.png") -> None:
    plant = cl.Task.from_toml(OVEN + PLANT)
    log = cl.make_batch(plant, size=3_000, rng=np.random.default_rng(0)).to_frame()

    task = cl.Task.from_toml(OVEN)
    tuning = cl.tune(task, cl.Batch.from_frame(log, task))
    print(tuning.verdict)
    for row in tuning.rows:
        print(f"{row.name:12} Kp {row.gains.kp:6.3g}  Ti {row.gains.ti:6.3g} s  Ms {row.found.ms:.2f}")
    print(tuning.words)
    draw_tuning(tuning).savefig(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
