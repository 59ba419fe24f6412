"""How much memory it takes to use a long log: `python -m benchmarks.logs [ROWS]`.

A log of five million rows (or ROWS), as CSV, as Parquet, and with jitter that is resampled: checked, loaded,
and learned from by `clearloop learn` with a small budget of model steps.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from clearloop.data import Batch, check, read
from clearloop.task import Task

ROWS = 5_000_000
EPISODE = 1_000  # rows
BUDGET = "1e7"  # model steps
MOST = 4.0  # GiB
TASK = """
name = "long"
dt = 0.025
discount = 0.97
horizon = 100
history = 2
[states]
angle = { unit = "rad" }
angle_dot = { unit = "rad/s" }
place = { unit = "m", setpoint = 0.5 }
place_dot = { unit = "m/s" }
[actions]
force = { unit = "N", limits = [-10, 10] }
[reward]
expression = "-abs(angle) - abs(place.error)"
[sampling]
"""


def main() -> None:
    if len(sys.argv) == 3:
        print(use(*sys.argv[1:]))
        return
    rows = int(sys.argv[1]) if len(sys.argv) == 2 else ROWS
    with tempfile.TemporaryDirectory() as folder:
        for name in make_logs(Path(folder), rows):
            for what in ("check", "load", "learn"):
                command = [sys.executable, "-m", "benchmarks.logs", what, name]
                peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603
                verdict = "good" if peak < MOST else "too much"
                line = f"{Path(name).name:16s} {rows:>11,} rows  {what:5s}  {peak:4.1f} GiB  {verdict}"
                print(line, flush=True)


def make_logs(folder: Path, rows: int) -> list[str]:
    """A pendulum that hangs, and a cart on a spring; one force pushes both at random."""
    (folder / "long.toml").write_text(TASK, encoding="utf-8")
    rng = np.random.default_rng(0)
    episodes = rows // EPISODE
    states, forces = np.zeros((episodes, EPISODE, 4)), rng.uniform(-10, 10, (episodes, EPISODE))
    gains = np.array([[-20.0, -2.0, 0.0, 0.0], [0.0, 0.0, -4.0, -1.0]])
    for row in range(EPISODE - 1):
        now = states[:, row]
        speeds = now[:, [1, 3]] + 0.025 * (now @ gains.T + forces[:, [row]] * [0.3, 0.5])
        states[:, row + 1, [1, 3]] = speeds
        states[:, row + 1, [0, 2]] = now[:, [0, 2]] + 0.025 * speeds
    place = np.arange(episodes * EPISODE)
    times = place % EPISODE * 0.025
    names = ("angle", "angle_dot", "place", "place_dot", "force")
    columns = [*states.reshape(-1, 4).T, forces.ravel()]
    frame = pl.DataFrame(
        {"time": times, "episode": place // EPISODE} | dict(zip(names, columns, strict=True))
    )
    frame.write_csv(folder / "log.csv")
    frame.write_parquet(folder / "log.parquet")
    jitter = rng.uniform(-0.003, 0.003, len(times))
    frame.with_columns(time=times + jitter).write_parquet(folder / "jitter.parquet")
    return [str(folder / name) for name in ("log.csv", "log.parquet", "jitter.parquet")]


def use(what: str, name: str) -> float:
    """The peak in GiB: of this process, or of the one that learns."""
    source = Path(name).with_name("long.toml")
    if what == "learn":
        command = [sys.executable, "-m", "clearloop", "learn", str(source), "--data", name]
        command += ["--budget", BUDGET, "--out", f"{name}.run"]
        subprocess.run(command, check=True, stdout=sys.stderr)  # noqa: S603
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    task = Task.load(source)
    if what == "check":
        check(task, read(name))
    else:
        Batch.load(name, task)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
