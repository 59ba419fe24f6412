"""A log of an oven that somebody else controls, without a plant, and a run that has learned its models."""

from pathlib import Path

import numpy as np
import pytest

from clearloop.cli.learn import Given, make_request, start
from clearloop.runs import RunDirectory
from clearloop.task import Task
from tests.runs.guessing import make_quick

OVEN = """
name = "oven"
dt = 5.0
discount = 0.95
horizon = 60
[states]
temperature = { unit = "degC", setpoint = "target" }
[actions]
heater = { unit = "%", limits = [0, 100] }
[reward]
terms = [{ track = "temperature", tolerance = 0.5, scale = 5.0 }]
"""
GAIN, BIAS = 4.0, 30.0
"""of the law that made the log: heater = gain * (target - temperature) + bias, within limits"""


def oven_log(rows: int = 400) -> str:
    """CSV, 5 s from row to row: the setpoint moves, the law follows it, and somebody stirs the heater."""
    rng = np.random.default_rng(3)
    temperature, target, lines = 30.0, 40.0, ["time,temperature,heater,target"]
    for row in range(rows):
        if row % 50 == 0:
            target = float(rng.choice([35, 40, 45, 50]))
        heater = np.clip(GAIN * (target - temperature) + BIAS + rng.normal(0, 4), 0, 100)
        lines.append(f"{5 * row},{temperature:.5f},{heater:.5f},{target:g}")
        temperature += 0.05 * (20 + 0.5 * heater - temperature)
    return "\n".join(lines) + "\n"


def learn_oven(folder: Path) -> Path:
    """Put the task `oven.toml`, its log `oven.csv` and the finished run `oven-1` into a folder."""
    task, log = folder / "oven.toml", folder / "oven.csv"
    task.write_text(OVEN)
    log.write_text(oven_log())
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        given = Given(methods=("guess",), budget="4e5", seed=0, data=(log,))
        request = make_request("learn", str(task), given)
        start(RunDirectory(folder / "oven-1"), request, Task.load(str(task)))
    return task
