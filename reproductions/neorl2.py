"""NeoRL-2 (Gao et al. 2025, arXiv 2503.19267): readable controllers beside nine methods of deep offline RL.

`python -m reproductions.neorl2 --data DIR --env DIR --python PYTHON`, where DIR has archives of the benchmark
(`DMSD-high-100000-train.npz`), `--env` is a checkout of github:polixir/NeoRL2, and PYTHON is an interpreter
with what its environments need: NumPy below 2, pandas below 2.2, setuptools below 81, gymnasium 0.29, SciPy,
matplotlib, torch and Box2D. Without `--env` everything is learned and promised, and nothing is scored.

Each task is learned with the default settings of `clearloop learn`, once for each seed, from its largest
training set (its validation set if there is no other). Its pick is what `learn` picks. Only then the true
environment is asked. Everything goes on where it was stopped. Runs, scores and table are in runs/neorl2.
"""

import argparse
import csv
import json
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller, load
from clearloop.data import Batch, read
from clearloop.errors import ClearloopError
from clearloop.exports.targets import export
from clearloop.files import read_text, whole_file
from clearloop.task import Task
from reproductions.neorl2_figure import Row, draw

TASKS = Path(__file__).parent / "neorl2_tasks"
METHODS = ("BC", "CQL", "EDAC", "MCQ", "TD3BC", "MOPO", "COMBO", "RAMBO", "MOBILE")


class Scale(NamedTuple):
    """The returns that count 0 and 100, and the scores of the nine methods as published, if we have them."""

    least: float
    most: float
    scores: tuple[float, ...]

    def score(self, value: float) -> float:
        """Return the score of a return."""
        return 100 * (value - self.least) / (self.most - self.least)


PUBLISHED: Mapping[str, Scale] = {
    "DMSD": Scale(30.60, 849.51, (65.1, 70.2, 78.7, 77.8, 60.0, 68.2, 68.3, 76.2, 64.4)),
    "Simglucose": Scale(9.75, 475, (75.1, 11.0, 8.1, 29.6, 74.2, 34.6, 23.2, 10.8, 9.3)),
    "RocketRecovery": Scale(-176, 208, (72.7, 74.3, 65.6, 76.5, 79.7, -27.7, 74.7, -44.2, 43.7)),
    "Pipeline": Scale(-296, 751, (68.6, 81.1, 72.9, 49.7, 82.0, -26.3, 55.5, 24.1, 65.5)),
    "Fusion": Scale(-107.601, 98.05, (55.2, 55.9, 58.0, 49.7, 54.6, -11.6, 55.5, 59.6, 5.0)),
    "RandomFrictionHopper": Scale(-3, 503, ()),
    "SafetyHalfCheetah": Scale(-283, 2507, ()),
    "Salespromotion": Scale(357.62, 602.21, ()),
}
UNKNOWN = Scale(0.0, 100.0, ())
"""A task of no published scale: its scores are its returns."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the arguments are those of the process unless given."""
    asked = _parser().parse_args(arguments)
    try:
        logs = find_logs(asked.data, asked.tasks)
        names = list(logs)
        asked.out.mkdir(parents=True, exist_ok=True)
        for name in names:
            task = task_file(name, logs[name], asked.out)
            for seed in asked.seeds:
                _learn(task, logs[name], asked.out / f"{name}-{seed}", seed, asked.options)
        if asked.env is not None:
            for name in names:
                for seed in asked.seeds:
                    _score(name, asked.out / f"{name}-{seed}", logs[name], asked)
        found = summarize(asked.out, logs, asked.seeds)
    except ClearloopError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with whole_file(asked.out / "table.md") as file:
        file.write(found.encode())
    draw(rows(asked.out, logs, asked.seeds), asked.figure or asked.out / "neorl2.png")
    print(found)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reproductions.neorl2")
    parser.add_argument("--data", type=Path, required=True, help="folder with the archives")
    parser.add_argument("--env", type=Path, help="checkout of github:polixir/NeoRL2")
    parser.add_argument("--python", default=sys.executable, help="interpreter for the environments")
    parser.add_argument("--tasks", nargs="*", help="all that have data, if not given")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(5)))
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("runs/neorl2"))
    parser.add_argument("--figure", type=Path, help="where to write the figure: .png or .svg")
    parser.add_argument("--options", nargs="*", default=[], help="further words for learn: budget=quick")
    return parser


# Data and tasks.


def find_logs(folder: Path, wanted: Sequence[str] | None = None) -> dict[str, Path]:
    """Return the largest training set of each task; its validation set if it has no other."""
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*-*.npz"), key=lambda path: ("-train" in path.stem, path.stat().st_size)):
        found[path.stem.partition("-")[0]] = path
    if not found:
        raise ClearloopError(f"{folder}: holds no archive such as DMSD-high-100000-train.npz")
    names = wanted or sorted(found)
    for name in names:
        if name not in found:
            raise ClearloopError(f"{folder}: no archive {name}-*.npz; there are: {', '.join(sorted(found))}")
    return {name: found[name] for name in names}


