"""The benchmarks of the paper's authors: mountain car, cart-pole swing-up and the Industrial Benchmark.

`python -m reproductions.authors_line [--task NAME] [--seeds N …] [--budget NAME]`: `clearloop learn` with its
default settings; then mountain car beside the optimum, which value iteration finds with the true plant, and
swing-up by the share of 200 starts from which the pole goes up and stays up. The Industrial Benchmark is
learned once for each of three setpoints, and stands beside the policy that logged its data and the best fixed
point; it needs CLEARLOOP_INDUSTRIAL_PYTHON (docs/tasks.md). Runs are in runs/authors-line, and they go on
where they were stopped.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.ndimage import map_coordinates

from clearloop.arrays import Floats
from clearloop.controllers import Controller, Equation, load
from clearloop.evaluation import evaluate, simulate
from clearloop.plants.exploration import make_batch
from clearloop.plants.gym import make_environment, run_episode, settings_of
from clearloop.task import Task
from clearloop.task.task import read_task

FOLDER = Path("runs/authors-line")
STARTS = 200
LAST = 100  # steps of 500 in which the pole must stand
UPRIGHT = 0.8776  # cosine of 0.5 rad


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; the arguments are those of the process unless given."""
    parser = argparse.ArgumentParser(prog="python -m reproductions.authors_line")
    parser.add_argument("--task", choices=list(CHECKS), action="append")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(5)))
    parser.add_argument("--budget", default="standard")
    asked = parser.parse_args(arguments)
    for name in asked.task or CHECKS:
        for seed in asked.seeds:
            run = FOLDER / f"{name}-{seed}"
            words = ["learn", source(name), "--seed", str(seed), "--budget", asked.budget, "--out", str(run)]
            subprocess.run([sys.executable, "-m", "clearloop", *words, "--resume"], check=True)  # noqa: S603
            about = json.loads((run / "run.json").read_text(encoding="utf-8"))
            pick = load(run / "controllers" / f"{about['pick']['controller']}.json")
            print(f"{name}, seed {seed}: complexity {pick.complexity}, {CHECKS[name](pick)}", flush=True)
            print(f"    {pick.summary}", flush=True)


# Mountain car.

PLACES, SPEEDS = np.linspace(-1.2, 0.6, 181), np.linspace(-0.07, 0.07, 141)
FORCES = np.linspace(-1.0, 1.0, 5)
GOAL = 0.45


def drive(place: Floats, speed: Floats, force: Floats | float) -> tuple[Floats, Floats]:
    """Return place and speed of the car after a step; a car at the goal stays."""
    faster = np.clip(speed + 0.0015 * force - 0.0025 * np.cos(3 * place), -0.07, 0.07)
    further = np.clip(place + faster, -1.2, 0.6)
    faster = np.where(further <= -1.2, np.maximum(faster, 0.0), faster)
    there = place >= GOAL
    return np.where(there, place, further), np.where(there, 0.0, faster)


class ValueIteration:
    """The optimum of the mountain car on a grid, whose values are interpolated linearly.

    After `steps` sweeps a value is the best return of so many steps. The greedy policy of the last values is
    run on the true plant, so `penalty` is one that a policy attains.
    """

    def __init__(self, discount: float, steps: int) -> None:
        """Sweep the grid once for each step of the horizon."""
        self.discount, self.steps = discount, steps
        place, speed = np.meshgrid(PLACES, SPEEDS, indexing="ij")
        after = [drive(place, speed, force) for force in FORCES]
        self.values = np.zeros_like(place)
        for _ in range(steps):
            self.values = np.max([self._backed(*states) for states in after], axis=0)

    def _backed(self, place: Floats, speed: Floats) -> Floats:
        """Return the return from the step that led to these states on."""
        columns = (place - PLACES[0]) / (PLACES[1] - PLACES[0])
        rows = (speed - SPEEDS[0]) / (SPEEDS[1] - SPEEDS[0])
        ahead = map_coordinates(self.values, [columns, rows], order=1, mode="nearest")
        return np.asarray(np.where(place >= GOAL, 0.0, -1.0) + self.discount * ahead)

    def force(self, place: Floats, speed: Floats) -> Floats:
        """Return the best of the forces."""
        returns = [self._backed(*drive(place, speed, force)) for force in FORCES]
        return np.asarray(FORCES[np.argmax(returns, axis=0)])

    def penalty(self, places: Floats) -> float:
        """Return the mean penalty of the greedy policy from these places, at rest."""
        return drive_with(self.force, places, self.discount, self.steps)


def drive_with(
    policy: Callable[[Floats, Floats], Floats], places: Floats, discount: float, steps: int
) -> float:
    """Return the mean penalty of a policy from these places, at rest."""
    place, speed, penalty = places, np.zeros_like(places), np.zeros_like(places)
    for step in range(steps):
        place, speed = drive(place, speed, np.clip(policy(place, speed), -1.0, 1.0))
        penalty += discount**step * (place < GOAL)
    return float(penalty.mean())


def _beside_the_optimum(controller: Controller) -> str:
    task = Task.load("mountaincar")
    best = ValueIteration(task.discount, task.horizon).penalty(task.scoring_starts()[:, 0])
    found = evaluate(controller, task).penalty
    return f"penalty {found:.2f} on the plant, {found / best - 1:+.1%} of the optimum {best:.2f}"


# Swing-up.


