"""`python -m tests.runs.shadow_day 24 FOLDER`: `clearloop shadow` beside a boiler at 10 Hz, so many hours.

Time-lapsed. The plant is an OPC UA server in this process, restarted five times; `clearloop shadow --run` is
another process, which is killed once. The controller is learned first, from a log of the boiler. In the last
quarter the boiler loses half of its power, slowly. What was offered while `shadow` was connected is compared
with what it wrote.
"""

import csv
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil

from tests.runs.opcua_plant import EPOCH, PlantServer, free_port

RATE, RESTARTS, CHUNK = 10, 5, 500  # samples in a second of the plant; those offered at once
LAG = 500  # samples that shadow may be behind
PATIENCE = 90.0  # seconds without a new sample, after which what was offered is lost with its connection
LEFT_OUT = 77  # samples that nobody can see while the server is down
TASK = """
name = "boiler"
dt = 0.1
discount = 0.97
horizon = 20
history = 2
[states]
heat = { unit = "K", setpoint = 1.0, range = [-50, 50], frozen = 2.0 }
[actions]
flame = { unit = "%", limits = [-10.0, 10.0], safe = -1.0 }
[reward]
expression = "-heat.error**2"
[opcua]
heat = "ns=2;s=heat"
flame = "ns=2;s=flame"
trigger = "ns=2;s=flame"
"""
NODES = ("flame", "heat")  # the trigger first, so that what a server shows before the first sample is none


class Boiler:
    """The plant under its present controller, which also tries something."""

    def __init__(self, seed: int) -> None:
        self.rng, self.heat = np.random.default_rng(seed), 0.5

    def step(self, gain: float = 0.5) -> dict[str, float]:
        flame = float(np.clip(-1.5 * (self.heat - 1) + self.rng.normal(scale=0.5), -10, 10))
        seen = {"heat": self.heat, "flame": flame}
        self.heat = 0.9 * self.heat + gain * flame + float(self.rng.normal(scale=0.02))
        return seen


def clearloop(*words: object) -> list[str]:
    return [sys.executable, "-m", "clearloop", *map(str, words)]


