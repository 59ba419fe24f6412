"""How much memory it takes to check and load a long log: `python -m benchmarks.logs [ROWS]`.

A cart-pole log of five million rows (or ROWS), as CSV, as Parquet, and with jitter that is resampled.
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
MOST = 4.0  # GiB
SCALES = {"theta": 0.7, "theta_dot": 2.0, "rho": 2.4, "rho_dot": 2.0, "force": 10.0}


def main() -> None:
    if len(sys.argv) == 3:
        use(*sys.argv[1:])
        return
    rows = int(sys.argv[1]) if len(sys.argv) == 2 else ROWS
    with tempfile.TemporaryDirectory() as folder:
        for name in make_logs(Path(folder), rows):
            for what in ("check", "load"):
                command = [sys.executable, "-m", "benchmarks.logs", what, name]
                peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603
                verdict = "good" if peak < MOST else "too much"
                print(f"{Path(name).name:16s} {rows:>11,} rows  {what:5s}  {peak:4.1f} GiB  {verdict}")


def make_logs(folder: Path, rows: int) -> list[str]:
    rng = np.random.default_rng(0)
    place = np.arange(rows)
    times = place % EPISODE * 0.025
    frame = pl.DataFrame(
        {"time": times, "episode": place // EPISODE}
        | {name: rng.uniform(-scale, scale, rows) for name, scale in SCALES.items()}
    )
    frame.write_csv(folder / "log.csv")
    frame.write_parquet(folder / "log.parquet")
    frame.with_columns(time=times + rng.uniform(-0.003, 0.003, rows)).write_parquet(folder / "jitter.parquet")
    return [str(folder / name) for name in ("log.csv", "log.parquet", "jitter.parquet")]


def use(what: str, name: str) -> None:
    """Prints this process's peak, in GiB."""
    tables = Task.load("cartpole").model_dump(mode="json", exclude_none=True)
    task = Task.from_dict(tables | {"sampling": {}})
    if what == "check":
        check(read(name), task)
    else:
        Batch.load(name, task)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


if __name__ == "__main__":
    main()
