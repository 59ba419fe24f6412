"""Nothing is tuned to the paper's cart-pole: another pole, and that one with signs, names or units changed.

`python -m reproductions.invariance [BUDGET]`, for GPRL, seeds 0 to 2. Results are kept in runs/invariance.
"""

import json
import math
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from clearloop.files import whole_file
from clearloop.methods import learn
from clearloop.methods.gprl import GPRL
from clearloop.plants.exploration import make_batch
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from reproductions.published_controllers import Mean

SEEDS = range(3)
FOLDER = Path("runs/invariance")
NAMES = {"theta": "angle", "theta_dot": "turning", "rho": "place", "rho_dot": "speed", "force": "push"}
DEGREE, CENTIMETRE = math.degrees(1), 100.0


def main() -> None:
    budget = sys.argv[1] if len(sys.argv) > 1 else "quick"
    plain = another_pole()
    tasks = {
        "plain": plain,
        "reversed": reverse(plain),
        "renamed": rename(plain),
        "units": change_units(plain),
    }
    print("| cart-pole | promised | on the plant | compared with plain |")
    print("|---|---|---|---|")
    means = {}
    for name, text in tasks.items():
        rows = [best(name, Task.from_toml(text), budget, seed) for seed in SEEDS]
        promised, charged = ([row[key] for row in rows] for key in ("penalty_model", "penalty_system"))
        means[name] = np.mean(charged)
        print(
            f"| {name} | {Mean(promised)} | {Mean(charged)} | {means[name] / means['plain'] - 1:+.1%} |",
            flush=True,
        )


def best(name: str, task: Task, budget: str, seed: int) -> dict[str, Any]:
    """The last row of the front."""
    path = FOLDER / f"{name}-{budget}-{seed}.json"
    if not path.exists():
        batch = make_batch(task, rng=np.random.default_rng(seed))
        surrogate = Surrogate.fit(task, batch, rng=np.random.default_rng([seed, 1]))
        rng = np.random.default_rng([seed, 2])
        result = learn(task, batch, GPRL(), rng=rng, budget=budget, surrogate=surrogate)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(json.dumps(result.front.to_dicts(), indent=1).encode())
    row: dict[str, Any] = json.loads(path.read_text())[-1]
    return row


def another_pole() -> str:
    """The built-in task with a pole of twice the mass and 1.6 times the length."""
    text = (files("clearloop") / "tasks" / "cartpole.toml").read_text(encoding="utf-8")
    text = re.sub(r"^m = 0\.1 ", "m = 0.2 ", text, flags=re.MULTILINE)
    text = re.sub(r"^M = 1\.1 ", "M = 1.2 ", text, flags=re.MULTILINE)
    return re.sub(r"^l = 0\.5 ", "l = 0.8 ", text, flags=re.MULTILINE)


def reverse(text: str) -> str:
    """A positive force pushes the other way."""
    return text.replace('h = "force +', 'h = "-force +')


def rename(text: str) -> str:
    return re.sub(
        r"\b(" + "|".join(sorted(NAMES, key=len, reverse=True)) + r")\b", lambda m: NAMES[m[1]], text
    )


def change_units(text: str) -> str:
    """Degrees and centimetres."""
    head, plant = text.split("[plant.where]")
    units = {"theta": DEGREE, "theta_dot": DEGREE, "rho": CENTIMETRE, "rho_dot": CENTIMETRE}

    def scale(match: re.Match[str]) -> str:
        numbers = re.sub(r"-?\d+\.\d+", lambda number: repr(float(number[0]) * units[match[2]]), match[3])
        return f"{match[1]}{match[2]}{numbers}"

    names = "|".join(sorted(units, key=len, reverse=True))
    head = re.sub(rf"()\b({names})\b( = \[-?[\d.]+, [\d.]+\])", scale, head)
    head = re.sub(rf"(abs\()({names})((?:\.error)?\) [<>] [\d.]+)", scale, head)
    head = head.replace('"rad', '"deg').replace('"m"', '"cm"').replace('"m/s"', '"cm/s"')
    plant = re.sub(r"\btheta_dot\*\*2", f"(theta_dot/{DEGREE!r})**2", plant)
    plant = re.sub(r"\b(sin|cos)\(theta\)", rf"\1(theta/{DEGREE!r})", plant)
    plant = plant.replace('theta_dot = "theta_ddot"', f'theta_dot = "{DEGREE!r}*theta_ddot"')
    plant = re.sub(r'rho_dot   = "(.*)"', rf'rho_dot   = "{CENTIMETRE!r}*(\1)"', plant)
    return f"{head}[plant.where]{plant}"


if __name__ == "__main__":
    main()