def learn(folder: Path) -> None:
    (folder / "boiler.toml").write_text(TASK, encoding="utf-8")
    with (folder / "log.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["episode", "time", "heat", "flame"])
        for episode in range(12):
            plant = Boiler(episode)
            writer.writerows([episode, row / RATE, *plant.step().values()] for row in range(150))
    words = ["learn", "boiler.toml", "--data", "log.csv", "--out", "run"]
    words += ["--method", "lqr", "--budget", "20000"]
    subprocess.run(clearloop(*words), cwd=folder, check=True, stdout=subprocess.DEVNULL)


class Watcher:
    """`clearloop shadow` in another process."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self._rows, self._place, self.lost, self._out = 0, 0, 0, folder / "beside" / "shadow.csv"

    def start(self) -> None:
        run = ["shadow", "001", "--run", "run", "--task", "boiler.toml"]
        words = [*run, "--opcua", self.url, "--out", "beside", "--json"]
        with (self.folder / "said.txt").open("a") as said, (self.folder / "summary.json").open("w") as out:
            self.process = subprocess.Popen(
                clearloop(*words),
                cwd=self.folder,
                stdout=out,
                stderr=said,
            )

    @property
    def rows(self) -> int:
        """How many samples have been written."""
        if self._out.exists():
            with self._out.open("rb") as file:
                file.seek(self._place)
                new = file.read()
            self._place += len(new)
            self._rows += new.count(b"\n")
        return max(self._rows - 1, 0)

    @property
    def memory(self) -> float:
        """Its memory in MiB."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / 2**20

    def wait_for(self, lag: int, given: int) -> None:
        """Wait until all but so many of the samples that were given have been written."""
        end, before = time.monotonic() + PATIENCE, self.rows
        while (rows := self.rows) < given - self.lost - lag:
            if (code := self.process.poll()) is not None:
                raise RuntimeError(f"shadow stopped with {code} after {rows} of {given} samples")
            if rows > before:
                end, before = time.monotonic() + PATIENCE, rows
            if time.monotonic() > end:
                self.lost = given - rows
            time.sleep(0.02)


def day(hours: float, folder: Path) -> None:
    """Run the plant for so many hours of its own time, and print what was found."""
    begun, count = time.monotonic(), round(3600 * RATE * hours)
    if not (folder / "run").exists():
        learn(folder)
    edges = [count * k // (RESTARTS + 1) for k in range(RESTARTS + 2)]
    wanted = [edges[0], *(edge + LEFT_OUT for edge in edges[1:-1])], edges[1:]
    offered = [row for low, high in zip(*wanted, strict=True) for row in range(low, high)]
    port, plant = free_port(), Boiler(1000)
    watcher, given = Watcher(folder, f"opc.tcp://127.0.0.1:{port}"), 0
    rows = _rows(plant, count)
    watched = list[tuple[float, float]]()
    for number, (low, high) in enumerate(zip(*wanted, strict=True)):
        with PlantServer(NODES, port) as server:
            if number in (0, 3):
                if number:  # a power cut of the shadow, in the middle
                    watcher.process.kill()
                    watcher.process.wait()
                watcher.start()
            server.wait_for_items(len(NODES), 3600)
            while low > (row := next(rows))[0]:
                pass  # the server was down
            chunk = [row]
            for place in range(low + 1, high + 1):
                if len(chunk) == CHUNK or place == high:
                    server.offer([(k / RATE, seen) for k, seen in chunk])
                    given += len(chunk)
                    watcher.wait_for(LAG, given)
                    watched.append((place / RATE / 3600, watcher.memory))
                    chunk = []
                if place < high:
                    chunk.append(next(rows))
            watcher.wait_for(0, given)
            print(f"{high / RATE / 3600:.2f} h: {watched[-1][1]:.0f} MiB, {given:,} samples", flush=True)
            if number == RESTARTS:
                watcher.process.send_signal(signal.SIGINT)  # as Ctrl-C
                watcher.process.wait(timeout=600)
    report(folder, offered, watched)
    print(f"{time.monotonic() - begun:.0f} s")


def _rows(plant: Boiler, count: int) -> Iterator[tuple[int, dict[str, float]]]:
    for row in range(count):
        lost = max(row / count - 0.75, 0.0) * 4  # from 0 to 1 in the last quarter
        yield row, plant.step(0.5 - 0.25 * lost)


def report(folder: Path, offered: list[int], watched: list[tuple[float, float]]) -> None:
    """Compare what was offered with what was written, and print what was found."""
    plant, aims, gaps, wrong = Boiler(1000), set(offered), list[int](), 0
    count = offered[-1] + 1
    truth = {row: seen for row, seen in _rows(plant, count) if row in aims}
    found = list[int]()
    with (folder / "beside" / "shadow.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            row = round((float(line["time"]) - EPOCH.timestamp()) * RATE)
            found.append(row)
            wrong += row in truth and any(float(line[name]) != x for name, x in truth[row].items())
            if line["gap"] == "1":
                gaps.append(row)
    print(f"offered {len(offered):,}, written {len(found):,}, the same in the same order: {found == offered}")
    again = sum(b <= a for a, b in pairwise(found))
    print(f"written twice or out of order: {again}; values that differ: {wrong}")
    print(f"gaps marked at {gaps}; all of them: {gaps == [b for a, b in pairwise(found) if b > a + 1]}")
    for begins, ends, words in ((0.0, 0.75, "before the drift"), (0.75, 1.0, "in the drift")):
        kept = [good for share, good in _kept(folder, count) if begins <= share < ends]
        print(f"promise {words}: {np.mean(kept):.1%} of {len(kept):,} predictions kept")
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    print({name: summary[name] for name in ("samples", "gaps", "guarded", "left", "has_left")})
    hours = math.ceil(watched[-1][0])
    each = [[mib for when, mib in watched if hour <= when < hour + 1] for hour in range(hours)]
    print("memory, MiB, the most in each hour: " + " ".join(f"{max(one):.0f}" for one in each if one))


def _kept(folder: Path, count: int) -> Iterator[tuple[float, bool]]:
    with (folder / "beside" / "promise.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            yield (float(line["time"]) - EPOCH.timestamp()) * RATE / count, line["kept"] == "1"


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have switched it off
    day(float(sys.argv[1]), Path(sys.argv[2]))
