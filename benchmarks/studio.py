"""What the studio holds: steps and frames per second, and the server's share of a core, for several viewers.

    python -m benchmarks.studio

The server is a process of its own, started for this; each viewer is a websocket in this one that reads
every frame. One viewer in two watches two controllers side by side.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from time import monotonic
from typing import Any

from websockets.asyncio.client import connect

VIEWERS = (1, 2, 8)
SECONDS = 20.0
SETTLING = 3.0  # seconds


@dataclass(frozen=True)
class Seen:
    """By one viewer."""

    steps: float
    """per second, that the server took"""
    frames: float
    """per second, that arrived"""
    late: float
    """share of steps more than half an interval late, the worst of the server's own counts"""


async def watch(port: int, sides: int) -> Seen:
    origin: Any = f"http://127.0.0.1:{port}"
    async with connect(
        f"ws://127.0.0.1:{port}/live?task=cartpole", origin=origin, compression=None
    ) as socket:
        for side, controller in enumerate(("published/gprl", "published/lqr")[:sides]):
            await socket.send(json.dumps({"do": "drive", "side": side, "controller": controller}))
        begun = monotonic()
        while monotonic() - begun < SETTLING:
            await socket.recv()
        first, began, frames, late = json.loads(await socket.recv())["t"], monotonic(), 0, 0.0
        while (took := monotonic() - began) < SECONDS:
            frame = json.loads(await socket.recv())
            frames += 1
            if took > SETTLING + 2:  # the server counts over five seconds
                late = max(late, frame["late"])
        return Seen((frame["t"] - first) / took, frames / took, late)


def processor_seconds(process: int) -> float:
    """That a process has used so far; Linux only."""
    fields = open(f"/proc/{process}/stat").read().rpartition(")")[2].split()  # noqa: PTH123, SIM115
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(port: int, process: int, viewers: int) -> tuple[list[Seen], float]:
    """With the server's share of a core."""
    begun, used = monotonic(), processor_seconds(process)
    seen = await asyncio.gather(*(watch(port, 1 + number % 2) for number in range(viewers)))
    return list(seen), (processor_seconds(process) - used) / (monotonic() - begun)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "clearloop", "studio", folder, "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
        try:
            assert server.stdout is not None  # noqa: S101  it is a pipe
            address = re.search(r":(\d+)/", server.stdout.readline())
            assert address is not None  # noqa: S101
            load = os.getloadavg()[0]
            print(f"load of the machine before: {load:.1f} on {os.cpu_count()} cores")
            print("viewers  steps/s (slowest)  frames/s (slowest)  late (worst)  core, server  core/viewer")
            for viewers in VIEWERS:
                seen, core = asyncio.run(measure(int(address[1]), server.pid, viewers))
                steps, frames = min(one.steps for one in seen), min(one.frames for one in seen)
                late = max(one.late for one in seen)
                row = f"{viewers:7}  {steps:17.2f}  {frames:18.2f}  {late:12.1%}"
                print(f"{row}  {core:12.1%}  {core / viewers:11.1%}", flush=True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
