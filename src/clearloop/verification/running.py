"""Runs exported code on test vectors: compilers and interpreters in processes of their own."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError
from clearloop.export.routine import Routine
from clearloop.verification.bench import FLAGS
from clearloop.verification.plc import run_plcopen, run_structured_text
from clearloop.verification.shadow import Inputs
from clearloop.verification.vectors import Episode

LONGEST = 600  # seconds
Actions = NDArray[np.float64]  # [N, A]


@dataclass(frozen=True)
class Trial:
    """An export in a folder, with its test bench."""

    folder: Path
    files: Sequence[str]
    """Names of the export's files, the main one first."""
    routine: Routine
    episodes: Sequence[Episode]

    @property
    def main(self) -> str:
        return self.files[0]


_NODE = """
import { readFileSync } from "node:fs";
const { reset, act } = await import(process.argv.at(-1));
const rows = [];
for (const episode of JSON.parse(readFileSync(0, "utf8"))) {
  const memory = reset();
  for (const [seen, setpoint] of episode) { rows.push(Object.values(act(seen, memory, setpoint))); }
}
console.log(JSON.stringify(rows));
"""

_PYTHON = """
import json, runpy, sys
module = runpy.run_path(sys.argv[1])
rows = []
for episode in json.load(sys.stdin):
    memory = module["reset"]()
    for observation, setpoint in episode:
        rows.append(list(module["act"](observation, memory, setpoint).values()))
print(json.dumps(rows))
"""


def run_c(trial: Trial) -> Actions:
    """With the bench that the engineer gets."""
    compiler = _tool("gcc", "cc", "clang")
    stem = Path(trial.main).stem
    sources = [f"{stem}.c", f"{stem}_bench.c"]
    with TemporaryDirectory() as folder:
        program, actions = str(Path(folder) / "bench"), str(Path(folder) / "actions.csv")
        _call([compiler, *FLAGS, *sources, "-lm", "-o", program], trial.folder)
        _call([program, "vectors.csv", actions], trial.folder, answers=(0, 1))
        text = Path(actions).read_text()
    return np.array([[float(cell) for cell in line.split(",")] for line in text.splitlines()])


def run_javascript(trial: Trial) -> Actions:
    command = [_tool("node"), "--input-type=module", "-e", _NODE, "--"]
    return _scripted([*command, (trial.folder.resolve() / trial.main).as_uri()], trial)


def run_python(trial: Trial) -> Actions:
    return _scripted([sys.executable, "-I", "-c", _PYTHON, str(trial.folder.resolve() / trial.main)], trial)


RUNNERS: dict[str, Callable[[Trial], Actions]] = {
    "c": run_c,
    "st": run_structured_text,
    "plcopen": run_plcopen,
    "javascript": run_javascript,
    "python": run_python,
}


def _scripted(command: list[str], trial: Trial) -> Actions:
    """Through standard input and output."""
    sent = [[arguments_of(inputs) for inputs in episode] for episode in trial.episodes]
    answer = json.loads(_call(command, trial.folder, json.dumps(sent)))
    rows = [[float("nan") if value is None else value for value in row] for row in answer]
    return np.array(rows, dtype=float)


def arguments_of(inputs: Inputs) -> tuple[dict[str, float], dict[str, float]]:
    """What `act` takes: an observation and setpoints."""
    pair: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for variable, value in inputs.items():
        pair[variable.part == "setpoint"][variable.name] = value
    return pair


def _tool(*names: str) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    raise ClearloopError(f"{names[0]} is not installed: install it, or verify another target")


def _call(command: list[str], folder: Path, sent: str = "", answers: tuple[int, ...] = (0,)) -> str:
    name = Path(command[0]).name
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, input=sent, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClearloopError(f"{name} took longer than {LONGEST} s on the export") from error
    if done.returncode not in answers:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[0]
        raise ClearloopError(f"{name} failed on the export ({done.returncode}): {last}")
    return done.stdout
