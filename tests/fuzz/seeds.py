"""Good files that cases are made from: tasks, logs, controllers and runs."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearloop.task.task import read_task
from tests.fuzz.damage import Table, to_table
from tests.task.texts import SMALL

ROOT = Path(__file__).parents[2]
TASKS = ("cartpole", "tank", "motor", "cartpole-hardware")
NAMES = {
    "cartpole": ["theta", "theta_dot", "rho", "rho_dot", "force"],
    "tank": ["level", "level_sum", "pump", "upper", "lower"],
    "motor": ["speed", "voltage"],
    "cartpole-hardware": ["theta", "rho", "force"],
    "small": ["level", "flow", "valve"],
}
ROWS_OF_A_LOG = 240
Files = dict[str, bytes]


@dataclass(frozen=True)
class Seeds:
    """The good files; `logs` are made by the program itself, so that they are as it writes them."""

    logs: dict[str, Table]  # by the name of their task
    workbook: bytes
    archive: bytes
    tasks: dict[str, Any]
    controllers: dict[str, Any]
    fitting: dict[str, str]  # the task of each controller
    finished: Files  # a run
    interrupted: Files
    bench: Files
    shadow: Files


def commands(folder: Path) -> list[list[str]]:
    """The commands that make the logs and a shadow in a folder, in which `load` looks for them."""
    logs = [
        ["data", "make", task, "--size", str(ROWS_OF_A_LOG), "--out", str(folder / f"{task}.csv")]
        for task in TASKS
    ]
    law, log = ROOT / "examples" / "published" / "gprl.json", folder / "cartpole.csv"
    beside = ["--csv", str(log), "--once", "--samples", "50", "--out", str(folder / "shadow")]
    return [*logs, ["shadow", str(law), "--task", "cartpole", *beside]]


def write_archives(folder: Path) -> None:
    """Write one of the logs as an Excel file and as Parquet; polars is at work, so this needs a process."""
    import polars as pl

    frame = pl.read_csv(folder / "tank.csv").head(40)
    frame.write_excel(folder / "tank.xlsx")
    frame.write_parquet(folder / "tank.parquet")


def write_bench(folder: Path) -> None:
    """Write a bench whose experiments are all done, without searching."""
    from clearloop.bench.experiment import LAST, Store
    from clearloop.bench.table import Bench, Course, write_tables
    from clearloop.data import Batch
    from clearloop.methods.method import find_method
    from clearloop.runs import Request, RunDirectory
    from clearloop.task import Task

    task = Task.load("cartpole")
    methods = (find_method("lqr")(), find_method("fpsrl")())
    bench = Bench(
        request=Request(command="bench", task="cartpole", methods=methods, budget=1_000), seeds=2, fresh=False
    )
    run = RunDirectory(folder / "bench")
    run.begin(task, Batch.load(folder / "cartpole.csv", task), bench.to_dict())
    course, store = Course(bench, task, Store(run)), Store(run)
    known = {"title": "GPRL", "model": [1.0, 2.5], "system": [1.5, 2.0], "failures": 0.5}
    for work in bench.models(task):
        store.keep(work.key, {LAST: json.dumps([known]).encode()})
    law = (ROOT / "examples" / "published" / "gprl.json").read_text()
    score = {"complexity": 9, "controller": law, "model": [1.0, 2.0], "system": [1.5, 3.0], "failures": 0.0}
    for work in bench.experiments(task):
        store.keep(work.key, {"seconds": 1.5, "steps": 1_000, "scores": {work.method: score}})
    write_tables(run, course)
    run.mark("finished")


def load(folder: Path) -> Seeds:
    """Read what the commands made, and the files of the repository."""
    return Seeds(
        logs={task: to_table((folder / f"{task}.csv").read_bytes()) for task in TASKS},
        workbook=(folder / "tank.xlsx").read_bytes(),
        archive=(folder / "tank.parquet").read_bytes(),
        bench=_files(folder / "bench"),
        shadow={name: content for name, content in _files(folder / "shadow").items() if "html" not in name},
        **read_repository(),
    )


def read_repository() -> dict[str, Any]:
    """Read the built-in tasks, the controllers and the runs that the repository has."""
    kept = ROOT / "tests" / "version_0_1"
    files = [*(kept / "controllers").glob("*.json"), *(ROOT / "examples").glob("*/*.json")]
    controllers = {f"{file.parent.name}-{file.stem}": json.loads(file.read_text()) for file in sorted(files)}
    finished = _files(kept / "finished")
    for number in ("001", "002", "004", "005", "006", "007"):  # a report takes seconds for each controller
        del finished[f"controllers/{number}.json"]
        for table in ("front.csv", "judged.csv", "trust.csv"):
            lines = finished[table].splitlines(keepends=True)
            finished[table] = b"".join(line for line in lines if not line.startswith(number.encode()))
    return {
        "tasks": {task: tomllib.loads(read_task(task)[0]) for task in TASKS}
        | {"small": tomllib.loads(SMALL)},
        "controllers": controllers,
        "fitting": {
            name: name.removeprefix("plants-") if "plants-" in name else "cartpole" for name in controllers
        },
        "finished": finished,
        "interrupted": _files(kept / "interrupted"),
    }


def _files(folder: Path) -> Files:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