def task_file(name: str, log: Path, out: Path) -> Path:
    """Return the task file of this name; if we have none, draft it from the log."""
    known = TASKS / f"{name}.toml"
    if known.exists():
        return known
    drafted = out / f"{name}.toml"
    if not drafted.exists():
        with whole_file(drafted) as file:
            file.write(draft(name, log).encode())
    return drafted


def draft(name: str, log: Path) -> str:
    """Draft a task for a log of which nothing is known: the reward is learned, and constants are left out."""
    frame = read(log)
    seen = [column for column in frame.columns if column.startswith("obs_")]
    moving = [column for column in seen if frame[column].n_unique() > 1]
    acted = [column for column in frame.columns if column.startswith("action_")]
    longest = int(frame["episode"].value_counts()["count"].to_numpy().max()) - 1
    values = {column: frame[column].drop_nulls().to_numpy() for column in acted}
    limits = {column: (min(-1.0, float(v.min())), max(1.0, float(v.max()))) for column, v in values.items()}
    lines = [
        f"# Drafted from {log.name}, with a reward that is learned and steps that count as seconds.",
        f"name = {json.dumps(name)}",
        "dt = 1.0",
        "discount = 1.0",
        f"horizon = {longest}",
        "history = 2",
        "[states]",
        *(f"{column} = {{}}" for column in moving),
        "[actions]",
        *(f"{column} = {{ limits = [{low}, {high}] }}" for column, (low, high) in limits.items()),
        "[reward]",
        'column = "reward"',
        "[starts]",
        'from = "episodes"',
        "[data]",
        *(f'{column} = "{column}"' for column in (*moving, *acted)),
    ]
    return "\n".join(lines) + "\n"


# Learning.


def _learn(task: Path, log: Path, run: Path, seed: int, options: Sequence[str]) -> None:
    """Learn with the default settings; a log or a model that is refused is used all the same, and noted."""
    if _described(run).get("status") == "finished":
        return
    words = ["learn", str(task), "--data", str(log), "--seed", str(seed), "--out", str(run)]
    words += ["--resume", "--force"]
    words += [word for option in options for word in _option(option)]
    done = subprocess.run([sys.executable, "-m", "clearloop", *words], check=False)  # noqa: S603
    if done.returncode:
        raise ClearloopError(f"{run}: clearloop {' '.join(words)} failed: see above")


def _option(text: str) -> list[str]:
    name, _, value = text.partition("=")
    return [f"--{name}", value] if value else [f"--{name}"]


def _described(run: Path) -> dict[str, Any]:
    file = run / "run.json"
    return dict(json.loads(read_text(file, 16 * 1024 * 1024))) if file.exists() else {}


class Pick(NamedTuple):
    """What `learn` picked, and what it promised."""

    number: str
    complexity: int
    promise: float
    """the promised return"""
    low: float
    high: float
    doubts: int
    """problems that `learn` named beforehand; with any, it would have refused"""
    seconds: float
    formula: str


def picked(run: Path) -> Pick:
    """Read the pick of a finished run."""
    about = _described(run)
    number = str(about["pick"]["controller"])
    with (run / "front.csv").open(encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["controller"] == number)
    with (run / "timing.csv").open(encoding="utf-8", newline="") as file:
        seconds = sum(float(row["seconds"]) for row in csv.DictReader(file))
    return Pick(
        number,
        int(row["complexity"]),
        -float(row["penalty_model"]),
        -float(row["penalty_high"] or "nan"),
        -float(row["penalty_low"] or "nan"),
        len(about.get("doubts", [])),
        seconds,
        row["formula"],
    )


# The true environment.


def _score(name: str, run: Path, log: Path, asked: argparse.Namespace) -> None:
    """Run the episodes of a pick that are not scored yet; each is a line of `scores.jsonl`."""
    scores = run / "scores.jsonl"
    done = _scores(run)
    missing = [seed for seed in range(asked.episodes) if seed not in done]
    if not missing:
        return
    task = Task.load(_task_of(name, asked.out))
    controller = load(run / "controllers" / f"{picked(run).number}.json")
    question = {
        "environments": str(asked.env.resolve()),
        "environment": name,
        "source": source_of(controller, task),
        "seeds": missing,
        **places(task, log),
    }
    worker = [asked.python, str(Path(__file__).with_name("neorl2_scoring.py"))]
    pipe = subprocess.PIPE
    with subprocess.Popen(worker, stdin=pipe, stdout=pipe, text=True) as process:  # noqa: S603
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        process.stdin.write(json.dumps(question))
        process.stdin.close()
        with scores.open("a", encoding="utf-8") as file:
            for line in process.stdout:
                file.write(line)
                file.flush()
    if process.returncode:
        raise ClearloopError(f"{worker[0]}: the environment {name} stopped: see above")


