"""New numbers for a PID from a log, against the best possible: the test batch of Åström and Hägglund.

`python -m reproductions.pid [--processes N] [--folder DIR]`: N processes spread over the batch (42; all are
134). Each is logged under a sluggish or a nervous PI, and `tune` gets that log alone. Its PID is tested on
the true process, beside the best PID that a direct search on the true process finds with the same limits
on Ms and on noise, and beside SIMC and AMIGO, which know the true process. Results are kept in runs/pid;
those that are there are not repeated.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clearloop.errors import ClearloopError
from clearloop.figures.style import COLOURS, SETTINGS, logarithmic, save_figure
from clearloop.files import read_text, whole_file
from clearloop.methods.pid_rules import Bench, Gains, find_shape, rules
from clearloop.methods.pid_search import Limits, Trial, search
from clearloop.methods.tuning import tune
from reproductions.pid_batch import Case, make_case, whole_batch

FOLDER = Path("runs/pid")
LARGEST = 1024 * 1024  # bytes of a result
PROCESSES = 42
RULES = ("SIMC PI", "AMIGO PID")
WITHIN = {"median": 0.10, "90 %": 0.25}  # what the ratios are to be within
MOST_MS = 1.8

Result = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the arguments are those of the process unless given."""
    parser = argparse.ArgumentParser("python -m reproductions.pid", description=__doc__)
    parser.add_argument("--processes", type=int, default=PROCESSES, metavar="N", help=f"({PROCESSES})")
    parser.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR", help=str(FOLDER))
    asked = parser.parse_args([] if arguments is None else arguments)
    whole = len(list(whole_batch()))
    count = max(1, min(asked.processes, whole))
    numbers = np.floor((np.arange(count) + 0.5) * whole / count).astype(int)
    found: list[Result] = []
    for number in numbers.tolist():
        file = asked.folder / f"{number}.json"
        if not file.exists():
            asked.folder.mkdir(parents=True, exist_ok=True)
            result = examine(make_case(number))
            with whole_file(file) as out:
                out.write(json.dumps(result, indent=1).encode())
        found.append(load(file))
        print(line(found[-1]), flush=True)
    print(*summary(found), sep="\n")
    save_figure(draw(found), asked.folder / "pid.svg")
    return 0


def load(file: Path) -> Result:
    """Return a result that was kept."""
    found: Result = json.loads(read_text(file, LARGEST))
    return found


def examine(case: Case) -> Result:
    """Tune a PID from the log of a process, and try it on the process beside the others."""
    result: Result = {"process": case.plant.name, "logger": case.logger, "rows": {}}
    shape = find_shape(case.bench.process, case.dt)
    ruled = {} if shape is None else dict(rules(shape, case.bench, None))
    named = {"log": case.law} | {name: ruled[name] for name in RULES if name in ruled}
    try:
        found = tune(case.task, case.log, structure="PID")
    except ClearloopError as error:
        result["refused"], limits = str(error), Limits()
    else:
        named["tune"], limits = found.rows[found.picked].gains, found.limits
        result |= {"supported": found.supported, "doubt": found.rows[found.picked].doubt}
    result["noise"] = limits.noise
    named["best"] = best(case.bench, list(named.values()), limits)
    for name, gains in named.items():
        result["rows"][name] = {"gains": list(gains), **_tried(case.bench, gains)}
    return result


def best(bench: Bench, starts: Sequence[Gains], limits: Limits) -> Gains:
    """Return the best PID on the true process: by differential evolution, and a simplex from all known."""
    from scipy.optimize import differential_evolution

    trial = Trial([bench], limits, starts[0], None)
    length = bench.steps * bench.dt
    bounds = [(math.log(bench.dt / 2), math.log(share * length)) for share in (0.5, 0.1, 0.1)]
    spread = differential_evolution(trial.cost, bounds, popsize=8, maxiter=25, tol=1e-4, rng=0, polish=False)
    steady = [one for one in starts if math.isfinite(bench.sensitivity(one))]
    found = search([bench], [*steady, trial.gains(spread.x)], limits, "PID", None)
    if found is None:
        raise ValueError("no PID keeps the limits on the true process")
    return found


def _tried(bench: Bench, gains: Gains) -> dict[str, float | None]:
    ms = bench.sensitivity(gains)
    if not math.isfinite(ms):
        return {"ms": None, "load": None, "noise": None}
    return {"ms": ms, "load": bench.load(gains), "noise": bench.noise(gains)}


def ratio(result: Result, name: str) -> float:
    """Return ∫|e| dt of a row as a share of the best, infinite if the loop is not stable or is missing."""
    row = result["rows"].get(name)
    if row is None or row["load"] is None:
        return math.inf
    return float(row["load"] / result["rows"]["best"]["load"])


def line(result: Result) -> str:
    """Return one line about a process."""
    cells = []
    for name in ("log", "tune", *RULES):
        row = result["rows"].get(name, {"ms": None})
        ms = "unstable" if row["ms"] is None else f"Ms {row['ms']:.2f}"
        cells.append(f"{name} {ratio(result, name):.2f} ({ms})")
    refused = f" refused: {result['refused']}" if "refused" in result else ""
    return f"{result['process']}, {result['logger']}: {', '.join(cells)}{refused}"


def summary(found: Sequence[Result]) -> list[str]:
    """Return a table of ∫|e| dt over the best one's, and of Ms, over all processes."""
    lines = [f"{len(found)} processes     median   90 %  within 25 %  largest Ms  Ms <= 1.8"]
    for name in ("log", "tune", *RULES):
        ratios = np.array([ratio(one, name) for one in found])
        sizes = [one["rows"].get(name, {"ms": None})["ms"] or math.inf for one in found]
        worst, share = np.quantile(ratios, 0.9, method="higher"), np.mean(ratios <= 1 + WITHIN["90 %"])
        calm = np.mean(np.array(sizes) <= MOST_MS)
        lines.append(
            f"{name:<14}  {np.median(ratios):>6.3f} {worst:>6.2f} {share:>12.0%} "
            f"{max(sizes):>11.2f} {calm:>10.0%}"
        )
    return lines


def draw(found: Sequence[Result]) -> Any:
    """Draw ∫|e| dt as a share of the best one's, and Ms, each sorted over the processes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=(8, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        share = (np.arange(len(found)) + 1) / len(found) * 100
        for name, colour in zip(("tune", *RULES, "log"), COLOURS, strict=False):
            ratios = np.sort([min(ratio(one, name), 1e3) for one in found])
            sizes = np.sort([min(one["rows"].get(name, {"ms": None})["ms"] or 1e3, 1e3) for one in found])
            left.step(ratios, share, where="post", label=name, color=colour)
            right.step(sizes, share, where="post", label=name, color=colour)
        left.axvline(1 + WITHIN["90 %"], color="0.7", linewidth=0.8)
        logarithmic(left.xaxis, within=(1.0, 2.0, 5.0))
        left.set(xlim=(0.8, 10), xlabel="∫|e| dt after a load step / that of the best PID")
        right.axvline(MOST_MS, color="0.7", linewidth=0.8)
        right.set(xlim=(1, 3), xlabel="largest sensitivity Ms on the process")
        left.set_ylabel("processes, %")
        left.legend(loc="lower right")
    return figure


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
