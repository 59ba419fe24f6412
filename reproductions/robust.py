"""Whether picks are fit to be switched on: their margins, and their cost under disturbances, on the plant.

`python -m reproductions.robust [--task TASK] [--seeds N] [--budget N] [--robust on|off] [--folder DIR]`; by
default the cart-pole with seeds 0 to 9 and the budget `quick`. Each seed has a batch and models of its own,
as `clearloop learn --seed` has. Margins come from the exact linearisation of the plant. For the cart-pole the
disturbances are nine: one step late, gain 80 and 120 %, sensor noise of 1 and 5 %, and a pole that is longer,
shorter, heavier or lighter by 20 %. Results are kept in runs/robust; those that are there are not repeated.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller, from_json, to_json
from clearloop.data import Batch
from clearloop.data.log import usual_setpoints
from clearloop.evaluation import evaluate
from clearloop.files import read_text, whole_file
from clearloop.methods import learn
from clearloop.methods.gprl import GPRL
from clearloop.methods.learning import read_budget, repeat_log
from clearloop.plants.exploration import make_batch
from clearloop.plants.scenarios import Disturbance, Scenarios
from clearloop.runs.front import Front, method_rng
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from clearloop.task.task import read_task
from reproductions.exact import linearise_exactly

FOLDER = Path("runs/robust")
LARGEST = 1024 * 1024  # bytes of a result
STARTS = 1024
DISTURBANCES = (
    Disturbance("one step late", late=1),
    Disturbance("gain 80 %", gain=0.8),
    Disturbance("gain 120 %", gain=1.2),
    Disturbance("noise 1 %", noise=0.01),
)
MORE = (Disturbance("noise 5 %", noise=0.05),)

Result = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the arguments are those of the process unless given."""
    parser = argparse.ArgumentParser("python -m reproductions.robust", description=__doc__)
    parser.add_argument("--task", default="cartpole", help="a built-in task (cartpole)")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="number of experiments (10)")
    parser.add_argument("--budget", default="quick", metavar="N", help="model steps (quick)")
    parser.add_argument("--robust", default="on", choices=("on", "off"), help="ask for margins (on)")
    parser.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR", help=str(FOLDER))
    asked = parser.parse_args([] if arguments is None else arguments)
    found = []
    for seed in range(asked.seeds):
        file = asked.folder / f"{asked.task}-{asked.budget}-{asked.robust}-{seed}.json"
        if not file.exists():
            result = examine(asked.task, seed, asked.budget, robust=asked.robust == "on")
            asked.folder.mkdir(parents=True, exist_ok=True)
            with whole_file(file) as out:
                out.write(json.dumps(result, indent=1).encode())
        found.append(json.loads(read_text(file, LARGEST)))
        print(line(seed, found[-1]), flush=True)
    print(summary(found))
    return 0


def examine(task_name: str, seed: int, budget: str, *, robust: bool) -> Result:
    """Learn from a batch of this seed, and examine the pick on the plant."""
    task = Task.load(task_name)
    batch = make_batch(task, rng=np.random.default_rng(seed))
    fitted = Surrogate.fit(task, batch, rng=np.random.default_rng([seed, 1]))
    surrogate, _ = repeat_log(task, batch, fitted)
    steps = read_budget(budget if budget in ("quick", "standard", "full") else int(float(budget)))
    result = learn(
        task, batch, GPRL(), rng=method_rng(seed), budget=steps, surrogate=surrogate, robust=robust
    )
    front = Front.of([result])
    pick = result.points[front.pick]
    told = ("complexity", "penalty_model", "phase_margin", "gain_margin", "delay_margin", "ms", "robust")
    return {
        "controller": json.loads(to_json(pick.controller)),
        "said": {name: getattr(front.entries[front.pick], name) for name in told},
        **on_plant(pick.controller, task, batch),
    }


def on_plant(controller: Controller, task: Task, batch: Batch) -> Result:
    """Return the margins of a controller on the plant, and what it costs there with each disturbance."""
    full, spread = task.unveiled, np.zeros(len(task.unveiled.states))
    spread[: len(task.states)] = batch.states.std(axis=0)
    costs = {"nominal": evaluate(controller, task, starts=STARTS).penalty}
    calm = Scenarios.scoring(task, STARTS)
    drawn = np.random.default_rng(0).standard_normal((calm.steps, len(spread), STARTS))
    for case in DISTURBANCES + (MORE if task.name == "cartpole" else ()):
        upset = calm.disturbed(task, [case], spread=spread, drawn=drawn)
        costs[case.name] = evaluate(controller, task, starts=upset).penalty
    if task.name == "cartpole":
        for name, other in other_poles():
            costs[name] = evaluate(controller, other, starts=STARTS).penalty
    aims, start = np.zeros(len(full.states)), np.zeros(len(full.states))
    start[: len(task.states)] = 0.0 if task.symmetric else batch.states.mean(axis=0)
    usual = {name: aim for name, aim in task.setpoints.items() if not isinstance(aim, str)}
    for name, aim in (usual | usual_setpoints(task, batch.setpoints)).items():
        aims[full.state_names.index(name)] = aim
    exact = linearise_exactly(controller, full, aims, start, np.where(spread > 0, spread, 1.0))
    margins = exact.margins() if exact is not None and exact.stable else None
    return {
        "costs": costs,
        "phase": margins and margins.phase,
        "gain": margins and margins.gain,
        "delay": margins and margins.delay / task.dt,
    }


def other_poles() -> Iterator[tuple[str, Task]]:
    """Yield the cart-pole with other poles."""
    text, source = read_task("cartpole")
    for share in (0.8, 1.2):
        longer = text.replace("l = 0.5 ", f"l = {0.5 * share:g} ")
        mass = 0.1 * share
        heavier = text.replace("m = 0.1 ", f"m = {mass:g} ").replace("M = 1.1 ", f"M = {1 + mass:g} ")
        assert text not in (longer, heavier)  # noqa: S101 the file may have changed
        yield f"pole length {share:.0%}", Task.from_toml(longer, source=source)
        yield f"pole mass {share:.0%}", Task.from_toml(heavier, source=source)


def line(seed: int, found: Result) -> str:
    """Return one line about the pick of a seed."""
    costs = found["costs"]
    phase, delay = ("-" if found[name] is None else f"{found[name]:.3g}" for name in ("phase", "delay"))
    return (
        f"{seed}: {costs['nominal']:.3f}, late {costs['one step late']:.3f}, mean disturbed "
        f"{disturbed(found):.3f}, {phase} degrees, {delay} steps, complexity {found['said']['complexity']}: "
        f"{from_json(json.dumps(found['controller'])).summary}"
    )


def disturbed(found: Result) -> float:
    """Return the mean cost with disturbances."""
    return float(np.mean([cost for name, cost in found["costs"].items() if name != "nominal"]))


def summary(found: Sequence[Result]) -> str:
    """Return the means over the seeds, and how many picks keep 30 degrees and 1.5 steps on the plant."""

    def mean(values: Sequence[float]) -> str:
        some: Floats = np.array(values)
        error = some.std(ddof=1) / np.sqrt(len(some)) if len(some) > 1 else 0.0
        return f"{some.mean():.3f} ± {error:.3f}"

    kept = sum((one["phase"] or 0) >= 30 and (one["delay"] or 0) >= 1.5 for one in found)
    names = ("nominal", "one step late")
    costs = ", ".join(f"{name} {mean([one['costs'][name] for one in found])}" for name in names)
    return f"{costs}, disturbed {mean([disturbed(one) for one in found])}; margins: {kept} of {len(found)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