def _task_of(name: str, out: Path) -> Path:
    known = TASKS / f"{name}.toml"
    return known if known.exists() else out / f"{name}.toml"


def _scores(run: Path) -> dict[int, float]:
    """Return the return of each episode that was run, by its seed."""
    file = run / "scores.jsonl"
    if not file.exists():
        return {}
    lines = read_text(file, 16 * 1024 * 1024).splitlines()
    rows = [json.loads(line) for line in lines if line.endswith("}")]  # the last may be cut
    return {int(row["seed"]): float(row["return"]) for row in rows}


def source_of(controller: Controller, task: Task) -> str:
    """Return the controller as Python source that needs nothing but Python."""
    return "\n".join(export(controller.for_task(task), to="python").values())


def places(task: Task, log: Path) -> dict[str, Any]:
    """Return where an observation has each measured state and logged setpoint, and what else a law reads."""
    columns = task.columns
    measured = {
        name: column
        for name, column in zip(task.state_names, columns.states, strict=True)
        if name not in task.derived
    }
    logged = [name for name, aim in task.setpoints.items() if isinstance(aim, str)]
    names = [*measured.values(), *columns.setpoints]
    numbered = all(column.startswith("obs_") and column[4:].isdecimal() for column in names)
    place = {column: int(column[4:]) if numbered else at for at, column in enumerate(names)}
    if not numbered:
        Batch.load(log, task)  # the archive has exactly these observations, in this order
    return {
        "states": {name: place[column] for name, column in measured.items()},
        "setpoints": {name: place[str(task.setpoints[name])] for name in logged},
        "aims": {name: aim for name, aim in task.setpoints.items() if not isinstance(aim, str)},
        "actions": list(task.action_names),
    }


# The table.


def summarize(out: Path, logs: Mapping[str, Path], seeds: Sequence[int]) -> str:
    """Write what was found as Markdown: scores beside the published ones, promises beside the truth."""
    return "\n".join([*_against(out, logs, seeds), "", *_promises(out, logs, seeds)]) + "\n"


def rows(out: Path, logs: Mapping[str, Path], seeds: Sequence[int]) -> dict[str, Row]:
    """Return the scores on each task."""
    found = {}
    for name, log in logs.items():
        scale = PUBLISHED.get(name, UNKNOWN)
        returns = [list(_scores(out / f"{name}-{seed}").values()) for seed in seeds]
        ours = [scale.score(float(np.mean(some))) for some in returns if some]
        others = dict(zip(METHODS, scale.scores, strict=False))
        found[name] = Row(scale.score(data_return(log)), others, ours)
    return found


def _against(out: Path, logs: Mapping[str, Path], seeds: Sequence[int]) -> list[str]:
    lines = [
        f"| task | the data | {' | '.join(METHODS)} | clearloop | seeds |",
        "|---|" + "---|" * (len(METHODS) + 3),
    ]
    for name, row in rows(out, logs, seeds).items():
        ours = f"**{_spread(row.ours)}**" if row.ours else "not scored"
        scores = [f"{score:.1f}" for score in row.others.values()] or [""] * len(METHODS)
        lines.append(f"| {' | '.join([name, f'{row.data:.1f}', *scores, ours, str(len(row.ours))])} |")
    return lines


def _spread(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.1f}"
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.1f}"


def _promises(out: Path, logs: Mapping[str, Path], seeds: Sequence[int]) -> list[str]:
    heads = (
        "task, seed",
        "promised return",
        "95 %",
        "true return",
        "episodes",
        "off",
        "said beforehand",
        "complexity",
        "minutes",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in logs:
        for seed in seeds:
            run = out / f"{name}-{seed}"
            if _described(run).get("status") == "finished":
                cells = _promise(picked(run), np.array(list(_scores(run).values())))
                lines.append(f"| {name}, {seed} | {' | '.join(cells)} |")
    return lines


def _promise(pick: Pick, returns: Floats) -> list[str]:
    """Write what was promised and what came."""
    true = off = ""
    if len(returns):
        error = returns.std(ddof=1) / math.sqrt(len(returns)) if len(returns) > 1 else math.nan
        true, off = f"{returns.mean():.1f} ± {error:.1f}", f"{pick.promise / returns.mean() - 1:+.0%}"
    return [
        f"{pick.promise:.1f}",
        f"{pick.low:.0f} … {pick.high:.0f}",
        true,
        str(len(returns)),
        off,
        f"refused for {pick.doubts}" if pick.doubts else "",
        str(pick.complexity),
        f"{pick.seconds / 60:.1f}",
    ]


def data_return(log: Path) -> float:
    """Return the mean return of the episodes of a log."""
    frame = read(log)
    if "reward" not in frame.columns:
        raise ClearloopError(f"{log}: holds no rewards, so its score is unknown")
    totals = frame.group_by("episode", maintain_order=True).sum()["reward"].to_numpy()
    return float(np.mean(totals))


if __name__ == "__main__":
    sys.exit(main())
