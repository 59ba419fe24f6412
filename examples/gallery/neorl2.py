"""An archive of a benchmark: NumPy arrays without names, in the form of D4RL and NeoRL-2."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import clearloop as cl

# Observations have numbers there. The task gives them names, in the order of the archive.
TASK = """
name = "springs"
dt = 0.1
discount = 0.97
horizon = 100
history = 2

[states]
position = { unit = "m", setpoint = 1.0 }
speed    = { unit = "m/s" }

[actions]
force = { unit = "N", limits = [-1.0, 1.0] }

[reward]
terms = [{ track = "position", scale = 1.0 }, { effort = "force", weight = 0.1 }]
"""


def archive(file: Path, episodes: int = 20, length: int = 100) -> None:
    """Write a made archive: two springs and a mass, pushed by a sluggish policy and by chance."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(episodes):
        x, v, goal = rng.uniform(-1, 1), 0.0, rng.uniform(-0.5, 1.5)
        for step in range(length):
            u = float(np.clip(0.6 * (goal - x) - 0.4 * v + 0.3 * rng.normal(), -1, 1))
            after = x + 0.1 * v, v + 0.1 * (2.0 * u - 1.2 * x - 0.3 * v) + 0.002 * rng.normal()
            rows.append(([x, v], [u], list(after), 0.0, step == length - 1))
            x, v = after
    obs, action, after, reward, timeouts = (np.array(part, float) for part in zip(*rows, strict=True))
    np.savez(file, obs=obs, action=action, next_obs=after, reward=reward, done=0 * reward, timeouts=timeouts)


def main(figure: str = "neorl2.png", steps: str = "1e7") -> None:
    task = cl.Task.from_toml(TASK)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "springs-20-train.npz"
        archive(file)
        batch = cl.Batch.load(file, task)
    print(batch)
    result = cl.learn(task, batch, cl.GPRL(), rng=np.random.default_rng(0), budget=int(float(steps)))
    print(result.front.select("complexity", "penalty_low", "penalty_high", "formula"))
    result.plot().savefig(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