def stays_up(controller: Controller, task: Task, start: Floats) -> bool:
    """Tell whether the pole stands in all of the last steps, and the cart is on the track."""
    named = dict(zip(task.unveiled.state_names, start.tolist(), strict=True))
    states = simulate(controller, task, start=named).states[0, -LAST:]
    up, rho = (states[:, task.state_names.index(name)] for name in ("up", "rho"))
    return bool((up > UPRIGHT).all() and (np.abs(rho) <= 2.4).all())


def _swung_up(controller: Controller) -> str:
    task = Task.load("swingup")
    stood = [stays_up(controller, task, start) for start in task.unveiled.scoring_starts(STARTS)]
    return f"up and staying up from {sum(stood)} of {STARTS} starts"


# The Industrial Benchmark. Its data are of a policy that steers velocity, gain and shift to 25, with 40 % of
# random actions.

SETPOINTS = (10, 50, 100)
REACH = {"v": 1.0, "g": 10.0, "h": 5.75}  # what a whole action changes in a step
LOGGED = """
[signals]
luck = { steps = [0.0, 1.0], every = [1, 1] }
any_v = { steps = [-1.0, 1.0], every = [1, 1] }
any_g = { steps = [-1.0, 1.0], every = [1, 1] }
any_h = { steps = [-1.0, 1.0], every = [1, 1] }

[exploration]
size = 30000
steps = 100

[exploration.law]
delta_v = "if(luck < 0.4, any_v, 25 - v)"
delta_g = "if(luck < 0.4, any_g, 25 - g)"
delta_h = "if(luck < 0.4, any_h, 25 - h)"
"""


def industrial(setpoint: int) -> str:
    """Return the text of the built-in task with one setpoint, and with data of that policy."""
    text, _ = read_task("industrial")
    text = text[: text.index("[exploration]")].replace('"industrial"', f'"industrial-{setpoint}"', 1)
    return text.replace("[10.0, 50.0, 100.0]", f"[{setpoint}.0]") + LOGGED


def source(name: str) -> str:
    """Return what `learn` takes for a task: its name, or the file that is written for it here."""
    kind, _, setpoint = name.partition("-")
    if not setpoint:
        return kind
    file = FOLDER / f"{name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(industrial(int(setpoint)), encoding="utf-8")
    return str(file)


class FixedPoint(NamedTuple):
    """The values at which velocity, gain and shift are held, and the mean return from there."""

    values: tuple[float, ...]
    mean: float


def best_fixed_point(task: Task, *, rounds: int = 4, starts: int = 6) -> FixedPoint:
    """Search the best fixed point on the true plant: in each round, a finer grid about the best so far."""
    environment, table = make_environment(task, task.horizon), np.zeros((task.horizon, len(task.states)))
    discounts = task.discount ** np.arange(task.horizon)

    def mean(values: tuple[float, ...]) -> float:
        law = hold(values)
        courses = (
            run_episode(environment, law, task, table, seed, start=settings_of(task, seed))
            for seed in range(STARTS, STARTS + starts)
        )
        return float(np.mean([course.rewards @ discounts for course in courses]))

    best, width = FixedPoint((50.0,) * 3, -np.inf), 25.0
    try:
        for _ in range(rounds):
            middle = best.values
            for steps in product((-1, 0, 1), repeat=3):
                values = tuple(
                    min(max(at + step * width, 0.0), 100.0) for at, step in zip(middle, steps, strict=True)
                )
                best = max(best, FixedPoint(values, mean(values)), key=lambda point: point.mean)
            width /= 2
    finally:
        environment.close()
    return best


def hold(values: Sequence[float]) -> Equation:
    """Return the law that brings velocity, gain and shift to these values and holds them there."""
    parts = zip(REACH.items(), values, strict=True)
    return Equation(
        outputs={f"delta_{name}": f"({value:g} - {name})/{reach:g}" for (name, reach), value in parts}
    )


def logged_return(task: Task, episodes: int = STARTS) -> float:
    """Return the mean return of the policy that logs the data, its random actions included."""
    batch = make_batch(task, rng=np.random.default_rng(1), size=episodes * task.horizon)
    assert batch.rewards is not None  # noqa: S101 - of a plant
    rewards = batch.rewards[~np.isnan(batch.rewards)].reshape(episodes, task.horizon)
    return float((rewards @ task.discount ** np.arange(task.horizon)).mean())


class References(NamedTuple):
    """What a controller is held against: mean returns on the true plant."""

    logged: float
    """of the policy that logged the data"""
    point: tuple[float, ...]
    """the best fixed velocity, gain and shift"""
    fixed: float
    """of the law that holds them"""


@cache
def references(setpoint: int) -> References:
    """Return what controllers for a setpoint are held against, from 200 starts."""
    task = Task.from_toml(industrial(setpoint))
    point = best_fixed_point(task)
    fixed = -evaluate(hold(point.values), task, starts=STARTS).penalty
    return References(logged_return(task), point.values, fixed)


def _beside_its_log(setpoint: int, controller: Controller) -> str:
    found = -evaluate(controller, Task.from_toml(industrial(setpoint)), starts=STARTS).penalty
    logged, point, fixed = references(setpoint)
    held = ", ".join(f"{value:g}" for value in point)
    return (
        f"return {found:.0f} on the plant; of the policy that logged {logged:.0f}; of the best fixed point "
        f"({held}) {fixed:.0f}"
    )


CHECKS: dict[str, Callable[[Controller], str]] = {
    "mountaincar": _beside_the_optimum,
    "swingup": _swung_up,
    **{f"industrial-{setpoint}": partial(_beside_its_log, setpoint) for setpoint in SETPOINTS},
}

if __name__ == "__main__":
    main()
